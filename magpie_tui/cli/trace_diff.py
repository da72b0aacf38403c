"""``trace diff``: kernels and stages of two runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.cli.output import ListFormat, print_listing, wants_json
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

if TYPE_CHECKING:
    from magpie_tui.traces.discover import TraceSet
    from magpie_tui.traces.operators.difference import OperatorDiff


class DiffView(str, Enum):
    """Listings of ``trace diff``."""

    kernels = "kernels"
    stages = "stages"
    operators = "operators"
    modules = "modules"


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="Trace, directory or workspace to compare with.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Trace, directory or workspace that is compared.")],
    view: Annotated[DiffView, typer.Option("--view", help="Which listing to print.")] = DiffView.kernels,
    stage: StageOption = None,
    top_k: Annotated[int, typer.Option("--top-k", metavar="N", min=1, help="Rows to print.")] = 20,
    salvage: Salvage = False,
    list_format: Format = ListFormat.table,
) -> None:
    """Compare kernels, operators and stages of two runs: slower, faster, new, gone; per step where both have steps.

    Example: magpie-tui trace diff before/trace.json.gz after/trace.json.gz --stage decode
    """
    from magpie_tui.basics.json_strict import to_plain
    from magpie_tui.cli.trace_progress import progress_printer
    from magpie_tui.traces.analysis import analyze_kernels
    from magpie_tui.traces.diff import compare_traces, diff_json
    from magpie_tui.traces.diff_listings import difference_rows, operator_rows
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
    operators = None
    if wants_json(list_format) or view in (DiffView.operators, DiffView.modules):
        from magpie_tui.traces.operators.difference import compare_files

        operators = compare_files(*(traces.files[0].path for traces in found), salvage=salvage)
    if operators is not None and view in (DiffView.operators, DiffView.modules):
        listed = operators.operators if view is DiffView.operators else operators.modules
        listed = tuple(item for item in listed if not wanted or item.stage in {stage.value for stage in wanted})
        columns, rows = operator_rows(listed[:top_k])
        count = len(listed)
    else:
        listed_kernels = result.kernels if view is not DiffView.stages else result.stages
        columns, rows = difference_rows(result, listed_kernels[:top_k])
        count = len(listed_kernels)
    if count > top_k:
        say("note", f"{top_k} of {count} {view.value} are shown, largest difference first")
    value = diff_json(before, after, result)
    value["operators"] = None if operators is None else to_plain(operators)
    print_listing(columns, rows, list_format=list_format, json_value=value, empty=f"no {view.value}")
    if operators is not None:
        _say_operators(operators, found)
    for report in (before, after):
        say_caveats(report.ranks)
    for caveat in result.caveats:
        say("caveat", f"{caveat.text} [touches {', '.join(caveat.touches)}]")
    for report, path in ((before, a), (after, b)):
        require_capture(report.ranks, path)


def _say_operators(operators: OperatorDiff, found: Sequence[TraceSet]) -> None:
    for traces in found:
        if len(traces.files) > 1:
            say("note", f"operators are those of rank {traces.files[0].rank} of {traces.root}")
    for caveat in operators.caveats:
        say("caveat", f"{caveat.text} [touches {', '.join(caveat.touches)}]")
