"""Nsight Compute: ``ncu --csv --page raw``, one row a dispatch, a row of units below the header."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.kernels.dispatches import Dispatch
from magpie_tui.kernels.profilers.model import ProfileTask, number
from magpie_tui.workspaces.kernel_state import Metric

DURATION = "gpu__time_duration.sum"
_PCT = ".avg.pct_of_peak_sustained_elapsed"
USUAL_METRICS = (
    DURATION,
    f"sm__throughput{_PCT}",
    f"l1tex__throughput{_PCT}",
    f"lts__throughput{_PCT}",
    f"dram__throughput{_PCT}",
    "dram__bytes.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "lts__t_sector_hit_rate.pct",
    "launch__registers_per_thread",
    "launch__occupancy_limit_registers",
    "launch__shared_mem_per_block",
)
"""Collected when the config names none: duration, the throughputs that upstream weighs, traffic, occupancy."""
_NS = {
    **dict.fromkeys(("ns", "nsecond", "nanosecond"), 1.0),
    **dict.fromkeys(("us", "usecond", "microsecond"), 1e3),
    **dict.fromkeys(("ms", "msecond", "millisecond"), 1e6),
    **dict.fromkeys(("s", "second"), 1e9),
}
"""Unit of a duration to ns."""
_DESCRIPTIVE = frozenset(
    {"ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size"}
    | {"Device", "CC"}
)
_PREFIXES = ("device__", "nvlink__", "numa__", "c2clink__", "profiler__", "pcie__")
"""Facts about the machine that fill a raw page and say nothing about a kernel."""


def command(task: ProfileTask, program: Sequence[str], log: Path) -> list[str]:
    """Return the command that profiles ``program``; clocks are left as they are, ncu's output goes to ``log``."""
    given = task.texts("args")
    start = [] if "--target-processes" in given else ["--target-processes", "all"]
    if not any(item.startswith("--clock-control") for item in given):
        start += ["--clock-control", "none"]
    chooses = any(item in ("--set", "--section") or item.startswith(("--set=", "--section=")) for item in given)
    metrics = task.texts("metrics") or ([] if chooses else list(USUAL_METRICS))
    if metrics and DURATION not in metrics:
        metrics = [DURATION, *metrics]
    chosen = ["--metrics", ",".join(metrics)] if metrics else []
    if task.text("kernel_filter"):
        chosen += ["--kernel-name", f"regex:{task.text('kernel_filter')}"]
    own = ["--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]
    marked = ["--profile-from-start", "off"] if task.marked else []
    return ["ncu", *start, *own, *marked, *chosen, *given, *program]


@dataclass(frozen=True, slots=True)
class NcuPage:
    """A raw page.

    Attributes:
        units: Column to unit.
        rows: One a dispatch.
        messages: What ncu said beside it (``==ERROR== …``).
    """

    units: Mapping[str, str]
    rows: tuple[Mapping[str, str], ...]
    messages: tuple[str, ...] = ()

    @property
    def failure(self) -> str | None:
        """What kept ncu from profiling, if it said so."""
        for message in self.messages:
            if "ERR_NVGPUCTRPERM" in message:
                return (
                    "ncu may not read the performance counters (ERR_NVGPUCTRPERM): run as root, or let the driver "
                    "allow it (NVreg_RestrictProfilingToAdminUsers=0)"
                )
        errors = [message for message in self.messages if message.startswith("==ERROR==")]
        return errors[0].removeprefix("==ERROR==").strip() if errors else None


def parse(text: str) -> NcuPage:
    """Read a raw page out of everything that was printed, the program's own lines included."""
    messages = tuple(line.strip() for line in text.splitlines() if line.startswith("=="))
    lines = text.replace("\0", "").splitlines()
    start = next((index for index, line in enumerate(lines) if line.lstrip().startswith('"ID",')), None)
    if start is None:
        return NcuPage({}, (), messages)
    kept = [line for line in lines[start:] if line.lstrip().startswith('"')]
    try:
        table = list(csv.reader(io.StringIO("\n".join(kept))))
    except csv.Error:
        return NcuPage({}, (), messages)
    header = table[0]
    whole = [dict(zip(header, line, strict=True)) for line in table[1:] if len(line) == len(header)]
    units = whole[0] if whole and not whole[0].get("ID", "").strip() else {}
    rows = tuple(row for row in whole if row.get("ID", "").strip().isdigit())
    return NcuPage({name: unit for name, unit in units.items() if unit}, rows, messages)


def dispatches(page: NcuPage) -> list[Dispatch]:
    """Return the dispatches of a page with their durations; ncu gives no starts, it runs kernels one by one."""
    factor = _NS.get(page.units.get(DURATION, "ns"))
    found = []
    for row in page.rows:
        duration = number(row.get(DURATION))
        if duration is None or factor is None:
            continue
        device, stream = number(row.get("Device")), number(row.get("Stream"))
        name = row.get("Kernel Name", "")
        found.append(Dispatch(name, None, duration * factor, int(device or 0), None if stream is None else int(stream)))
    return found


def summary(page: NcuPage) -> dict[str, Metric]:
    """Return each metric over all dispatches: the sum of ``….sum`` metrics, the mean of the others."""
    found = {}
    for name in page.rows[0] if page.rows else ():
        if name in _DESCRIPTIVE or name.startswith(_PREFIXES):
            continue
        values = [value for row in page.rows if (value := number(row.get(name))) is not None]
        if not values:
            continue
        total = sum(values)
        value = total if name.endswith(".sum") else total / len(values)
        share = value if "pct_of_peak" in name else None
        found[name] = Metric(value, page.units.get(name, ""), pct_of_peak=share)
    return found
