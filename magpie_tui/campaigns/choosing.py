"""From a trace to a recommendation: reads the trace, draws its roofline, searches the sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import AnswerIsNoError, UserInputError
from magpie_tui.basics.text import nearest, printable
from magpie_tui.campaigns.recommend import (
    Choice,
    KernelEvidence,
    Recommendation,
    choice_of,
    dominant_stage,
    evidence_of,
    recommend,
    why_not,
)
from magpie_tui.sources.find import SourceFinder
from magpie_tui.sources.model import Repository
from magpie_tui.sources.repositories import gather
from magpie_tui.traces.discover import find_traces
from magpie_tui.traces.each import Reading
from magpie_tui.traces.roofline.rows import RooflineStage
from magpie_tui.traces.stage_names import Stage


@dataclass(frozen=True, slots=True)
class ChoiceRequest:
    """What a recommendation is made from, besides the trace."""

    stages: tuple[Stage, ...] = ()
    arch: str | None = None
    repos: tuple[Path, ...] = ()
    python: str | None = None
    capture_folder: Path | None = None


def recommend_from_trace(
    trace: Path,
    request: ChoiceRequest,
    reading: Reading,
    on_progress: Callable[[Repository, int, int], None] | None = None,
) -> tuple[Recommendation, Path]:
    """Recommend a kernel of a trace or of a profiled workspace; also returns the trace that was read.

    Raises:
        UserInputError: The trace, a checkout or the ceilings cannot be read, or the trace has no device work.
        MachineError: The interpreter of the serving environment does not run.
    """
    repositories = gather(request.repos, python=request.python)
    staged = _staged(trace, request, reading)
    stage = staged.stage
    with SourceFinder(repositories) as finder:
        finder.update(on_progress)
        found = recommend(
            stage,
            staged.reason,
            staged.whole_us,
            finder.find,
            ceilings=stage.architecture or "none known for this device",
            quality=staged.caveats,
        )
    return found, staged.trace


@dataclass(frozen=True, slots=True)
class Chosen:
    """One kernel of a trace with its evidence.

    Attributes:
        against: Why it cannot be worked on safely; empty where it can.
        stage, device: Stage of the trace, and the device whose ceilings were used; None where none is known.
    """

    choice: Choice
    against: str
    stage: str
    device: str | None
    trace: Path


def choose_from_trace(
    trace: Path,
    name: str | None,
    request: ChoiceRequest,
    reading: Reading,
    on_progress: Callable[[Repository, int, int], None] | None = None,
) -> Chosen:
    """Return the recommended kernel of a trace, or the one that is named.

    Args:
        name: A kernel's name or a part of it that only one kernel of the stage has; None for the recommended one.

    Raises:
        AnswerIsNoError: No kernel can be recommended.
        UserInputError: The name fits none or several, or see ``recommend_from_trace``.
    """
    if name is None:
        found, path = recommend_from_trace(trace, request, reading, on_progress)
        if found.chosen is None:
            raise AnswerIsNoError(
                "no kernel can be worked on safely", path=path, hint="magpie-tui recommend says why; --kernel takes one"
            )
        return Chosen(found.chosen, "", found.stage, found.ceilings, path)
    repositories = gather(request.repos, python=request.python)
    staged = _staged(trace, request, reading)
    item = _named(name, evidence_of(staged.stage, staged.whole_us), staged.stage.stage)
    with SourceFinder(repositories) as finder:
        finder.update(on_progress)
        source = finder.find(item.name, (item.op,))
    stage = staged.stage
    return Chosen(choice_of(item, source), why_not(item, source), stage.stage, stage.architecture, staged.trace)


def _named(name: str, items: Sequence[KernelEvidence], stage: str) -> KernelEvidence:
    exact = [item for item in items if item.name == name]
    fits = exact or [item for item in items if name.lower() in item.name.lower()]
    if len(fits) == 1:
        return fits[0]
    if not fits:
        guess = nearest(name, [item.name for item in items])
        hint = f"did you mean {printable(guess)}?" if guess else "magpie-tui trace kernels lists the names"
        raise UserInputError(f"no kernel of stage {stage} is named {printable(name)}", key="--kernel", hint=hint)
    told = ", ".join(printable(item.name)[:60] for item in fits[:4])
    raise UserInputError(
        f"{len(fits)} kernels of stage {stage} have {printable(name)} in their names", key="--kernel", hint=told
    )


@dataclass(frozen=True, slots=True)
class _Staged:
    stage: RooflineStage
    reason: str
    whole_us: float | None
    caveats: tuple[str, ...]
    trace: Path


def _staged(trace: Path, request: ChoiceRequest, reading: Reading) -> _Staged:
    """Draw the roofline of a trace and take the stage with most device time."""
    # Imported when there is a trace: campaigns are shown, reported and verified without it as well.
    from magpie_tui.traces.operators.roofline_report import RooflineRequest, analyze_roofline

    report = analyze_roofline(
        find_traces(trace), reading, RooflineRequest(request.arch, request.capture_folder, None, request.stages)
    )
    chosen = dominant_stage(report.roofline.stages)
    if chosen is None:
        raise UserInputError("the trace has no device work to choose from", path=report.file.path)
    whole = report.stage(None)
    return _Staged(
        *chosen,
        whole.busy_us if whole is not None else None,
        tuple(caveat.text for caveat in report.rank.quality.caveats) if report.rank.quality else (),
        report.file.path,
    )
