"""Results on a real disk, of every kind and in every condition, for tests of Workspaces and Candidates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from magpie_tui.workspaces.extras import Extras, Verdict
from magpie_tui.workspaces.kernel_state import KernelState, StageResult, StageState
from magpie_tui.workspaces.reports import AnalyzeReport, CompareReport
from tests.workspaces.samples import our_analyze, put, upstream_benchmark

COMPARE = "compare_20261202_093300"
OLDER_COMPARE = "compare_20261201_080000"
ANALYZE = "analyze_vector_add_20261201_120000"
BENCHMARK = "benchmark_vllm_20261130_110000"
DAMAGED = "analyze_x_20261129_000000"
UNFINISHED = "compare_20261128_000000"

FAILED_CHECK = "output: 12 of 4096 elements beyond the bound (random inputs 3)"


def checks(*, failed: bool = False) -> list[dict[str, object]]:
    """Return a gate of a few checks."""
    return [
        {"id": "G1", "title": "both arms identified", "status": "pass", "reason": "sources named by SHA-256"},
        {
            "id": "G9",
            "title": "error within the bound",
            "status": "fail" if failed else "pass",
            "reason": FAILED_CHECK if failed else None,
        },
        {"id": "G12", "title": "other shapes", "status": "not_run", "reason": "no other shape is declared"},
    ]


def kernel(
    name: str,
    time_us: float | None,
    verdict: Verdict | None = None,
    *,
    more: Mapping[str, object] | None = None,
) -> KernelState:
    """Return a kernel: without a time it is an incorrect one."""
    correct = time_us is not None
    errors = () if correct else (FAILED_CHECK,)
    return KernelState(
        name,
        "HIP",
        compiling_state=StageState.SUCCESS,
        correctness_state=StageState.SUCCESS if correct else StageState.FAILED,
        performance_state=StageState.SUCCESS if correct else StageState.SKIPPED,
        errors=errors,
        compiling_result=StageResult(True),
        correctness_result=StageResult(correct, errors),
        extras=Extras(
            state="correct" if correct else "incorrect",
            timing={"quantity": "device_time", "cache": "cold", "median_us": time_us, "replicates": 10, "windows": 300}
            | ({"interval_us": [time_us * 0.996, time_us * 1.004]} if time_us else {"reason": "it was not correct"}),
            gate={"checks": checks(failed=not correct), "proof": "reference" if correct else None},
            verdict=verdict,
            more=dict(more or {}),
        ),
    )


def binary(registers: int, spills: int, occupancy: int) -> dict[str, object]:
    """Return what a report says of a kernel's binary."""
    facts = {"name": "paged_attention", "arch": "gfx942", "registers": registers, "spills": spills, "local_bytes": 0}
    fits = {"shared_bytes": 16384, "occupancy": occupancy, "most_occupancy": 8, "source": "llvm-readelf --notes"}
    return {"binary": [{**facts, **fits}]}


def compare_report(*, winner: int | None = 1) -> CompareReport:
    """Return the comparison of five kernels: one faster, one undecided, one slower, one wrong."""
    shapes = [
        {"shape": "32 x 512", "share": 0.22, "baseline_us": 34.0, "median_us": 28.3, "ratio": 1.2, "ratio_low": 1.19,
         "ratio_high": 1.21, "bytes": 67_700_000, "bytes_per_s": 2.39e12, "flops_per_s": 9.5e12},
        {"shape": "32 x 1,029", "share": 0.78, "baseline_us": 59.1, "median_us": 48.0, "ratio": 1.231,
         "ratio_low": 1.224, "ratio_high": 1.238, "bytes": 134_900_000, "bytes_per_s": 2.81e12, "flops_per_s": 1.1e13},
        {"shape": "1 x 1,029", "share": None, "guard": True, "baseline_us": 14.9, "median_us": None, "ratio": None,
         "reason": "no block was timed"},
    ]  # fmt: skip
    profile = {
        "success": True,
        "profiler": "rocprof_compute",
        "summary": {"HBM_Read_BW": {"value": 2810.5, "unit": "Gb/s"}, "L2_HitRate": {"value": 41.2, "unit": "Percent"}},
        "kernels": [{"kernel_name": "paged_attention_ll4mi(float*)", "dispatch_count": 12,
                     "duration_ns": {"avg": 48_000.0, "min": 47_800.0, "max": 48_400.0, "total": 576_000.0}}],
    }  # fmt: skip
    first = Verdict("faster", 1.228, 1.222, 1.234, 0.95, 10) if winner else Verdict("equivalent", 1.0, 0.998, 1.002)
    kernels = (
        kernel("base", 59.1, more=binary(88, 0, 5)),
        kernel("A", 48.0, first, more={"shapes": shapes, "profile": profile} | binary(96, 0, 5)),
        kernel("B", 63.3, Verdict("slower", 0.934, 0.928, 0.94, 0.95, 10), more=binary(128, 12, 4)),
        kernel("D", 58.9, Verdict("inconclusive", 1.004, 0.99, 1.018, 0.95, 10, more={"replicates_needed": 13})),
        kernel("gemm[m=16] x[/b]", None),
    )
    scores = (1.0, first.ratio, 0.934, 1.004, None)
    ranks = {"1": 1, "3": 2, "0": 2, "2": 3} if winner else {"0": 1, "1": 1, "3": 1, "2": 2}
    timing = {
        "quantity": "device_time",
        "cache": "cold",
        "device": "GPU 3",
        "margin": {"value": 0.01, "floor": 0.01, "control_ratio": 1.003},
        "ceilings": {
            "name": "MI300X theoretical",
            "bytes_per_s": 5.3e12,
            "flops_per_s": {"matrix_bf16": 1.307e15},
            "source": "data sheet",
        },
    }
    return CompareReport(
        timestamp="20261202_093300",
        kernels=kernels,
        perf_scores=scores,
        rankings=tuple(sorted(((i, s) for i, s in enumerate(scores) if s is not None), key=lambda item: -item[1])),
        winner=winner,
        extras=Extras(record="record.json", timing=timing, more={"baseline": 0, "ranks": ranks}),
    )


