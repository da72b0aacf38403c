"""How long a ranking of kernels takes, and how much memory, against a floor that is measured in the same run.

The same for the roofline of a rank. A small trace is grown to each size asked for (new times and ids in every copy),
packed, and worked on by the command line in a process of its own with an empty cache; then once more with the cache.
The floor is what any reader pays that puts every event into an object: gunzip by zlib-ng and a typed msgspec decode of
the whole file, garbage collector off, on one core.

    python benchmarks/traces.py                      50 MB
    python benchmarks/traces.py --sizes 50 500 1500
    python benchmarks/traces.py --sizes 200 --ranks 8 --source trace.json.gz
    python benchmarks/traces.py --sizes 1500 --command roofline
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SHIFTED = re.compile(rb'("ts": |"correlation": |"External id": ?|"id": )(\d+)')
_STEP_US = 3_000_000
_STEP_IDS = 1_000_000
_FLOOR = """
import gc, sys, time, zlib
import msgspec
gc.disable()
try:
    from zlib_ng import zlib_ng as inflate
except ImportError:
    from isal import isal_zlib as inflate

class Args(msgspec.Struct, gc=False):
    external_id: int | None = msgspec.field(name="External id", default=None)
    correlation: int | None = None
    device: int | None = None
    stream: int | None = None
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=msgspec.Raw(b""))

class Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float = 0.0
    dur: float = 0.0
    args: Args | None = None

class Trace(msgspec.Struct):
    traceEvents: list[Event]

data = open(sys.argv[1], "rb").read()
decoder = msgspec.json.Decoder(Trace)
start = time.perf_counter()
text = inflate.decompress(data, 31)
trace = decoder.decode(text)
print(inflate.__name__, time.perf_counter() - start, len(trace.traceEvents))
"""


def small_trace() -> bytes:
    """Events of a few decode steps in Kineto's layout: frames, host ops with shapes, launches, arrows, kernels."""
    events: list[str] = []
    now = 1_000_000.0
    for layer in range(400):
        for frame in range(28):
            name = (
                f"/usr/lib/python3/site-packages/vllm/model_executor/layers/part_{frame % 13}.py({frame * 17}): forward"
            )
            events.append(_event("python_function", name, 7, 7, now + frame, 40.0 - frame, f'"Python id": {frame}'))
        op_id, call_id = 10 * layer, 10 * layer + 1
        types = '"Input type": ["c10::BFloat16", "c10::BFloat16"]'
        shapes = f'"External id": {op_id}, "Input Dims": [[{layer % 8 + 1}, 4096], [4096, 4096]], {types}'
        events.append(_event("cpu_op", "aten::mm", 7, 7, now + 3, 12.5, shapes))
        ids = f'"External id": {op_id}, "correlation": {call_id}'
        events.append(_event("cuda_runtime", "hipExtModuleLaunchKernel", 7, 7, now + 5, 4.25, ids))
        tile = f"MT128x{16 * (layer % 6 + 1)}x64_MI16x16x1"
        kernel = f"Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_{tile}_SN_LDSB0_AFC1_AFEM1"
        details = f'{ids}, "device": 0, "stream": 3, "grid": [{layer % 64 + 1}, 1, 1], "block": [256, 1, 1]'
        events.append(_event("kernel", kernel, 0, 3, now + 20, 30.125, details))
        events.append(_arrow("s", call_id, 7, 7, now + 5))
        events.append(_arrow("f", call_id, 0, 3, now + 20))
        now += 60.0
    return ('{\n  "schemaVersion": 1,\n  "traceEvents": [\n  ' + ",\n  ".join(events) + "\n  ]\n}").encode()


def _event(cat: str, name: str, pid: int, tid: int, ts: float, dur: float, args: str) -> str:
    return (
        f'{{\n    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": {pid}, "tid": {tid},\n'
        f'    "ts": {ts:.3f}, "dur": {dur:.3f},\n    "args": {{\n      {args}\n    }}\n  }}'
    )


def _arrow(phase: str, number: int, pid: int, tid: int, ts: float) -> str:
    return (
        f'{{\n    "ph": "{phase}", "id": {number}, "pid": {pid}, "tid": {tid}, "ts": {ts:.3f},\n'
        '    "cat": "ac2g", "name": "ac2g"\n  }'
    )


