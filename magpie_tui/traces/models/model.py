"""What a model answers, and the frame that every model runs in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from magpie_tui.traces.models.arguments import OperatorArguments


class Unmodelled(ValueError):
    """A model cannot say anything about this call; the message says why."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Our figures where the reference's formula is wrong; None keeps the reference's figure.

    Attributes:
        flops: Floating-point operations of one call.
        bytes: Bytes of one call.
        compute_spec: Peak to compare with, like ``matrix_bf16``.
        why: What the reference gets wrong.
    """

    why: str
    flops: float | None = None
    bytes: float | None = None
    compute_spec: str | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """Least work of one call.

    Attributes:
        flops: Floating-point operations; the reference's count where it has a model. None with ``reason``.
        bytes: Bytes that have to cross the memory interface; None with ``reason``.
        compute_spec: Peak to compare with, like ``matrix_bf16``; None: only memory counts.
        parameters: The reference's ``param:`` columns, in its order.
        formula: How the numbers come about, with the numbers put in.
        caveats: What the model assumes.
        own: True where the reference has no model.
        reason: Why ``flops`` or ``bytes`` is None.
        correction: Our figures where the reference's are wrong.
        link_bytes: Bytes that this GPU has to send to others (or to receive, if that is more); 0 within one GPU.
    """

    flops: float | None
    bytes: float | None
    compute_spec: str | None
    parameters: Mapping[str, object] = field(default_factory=dict)
    formula: str = ""
    caveats: tuple[str, ...] = ()
    own: bool = False
    reason: str | None = None
    correction: Correction | None = None
    link_bytes: float = 0.0

    @property
    def best_flops(self) -> float | None:
        """Operations by our own count."""
        if self.correction is not None and self.correction.flops is not None:
            return self.correction.flops
        return self.flops

    @property
    def best_bytes(self) -> float | None:
        """Bytes by our own count."""
        if self.correction is not None and self.correction.bytes is not None:
            return self.correction.bytes
        return self.bytes

    @property
    def best_compute_spec(self) -> str | None:
        """Peak to compare with by our own choice."""
        if self.correction is not None and self.correction.compute_spec is not None:
            return self.correction.compute_spec
        return self.compute_spec


Calculation = Callable[[OperatorArguments], Work]


@dataclass(frozen=True, slots=True)
class Model:
    """A performance model of one or several operators.

    Attributes:
        sheet: Table of the family without its direction, as the reference names it ("GEMM", "SDPA").
        category: Op category as the reference names it.
        calculate: Formula; raises `Unmodelled` where the arguments do not suffice.
        own: True where the reference has no model for these operators.
        backward: True for the backward table of the family.
    """

    sheet: str
    category: str
    calculate: Calculation
    own: bool = False
    backward: bool = False

    def evaluate(self, arguments: OperatorArguments) -> Work:
        """Work of one call; figures that cannot be had are None with a reason."""
        try:
            work = self.calculate(arguments)
        except Unmodelled as error:
            return nothing(str(error), own=self.own)
        except (IndexError, KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
            shapes = "no shapes recorded" if not arguments.input_dims else "its arguments have another form"
            return nothing(f"the model of {arguments.name} does not fit: {shapes}", own=self.own)
        if any(figure is not None and figure < 0 for figure in (work.best_flops, work.best_bytes)):
            return nothing(f"the recorded sizes of {arguments.name} do not go together", own=self.own)
        return replace(work, own=self.own) if work.own is not self.own else work


def nothing(reason: str, *, own: bool = False) -> Work:
    """Work that is not known."""
    return Work(None, None, None, reason=reason, own=own)
