"""What the server counts itself: Prometheus text in, differences over a window out, beside our own figures.

Counters are kept flat: the exposed name, all labels added up; buckets of histograms keep their bound, as in
``vllm:time_to_first_token_seconds_bucket{le="0.5"}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from magpie_tui.serving.load.model import RequestRow
from magpie_tui.serving.metrics import Metric, values_ms
from magpie_tui.statistics.intervals import mean, percentile

_SAMPLE = re.compile(r"^(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*$")
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_BUCKET = re.compile(r'(?P<name>.+)_bucket\{le="(?P<bound>[^"]+)"\}')

Agreement = Literal["agrees", "differs", "not_available"]

_GENERATED = ("vllm:generation_tokens_total", "sglang:generation_tokens_total", "vllm:generation_tokens")
_PROMPT = ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total", "vllm:prompt_tokens")
_PREEMPTIONS = ("vllm:num_preemptions_total", "sglang:num_retractions_total", "vllm:num_preemptions")
_CACHE = (
    ("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total"),
    ("vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_queries_total"),
    ("vllm:prefix_cache_hits", "vllm:prefix_cache_queries"),
    ("sglang:cached_tokens_total", "sglang:prompt_tokens_total"),
)
_HISTOGRAMS: Mapping[Metric, tuple[str, ...]] = {
    "ttft": ("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"),
    "tpot": (
        "vllm:request_time_per_output_token_seconds",
        "sglang:time_per_output_token_seconds",
        "vllm:time_per_output_token_seconds",
    ),
    "e2el": ("vllm:e2e_request_latency_seconds", "sglang:e2e_request_latency_seconds"),
}
_QUEUE = ("vllm:request_queue_time_seconds", "sglang:queue_time_seconds")


def read_counters(text: str) -> dict[str, float]:
    """Return the samples of a scrape (Prometheus text format 0.0.4), labels added up; unreadable lines are left out."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = _SAMPLE.match(line)
        if match is None:
            continue
        try:
            value = float(match["value"])
        except ValueError:
            continue
        if not math.isfinite(value):
            continue
        name = match["name"]
        if name.endswith("_bucket"):
            bound = dict(_LABEL.findall(match["labels"] or "")).get("le")
            if bound is None:
                continue
            name = f'{name}{{le="{bound}"}}'
        found[name] = found.get(name, 0.0) + value
    return found


@dataclass(frozen=True, slots=True)
class ServerWindow:
    """What the server's counters say about a window; None where it does not expose them.

    Attributes:
        cache_hit_rate: Prompt tokens found in the prefix cache / asked for.
        queue_mean_ms: Mean time that requests waited in the server.
        reasons: Why a figure is None.
    """

    prompt_tokens: int | None = None
    generated_tokens: int | None = None
    preemptions: int | None = None
    cache_hit_rate: float | None = None
    queue_mean_ms: float | None = None
    reasons: Mapping[str, str] | None = None


def _difference(before: Mapping[str, float], after: Mapping[str, float], names: Sequence[str]) -> float | None:
    """Return what the first name that is exposed grew by; a counter that fell was reset and says nothing."""
    for name in names:
        if name in after:
            grown = after[name] - before.get(name, 0.0)
            return grown if grown >= 0 else None
    return None


def server_window(before: Mapping[str, float], after: Mapping[str, float]) -> ServerWindow:
    """Return the differences of the server's counters between two scrapes."""
    hits: float | None = None
    for hit_name, query_name in _CACHE:
        if hit_name in after and query_name in after:
            queried, hit = _difference(before, after, (query_name,)), _difference(before, after, (hit_name,))
            hits = hit / queried if hit is not None and queried else None
            break
    queue = None
    for name in _QUEUE:
        total, count = (_difference(before, after, (f"{name}{ending}",)) for ending in ("_sum", "_count"))
        if total is not None and count:
            queue = total / count * 1e3
            break
    counted = {
        "prompt_tokens": _difference(before, after, _PROMPT),
        "generated_tokens": _difference(before, after, _GENERATED),
        "preemptions": _difference(before, after, _PREEMPTIONS),
    }
    values: dict[str, float | None] = {**counted, "cache_hit_rate": hits, "queue_mean_ms": queue}
    missing = "the server exposes no metrics" if not after else "the server does not expose it"
    return ServerWindow(
        **{name: None if value is None else round(value) for name, value in counted.items()},
        cache_hit_rate=hits,
        queue_mean_ms=queue,
        reasons={name: missing for name, value in values.items() if value is None},
    )


