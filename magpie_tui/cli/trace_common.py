"""Options and messages that the trace commands share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import AnswerIsNoError
from magpie_tui.basics.text import printable
from magpie_tui.cli.context import global_options
from magpie_tui.cli.output import ListFormat
from magpie_tui.traces.listings import digits as digits

if TYPE_CHECKING:
    from magpie_tui.traces.discover import TraceSet
    from magpie_tui.traces.kernel_report import RankReport
    from magpie_tui.traces.progress import Reading
    from magpie_tui.traces.stage_names import Stage

_MOST_NAMED = 3
"""Files set aside for one reason that are named one by one."""

TracePath = Annotated[Path, typer.Argument(metavar="TRACE|WORKSPACE", help="Trace file, directory or workspace.")]
Salvage = Annotated[bool, typer.Option("--salvage", help="Use the events before a cut or damage.")]
Format = Annotated[ListFormat, typer.Option("--format", help="How to print.")]
StageOption = Annotated[
    list[str] | None,
    typer.Option("--stage", metavar="STAGE...", help="Only steps of prefilldecode, decode or prefill."),
]


def stages_from(given: Sequence[str] | None) -> tuple[Stage, ...]:
    """Read ``--stage``; nothing stands for everything.

    Raises:
        UserInputError: A stage is unknown.
    """
    from magpie_tui.traces.stage_names import stages_named

    return stages_named(",".join(given)) if given is not None and len(given) else ()


def reading(*, salvage: bool) -> Reading:
    """How this command reads traces."""
    from magpie_tui.cli.trace_progress import progress_printer
    from magpie_tui.traces.progress import Reading

    return Reading(salvage=salvage, progress=progress_printer())


def say(kind: str, text: str) -> None:
    """Write one line to stderr."""
    sys.stdout.flush()
    sys.stderr.write(f"magpie-tui: {kind}: {printable(text)}\n")


def say_files(traces: TraceSet, errors: Sequence[str]) -> None:
    """Say on stderr which files were used and which were not; a single file that was named needs no words."""
    for error in errors:
        say("warning", error)
    for note in traces.notes:
        say("note", note)
    if not traces.root.is_file():
        for file in traces.files:
            say("note", f"rank {file.rank}: {file.path}")
    for reason in dict.fromkeys(item.reason for item in traces.set_aside):
        paths = [item.path for item in traces.set_aside if item.reason == reason]
        if len(paths) > _MOST_NAMED and not global_options().verbose:
            say("note", f"{len(paths)} files are not counted as ranks ({reason}; -v names them), the first: {paths[0]}")
            continue
        for path in paths:
            say("note", f"not counted as a rank: {path} ({reason})")


def say_caveats(ranks: Sequence[RankReport]) -> None:
    """Say on stderr what touches the numbers shown."""
    for rank in ranks:
        place = f"rank {rank.file.rank}: " if len(ranks) > 1 else ""
        for caveat in rank.quality.caveats if rank.quality is not None else ():
            touched = f" [touches {', '.join(caveat.touches)}]" if caveat.touches else ""
            say("caveat", f"{place}{caveat.text}{touched}")


def require_capture(ranks: Sequence[RankReport], path: Path) -> None:
    """Raise AnswerIsNoError where a GPU was expected and no rank has any device activity."""
    from magpie_tui.traces.balance import NO_DEVICE_ACTIVITY

    qualities = [rank.quality for rank in ranks if rank.quality is not None]
    if qualities and all(quality.status == "failed_to_capture" for quality in qualities):
        raise AnswerIsNoError(
            NO_DEVICE_ACTIVITY,
            path=path,
            hint="the profiler's GPU backend (CUPTI, roctracer) was missing, another process was profiled, or nothing "
            "ran on the GPU while it was on; record again",
        )
