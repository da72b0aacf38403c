"""Checks of an analyze or compare workspace: times, ratios, verdicts, ranks and the winner from the raw samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.campaigns.verify_model import Check, CheckState, cannot, compared
from magpie_tui.kernels.verifying import SAMPLES_NAME, recompute
from magpie_tui.workspaces.browse import load_report_of
from magpie_tui.workspaces.damage import Damaged
from magpie_tui.workspaces.names import WorkspaceKind, report_name
from magpie_tui.workspaces.reports import AnalyzeReport, CompareReport


def kernel_checks(workspace: Path, kind: WorkspaceKind) -> Iterator[Check]:
    """Check everything that a kernel report states and that raw rows can tell."""
    name = report_name(kind) or ""
    report = load_report_of(workspace, kind)
    if isinstance(report, Damaged):
        if report.gone:
            yield cannot(name, "", "there is no report")
        else:
            yield Check(name, "", CheckState.DIFFERS, "a readable report", report.text)
        return
    if not isinstance(report, (AnalyzeReport, CompareReport)):
        return
    yield from _consistent(name, report)
    yield from _from_samples(workspace, name, report)
    yield cannot(name, "gate", "outputs of kernels are not kept; analyze and compare judge them again")


def _consistent(name: str, report: AnalyzeReport | CompareReport) -> Iterator[Check]:
    """A kernel's state words and numbers must say the same."""
    for index, state in enumerate(report.kernels):
        told = None if state.correctness_result is None else state.correctness_result.success
        if told is not None:
            word = {"SUCCESS": True, "FAILED": False}.get(state.correctness_state or "")
            if word is not None:
                yield from compared(name, f"kernel {index} {state.kernel_id}: correctness", told, word)
    if isinstance(report, CompareReport):
        known = [state.proved_correct for state in report.kernels]
        if report.correctness and len(report.correctness) == len(known):
            yield from compared(name, "comparison_metrics.correctness", list(report.correctness), known)


def _from_samples(workspace: Path, name: str, report: AnalyzeReport | CompareReport) -> Iterator[Check]:
    timed = any(
        state.extras is not None and (state.extras.timing or {}).get("median_us") is not None
        for state in report.kernels
    )
    if not (workspace / SAMPLES_NAME).is_file():
        if timed:
            yield cannot(name, "times, ratios, verdicts, winner", f"{SAMPLES_NAME} is not there: no raw samples")
        elif report.extras is None:
            yield cannot(name, "times and scores", "another program made this workspace; it keeps no raw samples")
        return
    try:
        found = recompute(workspace)
    except UserInputError as error:
        place = f"line {error.line}" if error.line else ""
        yield Check(SAMPLES_NAME, place, CheckState.DIFFERS, "rows of windows", error.message)
        return
    good = [item for item in found if item.agrees]
    for item in found:
        if not item.agrees:
            yield Check(name, item.name, CheckState.DIFFERS, item.stated, item.computed)
    if good:
        yield Check(name, "times, ratios, verdicts, winner", CheckState.OK, values=len(good))
