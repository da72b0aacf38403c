"""The correctness gate: a kernel's process on one side, the reference's on the other, the checks between them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels import checks
from magpie_tui.kernels.harness.structured import STRUCTURES
from magpie_tui.kernels.judges import InputSet, Judge, JudgeFailedError
from magpie_tui.kernels.model import GateCheck, Judgement, KernelWord
from magpie_tui.kernels.sessions import Harness, Message, Session, SessionFailedError
from magpie_tui.kernels.settings import GateSettings
from magpie_tui.kernels.shapes import ShapePoint

Report = Callable[[str], None]


@dataclass
class Candidate:
    """A kernel that can be called, and where it runs.

    Attributes:
        index: Its place in the config.
        logs: Directory for what it prints.
        threads, memory_bytes: Settings of its process.
        seed: Of its constructor.
        raw: For a kernel without a main: its binary, arguments and launch geometry.
        loaded: What its process said when the file was loaded.
    """

    index: int
    entry: KernelEntry
    source: Path
    harness: Harness
    logs: Path
    threads: int
    memory_bytes: int | None
    seed: int
    timeout_s: float
    raw: Message | None = None
    loaded: Message = field(default_factory=dict)

    def open(self, judge: Judge | None, *, log: str, fresh: bool = False) -> Session:
        """Start a process, load the kernel with the reference's arguments and weights, and return its session.

        Raises:
            SessionFailedError: The kernel's file cannot be loaded.
        """
        session = self.harness.open("candidate", source=self.source, log=self.logs / log, fresh=fresh)
        try:
            self.loaded = session.ask(
                {
                    "do": "load",
                    "source": str(self.source),
                    "function": self.entry.kernel_name,
                    "get_init_inputs": self.entry.get_init_inputs_func,
                    "seed": self.seed,
                    "threads": self.threads,
                    "memory_bytes": self.memory_bytes,
                    "file_bytes": 1 << 34,
                    "raw": self.raw,
                    "init_path": judge.facts.get("init_path") if judge else None,
                    "state_path": judge.facts.get("state_path") if judge else None,
                },
                timeout_s=self.timeout_s,
            )
        except SessionFailedError:
            session.close()
            raise
        return session

    def own_inputs(self, seed: int, path: Path, shape: ShapePoint | None = None) -> Path:
        """Let the kernel's own file make inputs, at a point of the shape grid if given, in a process of its own."""
        with self.open(None, log="inputs") as session:
            request: Message = {"do": "own_inputs", "seed": seed, "path": str(path)}
            if shape is not None:
                request["shape"] = shape.to_message()
            session.ask({**request, "get_inputs": self.entry.get_inputs_func}, timeout_s=self.timeout_s)
        return path


class _FailedCheckError(Exception):
    """A check failed; the gate ends."""


