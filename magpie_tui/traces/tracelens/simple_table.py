"""Upstream's ``*_kernel_roofline_simple.csv``: the operator table of a stage with the parameters of each op."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

from magpie_tui.traces.collective_cells import Table

UNIFIED = "unified_perf_summary"
_WITHOUT_PARAMETERS = ("gpu_timeline", "ops_summary", "ops_summary_by_category", "ops_unique_args", UNIFIED)
_PARAMETER = "param: "
_COPIED = (
    ("source_category", "op category"),
    ("op_name", "name"),
    ("param_signature", None),
    ("operation_count", "operation_count"),
    ("num_kernels", None),
    ("kernel_time_ms_sum", None),
    ("time_pct", "Percentage (%)"),
    ("kernel_time_us_mean", "Kernel Time (µs)_mean"),
    ("gflops", "GFLOPS"),
    ("data_moved_mb", "Data Moved (MB)"),
    ("arithmetic_intensity_flops_per_byte", "FLOPS/Byte"),
    ("achieved_tflops_mean", "TFLOPS/s_mean"),
    ("achieved_tbps_mean", "TB/s_mean"),
    ("compute_spec", "Compute Spec"),
    ("roofline_bound", "Roofline Bound"),
    ("pct_roofline_mean", "Pct Roofline_mean"),
    ("roofline_time_us", "Roofline Time (µs)_first"),
    ("has_perf_model", "has_perf_model"),
    ("params_json", None),
    ("input_dims", "Input Dims"),
    ("input_type", "Input type"),
)
"""Column, and the column of the operator table that it is copied from (None: worked out)."""
_LEFT_OUT = ("roofline_bound", "pct_roofline_mean", "roofline_time_us")
"""Columns that do not exist where their source does not."""


def file_name(label: str, isl: object, osl: object, concurrency: object) -> str:
    """Name of the table: ``decode_only_ISL1024_OSL1024_CONC32_kernel_roofline_simple.csv``."""
    parts = (("ISL", isl), ("OSL", osl), ("CONC", concurrency))
    return label + "".join(f"_{name}{_in_name(value)}" for name, value in parts) + "_kernel_roofline_simple.csv"


def _in_name(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = "" if value is None else re.sub(r"[^0-9A-Za-z]", "", str(value).replace(".", "p"))
    return text or "unknown"


def simple_table(tables: Sequence[Table]) -> str | None:
    """Draw up the CSV text from the tables of a report; None without an operator table."""
    texts = {table.name: table.to_csv() for table in tables}
    if UNIFIED not in texts:
        return None
    parameters = _Parameters(
        (name, row) for name, text in texts.items() if name not in _WITHOUT_PARAMETERS for row in _read(text)
    )
    rows = _read(texts[UNIFIED])
    given = next((table.columns for table in tables if table.name == UNIFIED), ())
    columns = [(name, source) for name, source in _COPIED if name not in _LEFT_OUT or source in given]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([name for name, _source in columns])
    for row in rows:
        found = parameters.of(row["op category"], row["name"])
        made = _made(row, found)
        writer.writerow([made[name] if source is None else row.get(source, "") for name, source in columns])
    return buffer.getvalue()


def _read(text: str) -> list[dict[str, str]]:
    csv.field_size_limit(1 << 30)
    return list(csv.DictReader(io.StringIO(text)))


def _made(row: Mapping[str, str], found: Mapping[str, str] | None) -> dict[str, str]:
    """Columns that are not copied."""
    given = {
        name.removeprefix(_PARAMETER): value
        for name, value in (found or {}).items()
        if name.startswith(_PARAMETER) and value
    }
    total = row.get("Kernel Time (µs)_sum", "")
    return {
        "param_signature": ",".join(f"{name}={value}" for name, value in given.items()),
        "num_kernels": (found or {}).get("num_kernels", ""),
        "kernel_time_ms_sum": f"{float(total) / 1000:.6g}" if total else "",
        "params_json": json.dumps(given, sort_keys=True, separators=(",", ":")) if given else "",
    }


class _Parameters:
    """Rows with parameters, by category and name."""

    def __init__(self, rows: Iterable[tuple[str, Mapping[str, str]]]) -> None:
        self._exact: dict[tuple[str, str], deque[Mapping[str, str]]] = defaultdict(deque)
        self._by_name: dict[str, list[Mapping[str, str]]] = defaultdict(list)
        for table, row in rows:
            if any(name.startswith(_PARAMETER) for name in row):
                self._exact[_normal(table), row["name"]].append(row)
                self._by_name[row["name"]].append(row)

    def of(self, category: str, name: str) -> Mapping[str, str] | None:
        """Next row of this category and name; else the only row of this name."""
        waiting = self._exact[_normal(category), name]
        if waiting:
            return waiting.popleft()
        rows = self._by_name.get(name, [])
        return rows[0] if len(rows) == 1 else None


def _normal(category: str) -> str:
    return re.sub(r"[^0-9a-z]", "", category.lower().removesuffix("_fwd"))
