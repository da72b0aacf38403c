"""Walks all nine steps of two campaigns in processes of their own, and prints the reports; a program, not a test.

Each step is done by a forked process. In the second campaign the first ones of each step are killed (SIGKILL): before
the step's run, in the middle of it, after it and before its result is linked, and while the campaign is written.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from magpie_tui.campaigns import edit
from magpie_tui.campaigns.advance import Outcome, advance, next_step
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.model import Action, Campaign, StepView
from magpie_tui.campaigns.report_writing import report_texts
from magpie_tui.campaigns.state import view_campaign
from magpie_tui.campaigns.steps import BY_KEY
from tests.campaigns.workspaces import analyzed, benchmarked, compared

POINTS = ("before", "during", "after", "writing")
TABLE = "name,kernel_time_ms_sum\naten::mm,2.5\naten::add,0.5\n"


def die() -> None:
    """End as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


def runner(attempts: Path, view: StepView, point: str | None) -> Callable[[Action, Path], Outcome]:
    """Return what stands for the step's command: it leaves what the command would, or dies at ``point``."""

    def run(action: Action, output_dir: Path) -> Outcome:
        if point == "before":
            die()
        place = attempts / f"{view.key}-{len(list(attempts.iterdir()))}"
        place.mkdir()
        if point == "during":
            (place / "benchmark_vllm_20261130_101509").mkdir()
            if action.command[1:3] == ("trace", "roofline"):
                (Path(action.command[-1])).mkdir(exist_ok=True)
                (Path(action.command[-1]) / "ops_summary.csv").write_text("name\n")  # some of the tables
            die()
        workspace = _leave(action, view, place)
        if point == "after":
            die()
        if point == "writing":
            Path.replace = lambda *_: die()  # type: ignore[assignment,method-assign]
            Path.unlink = lambda *_, **__: die()  # type: ignore[method-assign]
        return Outcome(0, workspace)

    return run


def _leave(action: Action, view: StepView, place: Path) -> Path | None:
    words = action.command[1:3]
    if words == ("config", "twin"):
        target = Path(action.command[-1])
        target.mkdir(exist_ok=True)
        (target / "clean_profiled.yaml").write_text("# profiled\n")
        return None
    if words == ("trace", "roofline"):
        tables = Path(action.command[-1])
        tables.mkdir(exist_ok=True)
        for name in ("ops_summary", "decode_only_kernel_roofline_simple"):
            (tables / f"{name}.csv").write_text(TABLE)
        return None
    if view.key in ("analyze", "candidates"):
        return analyzed(place, "base" if view.key == "analyze" else "a")
    return compared(place) if view.key == "compare" else benchmarked(place, view.number)


def decide(campaign: Campaign, view: StepView, root: Path) -> None:
    """Do what the step asks of a person."""
    if view.key == "kernels":
        edit.decide(campaign, BY_KEY["kernels"], {"kernel": "mm_kernel", "share_pct": 21.75})
    elif view.key == "candidates":
        edit.set_candidate(campaign, "a", root / "a.yaml")
    elif view.key == "integrate":
        edit.set_integration(campaign, "patch", "tile.diff")
    else:
        assert view.key == "judge", view
        edit.set_file(campaign, "optimized", root / "optimized.yaml")


def one_step(directory: Path, root: Path, point: str | None) -> None:
    """Do the next thing in this process."""
    campaign = load_campaign(directory)
    view = next_step(campaign)
    assert view is not None and view.action is not None
    if view.action.person:
        if point == "writing":
            Path.replace = lambda *_: die()  # type: ignore[assignment,method-assign]
        elif point is not None:
            die()
        decide(campaign, view, root)
    else:
        advance(campaign, view, runner(root / "attempts", view, point))


def walk(root: Path, *, kill: bool) -> dict[str, object]:
    """Walk to the end; return how many processes were killed on the way, and the report."""
    (root / "attempts").mkdir(parents=True)
    files = {}
    for name in ("baseline", "analyze", "compare", "optimized", "a"):
        (root / f"{name}.yaml").write_text(f"# {name}\n")
        files[name] = root / f"{name}.yaml"
    files = {name: files[name] for name in ("baseline", "analyze", "compare")}
    directory = edit.new_campaign(root / "c", template="full", files=files).directory
    killed = 0
    while (view := next_step(load_campaign(directory))) is not None:
        for point in (*(POINTS if kill else ()), None):
            child = os.fork()
            if child == 0:
                one_step(directory, root, point)
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            killed += os.WIFSIGNALED(status)
            same = next_step(load_campaign(directory))
            assert point is None or (same is not None and same.key == view.key), (view, point)
            assert point is not None or status == 0, (view, status)
    assert {item.state.value for item in view_campaign(load_campaign(directory))} == {"done"}
    return {"killed": killed, "report": report_texts(directory).md}


if __name__ == "__main__":
    print(json.dumps([walk(Path(root), kill=kill) for root, kill in zip(sys.argv[1:], (False, True), strict=True)]))
