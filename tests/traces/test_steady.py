"""Steady regions and windows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.labels import UpstreamStep
from magpie_tui.traces.steady import (
    SteadyOptions,
    parse_iterations,
    phase_runs,
    steady_notes,
    steady_regions,
    steady_windows,
)


def steps(*requests: int, context_at: tuple[int, ...] = ()) -> list[UpstreamStep]:
    return [
        UpstreamStep(number, 1, number, number - 1, number)
        if index in context_at
        else UpstreamStep(number, 0, 0, number)
        for index, number in enumerate(requests)
    ]


def test_a_region_runs_on_for_six_steps_after_the_drop() -> None:
    load = steps(*[4, 8, 16], *[32] * 10, *[2] * 12, 1)
    assert steady_regions(load, SteadyOptions(num_steps=8)) == ((3, 18),)
    assert "5 steps after the load dropped" in steady_notes(load, ((3, 18),), searched=True)[0]


def test_an_open_region_closes_at_the_last_step_exclusive() -> None:
    assert steady_regions(steps(*[16] * 12), SteadyOptions(num_steps=8)) == ((0, 11),)


def test_without_a_region_the_middle_is_taken() -> None:
    jagged = steps(*[1, 100] * 5, *[1] * 30)
    assert steady_regions(jagged, SteadyOptions(num_steps=8)) == ((4, 36),)
    assert steady_regions(steps(5, 5, 5, 5), SteadyOptions(num_steps=8)) == ()
    assert steady_notes(steps(5), (), searched=True) == ["too few steps for a steady state: no window"]


def test_iterations_replace_the_search() -> None:
    load = steps(*[16] * 12)
    assert steady_regions(load, SteadyOptions(iterations=(3, 6))) == ((3, 6),)
    assert steady_regions(load, SteadyOptions(iterations=(10, 40))) == ((10, 12),)
    assert steady_regions(load, SteadyOptions(iterations=(12, 14))) == ()


def test_windows_of_each_kind() -> None:
    load = steps(*[16] * 20, context_at=(4, 5, 12))
    region = ((0, 20),)
    found = {window.label: (window.first, window.last) for window in steady_windows(load, region, SteadyOptions(8))}
    assert found == {
        "mixed_steady_state": (6, 14),
        "decode_only_steady_state": (13, 20),
        "prefilldecode_steady_state": (4, 6),
    }


def test_the_load_sets_the_ratio_and_the_length_of_the_mixed_window() -> None:
    load = steps(*[16] * 60, context_at=(4, 40))
    options = SteadyOptions(8, None, concurrency=16, output_length=640, ratio=7.0)
    assert options.ideal_ratio == 2 * 16 / (640 * 2)
    mixed = steady_windows(load, ((0, 60),), options)[0]
    assert len(mixed) == 40
    assert SteadyOptions(8, None, 16, 640).ideal_ratio is None


@pytest.mark.parametrize("text", ["3", "3:", ":6", "a:b", "-1:4", "3:6:9"])
def test_a_bad_range_is_refused(text: str) -> None:
    with pytest.raises(UserInputError, match="START:END"):
        parse_iterations(text)


@pytest.mark.parametrize(
    "options",
    [
        SteadyOptions(0),
        SteadyOptions(iterations=(6, 3)),
        SteadyOptions(concurrency=0),
        SteadyOptions(output_length=float("nan")),
        SteadyOptions(ratio=float("inf")),
    ],
)
def test_options_out_of_range_are_refused(options: SteadyOptions) -> None:
    with pytest.raises(UserInputError):
        options.check()


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 40)), max_size=60),
    st.integers(1, 40),
)
def test_regions_and_windows_stay_within_the_steps(load: list[tuple[int, int]], length: int) -> None:
    given_steps = [UpstreamStep(c + g, c, c, g, g) for c, g in load]
    options = SteadyOptions(length)
    regions = steady_regions(given_steps, options)
    assert all(0 <= first <= last <= len(load) for first, last in regions)
    for window in steady_windows(given_steps, regions, options):
        assert 0 <= window.first < window.last <= len(load)
        part = given_steps[window.first : window.last]
        assert len(part) <= length
        if window.label == "decode_only_steady_state":
            assert not any(step.has_context for step in part)
        if window.label == "prefilldecode_steady_state":
            assert all(step.has_context for step in part)
    runs = phase_runs(given_steps, regions)
    assert sum(len(run) for run in runs) == sum(last - first for first, last in regions)
    for run in runs:
        assert len({step.has_context for step in given_steps[run.first : run.last]}) == 1
