"""Step four: takes a kernel, runs its existing test, writes its files, and records the decision."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import create_directory
from magpie_tui.campaigns.choosing import ChoiceRequest, Chosen, choose_from_trace
from magpie_tui.campaigns.edit import change_campaign, with_decision
from magpie_tui.campaigns.findings import twin_workspace
from magpie_tui.campaigns.kernel_files import FIRST_LABEL, KernelFiles, write_kernel_files
from magpie_tui.campaigns.model import Campaign
from magpie_tui.campaigns.steps import BY_KEY
from magpie_tui.processes.children import run_child
from magpie_tui.traces.each import Reading

SHARE_DIGITS = 3
_LOG = "existing_test.log"
_PYTEST_RAN_NOTHING = {
    2: "it could not be loaded here",
    3: "pytest failed",
    4: "pytest refuses the command",
    5: "it holds no tests",
}
"""Exit statuses of pytest that say nothing about the kernel."""


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """What the existing test said.

    Attributes:
        word: ``passed``, ``failed`` or ``not run``.
        detail: Exit status and where its output is, or why it was not run.
    """

    __test__ = False

    word: str
    detail: str


@dataclass(frozen=True, slots=True)
class Configured:
    """What came of it."""

    campaign: Campaign
    chosen: Chosen
    files: KernelFiles
    test: TestOutcome


@dataclass(frozen=True, slots=True)
class ConfigureRequest:
    """What is asked.

    Attributes:
        kernel: A name, or a part that only one kernel has; None for the recommended one.
        trace: None for the twin's workspace.
        test_seconds: Limit of the existing test; 0 leaves it out.
        force: Replace files that are there.
    """

    kernel: str | None = None
    trace: Path | None = None
    choice: ChoiceRequest = field(default_factory=ChoiceRequest)
    test_seconds: float = 600.0
    force: bool = False


def configure(campaign: Campaign, request: ConfigureRequest, reading: Reading) -> Configured:
    """Choose, test, write and decide.

    Raises:
        AnswerIsNoError: No kernel can be recommended, or the source of the named one was not found.
        UserInputError: There is no trace, the name fits none or several, or files are there already.
        MachineError: A directory cannot be written.
    """
    trace = request.trace or twin_workspace(campaign)
    if trace is None:
        raise UserInputError(
            "there is no trace to choose from",
            path=campaign.path,
            hint="run or adopt the profiled twin (step 2), or give --trace",
        )
    chosen = choose_from_trace(trace, request.kernel, request.choice, reading)
    files = write_kernel_files(chosen, campaign.directory / "kernels", force=request.force)
    test = _run_test(chosen, files, request.test_seconds)
    decision = _decision(chosen, files, test)

    def named(now: Campaign) -> Campaign:
        held = {**now.files, "analyze": files.analyze, "compare": files.compare}
        found = replace(now, files=held, candidates={**now.candidates, FIRST_LABEL: files.candidate})
        return with_decision(found, BY_KEY["kernels"], decision)

    # A person may have changed the campaign while the trace was read and the test ran.
    decided = change_campaign(campaign.directory, named)
    return Configured(decided, chosen, files, test)


def _run_test(chosen: Chosen, files: KernelFiles, seconds: float) -> TestOutcome:
    test = chosen.choice.source.test
    if test is None:
        return TestOutcome("not run", "no test of this kernel was found")
    if seconds <= 0:
        return TestOutcome("not run", "it was left out on request")
    log = create_directory(files.directory) / _LOG
    ended = run_child(
        test.command, cwd=files.directory, stdout_path=log, stderr_path=log.with_suffix(".err"), timeout_s=seconds
    )
    if ended.not_started is not None:
        return TestOutcome("not run", ended.not_started)
    if ended.timed_out:
        return TestOutcome("not run", f"no answer within {seconds:g} s, output in {log}")
    if "pytest" in test.command and ended.exit_code in _PYTEST_RAN_NOTHING:
        why = _last_error(log) or _PYTEST_RAN_NOTHING[ended.exit_code]
        return TestOutcome("not run", f"{why} (exit status {ended.exit_code} of pytest), output in {log}")
    how = f"signal {ended.signal}" if ended.signal is not None else f"exit status {ended.exit_code}"
    word = "passed" if ended.exit_code == 0 else "failed"
    return TestOutcome(word, f"{how} after {ended.wall_s:.1f} s, output in {log}")


def _last_error(log: Path) -> str:
    """Return the last error that pytest reports in its output; empty where there is none."""
    lines = [line[1:].strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
             if line.startswith("E ")]  # fmt: skip
    return lines[-1] if lines else ""


def _decision(chosen: Chosen, files: KernelFiles, test: TestOutcome) -> dict[str, object]:
    """Return what is written down: measured values, and what is assumed apart from them."""
    item, found, gain = chosen.choice.evidence, chosen.choice.source, chosen.choice.gain
    decision: dict[str, object] = {
        "kernel": item.name,
        "share_pct": round(item.share_of_stage_pct, SHARE_DIGITS),
        "stage": chosen.stage,
        "calls": item.calls,
        "mean_us": round(item.mean_us, SHARE_DIGITS),
        "source": str(files.source),
        "confidence": found.source.confidence if found.source else None,
        "test": shlex.join(found.test.command) if found.test else None,
        "existing_test": f"{test.word}: {test.detail}",
        "trace": str(chosen.trace),
    }
    if item.percent_of_ceiling is not None:
        decision["percent_of_ceiling"] = round(item.percent_of_ceiling, SHARE_DIGITS)
        decision["ceiling"] = item.ceiling
    if chosen.against:
        decision["against"] = chosen.against
    if gain is not None:
        decision["gain"] = f"end to end at most +{gain.high_pct:.1f} %, +{gain.low_pct:.1f} % at half the way"
    decision["assumptions"] = list(chosen.choice.assumptions)
    return {key: value for key, value in decision.items() if value is not None}