@dataclass(frozen=True, slots=True)
class CrossCheck:
    """One of our figures beside the server's.

    Attributes:
        name: ``output_tokens``, ``input_tokens``, ``ttft`` …
        ours, server: In ``unit``; of a latency the means.
        agreement: Counts have to be equal. Of a latency our median and 90th percentile have to lie in the same bucket
            of the server's histogram as the server's, or in a neighbouring one.
        text: For people.
    """

    name: str
    unit: str
    ours: float | None
    server: float | None
    agreement: Agreement
    text: str


def cross_check(
    rows: Sequence[RequestRow], before: Mapping[str, float], after: Mapping[str, float]
) -> tuple[CrossCheck, ...]:
    """Compare our figures with the server's own, over one window.

    Args:
        rows: All requests sent between the two scrapes.
    """
    window = server_window(before, after)
    checks = [
        _count_check("output_tokens", [row.output_tokens for row in rows], window.generated_tokens),
        _count_check("input_tokens", [row.prompt_tokens for row in rows], window.prompt_tokens),
    ]
    done = [row for row in rows if row.status == "completed"]
    checks += [_latency_check(metric, values_ms(metric, done), before, after) for metric in _HISTOGRAMS]
    return tuple(checks)


def _count_check(name: str, counts: Sequence[int | None], server: int | None) -> CrossCheck:
    label = name.replace("_", " ")
    if server is None:
        return CrossCheck(name, "tokens", None, None, "not_available", f"{label}: the server does not count them")
    if any(count is None for count in counts):
        text = f"{label}: some answers came without a count; the server counts {server:,}"
        return CrossCheck(name, "tokens", None, server, "not_available", text)
    ours = sum(count or 0 for count in counts)
    agreement: Agreement = "agrees" if ours == server else "differs"
    text = f"{label}: ours {ours:,}, the server's {server:,}"
    return CrossCheck(name, "tokens", ours, server, agreement, text)


def histogram(before: Mapping[str, float], after: Mapping[str, float], name: str) -> list[tuple[float, float]]:
    """Return the buckets of a histogram over the window as (upper bound in s, cumulative count), rising."""
    found = []
    for key, value in after.items():
        match = _BUCKET.fullmatch(key)
        if match is not None and match["name"] == name:
            found.append((float(match["bound"].replace("+Inf", "inf")), value - before.get(key, 0.0)))
    return sorted(found)


def _bucket_of_quantile(buckets: Sequence[tuple[float, float]], share: float) -> int:
    wanted = share * buckets[-1][1]
    return next((place for place, (_, count) in enumerate(buckets) if count >= wanted), len(buckets) - 1)


def _latency_check(
    metric: Metric, values: Sequence[float], before: Mapping[str, float], after: Mapping[str, float]
) -> CrossCheck:
    name = next((item for item in _HISTOGRAMS[metric] if f"{item}_count" in after), None)
    total, count = (
        (None, None)
        if name is None
        else (_difference(before, after, (f"{name}{ending}",)) for ending in ("_sum", "_count"))
    )
    if name is None or total is None or not count or not values:
        why = "we have none" if not values else "the server has no histogram of it"
        return CrossCheck(metric, "ms", None, None, "not_available", f"{metric.upper()}: {why}")
    buckets = histogram(before, after, name)
    ours, server = mean(values), total / count * 1e3
    places = []
    for percent in (50.0, 90.0):
        value = percentile(values, percent) / 1e3
        mine = next((place for place, (bound, _) in enumerate(buckets) if value <= bound), len(buckets) - 1)
        places.append(mine - _bucket_of_quantile(buckets, percent / 100))
    inside = bool(buckets) and all(-1 <= place <= 1 for place in places)
    counted = f"; the server counts {count:,.0f} requests, we {len(values):,}" if count != len(values) else ""
    text = f"{metric.upper()}: mean ours {ours:.2f} ms, the server's {server:.2f} ms{counted}"
    text += "" if inside else "; our median or 90th percentile lies outside the server's buckets"
    return CrossCheck(metric, "ms", ours, server, "agrees" if inside else "differs", text)
