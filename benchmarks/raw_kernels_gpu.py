"""Kernels without a main on a real NVIDIA GPU: built by NVRTC, judged, timed, profiled by ncu, read by cuobjdump.

Runs ``analyze`` on the shipped CUDA examples and on a wrong and a broken copy of one, then prints a table, and whether
the device time of ncu agrees with ours. Also traces a program with its own main (nvcc) for its dispatches.

Three phases, each with a limit of time: the gate alone, timing, and ncu. Steps are shown as they come; where a phase
reaches its limit, every process writes its stacks before it ends.

    python -m benchmarks.raw_kernels_gpu               a few minutes
    python -m benchmarks.raw_kernels_gpu --keep DIR    keeps workspaces and logs
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.watched_run import ROOT, run_watched
from magpie_tui.kernels.profilers.model import ProfilerFailedError
from magpie_tui.kernels.profilers.run import dispatches

_ENTRY = """
  - id: {id}
    type: cuda
    source_files: [{source}]
    kernel_name: {name}
    arguments: {arguments}
    grid: {grid}
    block: {block}
    reference: {reference}
    shapes: {shapes}
"""
_RMSNORM = (
    "[{name: x, dtype: float16, shape: [rows, cols], role: in}, {name: weight, dtype: float16, shape: [cols]}, "
    "{name: out, dtype: float16, shape: [rows, cols], role: out}, {name: eps, dtype: float32, value: 0.000001}, "
    "{name: cols, dtype: int32, value: cols}]"
)
_ADD = (
    "[{name: a, dtype: float32, shape: [n]}, {name: b, dtype: float32, shape: [n]}, "
    "{name: out, dtype: float32, shape: [n], role: out}, {name: n, dtype: int64, value: n}]"
)


_TIMED = ("rmsnorm", "add")
_EXPECTED = {"rmsnorm": "correct", "add": "correct", "wrong": "incorrect", "broken": "invalid"}


def _entries(directory: Path) -> dict[str, str]:
    """Return the entries of two right kernels, one wrong, and one that does not compile."""
    rmsnorm, add = ROOT / "examples" / "cuda_rmsnorm", ROOT / "examples" / "cuda_raw_add"
    right = (rmsnorm / "rmsnorm.cu").read_text()
    wrong, broken = directory / "wrong.cu", directory / "broken.cu"
    wrong.write_text(right.replace("/ cols + eps", "/ (cols + 1) + 16 * eps + 0.01f"))
    broken.write_text(right.replace("float sum = 0.0f;", "float sum = nothing;"))
    entries = {
        name: _ENTRY.format(
            id=name,
            source=source,
            name="rmsnorm",
            arguments=_RMSNORM,
            grid="[rows]",
            block='["min(1024, 32 * ceil_div(cols, 256))"]',
            reference=f"{rmsnorm / 'reference.py'}:Model",
            shapes="[{rows: 2048, cols: 4096}]",
        )
        for name, source in (("rmsnorm", rmsnorm / "rmsnorm.cu"), ("wrong", wrong), ("broken", broken))
    }
    entries["add"] = _ENTRY.format(
        id="add",
        source=add / "add.cu",
        name="add<256>",
        arguments=_ADD,
        grid='["ceil_div(n, 256)"]',
        block="256",
        reference=f"{add / 'reference.py'}:Model",
        shapes="[{n: 4194304}]",
    )
    return entries


def _config(directory: Path, names: Sequence[str], *, ncu: bool) -> Path:
    """Write a config of the kernels named."""
    entries = _entries(directory)
    end = "performance: {backend: ncu, timeout_seconds: 120}\n" if ncu else ""
    path = directory / f"{'_'.join(names)}{'_ncu' if ncu else ''}.yaml"
    path.write_text("kernels:" + "".join(entries[name] for name in names) + end)
    return path


def _cell(value: object, digits: int = 2) -> str:
    if value is None:
        return "-"
    return f"{value:,.{digits}f}" if isinstance(value, float) else str(value)


def _row(state: dict[str, object]) -> list[str]:
    """Return the cells of one kernel."""
    extra = state.get("magpie_tui")
    own: dict[str, object] = extra if isinstance(extra, dict) else {}
    names = state.get("extra")
    timing, binary, profile = own.get("timing"), own.get("binary"), own.get("profile")
    facts = binary[0] if isinstance(binary, list) and binary else {}
    kernels = profile.get("kernels") if isinstance(profile, dict) else None
    ncu_ns = kernels[0].get("duration_ns", {}).get("avg") if isinstance(kernels, list) and kernels else None
    summary = profile.get("summary", {}) if isinstance(profile, dict) else {}
    dram = next((v.get("value") for k, v in summary.items() if k.startswith("dram__throughput")), None)
    quantity = timing.get("quantity") if isinstance(timing, dict) else None
    median = timing.get("median_us") if isinstance(timing, dict) else None
    return [
        str(names.get("kernel_id") if isinstance(names, dict) else "?"),
        str(own.get("state")),
        f"{quantity} {_cell(median)}",
        _cell(None if ncu_ns is None else ncu_ns / 1e3),
        _cell(dram, 1),
        *(_cell(facts.get(key)) for key in ("registers", "local_bytes", "shared_bytes", "occupancy", "source")),
    ]


def _table(rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _own_main(directory: Path) -> str:
    """Build a program with nvcc and take its dispatches from ncu."""
    if shutil.which("nvcc") is None or shutil.which("ncu") is None:
        return "program with its own main: nvcc or ncu is not on PATH"
    program = directory / "vector_add"
    source = ROOT / "examples" / "cuda_vector_add" / "vector_add.cu"
    subprocess.run(["nvcc", "-O2", "-o", str(program), str(source)], check=True, timeout=120)
    try:
        found = dispatches(
            "ncu",
            (str(program),),
            cwd=directory,
            environment=os.environ,
            directory=directory / "own_main",
            timeout_s=120,
        )
    except ProfilerFailedError as error:
        return f"program with its own main: {error}"
    times = ", ".join(f"{item.name} {item.duration_ns / 1e3:.2f} us" for item in found[:3])
    return f"program with its own main: {len(found)} dispatches by ncu: {times}"


@contextlib.contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
    else:
        with tempfile.TemporaryDirectory() as made:
            yield Path(made)


def _phase(title: str, config: Path, output: Path, *more: str, limit_s: float) -> Sequence[dict[str, Any]]:
    """Run analyze on a config and return the states of its kernels; none when it did not end."""
    print(f"{title}:", flush=True)
    ended = run_watched(["analyze", "-k", str(config), "--quick", *more], output, limit_s=limit_s)
    report = None if ended.workspace is None else ended.workspace / "analyze_report.json"
    words = "hung" if ended.hung else f"exit status {ended.status}"
    print(f"{title}: {words}, {ended.seconds:.0f} s", flush=True)
    if report is None or not report.exists():
        print(ended.said)
        return ()
    states: Sequence[dict[str, Any]] = json.loads(report.read_text())["results"]
    return states


def _explain(state: dict[str, Any]) -> None:
    """Print what is known of a kernel beside its row."""
    own, name = state["magpie_tui"], state["extra"]["kernel_id"]
    for error in state["errors"]:
        print(f"{name}: {error}")
    build = own.get("build") or {}
    print(f"{name}: build {build.get('function')} {build.get('options')} driver {build.get('driver')}")
    profile = own.get("profile") or {}
    print(f"{name}: profile {profile.get('success')} {profile.get('errors') or profile.get('reason') or ''}")
    checks = own["gate"]["checks"]
    for status in ("fail", "not_run"):
        print(f"{name}: {status}: {', '.join(c['id'] for c in checks if c['status'] == status)}")


def main() -> int:
    """Run everything and print it; returns 0 when the words are the expected ones and the right kernels have times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--budget", type=float, default=3.0, help="seconds of timing a kernel")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of a phase")
    given = parser.parse_args()
    started, budget = time.monotonic(), ("--budget", f"{given.budget:g}")
    with _directory(given.keep) as directory:
        print(f"host {platform.node()}, python {platform.python_version()}")
        for tool in ("ncu", "cuobjdump", "nvcc"):
            print(f"{tool}: {shutil.which(tool) or 'not on PATH'}")
        judged = _phase(
            "gate",
            _config(directory, tuple(_EXPECTED), ncu=False),
            directory / "gate",
            "--no-perf",
            limit_s=given.limit,
        )
        timed = _phase(
            "timing", _config(directory, _TIMED, ncu=False), directory / "timing", *budget, limit_s=given.limit
        )
        profiled: Sequence[dict[str, Any]] = ()
        if shutil.which("ncu") is not None:
            config = _config(directory, _TIMED, ncu=True)
            profiled = _phase("ncu", config, directory / "ncu", *budget, limit_s=2 * given.limit)
        head = ["kernel", "state", "time us", "ncu us", "dram %", "regs", "local B", "shared B", "occ", "read by"]
        print(_table([head, *(_row(state) for state in (*judged, *timed, *profiled))]))
        for state in (*judged, *profiled):
            _explain(state)
        print(_own_main(directory))
    words = {state["extra"]["kernel_id"]: state["magpie_tui"]["state"] for state in judged}
    wrong = {name: words.get(name) for name, word in _EXPECTED.items() if words.get(name) != word}
    untimed = set(_TIMED) - {
        state["extra"]["kernel_id"] for state in timed if state["magpie_tui"]["timing"].get("median_us") is not None
    }
    print(f"expected words: {'yes' if not wrong else f'NO: {wrong}'}; without a time: {sorted(untimed) or 'none'}")
    print(f"{time.monotonic() - started:.0f} s")
    return 0 if not wrong and not untimed else 1


if __name__ == "__main__":
    sys.exit(main())
