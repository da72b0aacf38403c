"""From a trace to a recommendation: reads the trace, draws its roofline, searches the sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.campaigns.recommend import Recommendation, dominant_stage, recommend
from magpie_tui.sources.find import SourceFinder
from magpie_tui.sources.model import Repository
from magpie_tui.sources.repositories import gather
from magpie_tui.traces.discover import find_traces
from magpie_tui.traces.each import Reading
from magpie_tui.traces.operators.roofline_report import RooflineRequest, analyze_roofline
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
    report = analyze_roofline(
        find_traces(trace), reading, RooflineRequest(request.arch, request.capture_folder, None, request.stages)
    )
    chosen = dominant_stage(report.roofline.stages)
    if chosen is None:
        raise UserInputError("the trace has no device work to choose from", path=report.file.path)
    stage, reason = chosen
    whole = report.stage(None)
    with SourceFinder(repositories) as finder:
        finder.update(on_progress)
        found = recommend(
            stage,
            reason,
            whole.busy_us if whole is not None else None,
            finder.find,
            ceilings=stage.architecture or "none known for this device",
            quality=[caveat.text for caveat in report.rank.quality.caveats] if report.rank.quality else [],
        )
    return found, report.file.path
