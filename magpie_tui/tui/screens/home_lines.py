"""The lines of Home, from what was read; no widget in here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.tui.facts import machine_problems
from magpie_tui.tui.format import run_name, run_says, when_text
from magpie_tui.tui.places import PLACES

if TYPE_CHECKING:
    from magpie_tui.runs.model import Run
    from magpie_tui.tui.background import MachineReading
    from magpie_tui.workspaces.browse import WorkspaceSummary

MOST_LIVE = 6
MOST_ENDED = 5
MOST_RESULTS = 5
MOST_PROBLEMS = 6


@dataclass(frozen=True, slots=True)
class HomeLine:
    """One line.

    Attributes:
        key: Unique; ``run:<id>``, ``workspace:<path>``, ``place:<name>``, ``begin:<action>``, ``problem:<n>``,
            ``heading:<title>``.
        words: The columns: state, kind, name, time, news; a heading and an explanation have one word.
        selectable: The cursor stops on it.
        heading: It is a heading.
    """

    key: str
    words: tuple[str, ...]
    selectable: bool = True
    heading: bool = False


@dataclass(frozen=True, slots=True)
class HomeState:
    """What Home knows; None means that it was not read yet.

    Attributes:
        runs: Newest first.
        workspaces: Newest first.
        reading: The machine.
        failures: Why something could not be read, by what it was.
    """

    runs: Sequence[Run] | None = None
    workspaces: Sequence[WorkspaceSummary] | None = None
    reading: MachineReading | None = None
    failures: tuple[str, ...] = ()


def _heading(title: str) -> HomeLine:
    return HomeLine(f"heading:{title}", (title,), selectable=False, heading=True)


def _note(key: str, text: str) -> HomeLine:
    return HomeLine(f"note:{key}", (text,), selectable=False)


def _run_line(run: Run, now: datetime, headlines: Mapping[Path, str]) -> HomeLine:
    moment = run.ended_at if run.is_over else run.started_at
    when = when_text(moment or run.created_at, now)
    found = headlines.get(run.workspace) if run.is_over and run.workspace is not None else None
    news = run_says(run) if run.reason or found is None else found
    return HomeLine(
        f"run:{run.id}",
        (run.state.value, run.kind, run_name(run), when if run.is_over else f"since {when}", news),
    )


def home_lines(state: HomeState, now: datetime) -> list[HomeLine]:
    """Return what runs, what ended last, what was found, what is wrong, and where to begin, in that order."""
    lines = [_heading("Runs now")]
    if state.runs is None:
        lines.append(_note("runs", "reading the runs"))
        live: list[Run] = []
        over: list[Run] = []
    else:
        live = [run for run in state.runs if not run.is_over]
        over = [run for run in state.runs if run.is_over]
    headlines = {item.path: item.headline for item in state.workspaces or ()}
    lines += [_run_line(run, now, headlines) for run in live[:MOST_LIVE]]
    if len(live) > MOST_LIVE:
        lines.append(_note("live", f"{len(live) - MOST_LIVE} more: 2 shows all"))
    if state.runs is not None and not live:
        lines.append(_note("runs", "nothing runs"))
    if over:
        lines += [_heading("Ended last"), *(_run_line(run, now, headlines) for run in over[:MOST_ENDED])]
    lines += _result_lines(state, now)
    lines += _problem_lines(state)
    lines += _begin_lines(state)
    # A directory that is reached by two ways shows its runs and results once.
    return list({line.key: line for line in reversed(lines)}.values())[::-1]


def _result_lines(state: HomeState, now: datetime) -> list[HomeLine]:
    if state.workspaces is None:
        return [_heading("Results"), _note("results", "looking for results")]
    live = {run.workspace for run in state.runs or () if not run.is_over}
    results = [item for item in state.workspaces if item.path not in live]
    if not results:
        return []
    shown = results[:MOST_RESULTS]
    lines = [_heading("Results")]
    for item in shown:
        try:
            moment = datetime.strptime(item.time or "", "%Y-%m-%d %H:%M:%S").replace(tzinfo=now.tzinfo)
        except ValueError:
            moment = None
        words = (item.status, item.kind, item.label or item.name, when_text(moment, now), item.headline)
        lines.append(HomeLine(f"workspace:{item.path}", words))
    if len(results) > len(shown):
        lines.append(_note("more", f"{len(results) - len(shown)} more: 6 shows all"))
    return lines


def _problem_lines(state: HomeState) -> list[HomeLine]:
    problems = list(state.failures)
    if state.reading is not None:
        problems += machine_problems(state.reading.machine, state.reading.our_pids)
    if state.reading is None and not problems:
        return [_heading("What is wrong"), _note("machine", "reading the machine")]
    if not problems:
        return [_heading("What is wrong"), _note("machine", "nothing that was looked at; 8 shows all of it")]
    lines = [HomeLine(f"problem:{number}", ("!", text)) for number, text in enumerate(problems[:MOST_PROBLEMS])]
    if len(problems) > MOST_PROBLEMS:
        lines.append(_note("problems", f"{len(problems) - MOST_PROBLEMS} more: 8 shows all"))
    return [_heading("What is wrong"), *lines]


_BEGIN = {
    "configs": "pick a config, check it, start it",
    "machine": "see what this machine can do",
    "runs": "follow and stop runs",
    "workspaces": "read results",
}


_CAMPAIGNS = (
    ("new_campaign", "N", "Campaign", "begin one: the whole loop, or kernels only"),
    ("adopt_found", "I", "Adopt", "begin one with the results found"),
    ("smoke_run", "S", "Smoke run", "try everything with a vector addition, no GPU needed"),
)


def _begin_lines(state: HomeState) -> list[HomeLine]:
    lines = [_heading("Where to begin")]
    for action, key, title, about in _CAMPAIGNS:
        if action != "adopt_found" or any(item.status == "ok" for item in state.workspaces or ()):
            lines.append(HomeLine(f"begin:{action}", (key, title, about)))
    if not state.runs and not state.workspaces and state.runs is not None and state.workspaces is not None:
        lines.append(_note("begin", "no run and no result is here yet: 7, then N, copies a config to start from"))
        wanted: tuple[str, ...] = ("configs", "machine")
    else:
        wanted = ("configs", "runs", "workspaces", "machine")
    for place in PLACES:
        if place.name in wanted:
            lines.append(HomeLine(f"place:{place.name}", (place.digit, place.title, _BEGIN[place.name])))
    return lines
