"""The command line understands what a form writes."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.basics.options import OptionValue, command_words
from magpie_tui.cli.group import Command
from magpie_tui.cli.option_specs import click_parameters
from tests.basics.test_options import SPECS


def _parse(words: list[str]) -> dict[str, object]:
    got: dict[str, object] = {}
    command = Command("compare", params=click_parameters(SPECS), callback=lambda **values: got.update(values))
    command.main(words, standalone_mode=False)
    return got


@given(
    kernels=st.lists(st.from_regex(r"[a-z][a-z ]{0,8}\.hip", fullmatch=True), max_size=3),
    baseline=st.integers(0, 99),
    tolerance=st.sampled_from([0.0, 1e-3, 0.25, 1.0, 1e-7]),
    environment=st.sampled_from(["local", "ray"]),
    quick=st.booleans(),
    gate=st.booleans(),
    categories=st.lists(st.from_regex(r"[a-z]{1,6}", fullmatch=True), max_size=3),
)
def test_command_line_means_the_values(
    kernels: list[str],
    baseline: int,
    tolerance: float,
    environment: str,
    quick: bool,
    gate: bool,
    categories: list[str],
) -> None:
    values: dict[str, OptionValue] = {
        "kernels": tuple(kernels) or None,
        "baseline": baseline,
        "tolerance": tolerance,
        "environment": environment,
        "quick": quick,
        "gate": gate,
        "categories": tuple(categories) or None,
    }
    got = _parse(list(command_words(SPECS, values, ())))
    assert got["kernels"] == tuple(Path(name) for name in kernels)
    assert got["categories"] == tuple(categories)
    assert (got["baseline"], got["tolerance"], got["environment"]) == (baseline, tolerance, environment)
    assert (got["quick"], got["gate"], got["label"]) == (quick, gate, None)


@pytest.mark.parametrize("words", [[], ["--baseline", "-1"], ["--baseline", "0", "--environment", "moon"]])
def test_both_refuse_the_same(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        _parse(words)
