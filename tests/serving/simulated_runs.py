"""Runs of a system that is known, to try the verdict on."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from magpie_tui.serving.experiment_state import order_of
from magpie_tui.serving.verdict_model import Fact, KernelShare, Pair, ServedRun, ServingVerdict
from magpie_tui.serving.verdict_rule import Question, decide

RUN_NOISE = 0.015
DRIFT_STEP = 0.003
"""Random walk of the machine from run to run, as a fraction."""


def served_run(name: str = "run", **changes: Any) -> ServedRun:
    """Return a run whose numbers count; ``changes`` replace fields, or single ones of ``values`` and ``facts``."""
    values: dict[str, float | None] = {
        "output_throughput": 1000.0,
        "request_throughput": 10.0,
        "total_token_throughput": 2000.0,
        "goodput": None,
        "ttft_p50_ms": 80.0,
        "ttft_p99_ms": 200.0,
        "tpot_p50_ms": 10.0,
        "tpot_p99_ms": 12.0,
        "error_rate": 0.0,
        "accuracy": None,
    }
    facts: dict[str, Fact] = {"model.name": "tiny", "devices": "GPU 0", "load.seed": 0, "measured.cache_hit_rate": 0.0}
    fields: dict[str, Any] = {
        "workspace": Path("/runs") / name,
        "status": "ok",
        "reasons": (),
        "writer": "ours",
        "started_at": None,
        "values": {**values, **changes.pop("values", {})},
        "facts": {**facts, **changes.pop("facts", {})},
    }
    return ServedRun(**{**fields, **changes})


def scaled_run(name: str, speed: float, noise: random.Random, **changes: Any) -> ServedRun:
    """Return a run of a system that is ``speed`` times as fast; latencies follow, with noise of their own."""

    def latency(value: float, spread: float) -> float:
        return value / speed * math.exp(noise.gauss(0.0, spread))

    values = {
        "output_throughput": 1000.0 * speed,
        "request_throughput": 10.0 * speed,
        "total_token_throughput": 2000.0 * speed,
        "ttft_p50_ms": latency(80.0, 0.01),
        "ttft_p99_ms": latency(200.0, 0.03),
        "tpot_p50_ms": latency(10.0, 0.003),
        "tpot_p99_ms": latency(12.0, 0.01),
    }
    return served_run(name, values=values, **changes)


def simulated_pairs(seed: int, gain: float, pairs: int, run_noise: float = RUN_NOISE) -> list[Pair]:
    """Return interleaved pairs on a machine that drifts; B is ``gain`` faster (0.03: 3 %)."""
    noise = random.Random(seed)
    drift, made = 0.0, []
    for number in range(1, pairs + 1):
        runs = {}
        for arm in order_of(number):
            drift += noise.gauss(0.0, DRIFT_STEP)
            speed = math.exp(drift + noise.gauss(0.0, run_noise) + (math.log1p(gain) if arm == "b" else 0.0))
            runs[arm] = scaled_run(f"pair_{number:02d}_{arm}", speed, noise, facts={"load.seed": number})
        made.append(Pair(number, runs["a"], runs["b"], order_of(number)[0]))
    return made


def simulated_verdict(seed: int, gain: float, pairs: int = 8, run_noise: float = RUN_NOISE) -> ServingVerdict:
    """Judge one simulated experiment by the rule of the house."""
    return decide(Question(planned=pairs), simulated_pairs(seed, gain, pairs, run_noise), interleaved=True)


def pairs_of(count: int, make: Callable[[int, str], ServedRun]) -> list[Pair]:
    """Return pairs of runs made by ``make(number, arm)``."""
    return [Pair(number, make(number, "a"), make(number, "b"), order_of(number)[0]) for number in range(1, count + 1)]


def steady_pairs(gain: float, count: int = 8, **of_b: Any) -> list[Pair]:
    """Return pairs with hardly any noise; ``of_b`` are changes of all runs of B."""
    noise = random.Random(1)

    def make(number: int, arm: str) -> ServedRun:
        speed = math.exp(noise.gauss(0.0, 0.001)) * (1.0 + gain if arm == "b" else 1.0)
        run = scaled_run(f"pair_{number:02d}_{arm}", speed, noise)
        if arm == "a" or not of_b:
            return run
        return served_run(
            run.workspace.name,
            values={**run.values, **of_b.get("values", {})},
            **{key: value for key, value in of_b.items() if key != "values"},
        )

    return pairs_of(count, make)


def twin(*kernels: tuple[str, float, float]) -> ServedRun:
    """Return a profiled twin with kernels (name, percent, µs a call)."""
    shares = tuple(KernelShare(name, percent, per_call, 100) for name, percent, per_call in kernels)
    return served_run("twin", profiled=True, kernels=shares)
