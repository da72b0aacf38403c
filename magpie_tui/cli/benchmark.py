"""``magpie-tui benchmark``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import AnswerIsNoError, ExitCode, UserInputError
from magpie_tui.basics.text import printable
from magpie_tui.cli.group import Command, command_app
from magpie_tui.cli.output import write
from magpie_tui.cli.trace_common import Salvage, require_capture, say_caveats, say_files
from magpie_tui.cli.trace_kernels import (
    Categories,
    EndPct,
    IgnoreCategories,
    MinDuration,
    StartPct,
    TopK,
    selection_from,
)

if TYPE_CHECKING:
    from magpie_tui.sources.columns import SourceColumns
    from magpie_tui.traces.selection import Selection

app = command_app("Benchmark a served model, or analyze the traces of one (--trace-dir).")


class Framework(str, Enum):
    """Serving frameworks."""

    vllm = "vllm"
    sglang = "sglang"
    atom = "atom"


class Precision(str, Enum):
    """Weights' precision."""

    fp8 = "fp8"
    fp16 = "fp16"
    bf16 = "bf16"
    fp4 = "fp4"


class RunMode(str, Enum):
    """Where the server runs."""

    docker = "docker"
    local = "local"


class RunKind(str, Enum):
    """What a run is for."""

    measurement = "measurement"
    diagnostic = "diagnostic"


@app.command(cls=Command)
def benchmark(
    context: typer.Context,
    framework: Annotated[Framework | None, typer.Argument(help="Serving framework, without -b.")] = None,
    benchmark_config: Annotated[
        Path | None, typer.Option("--benchmark-config", "-b", metavar="FILE", help="Benchmark YAML.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Model name or path.")] = None,
    precision: Annotated[Precision, typer.Option("--precision", "-p", help="Precision.")] = Precision.fp8,
    tp: Annotated[int, typer.Option("--tp", help="Tensor parallel size.")] = 1,
    concurrency: Annotated[int, typer.Option("--concurrency", help="Requests in flight.")] = 32,
    input_len: Annotated[int, typer.Option("--input-len", help="Input tokens a request.")] = 1024,
    output_len: Annotated[int, typer.Option("--output-len", help="Output tokens a request.")] = 512,
    torch_profiler: Annotated[bool, typer.Option("--torch-profiler", help="Record torch traces.")] = False,
    system_profiler: Annotated[bool, typer.Option("--system-profiler", help="Record a system profile.")] = False,
    run_mode: Annotated[RunMode | None, typer.Option("--run-mode", help="Overrides the YAML.")] = None,
    run_kind: Annotated[RunKind | None, typer.Option("--run-kind", help="Overrides the YAML.")] = None,
    docker_image: Annotated[str | None, typer.Option("--docker-image", metavar="IMAGE", help="Server image.")] = None,
    inferencex_path: Annotated[str, typer.Option("--inferencex-path", metavar="DIR", help="InferenceX checkout.")] = "",
    benchmark_script: Annotated[str | None, typer.Option("--benchmark-script", help="Script to run.")] = None,
    timeout: Annotated[int, typer.Option("--timeout", metavar="S", help="Seconds the run may take.")] = 3600,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", metavar="DIR", help="Where workspaces and gap analyses go.")
    ] = Path("./results"),
    trace_dir: Annotated[
        Path | None, typer.Option("--trace-dir", metavar="DIR", help="Analyze these traces instead of benchmarking.")
    ] = None,
    top_k: TopK = 20,
    start_pct: StartPct = 0.0,
    end_pct: EndPct = 100.0,
    min_duration_us: MinDuration = 0.0,
    categories: Categories = None,
    ignore_categories: IgnoreCategories = None,
    no_rank_csv: Annotated[bool, typer.Option("--no-rank-csv", help="Write no file for each rank.")] = False,
    find_kernel_sources: Annotated[bool, typer.Option("--find-kernel-sources", help="Add source columns.")] = False,
    kernel_source_repos: Annotated[
        list[str] | None, typer.Option("--kernel-source-repos", metavar="DIR...", help="Checkouts to search.")
    ] = None,
    salvage: Salvage = False,
) -> int:
    """Benchmark a served model, or analyze the traces of one (--trace-dir).

    Example: magpie-tui benchmark -b configs/benchmarks/vllm_h200_clean.yaml -o results/vllm_h200
    """
    if trace_dir is None:
        return _benchmark(context, output_dir)
    selection = selection_from(top_k, start_pct, end_pct, min_duration_us, categories, ignore_categories)
    repos = [Path(repo) for repo in kernel_source_repos or ()] if find_kernel_sources or kernel_source_repos else None
    _gap_analysis(trace_dir, output_dir, selection, rank_files=not no_rank_csv, salvage=salvage, repos=repos)
    return ExitCode.OK


