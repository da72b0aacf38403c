"""The smoke campaign in a real terminal of 80 by 24, from nothing to its end by keys alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.model import StepState
from magpie_tui.campaigns.state import view_campaign
from magpie_tui.campaigns.steps import STEPS
from magpie_tui.runs.store import list_runs, stop_run
from tests.tmux.conftest import OpenTerminal
from tests.tmux.terminal import Terminal

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.skipif(shutil.which("g++") is None, reason="the smoke campaign builds a C++ program"),
]
SETTLED = {StepState.DONE, StepState.SKIPPED}


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Where the app is opened; no run is left behind."""
    place = tmp_path / "work"
    place.mkdir()
    yield place
    results = place / "campaigns" / "smoke" / "results"
    for run in list_runs([results, *results.glob("*/")]):
        stop_run(run, 0.0)


def state_of(directory: Path, key: str) -> StepState:
    """State of one step, from the file alone."""
    return next(view.state for view in view_campaign(load_campaign(directory)) if view.key == key)


def do_next(terminal: Terminal, step: str) -> None:
    """Start the step that is next, by its question."""
    terminal.press("A")
    terminal.wait_for("change nothing")
    assert step in terminal.screen()
    terminal.press("Down", "Enter")


def test_the_smoke_campaign_is_walked_to_its_end_by_keys(open_terminal: OpenTerminal, directory: Path) -> None:
    terminal = open_terminal(80, 24)
    terminal.start_app(expect="Where to begin")
    terminal.press("N")
    terminal.wait_for("Begin which campaign?")
    terminal.press("G", "Enter")
    terminal.wait_for("campaigns/smoke")
    terminal.press("Enter")
    terminal.wait_for("5 Baseline kernel      not started")
    campaign = directory / "campaigns" / "smoke"

    do_next(terminal, "5 Baseline kernel")
    terminal.wait_for("5 Baseline kernel      done")
    assert state_of(campaign, "analyze") is StepState.DONE
    terminal.wait_until(lambda: "6 Candidates           running" not in terminal.screen(), "the end of the run")

    # Left and taken up again: the next start finds it where it was.
    terminal.press("C-q")
    terminal.wait_sane(0)
    assert load_campaign(campaign).seen is not None
    terminal.start_app(expect="5 Baseline kernel      done")
    terminal.wait_for("you left")

    do_next(terminal, "6 Candidates")
    terminal.wait_for("6 Candidates           done")
    assert state_of(campaign, "candidates") is StepState.DONE
    do_next(terminal, "7 Compare and confirm")
    terminal.wait_for("7 Compare and confirm  done")
    assert {state_of(campaign, step.key) for step in STEPS} == SETTLED

    # From the step to its candidates, and back.
    terminal.press("g", *["j"] * 6, "Enter")
    terminal.wait_for("[4 Candidates]")
    terminal.press("1")
    terminal.wait_for("[1 Campaign]")
    terminal.press("A")
    terminal.wait_for("nothing is left to do")
    terminal.press("e")
    terminal.wait_for("Write the report to")
    terminal.press("Enter")
    terminal.wait_for("written to campaigns/smoke/report.html")
    assert "2 of 2 correct" in (campaign / "report.html").read_text()
    terminal.press("C-q")
    terminal.wait_sane(0)
