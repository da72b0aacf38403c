"""Do our device times agree with ncu and with Triton's do_bench on this GPU, and what can it do at most?

CUDA and Triton kernels (vector add, RMSNorm, softmax) are timed by device stamps in processes of their own, as
``analyze`` does it; by ``ncu`` (``gpu__time_duration``, clocks and caches left alone, the same flush before each call);
by ``triton.testing.do_bench``; and as calls that follow each other in a graph, per call.

ncu's duration begins before the first block and ends after the last one: a kernel that does nothing takes longer there
than by stamps. So does do_bench's, from one event to the next. These fixed parts are measured and shown; kernels of
less than 40 us are judged without them.

    python -m benchmarks.kernel_agreement             everything, a few minutes
    python -m benchmarks.kernel_agreement --smoke     exercise every way of timing, about a minute

Exit status 1: a device time is more than 3 % off ncu's, or more than 3 % and 2.5 us off do_bench's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gpu_sessions import GpuSessions
from benchmarks.gpu_smoke import run_smoke
from magpie_tui.basics.tables import Column, format_table
from magpie_tui.kernels.device_stamps import StampsError
from magpie_tui.kernels.dispatches import device_sum_ns
from magpie_tui.kernels.physical_floor import peaks_of
from magpie_tui.kernels.profilers import ncu
from magpie_tui.kernels.sessions import SessionFailedError
from magpie_tui.statistics.intervals import median, standard_deviation

PROCESSES = 5
WINDOWS = 30
NCU_CALLS = 20
NCU_SHARE = 0.03
DO_BENCH_SHARE = 0.03
DO_BENCH_US = 2.5
SMALL_US = 40.0
"""Below this the fixed parts of ncu and do_bench, about 1 and 3 us, are as large as the difference that is allowed."""


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel of ``gpu_kernels/``.

    Attributes:
        kernel: Its name on the device.
        moved_bytes: Read and written by one call.
    """

    name: str
    kernel: str
    moved_bytes: int


ELEMENTS = 31_200_000
ENVIRONMENT = {"VECTOR_ELEMENTS": str(ELEMENTS)}
_ROWS = 2 * 8192 * 4096 * 4
CASES = (
    Case("cuda_add", "cuda_vector_add", 3 * ELEMENTS * 4),
    Case("triton_add", "vector_add", 3 * ELEMENTS * 4),
    Case("triton_add_small", "vector_add_small", 3 * 7_800_000 * 4),
    Case("cuda_rmsnorm", "cuda_rmsnorm", _ROWS),
    Case("triton_rmsnorm", "triton_rmsnorm", _ROWS),
    Case("cuda_softmax", "cuda_softmax", _ROWS),
    Case("triton_softmax", "triton_softmax", _ROWS),
)
EMPTY = Case("cuda_empty", "cuda_empty", 0)


@dataclass(frozen=True, slots=True)
class Stamps:
    """Device time over several processes: median of their medians in us, and its spread as a fraction."""

    median_us: float
    spread: float
    kernels: tuple[str, ...]


def stamps_of(sessions: GpuSessions, name: str, *, sets: int) -> Stamps:
    """Time a kernel by device stamps, cold, in several processes."""
    medians = []
    kernels: tuple[str, ...] = ()
    for _ in range(PROCESSES):
        with sessions.session(name, sets=sets) as session:
            calls, _marked = sessions.traced(session, WINDOWS)
        medians.append(median([device_sum_ns(call) for call in calls]) / 1e3)
        kernels = tuple(item.name for item in calls[-1])
    return Stamps(median(medians), (standard_deviation(medians) or 0.0) / median(medians), kernels)


def _run_driver(
    *arguments: str, before: Sequence[str] = (), timeout_s: float = 300.0
) -> subprocess.CompletedProcess[str]:
    """Run the driver, under a profiler when ``before`` is its command."""
    command = [*before, sys.executable, "-m", "benchmarks.agreement_driver", *arguments]
    environment = {**os.environ, **ENVIRONMENT}
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False, env=environment)