def grow(source: bytes, path: Path, size_bytes: int) -> None:
    """Write a packed trace of about ``size_bytes`` unpacked that repeats the events of ``source`` at later times."""
    from isal import isal_zlib

    begin = source.index(b"[", source.index(b'"traceEvents"')) + 1
    end = source.rindex(b"]")
    body = source[begin:end].strip()
    parts = _SHIFTED.split(body)
    numbers = [int(text) for text in parts[2::3]]
    steps = [_STEP_US if key.startswith(b'"ts"') else _STEP_IDS for key in parts[1::3]]
    copies = max(1, round(size_bytes / len(body)))
    packer = isal_zlib.compressobj(1, wbits=31)
    with path.open("wb") as file:
        file.write(packer.compress(source[:begin] + b"\n  "))
        for copy in range(copies):
            parts[2::3] = [b"%d" % (number + copy * step) for number, step in zip(numbers, steps, strict=True)]
            file.write(packer.compress((b",\n  " if copy else b"") + b"".join(parts)))
        file.write(packer.compress(b"\n  ]}\n") + packer.flush())


def _descendants(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _descendants(int(child))


def _resident_bytes(pid: int) -> int:
    total = 0
    for member in _descendants(pid):
        with contextlib.suppress(OSError, IndexError):
            total += int(Path(f"/proc/{member}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    return total


@dataclass(frozen=True)
class Cost:
    """Of one command: wall and processor seconds, highest sum of resident memory over its processes, stdout."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    stdout: str


def run(command: list[str], environment: dict[str, str], cpus: set[int] | None = None) -> Cost:
    """Run a command to its end and say what it cost."""
    used = os.times()
    before = os.sched_getaffinity(0)
    if cpus:
        os.sched_setaffinity(0, cpus)
    try:
        with tempfile.TemporaryFile() as output:
            start = time.perf_counter()
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL, env=environment)
            peak = 0
            while process.poll() is None:
                peak = max(peak, _resident_bytes(process.pid))
                time.sleep(0.02)
            seconds = time.perf_counter() - start
            output.seek(0)
            text = output.read().decode()
    finally:
        os.sched_setaffinity(0, before)
    if process.returncode:
        raise SystemExit(f"{command} ended with status {process.returncode}")
    now = os.times()
    cpu = now.children_user + now.children_system - used.children_user - used.children_system
    return Cost(seconds, cpu, peak, text)


def measure(directory: Path, source: bytes, size_mb: int, ranks: int, name: str) -> str:
    """Grow, measure, and return a line of the table."""
    traces = directory / f"{size_mb}mb"
    traces.mkdir()
    for rank in range(ranks):
        grow(source, traces / f"grown-rank-{rank}.pt.trace.json.gz", size_mb * 1_000_000)
    first_file = traces / "grown-rank-0.pt.trace.json.gz"
    environment = {**os.environ, "MAGPIE_TUI_CACHE_DIR": str(directory / f"cache{size_mb}")}
    command = [sys.executable, "-m", "magpie_tui", "trace", name, str(traces), "--json"]
    floor_code = directory / "floor.py"
    floor_code.write_text(_FLOOR)
    one_cpu = {min(os.sched_getaffinity(0))}
    floor_run = run([sys.executable, str(floor_code), str(first_file)], dict(os.environ), one_cpu)
    inflater, floor_text, events = floor_run.stdout.split()
    floor = float(floor_text) * ranks
    first = run(command, environment)
    second = run(command, environment)
    shutil.rmtree(traces)
    shutil.rmtree(directory / f"cache{size_mb}", ignore_errors=True)
    return (
        f"{ranks:>5} {size_mb:>7} {int(events):>10,} {floor:>8.2f} {first.wall_s:>8.2f} {first.wall_s / floor:>6.2f} "
        f"{second.wall_s:>8.2f} {floor_run.cpu_s * ranks:>8.2f} {first.cpu_s:>8.2f} {second.cpu_s:>8.2f} "
        f"{first.peak_bytes / 1e6:>8.0f} {second.peak_bytes / 1e6:>8.0f} {floor_run.peak_bytes / 1e6:>8.0f}  {inflater}"
    )


def main() -> None:
    """Parse the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50], metavar="MB", help="unpacked sizes of a rank")
    parser.add_argument("--ranks", type=int, default=1, help="how many files of that size")
    parser.add_argument("--source", type=Path, help="trace to grow instead of a made-up one")
    parser.add_argument("--command", choices=("kernels", "roofline"), default="kernels", help="what is measured")
    parser.add_argument("--scratch", type=Path, help="directory for the grown traces")
    options = parser.parse_args()
    source = small_trace()
    if options.source is not None:
        data = options.source.read_bytes()
        source = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    print(
        f"{'ranks':>5} {'MB':>7} {'events':>10} {'floor s':>8} {'first s':>8} {'ratio':>6} {'second s':>8} "
        f"{'floor cpu':>8} {'1st cpu':>8} {'2nd cpu':>8} {'peak MB':>8} {'2nd MB':>8} {'floor MB':>8}  inflater"
    )
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        for size in options.sizes:
            print(measure(Path(scratch), source, size, options.ranks, options.command), flush=True)


if __name__ == "__main__":
    main()
