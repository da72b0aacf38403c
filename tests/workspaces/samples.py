"""Reports to test with: ours, and other programs' in the shapes that their code lines write."""

from __future__ import annotations

import json
from pathlib import Path

from magpie_tui.workspaces.benchmark import BenchmarkReport, KernelTime
from magpie_tui.workspaces.extras import Extras, Verdict
from magpie_tui.workspaces.figures import Latency, Throughput
from magpie_tui.workspaces.reports import (
    AnalyzeReport,
    CompareReport,
    KernelState,
    Metric,
    PerformanceResult,
    ProfiledKernel,
    StageResult,
    StageState,
)


def our_state(kernel_id: str, *, correct: bool = True, ratio: float | None = None) -> KernelState:
    errors = () if correct else ("element 7 differs by 0.5",)
    verdict = None if ratio is None else Verdict("faster", ratio, ratio - 0.01, ratio + 0.01, 0.95, 10)
    return KernelState(
        kernel_id,
        "PYTORCH",
        compiling_state=StageState.SKIPPED,
        correctness_state=StageState.SUCCESS if correct else StageState.FAILED,
        performance_state=StageState.SKIPPED,
        errors=errors,
        score=1.0 if correct else 0.0,
        correctness_result=StageResult(correct, errors),
        extras=Extras(
            state="correct" if correct else "incorrect",
            timing={"median_us": 123.0, "interval_us": [120.0, 126.0]} if correct else None,
            gate={"cases": 3},
            verdict=verdict,
        ),
    )


def our_profiled_state() -> KernelState:
    return KernelState(
        "rms_base",
        "HIP",
        compiling_state=StageState.SUCCESS,
        correctness_state=StageState.SUCCESS,
        performance_state=StageState.SUCCESS,
        score=1.0,
        compiling_result=StageResult(True),
        correctness_result=StageResult(True),
        performance_result=PerformanceResult(
            True,
            workload_dir="/w/performance/out",
            summary={"VALU_FLOPs": Metric(812.4, "Gflop/s", 81715.2, 0.99)},
            kernels=(ProfiledKernel("rms(float*, float*)", 12, 9100.0, 8800.0, 9900.0, 109200.0),),
        ),
        extras=Extras(state="correct", upstream_score=0.5),
    )


def our_compare() -> CompareReport:
    return CompareReport(
        timestamp="20260901_102233",
        kernels=(our_state("naive"), our_state("fast", ratio=1.123), our_state("wrong", correct=False)),
        perf_scores=(1.0, 1.123, None),
        rankings=((1, 1.123), (0, 1.0)),
        winner=1,
        extras=Extras(record="record.json", more={"baseline": 0, "ranking": [1, 0]}),
    )


def our_analyze() -> AnalyzeReport:
    return AnalyzeReport("20260901_101500", (our_profiled_state(), our_state("wrong", correct=False)), Extras())


def our_benchmark() -> BenchmarkReport:
    return BenchmarkReport(
        success=True,
        framework="vllm",
        model="Qwen/Qwen3-8B",
        throughput=Throughput(3.1, 2941.0, 5100.0, 160, 81920, 40960, 51.8),
        latency=Latency(
            {
                "ttft": {"mean_ms": 180.0, "median_ms": 172.0, "p99_ms": 412.0, "std_ms": 22.0},
                "tpot": {"mean_ms": 9.7, "p95_ms": 10.5},
            }
        ),
        kernel_summary=(KernelTime("Cijk", 412.0, 38.5, 5120),),
        top_bottlenecks=("Cijk",),
        gap_analysis={"config": {"categories": ["kernel"]}, "top_kernels": [{"name": "Cijk", "calls": 3}]},
        workspace_dir="/r/benchmark_vllm_20260901_110000",
        execution_time=412.6,
        profiling_enabled=False,
        extras=Extras(record="record.json", quality={"failed_requests": 0}),
    )


def upstream_state(kernel_id: str = "rms", **changes: object) -> dict[str, object]:
    state: dict[str, object] = {
        "compiling_state": "SUCCESS",
        "correctness_state": "SUCCESS",
        "performance_state": "SUCCESS",
        "errors": [],
        "score": 1.0,
        "compiling_result": {"success": True, "errors": []},
        "correctness_result": {"success": True, "errors": []},
        "performance_result": {"success": True, "errors": [], "workload_dir": None, "summary": {}, "kernels": []},
        "extra": {"kernel_id": kernel_id, "kernel_type": "HIP"},
    }
    return {**state, **changes}


def compile_failed_state() -> dict[str, object]:
    """What upstream leaves when the build failed: later stages still say SUCCESS."""
    return upstream_state(
        "broken",
        compiling_state="FAILED",
        compiling_result={"success": False, "errors": ["Compile command 1/1 failed: no such file"]},
        correctness_result=None,
        performance_result=None,
        errors=["Compile command 1/1 failed: no such file"],
        score=0.0,
    )


def upstream_compare(*states: dict[str, object], **results: object) -> dict[str, object]:
    content: dict[str, object] = {
        "kernel_results": list(states),
        "comparison_metrics": {
            "correctness": [True] * len(states),
            "all_correct": True,
            "perf_scores": [None] * len(states),
        },
        "winner": 0,
        "rankings": [],
        "summary": "Compared",
    }
    return {"mode": "compare", "timestamp": "20260901_102233", "results": {**content, **results}}


def upstream_benchmark(**changes: object) -> dict[str, object]:
    report: dict[str, object] = {
        "success": True,
        "framework": "vllm",
        "model": "Qwen/Qwen3-8B",
        "throughput": {
            "request_throughput": 3.1,
            "output_throughput": 790.0,
            "total_token_throughput": 2370.0,
            "completed_requests": 160,
            "total_input_tokens": 81920,
            "total_output_tokens": 40960,
            "duration_seconds": 51.8,
        },
        "latency": {
            metric: {"mean_ms": 84.0, "median_ms": 80.1, "p99_ms": 190.2, "std_ms": 22.0}
            for metric in ("ttft", "tpot", "itl", "e2el")
        },
        "kernel_summary": [],
        "top_bottlenecks": [],
        "tracelens_analysis": None,
        "gap_analysis": None,
        "gpu_monitor": None,
        "workspace_dir": "/r/benchmark_vllm_20260901_110000",
        "execution_time": 412.6,
        "profiling_enabled": False,
        "errors": [],
    }
    return {**report, **changes}


def put(path: Path, value: object) -> Path:
    """Write JSON as upstream's programs do, NaN included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
    return path
