"""The correctness gate: a kernel's process on one side, the reference's on the other, the checks between them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from magpie_tui.kernels import checks, probes, strain, timed_probes
from magpie_tui.kernels.candidates import Candidate
from magpie_tui.kernels.gate_context import FailedCheckError, GateContext, Report, deviation_of
from magpie_tui.kernels.harness.structured import STRUCTURES
from magpie_tui.kernels.judges import InputSet, Judge, JudgeFailedError
from magpie_tui.kernels.model import GateCheck, Judgement, KernelWord
from magpie_tui.kernels.sessions import Message, Session, SessionFailedError
from magpie_tui.kernels.settings import GateSettings
from magpie_tui.kernels.shapes import ShapePoint
from magpie_tui.kernels.watching import thread_times

__all__ = ["Candidate", "Gate", "Report", "later_failure"]

_TAMPERING = ("G2", "G19", "G18")
"""Failures that explain others: they are named first."""


class Gate:
    """Judges one kernel against one reference.

    ``seeds`` are the same for all kernels of a run, drawn when it started; ``digests`` are the SHA-256 of its sources;
    ``points`` are those of the shape grid.
    """

    def __init__(
        self,
        candidate: Candidate,
        judge: Judge,
        settings: GateSettings,
        seeds: Sequence[int],
        rng: random.Random,
        report: Report,
        digests: Mapping[str, str] | None = None,
        points: Sequence[ShapePoint] = (),
    ) -> None:
        self._context = GateContext(candidate, judge, settings, seeds, rng, report, points)
        self._candidate = candidate
        self._judge = judge
        self._settings = settings
        self._digests = dict(digests or {})
        self._take = self._context.take
        self._checks = self._context.found
        self._started = timed_probes.Started(reason="no call was traced")
        self._files = candidate.rights.fingerprint() if candidate.rights is not None else ""

    def run(self) -> Judgement:
        """Run the checks in order; the first that fails ends the gate, and later ones are reported as not run."""
        return replace(self._run(), quick=self._settings.quick)

    def _run(self) -> Judgement:
        context = self._context
        try:
            self._judge.load()
            self._judge.begin_kernel(self._candidate.entry)
            self._check_the_reference()
            self._check_the_kernel()
            self._check_when_timed()
            if self._settings.strain:
                context.report("other device index, full memory")
                self._take(strain.strained(context))
        except FailedCheckError as error:
            return self._failed(ours=error.ours)
        except SessionFailedError as error:
            return self._broke_off(error)
        except JudgeFailedError as error:
            word: KernelWord = "resource" if error.resource else "invalid"
            return Judgement(word, str(error), checks=self._complete(str(error)), ours=True)
        return Judgement("correct", proof="reference", checks=self._complete("it is done after timing"))

    def _complete(self, reason: str) -> tuple[GateCheck, ...]:
        self._checks.setdefault(
            "G23", checks.check("G23", "pass", "reference and kernel fail in processes of their own")
        )
        return checks.complete(self._checks.values(), reason, self._settings)

    def _failed(self, *, ours: bool) -> Judgement:
        failed = [item for item in self._checks.values() if item.status == "fail"]
        failed.sort(key=lambda item: _TAMPERING.index(item.id) if item.id in _TAMPERING else len(_TAMPERING))
        return Judgement(
            "invalid" if ours else "incorrect",
            failed[0].reason,
            checks=self._complete(f"{failed[0].id} failed before it"),
            ours=ours,
        )

    def _broke_off(self, error: SessionFailedError) -> Judgement:
        """Judge a kernel whose process did not answer; what it tried before that comes first."""
        for found in checks.attempts(error.attempts, self._candidate.rights):
            if found.status == "fail":
                self._checks[found.id] = found
        if "LaunchFailedError" in error.reason:
            self._checks["G17"] = checks.check("G17", "fail", f"a launch failed without being noticed: {error.reason}")
        if any(item.status == "fail" for item in self._checks.values()):
            return self._failed(ours=False)
        reason = f"the kernel did not answer: {error.reason}"
        return Judgement(error.word, error.reason, checks=self._complete(reason))

    def _check_the_reference(self) -> None:
        """G2, G3, G4, and the half of G10 that concerns the reference."""
        context = self._context
        context.report("checking the reference")
        saved = context.cases is not None
        inputs = context.inputs(0)
        answer = self._judge.discriminates(inputs)
        self._take(checks.reference_apart(answer, self._judge.task.title))
        varies = None if saved else self._judge.varies(inputs)
        self._take(checks.reference_follows(answer["outputs"], varies, saved=saved), ours=True)
        self._take(checks.discriminating(answer["outputs"]), ours=True)
        undeclared = checks.undeclared_nan(answer["outputs"], declared=self._settings.equal_nan)
        if undeclared is not None:
            self._take(undeclared, ours=True)

    def _check_the_kernel(self) -> None:
        """Everything that one process of the kernel is asked."""
        context, candidate = self._context, self._candidate
        session = candidate.open(self._judge, log="gate", gate=True)
        with session:
            threads = set(thread_times(session.pid))
            try:
                self._check_seeds(session)
                self._take_special(session, probes.addresses(context, session))
                self._check_structures(session)
                self._check_many(session)
                self._take_special(session, probes.poisoned(context, session))
                self._take_special(session, self._repeats(session))
                self._take_special(session, probes.shapes(context, session))
                self._take_special(session, probes.after_the_call(context, session, threads))
                self._take(probes.launches(context, session))
                self._take(self._growth(session))
                self._started = timed_probes.trace_checked_call(context, session)
                self._take(timed_probes.identified(context, self._started, self._digests))
            except FailedCheckError:
                self._look_at_the_process(session, ends=False)
                raise
            self._look_at_the_process(session, ends=True)

    def _take_special(self, session: Session, found: GateCheck) -> None:
        """Keep a check made under special circumstances; when plain calls are wrong by now, it is not about them."""
        if found.status == "fail":
            problem = None
            for number in (0, 0, min(1, self._context.count - 1)):
                problem = problem or self._plain_problem(session, number)
            if problem is not None or found.id == "G15":
                later = self._wrong_later(session, self._context.inputs(0), problem or "")
                if later.id == "G7":
                    found = found if found.id == "G7" else later
                elif problem is not None:
                    found = later
        self._take(found)

    def _wrong_later(self, session: Session, inputs: InputSet, problem: str) -> GateCheck:
        """Name what makes later calls wrong: memory, whose content is a matter of luck, or what went before (G14)."""
        try:
            shown = probes.memory_shows(self._context, session, inputs)
        except SessionFailedError:
            shown = None
        if shown is not None:
            return checks.check("G7", "fail", f"{shown} ({problem})" if problem else shown)
        return checks.check("G14", "fail", f"right at first, wrong later: {problem}")

    def _plain_problem(self, session: Session, number: int) -> str | None:
        """Return what is wrong with one more plain call; None also when it cannot be made any more."""
        inputs = self._context.inputs(number)
        try:
            _told, answer = self._context.call(session, inputs, "a plain call")
        except SessionFailedError:
            return None
        return later_failure(answer, f"a call on random inputs {number + 1}, which was right before")

    def _growth(self, session: Session) -> GateCheck:
        if not self._settings.growth:
            return checks.check("G21", "not_run", checks.SHORTENED)
        return timed_probes.growth(self._context, session)

    def _look_at_the_process(self, session: Session, *, ends: bool) -> None:
        """G2, G18, G19: what the process tried, and whether it still is what it was, seen from outside."""
        rights = self._candidate.rights
        same = rights is None or rights.fingerprint() == self._files
        found = [*checks.confined(self._candidate.confined, rights, same=same)]
        found += checks.attempts(session.attempts, rights)
        if self._candidate.watch is not None:
            found.append(checks.untouched(self._candidate.watch.compare()))
        for item in found:
            before = self._checks.get(item.id)
            if item.status == "fail" or before is None or before.status != "fail":
                self._checks[item.id] = _with_reason_of(before, item) if item.id == "G2" else item
        if ends and any(item.status == "fail" for item in found):
            raise FailedCheckError

    def _check_when_timed(self) -> None:
        """G20: a process that is asked for timed windows, as timing asks, starts the same work."""
        context = self._context
        context.report("tracing a timed call")
        with self._candidate.open(self._judge, log="gate") as session:
            sets = [context.inputs(number) for number in range(min(context.count, self._settings.call_sets))]
            timed = timed_probes.trace_timed_call(context, session, sets, self._settings.traced_after)
            self._take(timed_probes.same_work(self._started, timed))
            self._look_at_the_process(session, ends=True)

    def _check_outputs(
        self,
        session: Session,
        inputs: InputSet,
        told: Message,
        answer: Message,
        where: str,
        *,
        structured: bool = False,
    ) -> None:
        """G5, G6, G8, G9, G10 for one call."""
        found = deviation_of(answer, where)
        if found is not None:
            # Wrong numbers that come from memory nobody wrote are another fault than wrong arithmetic.
            shown = probes.memory_shows(self._context, session, inputs) if found.id != "G5" else None
            if shown is not None:
                found = checks.check("G7", "fail", f"{shown} ({where})")
            elif structured and found.id != "G5":
                found = checks.check("G11", "fail", f"right on random inputs only: {found.reason}", **found.facts)
            self._take(found)
        self._take(checks.form([], where))
        self._take(checks.nonfinite(answer["outputs"], where))
        numbers = checks.numeric(answer["outputs"], where)
        before = self._checks.get("G9")
        if before is None or _share(numbers) > _share(before):
            self._take(numbers)
        in_place = self._candidate.entry.in_place
        self._take(checks.own_memory(told, answer["may_share"], in_place=in_place, where=where))
        self._take(checks.inputs_unchanged(None if in_place else answer.get("mutated") or [], where))

    def _check_seeds(self, session: Session) -> None:
        """The checks of every call on random inputs."""
        context = self._context
        for number in range(context.count):
            context.report(f"inputs {number + 1} of {context.count}")
            inputs = context.inputs(number)
            where = context.name_of(number)
            told, answer = context.call(session, inputs, where)
            self._check_outputs(session, inputs, told, answer, where)
            if number >= self._settings.call_sets:
                self._judge.keep_if_small(inputs)

    def _check_structures(self, session: Session) -> None:
        """G11: the checks of every call on inputs with a structure as well."""
        context = self._context
        ran: list[str] = []
        skipped: list[str] = []
        for structure in STRUCTURES if context.cases is None else ():
            self._structure(session, structure, ran, skipped)
        self._take(checks.seeds_and_values(context.count, self._settings, ran, skipped, context.cases))

    def _structure(self, session: Session, structure: str, ran: list[str], skipped: list[str]) -> None:
        name = structure.replace("_", " ")
        self._context.report(f"inputs: {name}")
        inputs = self._context.inputs(0, structure=structure)
        answer = self._judge.legal(inputs)
        ill_conditioned = answer["precision"] != self._checks["G2"].facts["precision"]
        if ill_conditioned or not answer["defined"]:
            skipped.append(name)
        else:
            where = f"inputs with a structure: {name}"
            told, found = self._context.call(session, inputs, where)
            self._check_outputs(session, inputs, told, found, where, structured=True)
            ran.append(name)
        self._judge.keep_if_small(inputs)

    def _repeats(self, session: Session) -> GateCheck:
        """G13: equal bits on equal inputs, or declared otherwise and each result within the bound."""
        context = self._context
        context.report("repeating on equal inputs")
        inputs = context.inputs(0)
        declared = self._candidate.entry.deterministic is False
        keep = [str(self._judge.path("outputs")) for _ in range(3)] if declared else []
        request: Message = {"do": "repeat", "inputs": str(inputs.path), "count": self._settings.repeats, "keep": keep}
        answer = context.ask(session, request, "repeating on equal inputs")
        wrong: GateCheck | None = None
        for path in keep[: len(answer["kept"])]:
            wrong = wrong or deviation_of(self._judge.check(inputs, Path(path)), "a repeated call")
        return checks.repeatable(answer["digests"], self._candidate.entry.deterministic, wrong)

    def _check_many(self, session: Session) -> None:
        """G14: many calls in a row in one process; the first, a random one and the last two are compared."""
        context = self._context
        context.report("calling many times")
        sets = [context.inputs(number) for number in range(min(context.count, self._settings.call_sets))]
        count = self._settings.calls
        chosen = sorted({0, context.rng.randrange(1, count - 2), count - 2, count - 1})
        files = {call: self._judge.path("many") for call in chosen}
        request: Message = {
            "do": "many",
            "inputs": [str(inputs.path) for inputs in sets],
            "count": count,
            "keep": {call: str(path) for call, path in files.items()},
        }
        context.ask(session, request, "many calls in a row")
        for call, path in files.items():
            inputs = sets[call % len(sets)]
            problem = later_failure(self._judge.check(inputs, path), f"call {call + 1} of {count} in a row")
            if problem is not None:
                self._take(self._wrong_later(session, inputs, problem))
        numbers = ", ".join(str(call + 1) for call in chosen)
        self._take(checks.check("G14", "pass", f"calls {numbers} of {count} in a row compared"))


def _with_reason_of(before: GateCheck | None, found: GateCheck) -> GateCheck:
    """Return ``found`` with what was known about the reference before in front of its own reason."""
    if before is None or found.status == "fail":
        return found
    known, more = before.reason or "", found.reason or ""
    reason = known if more in known else f"{known}; {more}"
    return checks.check(found.id, found.status, reason, **before.facts)


def _share(found: GateCheck) -> float:
    share = found.facts.get("worst_share_of_bound")
    return share if isinstance(share, float) else 0.0


def later_failure(answer: Message, where: str) -> str | None:
    """Return what is wrong with the outputs of a later call, or None."""
    found = deviation_of(answer, where)
    return None if found is None else found.reason
