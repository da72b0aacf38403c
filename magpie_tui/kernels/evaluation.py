"""One run of analyze or compare: its workspace, its processes, and the stages of each kernel."""

from __future__ import annotations

import hashlib
import os
import random
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

from magpie_tui.configs.kernel_model import Command, KernelConfig, KernelEntry
from magpie_tui.kernels import checks
from magpie_tui.kernels.binary_facts import KernelFacts
from magpie_tui.kernels.commands import CommandStage, child_environment, run_commands
from magpie_tui.kernels.gate import Candidate, Gate
from magpie_tui.kernels.judges import Judge, ReferenceTask, find_reference, reference_of_entry
from magpie_tui.kernels.model import Fact, GateCheck, Judgement, StageOutcome, Timing
from magpie_tui.kernels.preflight import Preflight, interpreter_of, memory_limit_bytes
from magpie_tui.kernels.raw import RawBinary, build_raw, is_raw, load_message
from magpie_tui.kernels.rights import Rights, rights_for
from magpie_tui.kernels.sanitizers import sanitized
from magpie_tui.kernels.sessions import Harness, HarnessBrokenError
from magpie_tui.kernels.settings import EvaluationSettings
from magpie_tui.kernels.shapes import ShapePoint, points_of, points_of_run
from magpie_tui.workspaces.kernel_state import PerformanceResult

Report = Callable[[str, float | None, float | None, str], None]
"""Called with step, done, total and a message."""

_COMPILE = CommandStage("compile", "Compile command", "invalid")
_TESTCASE = CommandStage("testcase", "Testcase command", "incorrect")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]")


_NOT_RUN = StageOutcome(ran=False)
_NOT_JUDGED = Judgement("skipped", "it was not judged")


@dataclass
class KernelOutcome:
    """What became of one kernel.

    Attributes:
        compiled, tested: The stages made of commands.
        judgement: The state and the gate.
        candidate: Where it can be called again for timing; None for a program, or when it failed.
        digests: File name to SHA-256 of each source, taken before anything ran.
        binary: What a kernel without a main was compiled to.
        facts: What its binaries say: registers, spills, shared memory; empty where nothing tells them.
        listings: Where its instructions are, as the report has it; empty where no tool shows them.
        profile: What a profiler reported; None when none ran, with ``unprofiled`` saying why.
        timing: Its time; None when it was not timed.
        untimed: Why it was not timed.
    """

    index: int
    entry: KernelEntry
    compiled: StageOutcome = _NOT_RUN
    tested: StageOutcome = _NOT_RUN
    judgement: Judgement = _NOT_JUDGED
    candidate: Candidate | None = None
    digests: dict[str, str] = field(default_factory=dict)
    binary: RawBinary | None = None
    facts: tuple[KernelFacts, ...] = ()
    listings: tuple[Mapping[str, Fact], ...] = ()
    profile: PerformanceResult | None = None
    unprofiled: str | None = None
    timing: Timing | None = None
    untimed: str | None = None


def digests_of(entry: KernelEntry) -> dict[str, str]:
    """Return the SHA-256 of each source, and of each file that tunes the kernel, that can be read."""
    found = {}
    for path in (*entry.source_files, *entry.config_files):
        try:
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            continue
    return found


