"""``inferencex_result.json`` from our rows: the keys, units and conventions of upstream's client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timezone

from magpie_tui.serving.load.model import ConstantRate, GammaRate, LoadResult
from magpie_tui.serving.metrics import Metric, ServingMetrics, values_ms
from magpie_tui.statistics.intervals import mean, percentile

_PERCENTS = (90, 95, 99)
_METRICS: tuple[Metric, ...] = ("ttft", "tpot", "itl", "e2el")


def to_inferencex(result: LoadResult, metrics: ServingMetrics) -> dict[str, object]:
    """Return the object of ``inferencex_result.json``.

    Upstream's conventions hold in it: lists in s, summaries in ms, percentiles by interpolation whatever the number of
    requests, standard deviations of the population, 0 for a latency that no request has.
    """
    arrival, done = result.plan.arrival, result.completed
    rate = arrival.requests_per_s if isinstance(arrival, (ConstantRate, GammaRate)) else "inf"
    values: dict[str, object] = {
        "date": _date(result.started_at),
        "endpoint_type": "openai" if result.plan.endpoint == "completions" else "openai-chat",
        "backend": "openai" if result.plan.endpoint == "completions" else "openai-chat",
        "label": None,
        "model_id": result.plan.model,
        "tokenizer_id": None,
        "num_prompts": result.plan.requests,
        "request_rate": rate,
        "burstiness": arrival.burstiness if isinstance(arrival, GammaRate) else 1.0,
        "max_concurrency": arrival.concurrency,
        "duration": metrics.duration_s,
        "completed": metrics.completed,
        "failed": metrics.planned - metrics.completed,
        "total_input_tokens": metrics.input_tokens,
        "total_output_tokens": metrics.output_tokens,
        "request_throughput": metrics.request_throughput,
        "request_goodput": None if metrics.goodput is None else metrics.goodput.requests_per_s,
        "output_throughput": metrics.output_throughput,
        "total_token_throughput": metrics.total_token_throughput,
        "input_lens": [row.prompt_tokens or 0 for row in result.requests],
        "output_lens": [row.output_tokens or 0 for row in result.requests],
        "ttfts": [row.ttft_s or 0.0 for row in result.requests],
        "itls": [[gap / 1e6 for gap in row.gaps_us] for row in result.requests],
        "latencies": [row.latency_s or 0.0 for row in result.requests],
        "start_times": [row.sent_s for row in result.requests],
        "errors": [row.error or "" for row in result.requests],
    }
    for metric in _METRICS:
        values.update(_summary(metric, values_ms(metric, done)))
    return values


def _summary(metric: str, values: Sequence[float]) -> dict[str, object]:
    if not values:
        return {f"{name}_{metric}_ms": 0.0 for name in ("mean", "median", "std", *(f"p{p}" for p in _PERCENTS))}
    ordered = sorted(values)
    centre = mean(ordered)
    return {
        f"mean_{metric}_ms": centre,
        f"median_{metric}_ms": percentile(ordered, 50),
        f"std_{metric}_ms": math.sqrt(math.fsum((value - centre) ** 2 for value in ordered) / len(ordered)),
        **{f"p{percent}_{metric}_ms": percentile(ordered, percent) for percent in _PERCENTS},
    }


def _date(started_at: str | None) -> str:
    moment = datetime.now(timezone.utc)
    if started_at is not None:
        moment = datetime.fromisoformat(started_at.replace("Z", "+00:00"))
    return moment.strftime("%Y%m%d-%H%M%S")
