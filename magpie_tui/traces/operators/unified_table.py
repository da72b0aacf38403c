"""Upstream's ``unified_perf_summary``: one row for each op and set of inputs, with work and roofline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.traces.collective_cells import Cell, Table
from magpie_tui.traces.models.model import Work
from magpie_tui.traces.operators.details import KernelDetails
from magpie_tui.traces.operators.grouped import GroupedStatistics, grouped
from magpie_tui.traces.operators.rows import OperatorRow, OperatorRows
from magpie_tui.traces.operators.upstream_arch import Roof, UpstreamArch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MEBI = 1 << 20
KEY = (
    "name",
    "op category",
    "process_name",
    "process_label",
    "thread_name",
    "Input Dims",
    "Input type",
    "Input Strides",
    "Concrete Inputs",
)
_ROOF = ("Roofline Bound",)
_FIVE = ("mean", "median", "std", "min", "max")


@dataclass(frozen=True, slots=True)
class Figures:
    """Work of each instance in upstream's units; NaN where there is none.

    Attributes:
        gflops: 10^9 operations.
        mib: Data moved, MiB.
        intensity: Operations a byte.
        tbps, tflops: Rates, 10^12 a second.
        percent: Percent of the roofline.
        roofs: Roofline of each distinct work.
    """

    gflops: npt.NDArray[np.float64]
    mib: npt.NDArray[np.float64]
    intensity: npt.NDArray[np.float64]
    tbps: npt.NDArray[np.float64]
    tflops: npt.NDArray[np.float64]
    percent: npt.NDArray[np.float64]
    roofs: tuple[Roof | None, ...]


def figures_of(rows: OperatorRows, arch: UpstreamArch | None) -> Figures:
    """Rates and rooflines of all instances."""
    import numpy as np

    def roof(work: Work) -> Roof | None:
        return arch.roof(work.flops, work.bytes, work.compute_spec) if arch is not None else None

    roofs = tuple(roof(work) for work in rows.works)
    flops, size = rows.figures(lambda work: work.flops), rows.figures(lambda work: work.bytes)
    time = rows.time_us
    limit = np.array([float("nan") if item is None else item.time_us for item in roofs] + [float("nan")])[rows.work]
    with np.errstate(invalid="ignore", divide="ignore"):
        return Figures(
            flops / 1e9, size / MEBI, flops / size, size / 1e6 / time, flops / 1e6 / time, 100 * limit / time, roofs
        )


def first_known(row: npt.NDArray[np.int64], values: npt.NDArray[np.float64], count: int) -> list[float | None]:
    """First number of each row; None for none."""
    import numpy as np

    known = np.flatnonzero(~np.isnan(values))
    places, first = np.unique(row[known], return_index=True)
    found: list[float | None] = [None] * count
    for place, index in zip(places.tolist(), known[first].tolist(), strict=True):
        found[place] = float(values[index])
    return found


def first_work(rows: OperatorRows) -> list[int]:
    """Place of the work of each row's first instance that has one; -1 for none."""
    import numpy as np

    known = np.flatnonzero(rows.work >= 0)
    places, first = np.unique(rows.row[known], return_index=True)
    found = [-1] * len(rows.rows)
    for place, index in zip(places.tolist(), known[first].tolist(), strict=True):
        found[place] = int(rows.work[index])
    return found


def inputs_cells(row: OperatorRow) -> tuple[Cell, Cell, Cell, Cell]:
    """Recorded inputs as cells."""
    return row.recorded.literals if row.recorded is not None else (None, None, None, None)


