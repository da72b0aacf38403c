"""Interleaved pairs of clean runs with fresh servers, and the verdict at the end.

Pairs run A B, B A, A B …; both runs of a pair share a seed, each pair has its own. The number of pairs is fixed
before: no look at the figures ends an experiment early or makes it longer. A pair of which a run does not count (it
failed, or the client was measured instead of the server) is set aside whole and run again with a new seed, at most a
quarter of the planned pairs; the reasons are fixed in the rules of validity and never look at the figures.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

from magpie_tui.basics.errors import AnswerIsNoError, MagpieTuiError, UserInputError
from magpie_tui.basics.text import plural
from magpie_tui.basics.units import format_seconds
from magpie_tui.serving.experiment_state import (
    STATE_NAME,
    ExperimentPlan,
    ExperimentState,
    clear_incomplete,
    order_of,
    put_away,
    read_state,
    run_directory,
    start_state,
    with_set_aside,
    write_state,
)
from magpie_tui.serving.lifecycle import RunningServer
from magpie_tui.serving.model import Phase, Reporter, RunOutcome, RunRequest
from magpie_tui.serving.verdict_comparability import declared_changes
from magpie_tui.serving.verdict_kernels import proof_of_use
from magpie_tui.serving.verdict_model import Arm, Pair, ServingVerdict
from magpie_tui.serving.verdict_reading import REPORT_NAME, read_experiment_runs, read_run
from magpie_tui.serving.verdict_rule import Question, Twins, decide, interim_text
from magpie_tui.serving.verdict_text import write_verdict
from magpie_tui.workspaces.damage import Damaged, read_json_file
from magpie_tui.workspaces.values import as_list, as_mapping, as_number, as_text


class Runs(Protocol):
    """``run_clean`` and ``run_profiled`` of ``serving.benchmark``."""

    def __call__(
        self, request: RunRequest, workspace: Path, *, report: Reporter | None, server: RunningServer | None
    ) -> RunOutcome:
        """Run once."""


Shares = Callable[[RunRequest, Path], contextlib.AbstractContextManager[RunningServer]]


@dataclass(frozen=True, slots=True)
class Tools:
    """What an experiment works with; tests put stand-ins here.

    Attributes:
        clean, profiled: One run.
        shared: A server for several runs.
    """

    clean: Runs
    profiled: Runs
    shared: Shares


def real_tools() -> Tools:
    """Return the benchmark itself."""
    from magpie_tui.serving.benchmark import run_clean, run_profiled, shared_server

    return Tools(run_clean, run_profiled, shared_server)


class ExperimentReporter(Protocol):
    """Takes the progress of an experiment."""

    def run(self, text: str, phase: Phase, done: float | None, total: float | None, unit: str, message: str) -> None:
        """One run got further; ``text`` says which."""

    def pairs(self, done: int, planned: int, interval: str) -> None:
        """A pair is complete; ``interval`` is the interval as it stands."""

    def note(self, text: str) -> None:
        """Something that people should read now."""


class _RunReporter:
    """Hands the progress of one run on."""

    def __init__(self, text: str, to: ExperimentReporter) -> None:
        self._text = text
        self._to = to

    def phase(self, phase: Phase, message: str = "") -> None:
        """A phase begins."""
        self._to.run(self._text, phase, None, None, "", message)

    def progress(self, phase: Phase, done: float, total: float | None, unit: str, message: str = "") -> None:
        """The phase got further."""
        self._to.run(self._text, phase, done, total, unit, message)

    def note(self, text: str) -> None:
        """Something for people."""
        self._to.note(f"{self._text}: {text}")


def start_experiment(directory: Path, plan: ExperimentPlan, a: Path, b: Path) -> ExperimentState:
    """Write the state of a new experiment into its empty directory.

    Raises:
        UserInputError: A config cannot be read, or the plan makes no sense.
    """
    if plan.pairs < 1:
        raise UserInputError(f"an experiment needs at least one pair, not {plan.pairs}", key="pairs")
    if plan.guard_share is not None and not 0 < plan.guard_share < 1:
        raise UserInputError(f"a guard's share lies between 0 and 1, not {plan.guard_share}", key="guard_share")
    return start_state(directory, plan, a, b, began_at=_now())


def run_experiment(directory: Path, report: ExperimentReporter, tools: Tools | None = None) -> ServingVerdict:
    """Run what is not done yet, judge, and write ``verdict.json`` and ``verdict.md``.

    Args:
        directory: Of an experiment that was started, or interrupted at any point.

    Raises:
        AnswerIsNoError: A run failed, so that there can be no verdict; everything is kept.
        UserInputError, MachineError: As ``run_clean``; the experiment can be resumed.
    """
    experiment = _Experiment(directory, read_state(directory), report, tools or real_tools())
    try:
        experiment.probe()
        experiment.run_pairs()
        experiment.run_twins()
    except BaseException as error:
        experiment.stop(str(error) if isinstance(error, MagpieTuiError) else type(error).__name__)
        raise
    return experiment.judge()


class _Experiment:
    """The runs that are left, and the state after each."""

    def __init__(self, directory: Path, state: ExperimentState, report: ExperimentReporter, tools: Tools) -> None:
        self._directory = directory
        self._state = replace(state, state="running", reason=None)
        self._report = report
        self._tools = tools
        self._server: tuple[Arm, RunningServer] | None = None
        self._servers = contextlib.ExitStack()
        self._invalid: list[str] = []
        self._free_interrupted()
        write_state(directory, self._state)

    def _free_interrupted(self) -> None:
        """Put away what does not count of a pair that an interruption cut; it is made again, with the same seed."""
        for number in range(1, self._state.plan.pairs + 1):
            for arm in order_of(number):
                workspace = run_directory(self._directory, number, arm)
                if (workspace / REPORT_NAME).is_file() and read_run(workspace).status != "ok":
                    put_away(workspace, "interrupted")

    def probe(self) -> None:
        """Where a kernel change is declared, see it in use before any pair is run.

        Raises:
            AnswerIsNoError: It is not in B's trace, or in A's too: no run could prove anything.
        """
        plan = self._state.plan
        if plan.kernel is None:
            return
        self.run_twins(is_probe=True)
        runs = read_experiment_runs(self._directory, {})
        use = proof_of_use(plan.kernel, runs.twin_a, runs.twin_b, [run for run in (runs.twin_a, runs.twin_b) if run])
        if use.state != "not_observed":
            self._report.note(f"probe: {use.text}")
            return
        for arm in ("a", "b"):
            put_away(self._directory / f"twin_{arm}", "probe")
        raise AnswerIsNoError(
            f"candidate not observed: {use.text}",
            path=self._directory,
            hint=f"see that B loads the new kernel, then: magpie-tui experiment --resume {self._directory}",
        )

    def run_pairs(self) -> None:
        """Run all pairs that are planned and not done."""
        with self._servers:
            for number in range(1, self._state.plan.pairs + 1):
                began = time.monotonic()
                if not self._run_pair(number):
                    return
                self._tell(number, time.monotonic() - began)

    def _run_pair(self, number: int) -> bool:
        """Run one pair until both runs count; False when too many were set aside."""
        while True:
            reason = self._attempt(number)
            if reason is None:
                return True
            is_first = number == 1 and not self._state.set_aside and not self._has_ok_run(number)
            for arm in order_of(number):
                put_away(run_directory(self._directory, number, arm), "failed" if is_first else "aside")
            self._server = None
            self._servers.close()
            if is_first:
                raise AnswerIsNoError(
                    f"the first run of the experiment does not count: {reason}",
                    path=self._directory,
                    hint=f"repair the cause, then: magpie-tui experiment --resume {self._directory}",
                )
            self._state = with_set_aside(self._state, number, reason)
            write_state(self._directory, self._state)
            self._report.note(f"pair {number} is set aside and run again: {reason}")
            if len(self._state.set_aside) > self._state.plan.most_set_aside:
                self._invalid.append(
                    f"{plural(len(self._state.set_aside), 'pair')} had a run that does not count; the last: {reason}"
                )
                return False

    def _has_ok_run(self, number: int) -> bool:
        return any(
            (workspace / REPORT_NAME).is_file() and read_run(workspace).status == "ok"
            for workspace in (run_directory(self._directory, number, arm) for arm in order_of(number))
        )

    def _attempt(self, number: int) -> str | None:
        """Make the runs of a pair that are missing; return why one does not count, None when both do."""
        for arm in order_of(number):
            workspace = run_directory(self._directory, number, arm)
            clear_incomplete(workspace)
            if not (workspace / REPORT_NAME).is_file():
                workspace.mkdir()
                text = f"pair {number} of {self._state.plan.pairs}, {arm.upper()}"
                self._run_one(self._tools.clean, arm, workspace, self._state.seed_of(number), text)
            run = read_run(workspace)
            if run.status != "ok":
                return f"{arm.upper()} is {run.status}: {run.reasons[0] if run.reasons else 'no reason is given'}"
        return None

    def _run_one(self, runs: Runs, arm: Arm, workspace: Path, seed: int, text: str, *, is_probe: bool = False) -> None:
        plan = self._state.plan
        request = RunRequest(
            config_path=self._directory / self._state.configs[arm]["copy"],
            seed=seed,
            guard_output_throughput=self._guard(arm),
            stop_on_flags=plan.stop_on_flags,
            run_mode=plan.run_mode,
            keep_server=False,
            is_probe=is_probe,
        )
        server = self._shared(arm, request, workspace) if plan.share_servers and runs is self._tools.clean else None
        runs(request, workspace, report=_RunReporter(text, self._report), server=server)

    def _shared(self, arm: Arm, request: RunRequest, workspace: Path) -> RunningServer:
        """Return the server of this arm; that of the other one is stopped first."""
        if self._server is None or self._server[0] != arm:
            self._server = None
            self._servers.close()
            self._server = (arm, self._servers.enter_context(self._tools.shared(request, workspace)))
        return self._server[1]

    def _guard(self, arm: Arm) -> float | None:
        share = self._state.plan.guard_share
        if share is None or arm == "a":
            return None
        known = [pair.a.values.get("output_throughput") for pair in self._pairs()]
        rates = [rate for rate in known if rate is not None]
        return share * min(rates) if rates else None

    def _pairs(self) -> tuple[Pair, ...]:
        return read_pairs(self._directory, self._state)

    def _tell(self, number: int, seconds: float) -> None:
        pairs = self._pairs()
        interim = interim_text(question_of(self._directory, self._state, pairs), pairs)
        # Pairs that a resumed experiment only finds took no time.
        taken = (*self._state.pair_seconds, seconds) if seconds > 1.0 else self._state.pair_seconds
        self._state = replace(self._state, interim=interim, pair_seconds=taken)
        write_state(self._directory, self._state)
        left = self._state.plan.pairs - number
        if left and taken:
            interim += f"; about {format_seconds(left * sum(taken) / len(taken))} to go"
        self._report.pairs(number, self._state.plan.pairs, interim)

    def run_twins(self, *, is_probe: bool = False) -> None:
        """Run a profiled twin of each arm where asked; one that fails only lacks as evidence.

        Args:
            is_probe: With a load just long enough for the steps of the capture, before the first pair.
        """
        plan = self._state.plan
        if not plan.twins or self._invalid:
            return
        arms: tuple[Arm, Arm] = ("a", "b")
        for arm in arms:
            workspace = self._directory / f"twin_{arm}"
            clear_incomplete(workspace)
            if (workspace / REPORT_NAME).is_file():
                continue
            workspace.mkdir()
            text = f"{'probe' if is_probe else 'profiled twin'} of {arm.upper()}"
            self._run_one(self._tools.profiled, arm, workspace, plan.seed, text, is_probe=is_probe)

    def stop(self, reason: str) -> None:
        """Keep the state of an experiment that ends before its plan."""
        self._servers.close()
        self._state = replace(self._state, state="stopped", reason=reason)
        with contextlib.suppress(MagpieTuiError, OSError):
            write_state(self._directory, self._state)

    def judge(self) -> ServingVerdict:
        """Judge, and write the verdict."""
        self._state = replace(self._state, state="ended")
        write_state(self._directory, self._state)
        return judge_experiment(self._directory, invalid=self._invalid)


def read_pairs(directory: Path, state: ExperimentState) -> tuple[Pair, ...]:
    """Return the complete pairs of an experiment."""
    first: dict[int, Arm] = {number: order_of(number)[0] for number in range(1, state.plan.pairs + 1)}
    return read_experiment_runs(directory, first).pairs


def question_of(directory: Path, state: ExperimentState, pairs: tuple[Pair, ...]) -> Question:
    """Return what the experiment asks; the change under test is what its two configs change on purpose."""
    plan = state.plan
    own = declared_changes(pairs[0].a.config, pairs[0].b.config) if pairs else ()
    floors, _ = read_control(None if plan.control is None else Path(plan.control))
    return Question(
        primary=plan.primary,
        planned=plan.pairs,
        changes=(*own, *plan.changes),
        kernel=plan.kernel,
        replaces=plan.replaces,
        kernel_ratio=plan.kernel_ratio,
        floors=floors,
    )


def judge_experiment(directory: Path, *, invalid: list[str] | None = None, write: bool = True) -> ServingVerdict:
    """Judge an experiment from its directory alone, complete or not.

    Raises:
        UserInputError: It is none, or one of its reports is damaged.
        MachineError: The verdict cannot be written.
    """
    state = read_state(directory)
    first: dict[int, Arm] = {number: order_of(number)[0] for number in range(1, state.plan.pairs + 1)}
    runs = read_experiment_runs(directory, first)
    reasons = list(invalid or ())
    if not invalid and len(state.set_aside) > state.plan.most_set_aside:
        reasons.append(f"{plural(len(state.set_aside), 'pair')} had a run that does not count")
    reasons += read_control(None if state.plan.control is None else Path(state.plan.control))[1]
    verdict = decide(
        question_of(directory, state, runs.pairs),
        runs.pairs,
        interleaved=True,
        twins=Twins(runs.twin_a, runs.twin_b),
        invalid=reasons,
        set_aside=[f"pair {item.pair}: {item.reason}" for item in state.set_aside],
        notes=_how_it_was_made(state),
    )
    if write:
        names = {arm: Path(state.configs[arm]["path"]).name for arm in ("a", "b")}
        write_verdict(
            directory,
            verdict,
            title=f"{names['b']} against {names['a']}",
            more={"experiment": {"state": STATE_NAME, "configs": state.configs, "plan": state.plan}},
        )
    return verdict


def _how_it_was_made(state: ExperimentState) -> list[str]:
    notes = []
    if state.plan.share_servers:
        notes.append("neighbouring runs of one arm shared a server, whose prefix cache was emptied in between")
    if state.plan.guard_share is not None:
        notes.append(f"runs of B below {state.plan.guard_share:.0%} of the baseline's throughput were ended")
    if state.plan.control is not None:
        notes.append(f"margins are raised to what the control shows: {state.plan.control}")
    return notes


def read_control(directory: Path | None) -> tuple[dict[str, float], list[str]]:
    """Return what a control of the baseline against itself shows, by metric, and why it forbids verdicts.

    Raises:
        UserInputError: There is no verdict.
    """
    if directory is None:
        return {}, []
    value = read_json_file(directory / "verdict.json")
    if isinstance(value, Damaged):
        raise UserInputError("the control has no verdict", path=directory, hint="give an experiment that has ended")
    keys = as_mapping(value)
    floors: dict[str, float] = {}
    for outcome in (as_mapping(keys.get("primary")), *map(as_mapping, as_list(keys.get("guards")))):
        interval = as_mapping(outcome.get("interval"))
        low, high = as_number(interval.get("low")), as_number(interval.get("high"))
        metric = as_text(outcome.get("metric"))
        if outcome.get("compared_by") == "ratio" and metric and low and high:
            floors[metric] = max(high, 1.0 / low) - 1.0
    word = as_text(as_mapping(keys.get("verdict")).get("word"))
    differs = word in ("improved", "improved_with_regression", "regressed", "unexplained")
    return floors, ["the control of the baseline against itself shows a difference"] if differs else []


def runs_left(directory: Path) -> Iterator[tuple[int, Arm]]:
    """Yield the runs that are still to be made."""
    state = read_state(directory)
    for number in range(1, state.plan.pairs + 1):
        for arm in order_of(number):
            if not (run_directory(directory, number, arm) / REPORT_NAME).is_file():
                yield number, arm


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