def _ncu(metric: str, log: Path) -> list[str]:
    """Return the command that measures one metric between the profiler's marks, clocks and caches left alone."""
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--metrics", metric, "--log-file", str(log)]
    return [*command, "--clock-control", "none", "--cache-control", "none", "--profile-from-start", "off"]


def ncu_times(directory: Path) -> Mapping[str, float]:
    """Return kernel name to median duration in us by ncu, and say what it said when there is none."""
    if shutil.which("ncu") is None:
        print("ncu is not installed here")
        return {}
    log = directory / "ncu.csv"
    names = [EMPTY.name, *(case.name for case in CASES)]
    done = _run_driver("profile", str(NCU_CALLS), *names, before=_ncu(ncu.DURATION, log), timeout_s=400)
    page = ncu.parse(log.read_text(errors="replace") if log.exists() else done.stdout)
    if not page.rows:
        print(f"ncu measured nothing: {page.failure or (done.stdout + done.stderr)[-800:]}")
    times: dict[str, list[float]] = {}
    for item in ncu.dispatches(page):
        times.setdefault(item.name.partition("(")[0], []).append(item.duration_ns / 1e3)
    return {name: median(values) for name, values in times.items()}


def ncu_clocks(directory: Path) -> str:
    """Return the clock of the processors while ncu measures."""
    if shutil.which("ncu") is None:
        return "unknown"
    log = directory / "clocks.csv"
    metric = "gpc__cycles_elapsed.avg.per_second"
    done = _run_driver("profile", "5", "triton_add_small", before=_ncu(metric, log), timeout_s=200)
    page = ncu.parse(log.read_text(errors="replace") if log.exists() else done.stdout)
    found = ncu.summary(page).get(metric)
    return "unknown" if found is None else f"{found.value:.4g} {found.unit}"


