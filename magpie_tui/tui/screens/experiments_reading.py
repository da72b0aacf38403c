"""What the place Experiments reads of one experiment, complete or under way; in a thread."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import printable
from magpie_tui.serving.experiment import judge_experiment
from magpie_tui.serving.experiment_state import ExperimentState, read_state, run_directory
from magpie_tui.serving.live import LiveReader, LiveView
from magpie_tui.serving.verdict_model import Arm, ServingVerdict
from magpie_tui.serving.verdict_text import markdown


@dataclass(frozen=True, slots=True)
class ExperimentReading:
    """One experiment.

    Attributes:
        state: What was asked and how far it is; None with a failure.
        verdict: Over the pairs so far; its word counts only when the experiment has ended. None without a pair.
        text: The verdict as Markdown; empty before the end.
        running: Pair and arm of the run that goes on, and how it goes.
    """

    path: Path
    state: ExperimentState | None = None
    verdict: ServingVerdict | None = None
    text: str = ""
    running: tuple[int, Arm, LiveView] | None = None
    failure: str = ""

    @property
    def ended(self) -> bool:
        """Whether its verdict counts."""
        return self.state is not None and self.state.state == "ended"

    @property
    def newest_run(self) -> Path | None:
        """Workspace of the newest run; None before there is one."""
        runs = sorted(self.path.glob("pair_[0-9]*_[ab]"), key=_mtime)
        return runs[-1] if runs else None


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def read_experiment(path: Path) -> ExperimentReading:
    """Read an experiment; what is wrong with it is in the answer."""
    try:
        state = read_state(path)
        verdict = judge_experiment(path, write=False)
    except (MagpieTuiError, OSError) as error:
        return ExperimentReading(path, failure=printable(error))
    ended = state.state == "ended"
    title = " against ".join(Path(state.configs[arm]["path"]).name for arm in ("b", "a"))
    text = markdown(verdict, title=title) if ended else ""
    running = None if state.state != "running" else _running(path, state)
    return ExperimentReading(path, state, verdict, text, running)


def _running(path: Path, state: ExperimentState) -> tuple[int, Arm, LiveView] | None:
    """Find the run that has begun and has no report yet."""
    arms: tuple[Arm, Arm] = ("a", "b")
    for number in range(1, state.plan.pairs + 1):
        for arm in arms:
            workspace = run_directory(path, number, arm)
            if workspace.is_dir() and not (workspace / "benchmark_report.json").is_file():
                return number, arm, LiveReader(workspace).read()
    return None
