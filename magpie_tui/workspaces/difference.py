"""Two workspaces of one kind side by side: numbers and their differences, never a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError
from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.comparability import obstacles
from magpie_tui.workspaces.detail import WorkspaceDetail, show_workspace
from magpie_tui.workspaces.headlines import median_us
from magpie_tui.workspaces.kernel_state import KernelState
from magpie_tui.workspaces.tables import Table

if TYPE_CHECKING:
    import pandas

INDICATIVE = (
    "indicative: these runs were not interleaved with each other, so a difference may be drift or noise; "
    "a claim needs interleaved pairs (magpie-tui experiment, or one compare run)"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """One number or word of both workspaces.

    Attributes:
        name: What it is, with the kernel or metric.
        a, b: Values; None where it was not measured.
        unit: Of both.
        change: b / a - 1 for numbers that are both known and above 0; None otherwise.
    """

    name: str
    a: object
    b: object
    unit: str = ""
    change: float | None = None


@dataclass(frozen=True, slots=True)
class WorkspaceDifference:
    """Two workspaces side by side.

    Attributes:
        kind: Of both.
        differences: One entry a number, in the order of the reports.
        note: How much these differences are worth.
        warnings: What makes them worth even less (a failed run, a profiler that was on, another model).
    """

    kind: str
    a: Path
    b: Path
    differences: tuple[Difference, ...]
    note: str = INDICATIVE
    warnings: tuple[str, ...] = ()

    def table(self) -> Table:
        """Return the differences as a table; ``change`` is a fraction."""
        rows = ((item.name, item.a, item.b, item.unit or None, item.change) for item in self.differences)
        return Table("difference", ("name", "a", "b", "unit", "change"), tuple(rows))

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas DataFrame."""
        return self.table().to_pandas()

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "kind": self.kind,
            "a": str(self.a),
            "b": str(self.b),
            "claim": "indicative",
            "note": self.note,
            "warnings": list(self.warnings),
            "differences": self.table().records(),
        }


def compare_workspaces(a: Path, b: Path) -> WorkspaceDifference:
    """Put two workspaces of the same kind side by side.

    Raises:
        UserInputError: One is no workspace, they are of different kinds, or one has no usable report.
    """
    first, second = show_workspace(a), show_workspace(b)
    if first.summary.kind != second.summary.kind:
        raise UserInputError(
            f"{first.summary.name} is of kind {first.summary.kind}, {second.summary.name} of kind "
            f"{second.summary.kind}: they cannot be put side by side",
            path=second.path,
            hint="give two workspaces of the same kind",
        )
    for detail in (first, second):
        if detail.report is None:
            reason = detail.damaged[0].text if detail.damaged else "it has no report"
            raise UserInputError(f"this workspace has no usable report: {reason}", path=detail.path)
    incomparable = obstacles(first, second)
    differences = tuple(_differences(first, second, comparable=not incomparable))
    return WorkspaceDifference(
        kind=first.summary.kind,
        a=first.path,
        b=second.path,
        differences=differences,
        warnings=(*_warnings(first, second), *(f"not comparable: {text}" for text in incomparable)),
    )


def _numbers(name: str, a: float | None, b: float | None, unit: str) -> Difference:
    change = b / a - 1 if a is not None and b is not None and a > 0 and b > 0 else None
    return Difference(name, a, b, unit, change)


def _differences(first: WorkspaceDetail, second: WorkspaceDetail, *, comparable: bool) -> Iterator[Difference]:
    a, b = first.report, second.report
    if isinstance(a, BenchmarkReport) and isinstance(b, BenchmarkReport):
        yield from _benchmark_differences(a, b)
        return
    if a is None or b is None or isinstance(a, BenchmarkReport) or isinstance(b, BenchmarkReport):
        return
    states_a, states_b = _by_id(a.kernels), _by_id(b.kernels)
    for name in dict.fromkeys([*states_a, *states_b]):
        state_a, state_b = states_a.get(name), states_b.get(name)
        words = [None if state is None else state.word for state in (state_a, state_b)]
        yield Difference(f"{name}: state", words[0], words[1])
        times = [
            None if state is None or not state.proved_correct else median_us(state) for state in (state_a, state_b)
        ]
        if times != [None, None]:
            whole = _numbers(f"{name}: median", times[0], times[1], "µs")
            yield whole if comparable else replace(whole, change=None)


def _by_id(kernels: tuple[KernelState, ...]) -> dict[str, KernelState]:
    return {state.kernel_id or f"kernel {index}": state for index, state in enumerate(kernels)}


def _benchmark_differences(a: BenchmarkReport, b: BenchmarkReport) -> Iterator[Difference]:
    values_a, values_b = _figures(a), _figures(b)
    for key in dict.fromkeys([*values_a, *values_b]):
        name, unit = key
        yield _numbers(name, values_a.get(key), values_b.get(key), unit)


def _figures(report: BenchmarkReport) -> dict[tuple[str, str], float]:
    figures: dict[tuple[str, str], float] = {}
    for metric, statistic, value, unit, _reason in report.table().rows:
        if isinstance(value, (int, float)):
            name = str(metric) if statistic is None else f"{metric} {statistic}"
            figures[name, str(unit)] = float(value)
    return figures


def _warnings(first: WorkspaceDetail, second: WorkspaceDetail) -> Iterator[str]:
    for label, detail in (("A", first), ("B", second)):
        if detail.summary.status != "ok":
            yield f"{label} has status {detail.summary.status}: {detail.summary.headline}"
        if isinstance(detail.report, BenchmarkReport) and detail.report.profiling_enabled:
            yield f"{label} ran with the torch profiler on, which perturbs its numbers"
    a, b = first.report, second.report
    if isinstance(a, BenchmarkReport) and isinstance(b, BenchmarkReport):
        for name in ("framework", "model"):
            if getattr(a, name) != getattr(b, name):
                yield f"they differ in {name}: {getattr(a, name) or 'unknown'} and {getattr(b, name) or 'unknown'}"