def default_threads() -> int:
    """Return the threads of CPU kernels: OMP_NUM_THREADS, else all usable CPUs but one.

    The one left is for whatever else runs: a team of threads that waits for a member without a CPU loses whole time
    slices, and that is what would be measured.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return max(1, len(os.sched_getaffinity(0)) - 1)


class Evaluation:
    """Holds what a run shares: settings, seeds, harnesses, judges, the directory for exchanged values. Close it."""

    def __init__(
        self,
        config: KernelConfig,
        settings: EvaluationSettings,
        workspace: Path,
        preflight: Preflight,
        report: Report,
        *,
        baseline: int | None = None,
    ) -> None:
        self.config = config
        self.settings = settings
        self.workspace = workspace
        self.preflight = preflight
        self.report = report
        self.baseline = baseline
        self.seed = secrets.randbits(63) if settings.seed is None else settings.seed
        self.rng = random.Random(self.seed)
        self.gate_seeds = [self.rng.getrandbits(31) for _ in range(settings.gate.seeds)]
        self.model_seed = self.rng.getrandbits(31)
        self.threads = settings.threads or default_threads()
        self.memory_bytes = memory_limit_bytes(settings.gate.memory_share)
        self.exchange = Path(tempfile.mkdtemp(prefix="magpie-tui-exchange-"))
        self._harnesses: dict[tuple[object, ...], Harness] = {}
        self._judges: dict[tuple[object, ...], Judge] = {}

    def __enter__(self) -> Evaluation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process and remove what was exchanged."""
        for judge in self._judges.values():
            judge.close()
        for harness in self._harnesses.values():
            harness.close()
        shutil.rmtree(self.exchange, ignore_errors=True)

    def logs_of(self, entry: KernelEntry, index: int) -> Path:
        """Return the directory for what a kernel's commands and processes print."""
        clean = _NOT_IN_A_NAME.sub("_", entry.id)[:100]
        same = sum(_NOT_IN_A_NAME.sub("_", other.id)[:100] == clean for other in self.config.kernels)
        directory = self.workspace / "logs" / (f"{index}_{clean}" if same > 1 or clean in ("", ".", "..") else clean)
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    def timeout_s(self, entry: KernelEntry) -> float:
        """Return the limit of each command and call of a kernel."""
        return entry.timeout_seconds or self.settings.gate.timeout_s

    def _environment(self, entry: KernelEntry) -> dict[str, str]:
        return child_environment(entry, self.preflight.extra_path)

    def harness_of(self, entry: KernelEntry, *, judging: bool = False) -> Harness:
        """Return the harness of the entry's interpreter, environment and directory.

        References have one of their own: a kernel that kills the process it came from must not take them along. The
        kernels' one is forked from it.
        """
        python = interpreter_of(entry)
        key = (judging, python, tuple(sorted(entry.env.items())), entry.working_dir)
        if key not in self._harnesses:
            beside = None if judging else self.harness_of(entry, judging=True)
            logs = self.workspace / "logs" / "harness"
            logs.mkdir(parents=True, exist_ok=True)
            number = len(self._harnesses)
            self._harnesses[key] = Harness(
                python=python,
                environment=self._environment(entry),
                directory=entry.working_dir,
                log=logs / f"harness_{number}.log",
                start_timeout_s=self.settings.gate.timeout_s,
                beside=beside,
            )
        return self._harnesses[key]

    def judge_of(self, task: ReferenceTask) -> Judge:
        """Return the judge for a reference; entries with the same reference share it."""
        if task.key not in self._judges:
            number = len(self._judges)
            logs = self.workspace / "logs" / "reference"
            logs.mkdir(parents=True, exist_ok=True)
            self._judges[task.key] = Judge(
                task=task,
                harness=self.harness_of(task.entry, judging=True),
                exchange=self.exchange,
                log=logs / f"reference_{number}",
                timeout_s=self.timeout_s(task.entry),
                threads=self.threads,
                memory_bytes=self.memory_bytes,
                seed=self.model_seed,
            )
        return self._judges[task.key]

    def reference_for(self, entry: KernelEntry) -> ReferenceTask | None:
        """Return the entry's own reference; in a comparison else the baseline's reference, else the baseline."""
        own = find_reference(entry, self.config.kernels)
        if own is not None or self.baseline is None:
            return own
        baseline = self.config.kernels[self.baseline]
        return find_reference(baseline, self.config.kernels) or reference_of_entry(baseline)

    def points_of(self, entry: KernelEntry) -> tuple[ShapePoint, ...]:
        """Return the points of the shape grid at which a kernel is judged and timed; empty without a grid."""
        if self.baseline is None:
            return points_of(entry)
        return points_of_run(self.config.kernels, self.baseline)

    def evaluate(self, indices: Sequence[int]) -> list[KernelOutcome]:
        """Build and judge the kernels named, in order."""
        for index in indices:
            entry = self.config.kernels[index]
            task = self.reference_for(entry)
            if index not in self.preflight.lacks and reference_of_entry(entry) and task is not None:
                self.harness_of(entry).begin()
                self.judge_of(task).harness.begin()
        outcomes = []
        for number, index in enumerate(indices):
            entry = self.config.kernels[index]
            self.report("judging", number, len(indices), entry.id)
            outcomes.append(self._evaluate(index, entry))
        return outcomes

    def _evaluate(self, index: int, entry: KernelEntry) -> KernelOutcome:
        outcome = KernelOutcome(index, entry, digests=digests_of(entry))
        lack = self.preflight.lacks.get(index)
        if lack is not None:
            outcome.judgement = Judgement("skipped", lack.reason, ours=True)
            return outcome
        logs = self.logs_of(entry, index)
        outcome.compiled = self._run(entry.compile_commands, _COMPILE, entry, logs)
        if outcome.compiled.success is False:
            outcome.judgement = Judgement(outcome.compiled.word, outcome.compiled.errors[0].splitlines()[0])
            return outcome
        if is_raw(entry):
            self.report("judging", None, None, f"{entry.id}: building")
            built, outcome.binary = build_raw(
                entry,
                self.harness_of(entry),
                self._environment(entry),
                logs,
                self.exchange / "binaries",
                self.timeout_s(entry),
            )
            outcome.compiled = built
            if outcome.binary is None:
                outcome.judgement = Judgement(built.word, built.errors[0].splitlines()[0])
                return outcome
        outcome.tested = self._run(entry.testcase_commands, _TESTCASE, entry, logs)
        if outcome.tested.success is False:
            reason = outcome.tested.errors[0].splitlines()[0]
            outcome.judgement = Judgement(outcome.tested.word, reason, checks=self._testcase_checks(outcome))
            return outcome
        self._judge(outcome, logs)
        return outcome

    def _run(self, commands: Sequence[Command], stage: CommandStage, entry: KernelEntry, logs: Path) -> StageOutcome:
        return run_commands(
            commands,
            stage=stage,
            cwd=entry.working_dir,
            environment=self._environment(entry),
            logs=logs,
            timeout_s=self.timeout_s(entry),
        )

    def _testcase_checks(self, outcome: KernelOutcome) -> tuple[GateCheck, ...]:
        passed = outcome.tested.success is True
        reason = None if passed else next(iter(outcome.tested.errors), "it failed").splitlines()[0]
        head = GateCheck("testcase", "testcase commands exit 0", "pass" if passed else "fail", reason)
        others = checks.testcase_only(outcome.digests)
        if not passed or not self.settings.gate.sanitize:
            return (head, *others)
        entry = outcome.entry
        self.report("judging", None, None, f"{entry.id}: under a sanitizer")
        logs = self.logs_of(entry, outcome.index)
        found = sanitized(entry, self._environment(entry), logs, self.timeout_s(entry))
        return (head, *(found if item.id == found.id else item for item in others))

    def _judge(self, outcome: KernelOutcome, logs: Path) -> None:
        """Run the gate where there is a reference; otherwise the testcase has the word, if there is one."""
        entry = outcome.entry
        task = self.reference_for(entry)
        raw = None if outcome.binary is None else load_message(entry, outcome.binary)
        callable_ = reference_of_entry(entry) is not None or raw is not None
        if task is None or not callable_ or entry.source_file is None:
            outcome.judgement = self._without_reference(outcome, has_reference=task is not None)
            return
        candidate = Candidate(
            index=outcome.index,
            entry=entry,
            source=entry.source_file,
            harness=self.harness_of(entry),
            logs=logs,
            threads=self.threads,
            memory_bytes=self.memory_bytes,
            seed=self.model_seed,
            timeout_s=self.timeout_s(entry),
            raw=raw,
            rights=self._rights(outcome.index, task),
        )
        settings = replace(self.settings.gate, timeout_s=self.timeout_s(entry), equal_nan=self._equal_nan())
        report = self._gate_report(entry)
        digests = outcome.digests
        points = self.points_of(entry)
        gate = Gate(candidate, self.judge_of(task), settings, self.gate_seeds, self.rng, report, digests, points)
        try:
            judgement = gate.run()
        except HarnessBrokenError as error:
            judgement = Judgement("resource", str(error), ours=True)
        all_checks = judgement.checks
        if outcome.tested.ran:
            head = GateCheck("testcase", "testcase commands exit 0", "pass")
            proof = "testcase+reference" if judgement.correct else None
            judgement = replace(judgement, checks=(head, *all_checks), proof=proof)
        else:
            judgement = replace(judgement, checks=all_checks)
        outcome.judgement = judgement
        outcome.candidate = candidate if judgement.correct else None

    def _equal_nan(self) -> bool:
        """Whether NaN in the reference was declared to be meant, as upstream's second backend has it."""
        section = self.config.correctness.get("accordo")
        return isinstance(section, Mapping) and section.get("equal_nan") is True

    def _rights(self, index: int, task: ReferenceTask) -> Rights:
        """Return what the processes of kernel ``index`` may do: its own place, not those of others."""
        places = [self.exchange / "kernels" / str(number) for number in range(len(self.config.kernels))]
        for place in (*places, self.exchange / "inputs", self.exchange / "outputs"):
            place.mkdir(parents=True, exist_ok=True)
        entry = self.config.kernels[index]
        source = entry.source_file
        if source is None:
            raise ValueError("a kernel without a source cannot be called")
        return rights_for(
            place=places[index],
            source=source,
            references=[task.source],
            secrets=[self.workspace, *(place for number, place in enumerate(places) if number != index)],
            others=[path for other in self.config.kernels for path in other.source_files],
            exchange=self.exchange,
            environment=entry.env,
        )

    def _gate_report(self, entry: KernelEntry) -> Callable[[str], None]:
        return lambda step: self.report("judging", None, None, f"{entry.id}: {step}")

    def _without_reference(self, outcome: KernelOutcome, *, has_reference: bool) -> Judgement:
        if outcome.tested.success:
            found = self._testcase_checks(outcome)
            wrong = next((item for item in found if item.status == "fail"), None)
            quick = self.settings.quick
            if wrong is not None:
                return Judgement("incorrect", wrong.reason, checks=found, quick=quick)
            return Judgement("correct", proof="testcase", checks=found, quick=quick)
        if has_reference or outcome.entry.reference is not None:
            reason = (
                f"this version judges a kernel of the type {outcome.entry.type} by its testcase, and it has none; "
                "references are for pytorch and triton kernels, and for those that declare arguments"
            )
        else:
            reason = "it has neither a testcase_command nor a reference: nothing establishes that it is correct"
        return Judgement("skipped", reason)
