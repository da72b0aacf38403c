"""``magpie-tui analyze``."""

from __future__ import annotations

from magpie_tui.basics.errors import ExitCode
from magpie_tui.basics.options import Values
from magpie_tui.cli.context import global_options
from magpie_tui.cli.group import command_app
from magpie_tui.cli.kernel_engine import run_with_upstream, uses_upstream
from magpie_tui.cli.kernel_running import ProgressReporter, command_of, run_kernels
from magpie_tui.cli.output import write_json
from magpie_tui.cli.running import say
from magpie_tui.kernels.options import ANALYZE_OPTIONS, Request, analyze_request
from magpie_tui.kernels.preflight import Preflight

app = command_app("Prove kernels correct and time them.")


def _run(values: Values) -> int:
    request = analyze_request(values)
    if uses_upstream():
        return run_with_upstream("analyze", request, values)
    return run_kernels("analyze", request, lambda preflight, report: _work(request, preflight, report))


def _work(request: Request, preflight: Preflight, report: ProgressReporter) -> int:
    from magpie_tui.cli.kernel_output import print_analyze
    from magpie_tui.kernels.analyze import analyze
    from magpie_tui.workspaces.names import create_workspace

    workspace = create_workspace(request.output_dir, "analyze", request.config.kernels[0].id)
    report.events.workspace(workspace)
    say(f"Created analyze workspace: {workspace}")
    result = analyze(request.config, request.settings, workspace, preflight, report)
    if global_options().json:
        write_json(result.to_json())
    else:
        print_analyze(result, workspace)
    return ExitCode.OK if result.all_correct else ExitCode.ANSWER_IS_NO


@app.command(cls=command_of(ANALYZE_OPTIONS, _run))
def analyze() -> None:
    """Prove kernels correct, and time those that are.

    Example: magpie-tui analyze -k examples/pytorch_rmsnorm/analyze.yaml --quick
    """
