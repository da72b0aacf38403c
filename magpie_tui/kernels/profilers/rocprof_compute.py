"""rocprof-compute: profile, then analyse to CSV tables; durations from ``pmc_perf.csv``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from magpie_tui.configs.framework_fields import METRIC_BLOCKS
from magpie_tui.kernels.dispatches import Dispatch
from magpie_tui.kernels.profilers.model import ProfileTask, number, rows_of
from magpie_tui.workspaces.kernel_state import Metric

NAME = "rocprof_compute_output"
_TABLES = re.compile(r"(?<![\d.])(2\.1|11\.1|12\.[12]|14\.[1-3]|16\.[1-5]|17\.[1-6]|10\.[1-4])(?![\d.]*\d)")
"""Speed of light, instruction mix, memory: numbers that stand in the names of the tables that are read."""
_VALUES = ("Avg", "Value", "Average")
_SHARES = ("Pct of Peak", "Pop")
_NAMES = {
    "VALU FLOPs": "VALU_FLOPs",
    "MFMA IOPs (Int8)": "MFMA_IOPs_Int8",
    "IPC": "IPC",
    "Wavefront Occupancy": "Wavefront_Occ",
    "CU Utilization": "CU_Util",
    "Theoretical LDS Bandwidth": "LDS_BW",
    "LDS Bank Conflicts/Access": "LDS_Conflicts",
    "vL1D Cache Hit Rate": "vL1D_HitRate",
    "vL1D Cache BW": "vL1D_BW",
    "L2 Cache Hit Rate": "L2_HitRate",
    "L2 Cache BW": "L2_BW",
    "L2-Fabric Read BW": "HBM_Read_BW",
    "L2-Fabric Write BW": "HBM_Write_BW",
    **{f"MFMA FLOPs ({kind})": f"MFMA_FLOPs_{kind}" for kind in ("BF16", "F16", "F32", "F64", "F8")},
    **{f"{unit} Utilization": f"{unit}_Util" for unit in ("VALU", "MFMA", "SALU", "VMEM", "Branch")},
}
_MIX = ("VALU", "VMEM", "LDS", "MFMA", "SALU", "SMEM")
_COUNTERS = ("SQ_", "TCC_", "TCP_", "TA_", "TD_", "SQC_")


def _blocks(task: ProfileTask) -> list[str]:
    return task.texts("metric_blocks") or list(METRIC_BLOCKS)


def _profile_arguments(task: ProfileTask) -> list[str]:
    """Return the arguments of ``profile``: ``roofline`` removes or adds ``--no-roof``."""
    given = task.texts("profile_args") if "profile_args" in task.settings else ["--no-roof"]
    roofline = task.settings.get("roofline")
    if roofline is None:
        return given
    wanted = str(roofline).lower() in ("1", "true", "yes", "on")
    rest = [item for item in given if item != "--no-roof"]
    return rest if wanted else [*rest, "--no-roof"]


def profile_command(task: ProfileTask, program: Sequence[str], directory: Path) -> list[str]:
    """Return the command that profiles ``program`` into ``directory``."""
    return [
        *("rocprof-compute", "profile", "-n", NAME, "-p", str(directory)),
        *("-b", *_blocks(task)),
        *_profile_arguments(task),
        "--",
        *program,
    ]


def analyze_command(task: ProfileTask, directory: Path) -> list[str]:
    """Return the command that turns a profile into CSV tables; it runs in ``directory``."""
    return [
        *("rocprof-compute", "analyze", "-p", str(directory), "-b", *_blocks(task)),
        *("--output-format", task.text("output_format") or "csv", "--output-name", "analysis"),
        *task.texts("analyze_args"),
    ]


def counters_file(directory: Path) -> Path | None:
    """Return ``pmc_perf.csv`` of a profile, or None: then nothing was profiled."""
    direct = directory / "pmc_perf.csv"
    if direct.is_file():
        return direct
    return next(iter(sorted(directory.rglob("pmc_perf.csv"))), None)


def table_files(directory: Path) -> list[Path]:
    """Return the tables that are read, in the order of their names: a later value replaces an earlier one."""
    return [path for path in sorted((directory / "analysis").rglob("*.csv")) if _TABLES.search(path.stem)]


def renamed(name: str) -> str | None:
    """Return upstream's name of a metric of a table; None for metrics that it does not take."""
    plain = name.strip()
    if plain in _NAMES:
        return _NAMES[plain]
    return f"Inst_{plain}" if plain in _MIX else None


def parse_table(text: str) -> dict[str, Metric]:
    """Read one table of the analysis."""
    found = {}
    for row in rows_of(text):
        name = renamed(row.get("Metric", ""))
        value = next((item for key in _VALUES if (item := number(row.get(key))) is not None), None)
        if name is None or value is None:
            continue
        share = next((item for key in _SHARES if (item := number(row.get(key))) is not None), None)
        found[name] = Metric(value, row.get("Unit", ""), number(row.get("Peak")), share)
    return found


def parse_counters(text: str) -> tuple[list[Dispatch], dict[str, float]]:
    """Read ``pmc_perf.csv``: the dispatches, and the sum of each hardware counter."""
    found: list[Dispatch] = []
    counters: dict[str, float] = {}
    for row in rows_of(text):
        name = row.get("Kernel_Name", row.get("KernelName"))
        start, end = number(row.get("Start_Timestamp")), number(row.get("End_Timestamp"))
        if name is None or start is None or end is None or end < start:
            continue
        device = number(row.get("GPU_ID"))
        found.append(Dispatch(name, start, end - start, int(device or 0)))
        for key, value in row.items():
            if key.startswith(_COUNTERS) and (count := number(value)) is not None:
                counters[key] = counters.get(key, 0.0) + count
    return found, counters


def summary(tables: Sequence[str], dispatches: Sequence[Dispatch]) -> Mapping[str, Metric]:
    """Return the metrics of all tables; upstream's mark when there are dispatches but no metric."""
    found: dict[str, Metric] = {}
    for table in tables:
        found |= parse_table(table)
    if not found and dispatches:
        found["profiling_complete"] = Metric(1.0, "bool")
    return found
