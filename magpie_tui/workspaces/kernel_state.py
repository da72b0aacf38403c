"""The state of one kernel in an analyze or compare report: upstream's keys, read by what really ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from magpie_tui.workspaces.extras import EXTRAS_KEY, Extras
from magpie_tui.workspaces.values import (
    as_bool,
    as_count,
    as_list,
    as_mapping,
    as_number,
    as_text,
    as_texts,
    mapping_or_none,
    without,
)


class StageState(str, Enum):
    """State of a stage, in upstream's words."""

    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


@dataclass(frozen=True, slots=True)
class StageResult:
    """Outcome of a stage that ran (``compiling_result``, ``correctness_result``).

    Attributes:
        success: None when the report does not say.
        errors: What went wrong.
        more: Further keys, kept as they are.
    """

    success: bool | None
    errors: tuple[str, ...] = ()
    more: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        return {"success": self.success, "errors": list(self.errors), **self.more}

    @classmethod
    def from_json(cls, value: object) -> StageResult | None:
        """Read the object; None when the stage has no result."""
        keys = mapping_or_none(value)
        if keys is None:
            return None
        return cls(as_bool(keys.get("success")), as_texts(keys.get("errors")), without(keys, ("success", "errors")))


@dataclass(frozen=True, slots=True)
class Metric:
    """One value of a profiler.

    Attributes:
        value: In ``unit``; None when it was not measured.
        unit: As the profiler names it.
        peak: The device's limit, in ``unit``.
        pct_of_peak: ``value`` in percent of ``peak``.
    """

    value: float | bool | None
    unit: str = ""
    peak: float | None = None
    pct_of_peak: float | None = None
    more: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object; upstream leaves out unknown peaks."""
        values: dict[str, object] = {"value": self.value, "unit": self.unit}
        if self.peak is not None:
            values["peak"] = self.peak
        if self.pct_of_peak is not None:
            values["pct_of_peak"] = self.pct_of_peak
        return {**values, **self.more}

    @classmethod
    def from_json(cls, value: object) -> Metric:
        """Read the object; a bare number is a metric without a unit."""
        if not isinstance(value, Mapping):
            return cls(value if isinstance(value, bool) else as_number(value))
        keys = as_mapping(value)
        number = keys.get("value")
        return cls(
            value=number if isinstance(number, bool) else as_number(number),
            unit=as_text(keys.get("unit")) or "",
            peak=as_number(keys.get("peak")),
            pct_of_peak=as_number(keys.get("pct_of_peak")),
            more=without(keys, ("value", "unit", "peak", "pct_of_peak")),
        )


@dataclass(frozen=True, slots=True)
class ProfiledKernel:
    """Durations of one device kernel over its dispatches, in ns."""

    kernel_name: str
    dispatch_count: int | None = None
    avg_ns: float | None = None
    min_ns: float | None = None
    max_ns: float | None = None
    total_ns: float | None = None
    more: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        durations = {"avg": self.avg_ns, "min": self.min_ns, "max": self.max_ns, "total": self.total_ns}
        return {
            "kernel_name": self.kernel_name,
            "dispatch_count": self.dispatch_count,
            "duration_ns": durations,
            **self.more,
        }

    @classmethod
    def from_json(cls, value: object) -> ProfiledKernel | None:
        """Read the object; None when it has no name. A duration of 0 was not measured."""
        keys = as_mapping(value)
        name = as_text(keys.get("kernel_name"))
        if name is None:
            return None
        durations = as_mapping(keys.get("duration_ns"))
        return cls(
            kernel_name=name,
            dispatch_count=as_count(keys.get("dispatch_count")),
            avg_ns=as_number(durations.get("avg")) or None,
            min_ns=as_number(durations.get("min")) or None,
            max_ns=as_number(durations.get("max")) or None,
            total_ns=as_number(durations.get("total")) or None,
            more=without(keys, ("kernel_name", "dispatch_count", "duration_ns")),
        )


_PERFORMANCE_KEYS = ("success", "errors", "command", "workload_dir", "summary", "kernels")


@dataclass(frozen=True, slots=True)
class PerformanceResult:
    """What a profiler reported (``performance_result``).

    Attributes:
        command: The profiler's command line; upstream gives it on failures only.
        workload_dir: The profiler's output directory.
        summary: Metric name to value.
        kernels: Device kernels, longest total first.
    """

    success: bool | None
    errors: tuple[str, ...] = ()
    command: tuple[str, ...] | str | None = None
    workload_dir: str | None = None
    summary: Mapping[str, Metric] = field(default_factory=dict)
    kernels: tuple[ProfiledKernel, ...] = ()
    more: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        values: dict[str, object] = {"success": self.success, "errors": list(self.errors)}
        if self.command is not None:
            values["command"] = self.command if isinstance(self.command, str) else list(self.command)
        values["workload_dir"] = self.workload_dir
        values["summary"] = {name: metric.to_json() for name, metric in self.summary.items()}
        values["kernels"] = [kernel.to_json() for kernel in self.kernels]
        return {**values, **self.more}

    @classmethod
    def from_json(cls, value: object) -> PerformanceResult | None:
        """Read the object; None when the stage has no result."""
        keys = mapping_or_none(value)
        if keys is None:
            return None
        command = keys.get("command")
        kernels = (ProfiledKernel.from_json(item) for item in as_list(keys.get("kernels")))
        return cls(
            success=as_bool(keys.get("success")),
            errors=as_texts(keys.get("errors")),
            command=command if command is None or isinstance(command, str) else as_texts(command),
            workload_dir=as_text(keys.get("workload_dir")),
            summary={name: Metric.from_json(item) for name, item in as_mapping(keys.get("summary")).items()},
            kernels=tuple(kernel for kernel in kernels if kernel is not None),
            more=without(keys, _PERFORMANCE_KEYS),
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """What a reader may believe about a stage.

    Attributes:
        name: ``compiling``, ``correctness``, ``performance`` or ``latency``.
        word: ``ok``, ``failed``, ``skipped``, ``not run`` or ``unknown``.
        note: Why ``word`` differs from what the report claims; None when it does not.
    """

    name: str
    word: str
    note: str | None = None


_STATE_KEYS = (
    "compiling_state",
    "correctness_state",
    "performance_state",
    "latency_state",
    "errors",
    "score",
    "compiling_result",
    "correctness_result",
    "performance_result",
    "latency_result",
    "extra",
    EXTRAS_KEY,
)


@dataclass(frozen=True, slots=True)
class KernelState:
    """One kernel's state.

    Attributes:
        kernel_id: As in the config; empty when the report has none.
        kernel_type: Upper case (``HIP``, ``CUDA``, ``PYTORCH``, ``TRITON``); empty when unknown.
        compiling_state, correctness_state, performance_state, latency_state: As written in the report, which for
            other programs' reports need not be what happened: read ``compiling``, ``correctness``, … instead. None
            when the report has no such key; ``latency_state`` exists in one line of upstream only.
        errors: Everything that went wrong, in order.
        score: Upstream's 0.0, 0.5 or 1.0.
        extras: Our own keys; None in another program's report.
        extra: Further keys of upstream's ``extra`` object.
        more: Further keys of the state.
    """

    kernel_id: str
    kernel_type: str = ""
    compiling_state: StageState | str | None = StageState.SKIPPED
    correctness_state: StageState | str | None = StageState.SKIPPED
    performance_state: StageState | str | None = StageState.SKIPPED
    latency_state: StageState | str | None = None
    errors: tuple[str, ...] = ()
    score: float | None = 0.0
    compiling_result: StageResult | None = None
    correctness_result: StageResult | None = None
    performance_result: PerformanceResult | None = None
    latency_result: Mapping[str, object] | None = None
    extras: Extras | None = None
    extra: Mapping[str, object] = field(default_factory=dict)
    more: Mapping[str, object] = field(default_factory=dict)

    @property
    def proved_correct(self) -> bool:
        """True only when the correctness stage has a result and that result is a success."""
        return self.correctness.word == "ok"

    @property
    def compiling(self) -> Stage:
        """The compile stage; upstream writes SUCCESS where it had nothing to compile."""
        return _stage("compiling", self.compiling_state, self.compiling_result, blocked_by=None)

    @property
    def correctness(self) -> Stage:
        """The correctness stage; never ``ok`` without a successful result."""
        blocked = "the build failed" if self.compiling.word == "failed" else None
        return _stage("correctness", self.correctness_state, self.correctness_result, blocked_by=blocked)

    @property
    def performance(self) -> Stage:
        """The profiling stage."""
        blocked = "the kernel was not proved correct" if self.correctness.word != "ok" else None
        return _stage("performance", self.performance_state, self.performance_result, blocked_by=blocked)

    @property
    def latency(self) -> Stage | None:
        """The latency stage of reports that have one."""
        if self.latency_state is None and self.latency_result is None:
            return None
        return _stage("latency", self.latency_state, StageResult.from_json(self.latency_result), blocked_by=None)

    @property
    def word(self) -> str:
        """One word for the kernel: our own state where we wrote it, else what can be believed of the report."""
        if self.extras is not None and self.extras.state is not None:
            return self.extras.state
        if self.compiling.word == "failed":
            return "invalid"
        return {"ok": "correct", "failed": "incorrect"}.get(self.correctness.word, "skipped")

    def to_json(self) -> dict[str, object]:
        """Return upstream's state object, with our keys under ``magpie_tui``.

        In our own states a stage without a result is never written as SUCCESS.
        """
        values: dict[str, object] = {
            "compiling_state": self._written(self.compiling_state, self.compiling_result),
            "correctness_state": self._written(self.correctness_state, self.correctness_result),
            "performance_state": self._written(self.performance_state, self.performance_result),
        }
        if self.latency_state is not None:
            values["latency_state"] = self.latency_state
        values["errors"] = list(self.errors)
        values["score"] = self.score
        for name in ("compiling_result", "correctness_result", "performance_result"):
            result: StageResult | PerformanceResult | None = getattr(self, name)
            values[name] = None if result is None else result.to_json()
        if self.latency_result is not None:
            values["latency_result"] = dict(self.latency_result)
        extra: dict[str, object] = dict(self.extra)
        if self.kernel_id or self.kernel_type:
            extra = {"kernel_id": self.kernel_id, "kernel_type": self.kernel_type, **extra}
        values["extra"] = extra
        if self.extras is not None:
            values[EXTRAS_KEY] = self.extras.to_json()
        return {**values, **self.more}

    def _written(self, claimed: StageState | str | None, result: object) -> StageState | str | None:
        if self.extras is not None and claimed is StageState.SUCCESS and result is None:
            return StageState.SKIPPED
        return claimed

    @classmethod
    def from_json(cls, value: object) -> KernelState | None:
        """Read a state of any generation; None when ``value`` is no object."""
        keys = mapping_or_none(value)
        if keys is None:
            return None
        extra = as_mapping(keys.get("extra"))
        config = as_mapping(keys.get("kernel_config"))
        kernel_id = as_text(extra.get("kernel_id")) or as_text(config.get("kernel_id")) or as_text(config.get("id"))
        kernel_type = as_text(extra.get("kernel_type")) or as_text(config.get("kernel_type"))
        return cls(
            kernel_id=kernel_id or as_text(keys.get("kernel_id")) or "",
            kernel_type=(kernel_type or as_text(keys.get("kernel_type")) or "").upper(),
            compiling_state=_state_word(keys.get("compiling_state")),
            correctness_state=_state_word(keys.get("correctness_state")),
            performance_state=_state_word(keys.get("performance_state")),
            latency_state=_state_word(keys.get("latency_state")),
            errors=as_texts(keys.get("errors")),
            score=as_number(keys.get("score")),
            compiling_result=StageResult.from_json(keys.get("compiling_result")),
            correctness_result=StageResult.from_json(keys.get("correctness_result")),
            performance_result=PerformanceResult.from_json(keys.get("performance_result")),
            latency_result=mapping_or_none(keys.get("latency_result")),
            extras=Extras.from_json(keys.get(EXTRAS_KEY)),
            extra=without(extra, ("kernel_id", "kernel_type")),
            more=without(keys, _STATE_KEYS),
        )


def score_of(*, proved_correct: bool, performance_state: StageState) -> float:
    """Return upstream's score: 0.5 for correctness, and 0.5 more unless profiling failed."""
    if not proved_correct:
        return 0.0
    return 0.5 if performance_state is StageState.FAILED else 1.0


