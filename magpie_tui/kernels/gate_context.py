"""What all checks of the gate share: the kernel, the reference, the inputs, one compared call."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from magpie_tui.kernels import checks
from magpie_tui.kernels.candidates import Candidate
from magpie_tui.kernels.judges import InputSet, Judge
from magpie_tui.kernels.model import GateCheck
from magpie_tui.kernels.sessions import Message, Session, SessionFailedError
from magpie_tui.kernels.settings import GateSettings
from magpie_tui.kernels.shapes import ShapePoint

Report = Callable[[str], None]


class FailedCheckError(Exception):
    """A check failed; the gate ends.

    Attributes:
        ours: The reference or the tolerance is to blame, not the kernel.
    """

    def __init__(self, *, ours: bool = False) -> None:
        super().__init__()
        self.ours = ours


@dataclass
class GateContext:
    """One kernel on its way through the gate.

    Attributes:
        seeds: Of the random inputs; the same for all kernels of a run, drawn when it started.
        points: Of the shape grid; the first one is what all random inputs have, each other one has inputs of its own.
        found: The checks so far, by id.
    """

    candidate: Candidate
    judge: Judge
    settings: GateSettings
    seeds: Sequence[int]
    rng: random.Random
    report: Report
    points: Sequence[ShapePoint] = ()
    found: dict[str, GateCheck] = field(default_factory=dict)

    def take(self, check: GateCheck, *, ours: bool = False) -> None:
        """Keep a check; one that failed ends the gate."""
        self.found[check.id] = check
        if check.status == "fail":
            raise FailedCheckError(ours=ours)

    @property
    def cases(self) -> int | None:
        """Number of saved cases, or None for a reference that is computed."""
        count = self.judge.facts["cases"]
        return None if count is None else int(count)

    @property
    def count(self) -> int:
        """Number of random inputs, those of further points of the shape grid included (or saved cases)."""
        return len(self.seeds) + max(0, len(self.points) - 1) if self.cases is None else self.cases

    def point(self, number: int) -> ShapePoint | None:
        """Return the point of random inputs ``number``; None without a shape grid."""
        if not self.points or self.cases is not None:
            return None
        return self.points[max(0, number - len(self.seeds) + 1)]

    def name_of(self, number: int) -> str:
        """Return what people call random inputs ``number``."""
        point = self.point(number)
        return f"random inputs {number + 1}" + ("" if point is None else f" at {point.id}")

    def inputs(self, number: int, *, structure: str | None = None) -> InputSet:
        """Return the inputs of random seed ``number``, with a structure laid over them if asked for."""
        seed = self.seeds[number % len(self.seeds)] if self.cases is None else number
        shape = self.point(number)
        if self.judge.facts["makes_inputs"] or (shape is not None and shape.tensors):
            return self.judge.make_inputs(seed, structure=structure, shape=shape)
        adopt = self.candidate.own_inputs(seed, self.judge.path("own"), shape)
        try:
            return self.judge.make_inputs(seed, structure=structure, adopt=adopt, shape=shape)
        finally:
            adopt.unlink(missing_ok=True)

    def ask(self, session: Session, request: Message, where: str) -> Message:
        """Ask the kernel's process; a failure says at what.

        Raises:
            SessionFailedError: It did not do what it was asked.
        """
        try:
            return session.ask(request, timeout_s=self.settings.timeout_s)
        except SessionFailedError as error:
            raise SessionFailedError(error.word, f"{error.reason} ({where})", list(session.attempts)) from error

    def call(
        self,
        session: Session,
        inputs: InputSet,
        where: str,
        *,
        poison: str | None = None,
        guard: str | None = None,
        any_strides: bool = False,
    ) -> tuple[Message, Message]:
        """Call once and compare; returns what the kernel's process said and what the judge says.

        Args:
            poison: Pattern in new memory.
            guard: Pattern of guard bytes around buffers.
            any_strides: The outputs may have other strides than the reference's.
        """
        outputs = self.judge.path("outputs")
        request: Message = {"do": "call", "inputs": str(inputs.path), "outputs": str(outputs)}
        told = self.ask(session, {**request, "poison": poison, "guard": guard}, where)
        return told, self.judge.check(inputs, outputs, any_strides=any_strides)


def deviation_of(answer: Message, where: str) -> GateCheck | None:
    """Return the first of G5, G10 and G9 that a judge's answer fails, or None."""
    for found in (
        checks.form(answer["form"], where),
        checks.nonfinite(answer["outputs"], where),
        checks.numeric(answer["outputs"], where),
    ):
        if found.status == "fail":
            return found
    return None
