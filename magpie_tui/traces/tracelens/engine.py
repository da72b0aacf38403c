"""Drives an installed TraceLens, and sets its operator table beside ours."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import MachineError
from magpie_tui.basics.files import create_directory, write_text
from magpie_tui.processes.children import run_child
from magpie_tui.processes.tail import read_tail
from magpie_tui.traces.operators.upstream_arch import UpstreamArch
from magpie_tui.traces.operators.upstream_report import ReportOptions, UpstreamReport
from magpie_tui.traces.tracelens.simple_table import UNIFIED

PLAIN_COMMAND = "TraceLens_generate_perf_report_pytorch"
INFERENCE_COMMAND = f"{PLAIN_COMMAND}_inference"
TIMEOUT_S = 1800.0
AGREES_WITHIN = 0.005
_KEY = ("name", "thread_name", "Input Dims", "Input type", "Input Strides", "Concrete Inputs")
_TIME = "Kernel Time (µs)_sum"
_INFERENCE_FLAGS = ("--group_by_parent_module", "--enable_pseudo_ops", "--group_by_num_kernels")
_TOLD_BYTES = 2000


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A row of both operator tables; None for what one side lacks.

    Attributes:
        agrees: Count and time are equal (within 0.5 %), and the percentages of the roofline where both have one.
    """

    name: str
    input_dims: str
    our_count: int | None
    their_count: int | None
    our_us: float | None
    their_us: float | None
    our_pct_roofline: float | None
    their_pct_roofline: float | None
    agrees: bool


def require_installed() -> None:
    """Raise MachineError when neither of TraceLens' commands is there."""
    if shutil.which(INFERENCE_COMMAND) is None:
        find_command(inference=False)


def find_command(*, inference: bool) -> Path:
    """Find TraceLens' command.

    Raises:
        MachineError: It is not installed.
    """
    name = INFERENCE_COMMAND if inference else PLAIN_COMMAND
    found = shutil.which(name)
    if found is None:
        raise MachineError(
            f"TraceLens is not installed: {name} is not on the PATH",
            hint="pip install git+https://github.com/AMD-AGI/TraceLens, or leave --engine away: our own tables bear "
            "the same names",
        )
    return Path(found)


def run_tracelens(
    command: Path, trace: Path, directory: Path, options: ReportOptions, *, timeout_s: float = TIMEOUT_S
) -> None:
    """Let TraceLens write its tables of a trace into a directory.

    Raises:
        MachineError: It failed, or took too long.
    """
    create_directory(directory)
    with tempfile.TemporaryDirectory() as scratch:
        words = [str(command), "--profile_json_path", str(trace.absolute()), "--output_csvs_dir"]
        words += [str(directory.absolute()), "--enable_kernel_summary", "--short_kernel_study"]
        if options.inference:
            words += _INFERENCE_FLAGS
            if options.capture_folder is not None:
                words += ["--capture_folder", str(options.capture_folder.absolute())]
        if options.arch is not None:
            arch = Path(scratch) / "arch.json"
            write_text(arch, _arch_text(options.arch))
            words += ["--gpu_arch_json_path", str(arch)]
        stdout, stderr = Path(scratch) / "stdout", Path(scratch) / "stderr"
        result = run_child(words, stdout_path=stdout, stderr_path=stderr, timeout_s=timeout_s)
        if result.timed_out:
            raise MachineError(f"TraceLens did not end within {timeout_s:g} s", path=trace)
        if result.exit_code != 0:
            why = result.not_started or read_tail(stderr, _TOLD_BYTES).strip() or f"status {result.exit_code}"
            raise MachineError(f"TraceLens failed: {why}", path=trace)


def _arch_text(arch: UpstreamArch) -> str:
    """Peaks in TraceLens' JSON form."""
    value = {
        "name": arch.name,
        "mem_bw_gbps": arch.bandwidth_gbps,
        "max_achievable_tflops": dict(arch.peaks_tflops),
    }
    return json.dumps(value, indent=2) + "\n"


def side_by_side(ours: UpstreamReport, directory: Path) -> list[SideBySide]:
    """Compare the operator tables, most time first.

    Raises:
        MachineError: TraceLens wrote no operator table.
    """
    path = directory / f"{UNIFIED}.csv"
    try:
        theirs = _rows(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MachineError(f"TraceLens wrote no {path.name}", path=directory) from error
    table = ours.named(UNIFIED)
    mine = {_key(row): row for row in _rows(table.to_csv())} if table is not None else {}
    other = {_key(row): row for row in theirs}
    found = [_set_beside(mine.get(key), other.get(key)) for key in dict.fromkeys([*other, *mine])]
    return sorted(found, key=lambda row: -(row.their_us or row.our_us or 0.0))


def _rows(text: str) -> list[dict[str, str]]:
    csv.field_size_limit(1 << 30)
    return list(csv.DictReader(io.StringIO(text)))


def _key(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row.get(name) or "" for name in _KEY)


def _number(row: dict[str, str] | None, column: str) -> float | None:
    text = (row or {}).get(column)
    return float(text) if text else None


def _set_beside(ours: dict[str, str] | None, theirs: dict[str, str] | None) -> SideBySide:
    one = ours or theirs or {}
    counts = [_number(row, "operation_count") for row in (ours, theirs)]
    times = [_number(row, _TIME) for row in (ours, theirs)]
    shares = [_number(row, "Pct Roofline_mean") for row in (ours, theirs)]
    return SideBySide(
        one.get("name", ""),
        one.get("Input Dims") or "",
        None if counts[0] is None else int(counts[0]),
        None if counts[1] is None else int(counts[1]),
        times[0],
        times[1],
        shares[0],
        shares[1],
        counts[0] is not None and counts[0] == counts[1] and _close(times) and _close(shares),
    )


def _close(pair: Sequence[float | None]) -> bool:
    first, second = pair
    if first is None or second is None:
        return first is second
    return abs(first - second) <= AGREES_WITHIN * abs(second)
