"""Finding campaigns, what happened since, what a step rests on, what a candidate changes."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.campaigns import edit
from magpie_tui.campaigns.advance import next_of
from magpie_tui.campaigns.detail import step_detail, why_lines
from magpie_tui.campaigns.difference import candidate_difference
from magpie_tui.campaigns.file import TIME_FORMAT, load_campaign
from magpie_tui.campaigns.find import campaigns_at_hand, find_campaigns
from magpie_tui.campaigns.goal import goal_from_text, goal_judged
from magpie_tui.campaigns.model import Campaign, Goal
from magpie_tui.campaigns.since import since_text
from magpie_tui.campaigns.state import view_campaign
from magpie_tui.campaigns.steps import BY_KEY
from magpie_tui.runs.model import RunState
from tests.campaigns.workspaces import analyzed
from tests.tui.support import make_run

NOW = datetime(2026, 12, 2, 14, 0, tzinfo=timezone.utc)


@pytest.fixture
def smoke(tmp_path: Path) -> Campaign:
    """The smoke campaign as it begins."""
    return edit.new_campaign(tmp_path / "campaigns" / "smoke", template="smoke")


def test_campaigns_are_found_up_to_two_levels_below(tmp_path: Path, smoke: Campaign) -> None:
    other = edit.new_campaign(tmp_path / "here", template="kernels").directory
    edit.new_campaign(tmp_path / "a" / "b" / "too-deep", template="kernels")
    edit.new_campaign(tmp_path / ".hidden", template="kernels")
    assert campaigns_at_hand(tmp_path) == (smoke.directory,)
    assert campaigns_at_hand(other) == (other,)
    assert set(find_campaigns(tmp_path)) == {smoke.directory, other}
    assert find_campaigns(tmp_path / "nothing") == ()


def test_since_tells_links_runs_and_failures(tmp_path: Path, smoke: Campaign) -> None:
    assert since_text(smoke, view_campaign(smoke), (), NOW) is None, "nobody has looked before"
    seen = datetime.now(timezone.utc) - timedelta(hours=14)
    edit.mark_seen(smoke.directory, seen.strftime(TIME_FORMAT))
    quiet = load_campaign(smoke.directory)
    now = seen + timedelta(hours=14)
    assert since_text(quiet, view_campaign(quiet), (), now) == "you left 14 h ago: nothing happened"
    linked = edit.link(quiet, BY_KEY["analyze"], analyzed(tmp_path, "base"))
    failed = replace(
        make_run("20261202_120000_aaaa", RunState.failed, "x", reason="out of memory"),
        output_dir=smoke.output_dir / "walkthrough-kernel-compare",
        ended_at=now,
    )
    elsewhere = replace(failed, output_dir=tmp_path)
    text = since_text(linked, view_campaign(linked), [failed, elsewhere], now)
    assert text is not None
    assert "5 Baseline kernel done" in text
    assert "1 run ended" in text and "1 run failed or lost: out of memory" in text


def test_a_step_says_what_is_measured_apart_from_what_is_assumed(tmp_path: Path, smoke: Campaign) -> None:
    views = {view.key: view for view in view_campaign(smoke)}
    following = next_of(tuple(views.values()))
    assert following is not None and following.key == "analyze"
    detail = step_detail(smoke, views["analyze"])
    assert detail.measured == () and detail.who == "magpie-tui"
    assert detail.command[:3] == ("magpie-tui", "analyze", "--kernel-config")
    assert detail.source == (str(smoke.directory / "kernels" / "vector_add.cpp"),) and detail.test
    assert "not known" in detail.worth
    assert step_detail(smoke, views["compare"]).next == "nothing yet: blocked by 6"
    adopted = edit.link(smoke, BY_KEY["analyze"], analyzed(tmp_path, "base"), adopted=True)
    view = next(view for view in view_campaign(adopted) if view.key == "analyze")
    detail = step_detail(adopted, view)
    assert "correct" in detail.measured[0]
    assert "made outside the campaign" in detail.assumed[0]
    source = smoke.directory / "kernels" / "vector_add.cpp"
    source.write_text(source.read_text() + "// changed\n")
    view = next(view for view in view_campaign(adopted) if view.key == "analyze")
    assert view.because == "changed: the analyze config or its sources"
    assert any("config analyze" in line and "CHANGED" in line for line in why_lines(adopted, view))


def test_a_run_that_left_nothing_says_why_until_another_one_does(tmp_path: Path, smoke: Campaign) -> None:
    place = smoke.output_dir / "walkthrough-kernel-baseline"
    failed = replace(make_run("20261202_101500_aaaa", RunState.failed, "x"), output_dir=place, reason="out of memory")
    said_no = replace(
        failed, id="20261202_111500_aaaa", state=RunState.ended, reason=None, exit_code=1, last_line="no g++"
    )
    stopped = replace(failed, id="20261202_121500_aaaa", state=RunState.stopped)
    going = replace(failed, id="20261202_131500_aaaa", state=RunState.running)
    for runs, state, because in (
        ((failed,), "failed", "run 20261202_101500_aaaa: out of memory"),
        ((said_no, failed), "failed", "run 20261202_111500_aaaa: no g++"),
        ((failed, stopped), "not started", "run 20261202_121500_aaaa was stopped"),
        ((failed, going), "running", "run 20261202_131500_aaaa"),
    ):
        view = next(view for view in view_campaign(smoke, runs) if view.key == "analyze")
        assert (view.state.value, view.because) == (state, because)
    done = edit.link(smoke, BY_KEY["analyze"], analyzed(tmp_path, "base"))
    assert next(view for view in view_campaign(done, (failed,)) if view.key == "analyze").state.value == "done"


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ({"point": 1.05, "low": 1.031, "high": 1.07}, "reached"),
        ({"point": 1.034, "low": 1.025, "high": 1.043}, "reached, not proven"),
        ({"point": 1.02, "low": 1.0, "high": 1.04}, "not reached, and not ruled out"),
        ({"point": 1.01, "low": 1.0, "high": 1.02}, "not reached"),
        (None, "not judged: the experiment has no gain"),
    ],
)
def test_the_goal_is_judged_apart_from_the_effect(tmp_path: Path, interval: object, words: str) -> None:
    campaign = edit.new_campaign(tmp_path / "g", template="full", goal=goal_from_text("output_throughput:3"))
    assert goal_judged(campaign) == ""
    place = tmp_path / "experiment_20261202_180411"
    place.mkdir()
    verdict = {"verdict": {"word": "improved"}, "primary": {"metric": "output_throughput", "interval": interval}}
    (place / "verdict.json").write_text(json.dumps(verdict))
    campaign = edit.link(campaign, BY_KEY["judge"], place, adopted=True)
    assert goal_judged(campaign) == words
    other = edit.set_goal(campaign, goal_from_text("goodput:3"))
    assert goal_judged(other) == "not judged: the experiment decided by output_throughput"
    for text in ("faster", "goodput:-3", "ttft_p99_ms:3", "goodput:nan"):
        with pytest.raises(UserInputError):
            goal_from_text(text)


@pytest.mark.parametrize(
    ("gain_pct", "words"),
    [(3.0, "needs this kernel 1.15 x faster"), (30.0, "needs more than this kernel: without it +27.9 %")],
)
def test_worth_says_what_the_goal_needs(tmp_path: Path, gain_pct: float, words: str) -> None:
    campaign = edit.new_campaign(tmp_path / "g", template="full", goal=Goal("output_throughput", gain_pct))
    campaign = edit.decide(campaign, BY_KEY["kernels"], {"kernel": "k", "share_pct": 21.8, "gain": "at most +12.3 %"})
    view = next(view for view in view_campaign(campaign) if view.key == "kernels")
    worth = step_detail(campaign, view).worth
    assert worth.startswith("at most +12.3 %; ") and words in worth


def test_the_price_of_a_step_is_told_from_what_like_ones_took(tmp_path: Path, smoke: Campaign) -> None:
    def price(campaign: Campaign, key: str) -> str:
        view = next(view for view in view_campaign(campaign) if view.key == key)
        return step_detail(campaign, view).price

    assert price(smoke, "candidates") == ""
    done = analyzed(tmp_path, "base")
    record = {"started_at": "2026-12-02T10:00:00.000Z", "ended_at": "2026-12-02T10:04:00.500Z"}
    (done / "record.json").write_text(json.dumps(record))
    linked = edit.link(smoke, BY_KEY["analyze"], done)
    assert price(linked, "candidates") == "about 4 min, as 5 took"
    assert price(linked, "compare") == "about 8 min: 2 kernels, each as 5 took"
    assert price(linked, "analyze") == "", "it is done"


def test_the_difference_of_a_candidate_shows_config_and_sources(smoke: Campaign) -> None:
    lines = candidate_difference(smoke, "o3")
    assert any(line.startswith("-") and "-O2" in line for line in lines)
    assert any(line.startswith("+") and "-O3" in line for line in lines)
    assert "the sources are the same" in lines[-1]
    with pytest.raises(UserInputError, match="no candidate"):
        candidate_difference(smoke, "zz")