class Gate:
    """Judges one kernel against one reference.

    ``seeds`` are the same for all kernels of a run, drawn when it started.
    """

    def __init__(
        self,
        candidate: Candidate,
        judge: Judge,
        settings: GateSettings,
        seeds: Sequence[int],
        rng: random.Random,
        report: Report,
    ) -> None:
        self._candidate = candidate
        self._judge = judge
        self._settings = settings
        self._seeds = seeds
        self._rng = rng
        self._report = report
        self._checks: dict[str, GateCheck] = {}

    def run(self) -> Judgement:
        """Run the checks in order; the first that fails ends the gate, and later ones are reported as not run."""
        try:
            self._judge.load()
            self._judge.begin_kernel(self._candidate.entry)
            self._check_the_reference()
            with self._candidate.open(self._judge, log="gate") as session:
                self._check_seeds(session)
                self._check_structures(session)
                self._check_repeats(session)
                self._check_many(session)
        except _FailedCheckError:
            return self._failed()
        except SessionFailedError as error:
            reason = f"the kernel did not answer: {error.reason}"
            return Judgement(error.word, error.reason, checks=self._complete(reason))
        except JudgeFailedError as error:
            word: KernelWord = "resource" if error.resource else "invalid"
            return Judgement(word, str(error), checks=self._complete(str(error)), ours=True)
        return Judgement("correct", proof="reference", checks=self._complete("it is done after timing"))

    def _complete(self, reason: str) -> tuple[GateCheck, ...]:
        self._checks.setdefault(
            "G23", checks.check("G23", "pass", "reference and kernel fail in processes of their own")
        )
        return checks.complete(self._checks.values(), reason)

    def _failed(self) -> Judgement:
        failed = next(item for item in self._checks.values() if item.status == "fail")
        about_the_task = failed.id in ("G3", "G4")
        return Judgement(
            "invalid" if about_the_task else "incorrect",
            failed.reason,
            checks=self._complete(f"{failed.id} failed before it"),
            ours=about_the_task,
        )

    def _take(self, found: GateCheck) -> None:
        """Keep a check; one that failed is not overwritten by a later pass and ends the gate."""
        self._checks[found.id] = found
        if found.status == "fail":
            raise _FailedCheckError

    def _inputs(self, number: int, *, structure: str | None = None) -> InputSet:
        """Return the inputs of random seed ``number``, with a structure laid over them if asked for."""
        cases = self._judge.facts["cases"]
        seed = self._seeds[number] if cases is None else number
        if self._judge.facts["makes_inputs"]:
            return self._judge.make_inputs(seed, structure=structure)
        adopt = self._candidate.own_inputs(seed, self._judge.path("own"))
        try:
            return self._judge.make_inputs(seed, structure=structure, adopt=adopt)
        finally:
            adopt.unlink(missing_ok=True)

    @property
    def _count(self) -> int:
        cases = self._judge.facts["cases"]
        return len(self._seeds) if cases is None else int(cases)

    def _check_the_reference(self) -> None:
        self._report("checking the reference")
        saved = self._judge.facts["cases"] is not None
        inputs = self._inputs(0)
        answer = self._judge.discriminates(inputs)
        self._take(checks.reference_apart(answer, self._judge.task.title))
        varies = None if saved else self._judge.varies(inputs)
        self._take(checks.reference_follows(answer["outputs"], varies, saved=saved))
        self._take(checks.discriminating(answer["outputs"]))

    def _check_outputs(self, answer: Message, where: str) -> None:
        self._take(checks.form(answer["form"], where))
        self._take(checks.nonfinite(answer["outputs"], where))
        found = checks.numeric(answer["outputs"], where)
        before = self._checks.get("G9")
        if before is None or found.status == "fail" or _share(found) > _share(before):
            self._take(found)

    def _call(self, session: Session, inputs: InputSet, where: str) -> None:
        outputs = self._judge.path("outputs")
        request: Message = {"do": "call", "inputs": str(inputs.path), "outputs": str(outputs)}
        try:
            session.ask(request, timeout_s=self._settings.timeout_s)
        except SessionFailedError as error:
            raise SessionFailedError(error.word, f"{error.reason} ({where})") from error
        answer = self._judge.check(inputs, outputs)
        self._check_outputs(answer, where)
        in_place = self._candidate.entry.in_place
        self._take(checks.inputs_unchanged(None if in_place else answer.get("mutated") or [], where))

    def _check_seeds(self, session: Session) -> None:
        for number in range(self._count):
            self._report(f"inputs {number + 1} of {self._count}")
            inputs = self._inputs(number)
            self._call(session, inputs, f"random inputs {number + 1}")
            if number >= self._settings.call_sets:
                self._judge.keep_if_small(inputs)

    def _check_structures(self, session: Session) -> None:
        ran: list[str] = []
        skipped: list[str] = []
        cases = self._judge.facts["cases"]
        for structure in STRUCTURES if cases is None else ():
            name = structure.replace("_", " ")
            self._report(f"inputs: {name}")
            inputs = self._inputs(0, structure=structure)
            answer = self._judge.legal(inputs)
            ill_conditioned = answer["precision"] != self._checks["G2"].facts["precision"]
            if ill_conditioned or not answer["finite"]:
                skipped.append(name)
            else:
                self._call(session, inputs, f"inputs with a structure: {name}")
                ran.append(name)
            self._judge.keep_if_small(inputs)
        self._take(checks.seeds_and_values(self._count, self._settings.seeds, ran, skipped, cases))

    def _check_repeats(self, session: Session) -> None:
        self._report("repeating on equal inputs")
        request: Message = {"do": "repeat", "inputs": str(self._inputs(0).path), "count": self._settings.repeats}
        answer = session.ask(request, timeout_s=self._settings.timeout_s)
        self._take(checks.repeatable(answer["digests"], self._candidate.entry.deterministic))

    def _check_many(self, session: Session) -> None:
        """G14: many calls in a row in one process; the first, a random one and the last two are compared."""
        self._report("calling many times")
        sets = [self._inputs(number) for number in range(min(self._count, self._settings.call_sets))]
        count = self._settings.calls
        chosen = sorted({0, self._rng.randrange(1, count - 2), count - 2, count - 1})
        files = {call: self._judge.path("many") for call in chosen}
        request: Message = {
            "do": "many",
            "inputs": [str(inputs.path) for inputs in sets],
            "count": count,
            "keep": {call: str(path) for call, path in files.items()},
        }
        session.ask(request, timeout_s=self._settings.timeout_s)
        for call, path in files.items():
            answer = self._judge.check(sets[call % len(sets)], path)
            problem = later_failure(answer, f"call {call + 1} of {count} in a row")
            if problem is not None:
                self._take(checks.check("G14", "fail", f"right at first, wrong later: {problem}"))
        numbers = ", ".join(str(call + 1) for call in chosen)
        self._take(checks.check("G14", "pass", f"calls {numbers} of {count} in a row compared"))


def _share(found: GateCheck) -> float:
    share = found.facts.get("worst_share_of_bound")
    return share if isinstance(share, float) else 0.0


def later_failure(answer: Message, where: str) -> str | None:
    """Return what is wrong with the outputs of a later call, or None."""
    for found in (
        checks.form(answer["form"], where),
        checks.nonfinite(answer["outputs"], where),
        checks.numeric(answer["outputs"], where),
    ):
        if found.status == "fail":
            return found.reason
    return None
