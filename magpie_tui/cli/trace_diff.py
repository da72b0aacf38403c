"""``trace diff``: kernels and stages of two runs side by side."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from magpie_tui.cli.output import ListFormat, print_listing
from magpie_tui.cli.trace_common import (
    Format,
    Salvage,
    StageOption,
    require_capture,
    say,
    say_caveats,
    say_files,
    stages_from,
)


class DiffView(str, Enum):
    """Listings of ``trace diff``."""

    kernels = "kernels"
    stages = "stages"


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="Trace, directory or workspace to compare with.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Trace, directory or workspace that is compared.")],
    view: Annotated[DiffView, typer.Option("--view", help="Which listing to print.")] = DiffView.kernels,
    stage: StageOption = None,
    top_k: Annotated[int, typer.Option("--top-k", metavar="N", min=1, help="Rows to print.")] = 20,
    salvage: Salvage = False,
    list_format: Format = ListFormat.table,
) -> None:
    """Compare kernels and stages of two runs: slower, faster, new, gone; per step where both have steps.

    Example: magpie-tui trace diff before/trace.json.gz after/trace.json.gz --stage decode
    """
    from magpie_tui.cli.trace_progress import progress_printer
    from magpie_tui.traces.analysis import analyze_kernels
    from magpie_tui.traces.diff import compare_traces, diff_json
    from magpie_tui.traces.diff_listings import difference_rows
    from magpie_tui.traces.discover import find_traces
    from magpie_tui.traces.selection import Selection

    wanted = stages_from(stage)
    found = [find_traces(path) for path in (a, b)]
    before, after = (
        analyze_kernels(traces, Selection(), salvage=salvage, progress=progress_printer(), stages=wanted, timeline=True)
        for traces in found
    )
    for report in (before, after):
        say_files(report.traces, report.gap.errors)
    result = compare_traces(before, after)
    columns, rows = difference_rows(result, result.kernels[:top_k] if view is DiffView.kernels else result.stages)
    if view is DiffView.kernels and len(result.kernels) > top_k:
        say("note", f"{top_k} of {len(result.kernels)} kernels are shown, largest difference first")
    print_listing(
        columns, rows, list_format=list_format, json_value=diff_json(before, after, result), empty=f"no {view.value}"
    )
    for report in (before, after):
        say_caveats(report.ranks)
    for caveat in result.caveats:
        say("caveat", f"{caveat.text} [touches {', '.join(caveat.touches)}]")
    for report, path in ((before, a), (after, b)):
        require_capture(report.ranks, path)