def unified_table(rows: OperatorRows, arch: UpstreamArch | None, details: KernelDetails) -> Table:
    """Draw up the table; without ``arch`` the columns of the roofline are left out."""
    count = len(rows.rows)
    figures = figures_of(rows, arch)
    stats = {
        "TB/s": grouped(rows.row, figures.tbps, count),
        "TFLOPS/s": grouped(rows.row, figures.tflops, count),
        "time": grouped(rows.row, rows.time_us, count),
        "host": grouped(rows.row, rows.host_us, count),
        "percent": grouped(rows.row, figures.percent, count),
    }
    first = {
        "GFLOPS": first_known(rows.row, figures.gflops, count),
        "MiB": first_known(rows.row, figures.mib, count),
        "FLOPS/Byte": first_known(rows.row, figures.intensity, count),
    }
    works = first_work(rows)
    uids = rows.instances.rows().tolist()
    order = sorted(range(count), key=lambda place: (-stats["time"].sum[place], uids[rows.rows[place].example]))
    total = float(stats["time"].sum.sum())
    with_roof = any(roof is not None for roof in figures.roofs)
    columns = unified_columns(with_roof=with_roof)
    table_rows: list[tuple[Cell, ...]] = []
    cumulative = 0.0
    for place in order:
        row = rows.rows[place]
        work = rows.works[works[place]] if works[place] >= 0 else None
        roof = figures.roofs[works[place]] if works[place] >= 0 else None
        share = float(stats["time"].sum[place]) / total * 100 if total else None
        cumulative += share or 0.0
        cells = _cells(row, place, stats, first, work, roof, with_roof)
        cells["ex_UID"] = uids[row.example]
        cells["kernel_details_summary"], cells["trunc_kernel_details"] = details.cells(place)
        cells["Percentage (%)"], cells["Cumulative Percentage (%)"] = share, cumulative
        table_rows.append(tuple(cells[name] for name in columns))
    return Table("unified_perf_summary", columns, tuple(table_rows))


def unified_columns(*, with_roof: bool) -> tuple[str, ...]:
    """Columns of the table in upstream's order."""
    roof_first = ("Roofline Bound",) if with_roof else ()
    roof = ("Roofline Time (µs)_first", *(f"Pct Roofline_{name}" for name in _FIVE)) if with_roof else ()
    return (
        *KEY,
        "ex_UID",
        "operation_count",
        "total_duration_us",
        "mean_duration_us",
        "std_duration_us",
        "GFLOPS",
        "Data Moved (MB)",
        "FLOPS/Byte",
        "Compute Spec",
        *roof_first,
        "TB/s_mean",
        "TB/s_std",
        "TFLOPS/s_mean",
        "TFLOPS/s_std",
        "Kernel Time (µs)_mean",
        "Kernel Time (µs)_std",
        "Kernel Time (µs)_sum",
        *(f"duration_us_{name}" for name in ("median", "min", "max")),
        *(f"TB/s_{name}" for name in ("median", "min", "max")),
        *(f"TFLOPS/s_{name}" for name in ("median", "min", "max")),
        *roof,
        *(f"Kernel Time (µs)_{name}" for name in ("median", "min", "max")),
        "kernel_details_summary",
        "trunc_kernel_details",
        "perf_params",
        "has_perf_model",
        "Percentage (%)",
        "Cumulative Percentage (%)",
    )


def _cells(
    row: OperatorRow,
    place: int,
    stats: dict[str, GroupedStatistics],
    first: dict[str, list[float | None]],
    work: Work | None,
    roof: Roof | None,
    with_roof: bool,
) -> dict[str, Cell]:
    head = (row.name, row.category, row.process_name, row.process_label, row.thread_name, *inputs_cells(row))
    cells: dict[str, Cell] = dict(zip(KEY, head, strict=True))
    time, host = stats["time"], stats["host"]
    cells |= {
        "operation_count": int(time.count[place]),
        "total_duration_us": float(host.sum[place]),
        "mean_duration_us": host.of("mean", place),
        "std_duration_us": host.of("std", place),
        "GFLOPS": first["GFLOPS"][place],
        "Data Moved (MB)": first["MiB"][place],
        "FLOPS/Byte": first["FLOPS/Byte"][place],
        "Compute Spec": work.compute_spec if work is not None else None,
        "Kernel Time (µs)_sum": float(time.sum[place]),
        "perf_params": repr(dict(work.parameters)) if work is not None and work.parameters else None,
        "has_perf_model": row.modelled,
    }
    for name in ("median", "min", "max"):
        cells[f"duration_us_{name}"] = host.of(name, place)
    for name in _FIVE:
        cells[f"Kernel Time (µs)_{name}"] = time.of(name, place)
        cells[f"TB/s_{name}"] = stats["TB/s"].of(name, place)
        cells[f"TFLOPS/s_{name}"] = stats["TFLOPS/s"].of(name, place)
    if with_roof:
        cells["Roofline Bound"] = roof.bound if roof is not None else None
        cells["Roofline Time (µs)_first"] = roof.time_us if roof is not None else None
        for name in _FIVE:
            cells[f"Pct Roofline_{name}"] = stats["percent"].of(name, place)
    return cells