def write_samples(workspace: Path, blocks: int = 4, windows: int = 10) -> None:
    """Write timed windows of A and of the baseline, a warm-up window a block, and one damaged line."""
    rows = []
    clock = 1_000_000_000
    for block in range(blocks):
        for name, time_us in (("base", 59.1), ("A", 48.0)):
            for window in range(windows + 1):
                length = int((time_us + (window * 7 % 5) * 0.1) * 10 * 1000)
                part = "timed" if window else "warm_up"
                rows.append(
                    {"kernel": name, "control": False, "replicate": block, "part": part, "window": window,
                     "repeats": 10, "started_ns": clock, "ended_ns": clock + length}
                )  # fmt: skip
                clock += length + 1_000_000
    lines = [json.dumps(row) for row in rows]
    (workspace / "samples.jsonl").write_text("\n".join([*lines, "{damaged"]) + "\n", encoding="utf-8")


def write_compare(workspace: Path, report: CompareReport | None = None) -> Path:
    """Write a whole comparison, with sources beside it of which one candidate's is gone."""
    workspace.mkdir(parents=True)
    (report or compare_report()).write(workspace)
    sources = workspace.parent / "sources"
    sources.mkdir(exist_ok=True)
    (sources / "base.hip").write_text("int tile = 256;\nint waves = 8;\n", encoding="utf-8")
    (sources / "A.hip").write_text("int tile = 512;\nint waves = 8;\n", encoding="utf-8")
    kernels = [
        {"kernel_id": name, "source_file_path": [str(sources / f"{name}.hip")], "compiling_command": ["hipcc", name],
         "magpie_tui": {"change": "KV tile 512"} if name == "A" else {}}
        for name in ("base", "A", "B")
    ]  # fmt: skip
    (workspace / "config.yaml").write_text(json.dumps({"kernels": kernels}, indent=2), encoding="utf-8")
    put(workspace / "record.json", {"command_line": ["magpie-tui", "compare"], "status": "ended"})
    write_samples(workspace)
    logs = workspace / "logs" / "A"
    logs.mkdir(parents=True)
    (logs / "gate.stdout").write_text("checked [m=16] x[/b]\n", encoding="utf-8")
    (logs / "timing.stdout").write_text("timed A\n", encoding="utf-8")
    (workspace / "blob.bin").write_bytes(bytes(range(256)))
    return workspace


def write_results(root: Path) -> Path:
    """Write results of every kind below ``root/results`` and return that directory."""
    results = root / "results"
    write_compare(results / COMPARE)
    (results / OLDER_COMPARE).mkdir()
    compare_report(winner=None).write(results / OLDER_COMPARE)
    (results / ANALYZE).mkdir()
    analyze_report().write(results / ANALYZE)
    put(results / "old" / BENCHMARK / "benchmark_report.json", upstream_benchmark())
    (results / "old" / BENCHMARK / "server.log").write_text("ready\n", encoding="utf-8")
    (results / DAMAGED).mkdir()
    (results / DAMAGED / "analyze_report.json").write_text('{"mode": "ana', encoding="utf-8")
    (results / UNFINISHED).mkdir()
    return results


def analyze_report() -> AnalyzeReport:
    """Return an analysis of two kernels, one of them wrong."""
    return our_analyze()
