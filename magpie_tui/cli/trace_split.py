"""``trace split``: windows and steps of a trace as traces of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from magpie_tui.basics.errors import AnswerIsNoError, UserInputError
from magpie_tui.cli.output import Column, ListFormat, print_listing
from magpie_tui.cli.trace_common import Format, Salvage, TracePath, digits, reading, say, say_files
from magpie_tui.cli.trace_time import Concurrency, Iterations, NumSteps, OutputLength, Ratio

if TYPE_CHECKING:
    from magpie_tui.traces.split import SplitFile, SplitPlan
    from magpie_tui.traces.split_files import SplitResult

DIRECTORY_NAME = "trace_split"


def split(
    trace: TracePath,
    output_dir: Annotated[
        Path | None,
        typer.Option("--output-dir", "-o", metavar="DIR", help="Write here (in a workspace: torch_trace/trace_split)."),
    ] = None,
    num_steps: NumSteps = 32,
    find_steady_state: Annotated[
        bool, typer.Option("--find-steady-state", help="Write the three windows of the steady state.")
    ] = False,
    store_single_iteration: Annotated[
        bool, typer.Option("--store-single-iteration", help="Write each step as a file of its own.")
    ] = False,
    divide_phases: Annotated[
        bool, typer.Option("--divide-phases", help="Write runs of steady steps of one phase; wins over the windows.")
    ] = False,
    iterations: Iterations = None,
    conc: Concurrency = None,
    osl: OutputLength = None,
    r: Ratio = None,
    salvage: Salvage = False,
    list_format: Format = ListFormat.table,
) -> None:
    """Cut a trace into steady-state windows, phases or single steps, with execution_details.csv and .json.

    Example: magpie-tui trace split trace.json.gz -o trace_split --find-steady-state --num-steps 32
    """
    from magpie_tui.traces.discover import find_traces
    from magpie_tui.traces.each import reporter
    from magpie_tui.traces.load import load_columns
    from magpie_tui.traces.split import SplitOptions, plan_split
    from magpie_tui.traces.split_files import write_split
    from magpie_tui.traces.steady import SteadyOptions, parse_iterations

    steady = SteadyOptions(num_steps, parse_iterations(iterations) if iterations else None, conc, osl, r)
    options = SplitOptions(steady, find_steady_state, store_single_iteration, divide_phases)
    steady.check()
    traces = find_traces(trace)
    say_files(traces, ())
    file = traces.files[0]
    if len(traces.files) > 1:
        say("note", f"rank {file.rank} is split, as upstream does: {file.path}")
    how = reading(salvage=salvage)
    size = file.path.stat().st_size
    columns = load_columns(file.path, salvage=salvage, progress=reporter(how.progress, file.path, 0, size))
    plan = plan_split(columns, options)
    for note in plan.notes:
        say("note", note)
    if not len(plan.steps):
        raise AnswerIsNoError(
            "no steps in this trace",
            path=file.path,
            hint="profile an engine that labels its steps (vLLM, SGLang, Atom)",
        )
    if iterations and not plan.files:
        raise UserInputError(
            f"--iterations {iterations} lies beyond the {len(plan.steps)} steps of this trace", key="--iterations"
        )
    directory = output_dir or _default_directory(trace)
    result = write_split(columns, plan, directory, salvage=salvage, progress=reporter(how.progress, file.path, 0, size))
    names = ("events", "GPU events", "GPU us", "busy sum us", "busy union us", "prefill", "mixed", "decode")
    listing = [Column("file", shrink=True), *(Column(name, "right") for name in names)]
    rows = _rows(plan.files)
    print_listing(
        listing, rows, list_format=list_format, json_value=_json(result, plan), empty="no window in this trace"
    )
    say("note", f"written to {directory.absolute()}")
    if not plan.files:
        raise AnswerIsNoError("no window in this trace", path=file.path, hint="ask for fewer steps with --num-steps")


def _default_directory(trace: Path) -> Path:
    if trace.is_dir():
        return (trace / "torch_trace" if (trace / "torch_trace").is_dir() else trace) / DIRECTORY_NAME
    return Path("results") / DIRECTORY_NAME


def _rows(files: Sequence[SplitFile]) -> list[list[object]]:
    from magpie_tui.traces.split import kind_count
    from magpie_tui.traces.stage_names import Stage

    order = (Stage.prefill, Stage.prefilldecode, Stage.decode)
    return [
        [
            file.name,
            file.event_count,
            file.num_gpu_events,
            digits(file.gpu_duration_us, 2),
            digits(file.gpu_busy_duration_us, 2),
            digits(file.gpu_busy_union_us, 2),
            *(kind_count(file.steps, kind) for kind in order),
        ]
        for file in files
    ]


def _json(result: SplitResult, plan: SplitPlan) -> dict[str, Any]:
    from magpie_tui.basics.json_strict import loads_tolerant

    details = loads_tolerant(result.details_json.read_text(encoding="utf-8"))
    for entry, file in zip(details, plan.files, strict=True):
        entry["gpu_busy_union"] = file.gpu_busy_union_us
    return {
        "execution_details_csv": str(result.details_csv),
        "execution_details_json": str(result.details_json),
        "regions": [list(region) for region in plan.regions],
        "notes": list(plan.notes),
        "files": details,
    }
