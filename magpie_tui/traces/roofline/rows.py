"""One line of the roofline: an operator with its shape, its time, its work and its distance to the ceiling."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Bound(str, Enum):
    """Which roof lies lower at an operator's intensity."""

    compute = "compute"
    memory = "memory"
    link = "link"


@dataclass(frozen=True, slots=True)
class RooflineKernel:
    """Device kernels of one name behind a row.

    Attributes:
        name: Kernel name as in the trace.
        calls: Launches.
        time_us: Sum of their durations in µs.
    """

    name: str
    calls: int
    time_us: float


@dataclass(frozen=True, slots=True)
class RooflineRow:
    """An operator with one set of shapes and types.

    Attributes:
        name: Operator name.
        category: Op category as the reference names it.
        shapes: Input sizes as text, like "32x4096 24576x4096".
        types: Input types as text, like "bf16 bf16".
        count: Calls in the stage.
        time_us: Device time of all calls in µs (union of the kernels of each call, summed over the calls).
        share: Part of the stage's device time, 0..1.
        flops, bytes: Work of one call; None with ``reason``.
        compute_spec: Peak that ``flops`` is compared with, like ``matrix_bf16``.
        bound: Which roof counts; None without one.
        ceiling: The roof with its name and value, like "5.30 TB/s (MI300X theoretical)"; None without one.
        ceiling_us: Time of one call at the roof in µs; None without one.
        percent: ``ceiling_us`` over the mean time of a call, in %; None without a roof.
        win_us: Time above the roof over all calls in µs, never negative; None without a roof.
        fits: False where the percentage is above 105 %: then the model counts too much.
        own: True where the reference has no model for the operator.
        formula: Work with the numbers put in.
        caveats: What the model assumes, and what to know about the row.
        kernels: Device kernels behind the row, most time first.
        library: Who wrote the kernels ("AITER", "Tensile"); None when not known.
        module: Enclosing nn.Module; None when not recorded.
        reason: Why there is no work or no roof.
        inferred: True where a replayed kernel was attributed by name and position only.
        input_dims, input_types, input_strides, concrete_inputs: Arguments as recorded, as Python literals.
        linked: False where the trace has no launching call for the kernels (launched before the recording began).
        measured: The same distance to a measured ceiling, when there is one: (label, time of a call in µs, percent).
    """

    name: str
    category: str
    shapes: str
    types: str
    count: int
    time_us: float
    share: float
    flops: float | None = None
    bytes: float | None = None
    compute_spec: str | None = None
    bound: Bound | None = None
    ceiling: str | None = None
    ceiling_us: float | None = None
    percent: float | None = None
    win_us: float | None = None
    fits: bool = True
    own: bool = False
    formula: str = ""
    caveats: tuple[str, ...] = ()
    kernels: tuple[RooflineKernel, ...] = ()
    library: str | None = None
    module: str | None = None
    reason: str | None = None
    inferred: bool = False
    input_dims: str = ""
    input_types: str = ""
    input_strides: str = ""
    concrete_inputs: str = ""
    measured: tuple[str, float, float] | None = None
    linked: bool = True

    @property
    def mean_us(self) -> float:
        """Device time of one call in µs."""
        return self.time_us / self.count if self.count else 0.0

    @property
    def intensity(self) -> float | None:
        """Operations a byte; None when either is not known."""
        return self.flops / self.bytes if self.flops is not None and self.bytes else None

    @property
    def achieved_tflops(self) -> float | None:
        """Mean rate of operations in TFLOP/s (10^12); None without operations or time."""
        return self.flops / self.mean_us / 1e6 if self.flops and self.mean_us else None

    @property
    def achieved_tbps(self) -> float | None:
        """Mean traffic in TB/s (10^12 bytes a second); None without bytes or time."""
        return self.bytes / self.mean_us / 1e6 if self.bytes and self.mean_us else None

    @property
    def is_short(self) -> bool:
        """True below 10 µs a call: launch cost decides, not the roof."""
        return self.mean_us < SHORT_US


@dataclass(frozen=True, slots=True)
class RooflineStage:
    """The rows of one stage of a trace.

    Attributes:
        stage: "prefill", "decode", "prefilldecode" or "all".
        rows: By time, most first; their shares sum to 1 with `unattributed_us`.
        steps: Steps of the stage.
        busy_us: Device time of the stage in µs (union).
        architecture: Name of the ceilings ("MI300X theoretical"); None when unknown.
        ceiling_share: Part of the time whose rows have a ceiling, 0..1.
        modelled_share: Part of the time whose rows have work figures, 0..1.
        graph_share: Part of the time that graphs launched, 0..1; None when not known.
        capture: "merged", "inferred", "absent" or "not needed".
        unattributed_us: Device time that belongs to no operator, in µs.
        caveats: What a reader should know.
    """

    stage: str
    rows: tuple[RooflineRow, ...]
    steps: int
    busy_us: float
    architecture: str | None
    ceiling_share: float
    modelled_share: float
    graph_share: float | None = None
    capture: str = "not needed"
    unattributed_us: float = 0.0
    caveats: tuple[str, ...] = ()

    @property
    def linked_modelled_share(self) -> float | None:
        """Part with work figures of the time that has a launching call, which is all that the reference looks at."""
        linked = [row for row in self.rows if row.linked]
        whole = sum(row.time_us for row in linked)
        modelled = sum(row.time_us for row in linked if row.flops is not None or row.bytes is not None)
        return modelled / whole if whole else None

    @property
    def win_us(self) -> float:
        """Time above the roofs of all rows in µs."""
        return sum(row.win_us for row in self.rows if row.win_us is not None)


SHORT_US = 10.0
"""Mean time of a call in µs below which a row counts as short (the reference's limit for short kernels)."""

UNFIT_PERCENT = 105.0
"""Above this percentage of a ceiling the model counts too much."""