def times_by(what: str) -> Mapping[str, float]:
    """Return case to time in us by another method of the driver: ``do_bench`` or ``graph``."""
    done = _run_driver(what, EMPTY.name, *(case.name for case in CASES))
    try:
        found: Mapping[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        print(f"{what} measured nothing: {done.stderr[-800:]}")
        return {}
    return found


def _off(ours: float, other: float | None) -> str:
    return "-" if other is None else f"{ours / other - 1:+.2%}"


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def fixed_parts(sessions: GpuSessions, by_ncu: float | None, by_bench: float | None) -> tuple[float, float]:
    """Return how much longer, in us, a kernel that does nothing takes by ncu and by do_bench than by stamps.

    A method that told nothing has no fixed part that is known, and none is taken off.
    """
    try:
        ours = stamps_of(sessions, EMPTY.name, sets=2).median_us
    except (SessionFailedError, StampsError) as error:
        print(f"no device time of a kernel that does nothing: {error}")
        return 0.0, 0.0
    fixed = tuple(0.0 if other is None else max(0.0, other - ours) for other in (by_ncu, by_bench))
    print(
        f"A kernel that does nothing: {ours:.2f} us by stamps, {_us(by_ncu)} by ncu, {_us(by_bench)} by do_bench: "
        f"{fixed[0]:.2f} and {fixed[1]:.2f} us are not the kernel's."
    )
    return fixed[0], fixed[1]


def disagreement(
    case: Case, ours: Stamps, by_ncu: float | None, by_bench: float | None, fixed: tuple[float, float]
) -> list[str]:
    """Return what is further off than it may be."""
    problems = []
    known, benched = (
        None if other is None else other - (part if other < SMALL_US else 0.0)
        for other, part in zip((by_ncu, by_bench), fixed, strict=True)
    )
    if known is None or abs(ours.median_us - known) > NCU_SHARE * known:
        problems.append(f"{case.name}: {ours.median_us:.2f} us, ncu {_us(known)} us ({ours.kernels})")
    if benched is None or abs(ours.median_us - benched) > DO_BENCH_SHARE * benched + DO_BENCH_US:
        problems.append(f"{case.name}: {ours.median_us:.2f} us, do_bench {_us(benched)} us")
    return problems


def compare_methods(sessions: GpuSessions, directory: Path) -> list[str]:
    """Print the table of methods; returns what does not agree."""
    profiled, benched, replayed = ncu_times(directory), times_by("do_bench"), times_by("graph")
    fixed = fixed_parts(sessions, profiled.get(EMPTY.kernel), benched.get(EMPTY.name))
    rows, problems = [], []
    for case in CASES:
        try:
            ours = stamps_of(sessions, case.name, sets=2)
        except (SessionFailedError, StampsError) as error:
            problems.append(f"{case.name}: no device time: {error}")
            continue
        by_ncu, by_bench, by_graph = (
            found.get(key)
            for found, key in zip((profiled, benched, replayed), (case.kernel, case.name, case.name), strict=True)
        )
        rate = case.moved_bytes / ours.median_us / 1e6
        without = None if by_ncu is None else by_ncu - fixed[0]
        shown = [_us(ours.median_us), f"{ours.spread:.2%}", _us(by_ncu), _off(ours.median_us, by_ncu)]
        shown += [_off(ours.median_us, without), _us(by_bench), _off(ours.median_us, by_bench), _us(by_graph)]
        rows.append([case.name, *shown, f"{rate:.2f}"])
        problems += disagreement(case, ours, by_ncu, by_bench, fixed)
    titles = ["kernel", "device_time (us)", "sd", "ncu (us)", "off", "less fixed part", "do_bench (us)", "off"]
    titles += ["in a graph (us)", "TB/s"]
    print(format_table([Column(title, "left" if not index else "right") for index, title in enumerate(titles)], rows))
    print(f"Clock under ncu: {ncu_clocks(directory)}.")
    return problems


def print_ceilings(sessions: GpuSessions) -> None:
    """Measure and name the ceilings of this device."""
    copy = stamps_of(sessions, "device_copy", sets=1)
    product = stamps_of(sessions, "matrix_product", sets=1)
    name = str(sessions.loaded.get("device_name"))
    rate = 2 * 4 * 256 * 1024 * 1024 / copy.median_us * 1e6
    peaks = peaks_of(name)
    share = f", {rate / peaks.bytes_per_s:.1%} of {peaks.bytes_per_s / 1e12:g} TB/s ({peaks.source})" if peaks else ""
    print(f"Measured copy ceiling of {name}: {rate / 1e12:.2f} TB/s read and written{share}; sd {copy.spread:.2%}.")
    flops = 2 * 8192**3 / product.median_us * 1e6
    print(f"Measured bf16 matrix ceiling (8192 x 8192 x 8192, random): {flops / 1e12:.0f} TFLOP/s; {product.kernels}")


def run_agreement() -> int:
    """Run everything; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="magpie-tui-agreement-") as name:
        directory = Path(name)
        sessions = GpuSessions(directory, ENVIRONMENT)
        try:
            problems = compare_methods(sessions, directory)
            loaded = sessions.loaded
            place = (
                f"{loaded.get('device_name')}, {platform.node()}, {os.cpu_count()} CPUs, torch {loaded.get('torch')}"
            )
            print(f"Where: {place}, caches {loaded.get('caches')}; {PROCESSES} processes of {WINDOWS} windows, cold.")
            print_ceilings(sessions)
        finally:
            sessions.close()
    for problem in problems:
        print(f"does not agree: {problem}")
    print("everything agrees here" if not problems else f"{len(problems)} disagreements")
    return 1 if problems else 0


def main() -> int:
    """Run what was asked for; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="only exercise every way of timing")
    return run_smoke() if parser.parse_args().smoke else run_agreement()


if __name__ == "__main__":
    sys.exit(main())
