"""``magpie-tui compare``."""

from __future__ import annotations

from magpie_tui.basics.errors import ExitCode
from magpie_tui.basics.options import Values
from magpie_tui.cli.context import global_options
from magpie_tui.cli.group import command_app
from magpie_tui.cli.kernel_engine import run_with_upstream, uses_upstream
from magpie_tui.cli.kernel_running import ProgressReporter, command_of, run_kernels
from magpie_tui.cli.output import write_json
from magpie_tui.cli.running import say
from magpie_tui.kernels.options import COMPARE_OPTIONS, Request, compare_request
from magpie_tui.kernels.preflight import Preflight
from magpie_tui.workspaces.reports import CompareReport

app = command_app("Rank correct kernels against a baseline.")


def _run(values: Values) -> int:
    request = compare_request(values)
    if uses_upstream():
        return run_with_upstream("compare", request, values)
    return run_kernels("compare", request, lambda preflight, report: _work(request, preflight, report))


def _work(request: Request, preflight: Preflight, report: ProgressReporter) -> int:
    from magpie_tui.cli.kernel_output import print_compare
    from magpie_tui.kernels.compare import compare
    from magpie_tui.workspaces.names import create_workspace

    baseline = request.baseline or 0
    workspace = create_workspace(request.output_dir, "compare")
    report.events.workspace(workspace)
    say(f"Created compare workspace: {workspace}")
    result = compare(request.config, request.settings, workspace, preflight, report, baseline=baseline)
    if global_options().json:
        write_json(result.to_json())
    else:
        print_compare(result, workspace)
    return exit_code(result, baseline, request.fail_on)


def exit_code(report: CompareReport, baseline: int, fail_on: tuple[str, ...]) -> ExitCode:
    """Return 1 when the baseline or every candidate is not proved correct, or an outcome of ``fail_on`` occurred."""
    candidates = [state for index, state in enumerate(report.kernels) if index != baseline]
    if not report.kernels[baseline].proved_correct or not any(state.proved_correct for state in candidates):
        return ExitCode.ANSWER_IS_NO
    words = {state.extras.verdict.word for state in candidates if state.extras is not None and state.extras.verdict}
    if not all(state.proved_correct for state in report.kernels):
        words.add("incorrect")
    if report.winner is None:
        words.add("no_winner")
    return ExitCode.ANSWER_IS_NO if words & set(fail_on) else ExitCode.OK


@app.command(cls=command_of(COMPARE_OPTIONS, _run))
def compare() -> None:
    """Judge kernels, time the correct ones against a baseline, and rank them.

    Example: magpie-tui compare -k examples/pytorch_rmsnorm/compare.yaml --baseline 0 --quick
    """