def _benchmark(context: typer.Context, output_dir: Path) -> int:
    """Run a benchmark with the options that ``context`` holds."""
    from click.core import ParameterSource

    from magpie_tui.cli.benchmark_running import run_benchmark
    from magpie_tui.serving.request import CommandOptions

    values = context.params

    def word(name: str) -> str | None:
        value = values[name]
        return None if value in (None, "") else str(getattr(value, "value", value))

    path, framework, model, run_mode = (word(name) for name in ("benchmark_config", "framework", "model", "run_mode"))
    if path is not None:
        typed = {
            name.replace("_", "-"): word(name) or "yes"
            for name in values
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        }
        return run_benchmark(Path(path), None, output_dir, run_mode, run_kind=word("run_kind"), ignored=typed)
    options = None
    if framework is not None and model is not None:
        options = CommandOptions(
            framework=framework,
            model=model,
            precision=word("precision") or "fp8",
            tensor_parallel=values["tp"],
            concurrency=values["concurrency"],
            input_len=values["input_len"],
            output_len=values["output_len"],
            torch_profiler=values["torch_profiler"],
            system_profiler=values["system_profiler"],
            run_mode=run_mode,
            run_kind=word("run_kind"),
            docker_image=word("docker_image"),
            inferencex_path=word("inferencex_path") or "",
            benchmark_script=word("benchmark_script"),
            timeout_s=values["timeout"],
        )
    return run_benchmark(None, options, output_dir, run_mode, ignored={})


def _source_finder(repos: list[Path]) -> Callable[[Sequence[str]], SourceColumns]:
    """Check the directories now, search them when the kernels are known."""
    from magpie_tui.sources.columns import source_columns
    from magpie_tui.sources.find import SourceFinder
    from magpie_tui.sources.repositories import gather

    repositories = gather(repos)

    def find(names: Sequence[str]) -> SourceColumns:
        with SourceFinder(repositories) as finder:
            finder.update()
            return source_columns(finder, names)

    return find


def _gap_analysis(
    trace_dir: Path,
    output_dir: Path,
    selection: Selection,
    *,
    rank_files: bool,
    salvage: bool,
    repos: list[Path] | None,
) -> None:
    """Do what upstream's ``benchmark --trace-dir`` does; with ``repos`` (none for packages alone) it finds sources."""
    from magpie_tui.cli.trace_progress import progress_printer
    from magpie_tui.traces.analysis import run_gap_analysis
    from magpie_tui.traces.gap_files import gap_text

    if not trace_dir.exists():
        raise UserInputError(
            "trace directory not found", path=trace_dir, hint="give the directory that holds the traces"
        )
    run = run_gap_analysis(
        trace_dir,
        output_dir,
        selection,
        rank_files=rank_files,
        salvage=salvage,
        find_sources=None if repos is None else _source_finder(repos),
        progress=progress_printer(),
    )
    say_files(run.report.traces, run.report.gap.errors)
    if not run.report.gap.kernels:
        write("No kernel events found in traces.")
        say_caveats(run.report.ranks)
        require_capture(run.report.ranks, trace_dir)
        raise AnswerIsNoError(
            "no kernel events found in the traces",
            path=trace_dir,
            hint="widen --start-pct/--end-pct, check --categories, or look with `magpie-tui trace summary`",
        )
    write(printable(gap_text(run.report, run.directory), keep="\n"))
    say_caveats(run.report.ranks)
