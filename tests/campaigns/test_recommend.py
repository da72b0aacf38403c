"""The choice of a kernel: what wins, what is passed over and why, and what it would be worth."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from magpie_tui.basics.json_strict import dumps
from magpie_tui.campaigns.recommend import Recommendation, dominant_stage, gain_of, recommend
from magpie_tui.campaigns.recommend_text import recommendation_json, recommendation_lines
from magpie_tui.sources.facts import facts_of
from magpie_tui.sources.model import Repository, SourceMatch, SourceReport, TestMatch
from magpie_tui.traces.roofline.rows import Bound, RooflineKernel, RooflineRow, RooflineStage
from tests.cli.kernel_helpers import follow_schema


def row(
    name: str, time_us: float, win_us: float | None, *, calls: int = 10, percent: float | None = 40.0
) -> RooflineRow:
    ceiling = None if win_us is None else "5.30 TB/s (MI300X theoretical)"
    return RooflineRow(
        name=f"op_{name}",
        category="other",
        shapes="32x4096",
        types="bf16",
        count=calls,
        time_us=time_us,
        share=0.0,
        bound=None if win_us is None else Bound.memory,
        ceiling=ceiling,
        percent=None if win_us is None else percent,
        win_us=win_us,
        kernels=(RooflineKernel(name, calls, time_us),),
        reason="no performance model" if win_us is None else None,
    )


def stage(*rows: RooflineRow, name: str = "decode") -> RooflineStage:
    return RooflineStage(name, rows, 1, sum(one.time_us for one in rows), "MI300X theoretical", 1.0, 1.0)


def known(**changes: object) -> Callable[[str, Sequence[str]], SourceReport]:
    """A search that finds everything, except what is changed by kernel name: a report or parts of one."""

    def find(name: str, near: Sequence[str]) -> SourceReport:
        source = SourceMatch("aiter", "csrc/a.cu", "high", ("defines it",), file=Path("/src/csrc/a.cu"), line=3)
        test = TestMatch(Repository("aiter", Path("/src")), "op_tests/test_a.py", ("python", "-m", "pytest"), "named")
        report = SourceReport(facts_of(name), source, None, test)
        change = changes.get(name)
        return replace(report, **change) if isinstance(change, dict) else report

    return find


def choose(*rows: RooflineRow, find: Callable[[str, Sequence[str]], SourceReport] | None = None) -> Recommendation:
    return recommend(stage(*rows), "the only stage", 20_000.0, find or known(), ceilings="MI300X theoretical")


def test_the_most_to_be_won_wins_not_the_most_time() -> None:
    found = choose(row("big", 5000, 500, percent=89), row("far", 3000, 2000), row("small", 1000, 900))
    assert found.chosen is not None
    assert found.chosen.evidence.name == "far"
    assert [choice.evidence.name for choice in found.alternatives] == ["small", "big"]
    assert found.rejected == ()
    assert found.chosen.evidence.share_of_trace_pct == pytest.approx(15.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": None, "reason": "cuBLAS is closed"}, "cuBLAS is closed"),
        ({"test": None}, "no test"),
        ({"source": SourceMatch("aiter", "a", "low", ("two are equal",), file=Path("/a"))}, "two are equal"),
        ({"source": SourceMatch("pytorch", "a", "low", ("known place",))}, "give the checkout"),
        (
            {
                "facts": facts_of("triton_poi_fused_mul_0"),
                "source": SourceMatch("pytorch", "a", "low", ("its generator",)),
            },
            "TORCHINDUCTOR_CACHE_DIR",
        ),
    ],
)
def test_what_cannot_be_mapped_or_tested_is_passed_over_with_the_reason(change: dict[str, object], words: str) -> None:
    found = choose(row("first", 5000, 4000), row("second", 3000, 1000), find=known(first=change))
    assert found.chosen is not None
    assert found.chosen.evidence.name == "second"
    (passed,) = found.rejected
    assert words in passed.reason


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (row("first", 5000, 4000, calls=1000), "launch cost"),
        (row("first", 5000, 100, percent=97), "at 97 % of its ceiling"),
        (replace(row("first", 5000, 0, percent=180), fits=False), "does not fit"),
    ],
)
def test_what_tuning_cannot_help_is_passed_over(bad: RooflineRow, words: str) -> None:
    found = choose(bad, row("second", 3000, 1000))
    assert found.chosen is not None
    assert found.chosen.evidence.name == "second"
    assert words in found.rejected[0].reason


def test_small_kernels_are_neither_chosen_nor_listed() -> None:
    found = choose(row("big", 100_000, 4000), row("tiny", 90, 80))
    assert found.chosen is not None
    assert found.chosen.evidence.name == "big"
    assert found.alternatives == ()


def test_no_ceiling_is_said_and_comes_after_all_that_have_one() -> None:
    found = choose(row("unknown", 9000, None), row("known", 1000, 500))
    assert found.chosen is not None
    assert found.chosen.evidence.name == "known"
    (other,) = found.alternatives
    assert other.gain is None
    assert any("no performance model" in text for text in other.assumptions)


def test_nothing_to_choose() -> None:
    found = choose(row("only", 9000, 100), find=known(only={"test": None}))
    assert found.chosen is None
    assert len(found.rejected) == 1
    text = "\n".join(recommendation_lines(found))
    assert "No kernel can be worked on safely" in text


def test_the_gain_is_amdahls() -> None:
    found = choose(row("k", 5000, 2500), row("rest", 5000, 0, percent=99))
    assert found.chosen is not None
    gain = gain_of(found.chosen.evidence)
    assert gain is not None
    # Half of the time is this kernel's; at its ceiling it takes half as long: 1 / (0.5 + 0.25) - 1.
    assert math.isclose(gain.high_pct, 100 / 3, rel_tol=1e-9)
    assert math.isclose(gain.low_pct, 100 * (1 / (0.5 + 0.375) - 1), rel_tol=1e-9)


def test_times_of_one_kernel_under_several_operators_are_added() -> None:
    found = choose(row("same", 2000, 1000), replace(row("same", 1000, 500), name="other op"))
    assert found.chosen is not None
    assert (found.chosen.evidence.time_ms, found.chosen.evidence.win_ms) == (3.0, 1.5)


def test_the_dominant_stage() -> None:
    small, large = stage(row("a", 10, 1), name="prefill"), stage(row("a", 30, 1), name="decode")
    chosen = dominant_stage([small, large, stage(row("a", 40, 1), name="all")])
    assert chosen is not None
    assert chosen[0].stage == "decode"
    assert "75.0 %" in chosen[1]
    assert dominant_stage([]) is None


def test_json_keeps_measured_and_assumed_apart() -> None:
    value = recommendation_json(choose(row("k", 5000, 2500)))
    recommended = value["recommended"]
    assert isinstance(recommended, dict)
    assert set(recommended) == {"measured", "source", "end_to_end_gain_pct", "assumptions"}
    whole = json.loads(dumps({"schema": "magpie-tui/recommend/1", "trace": Path("/t.json"), **value}))
    follow_schema(whole, "recommend")