def _state_word(value: object) -> StageState | str | None:
    text = as_text(value)
    if text is None:
        return None
    # Some reports hold the enum's own text, "State.SUCCESS", or lower case.
    word = text.rpartition(".")[2].upper()
    return StageState(word) if word in StageState.__members__ else text


def _stage(
    name: str,
    claimed: StageState | str | None,
    result: StageResult | PerformanceResult | None,
    *,
    blocked_by: str | None,
) -> Stage:
    """Decide what can be believed: a stage counts only with a result, and as ``ok`` only when that says success."""
    if result is not None and result.success is not None:
        word = "ok" if result.success else "failed"
        if claimed is StageState.SUCCESS and word == "failed":
            return Stage(name, word, "the report says SUCCESS, but the result of this stage is a failure")
        if claimed is StageState.FAILED and word == "ok":
            return Stage(name, "failed", "the report says FAILED although the result of this stage is a success")
        return Stage(name, word)
    if claimed is StageState.FAILED:
        return Stage(name, "failed")
    if claimed is StageState.SKIPPED:
        return Stage(name, "skipped")
    if claimed is StageState.SUCCESS:
        if blocked_by is not None:
            return Stage(name, "not run", f"the report says SUCCESS, but {blocked_by}, so this stage never ran")
        return Stage(name, "skipped", "the report says SUCCESS, but holds no result of this stage")
    return Stage(name, "unknown", None if claimed is None else f"the report says {claimed}")
