"""Figures of one run: one definition each, over the rows of its requests.

==================  ==================================================================================================
E2EL                last content received - scheduled send
service latency     last content received - actual send (the difference is queueing in the client)
TTFT                first content that is not empty - scheduled send; null when the answer did not stream
TPOT                (E2EL - TTFT) / (output tokens - 1) of one request, two tokens or more
ITL                 gaps between successive chunks with content, pooled; a token gap only at one token a chunk
request throughput  completed / (last response - first send)
token throughputs   Σ tokens of completed requests, as the server counts them / the same window
steady              the same in the window with full concurrency: ramp and drain left out
goodput             requests that meet all objectives / window; failed and unmeasurable ones are not good
percentiles         linear interpolation, with n and the 95 % interval of order statistics; above the median null where
                    n is too small for an upper bound (the 99th percentile: below 368)
==================  ==================================================================================================
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from magpie_tui.basics.text import plural
from magpie_tui.serving.load.model import ClosedLoop, LoadResult, RequestRow
from magpie_tui.statistics.intervals import mean, percentile, percentile_interval, standard_deviation

Metric = Literal["ttft", "tpot", "itl", "e2el", "service_latency"]
METRICS: tuple[Metric, ...] = ("ttft", "tpot", "itl", "e2el", "service_latency")
PERCENTS = (50.0, 90.0, 95.0, 99.0)
REQUESTS_FOR_P99 = 368
"""Fewest values that give the 99th percentile an upper bound at 95 %."""
_ROUNDING_S = 1e-4
"""Gaps are kept in whole µs, so a time made of a thousand of them may be off by so much."""
_NOT_INDEPENDENT = "gaps of one request are not independent, so there is no interval"


@dataclass(frozen=True, slots=True)
class Objectives:
    """Limits that a good request keeps, in ms; None: no limit."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    e2el_ms: float | None = None

    @property
    def is_empty(self) -> bool:
        """True without any limit."""
        return self.ttft_ms is None and self.tpot_ms is None and self.e2el_ms is None


@dataclass(frozen=True, slots=True)
class Percentile:
    """One percentile in ms.

    Attributes:
        value: None with a reason where n is too small for it.
        low, high: Ends of the 95 % interval from order statistics.
    """

    percent: float
    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Latency:
    """Statistics of one latency over requests (ITL: over gaps), in ms.

    Attributes:
        n: Values behind it; 0 with a reason when there are none, and all statistics are None then.
        std_ms: Sample standard deviation.
    """

    n: int
    mean_ms: float | None = None
    std_ms: float | None = None
    min_ms: float | None = None
    max_ms: float | None = None
    percentiles: tuple[Percentile, ...] = ()
    reason: str | None = None

    def percentile(self, percent: float) -> Percentile | None:
        """Return one percentile; None when it was not computed."""
        return next((item for item in self.percentiles if item.percent == percent), None)

    def value(self, percent: float) -> float | None:
        """Return a percentile's value in ms; None where it has none."""
        found = self.percentile(percent)
        return None if found is None else found.value


@dataclass(frozen=True, slots=True)
class SteadyWindow:
    """Throughput while the load was at its height.

    Attributes:
        begin_s, end_s: The window, as in the rows.
        reason: Why there is none.
    """

    begin_s: float | None = None
    end_s: float | None = None
    request_throughput: float | None = None
    output_throughput: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Goodput:
    """Requests that met all objectives.

    Attributes:
        requests_per_s: Good requests / window.
        share: Of the planned requests.
    """

    objectives: Objectives
    good: int
    requests_per_s: float | None
    share: float


@dataclass(frozen=True, slots=True)
class ServingMetrics:
    """All figures of one run.

    Attributes:
        planned, completed, failed, cancelled: Requests.
        error_rate: (planned - completed) / planned.
        duration_s: Last response - first send.
        input_tokens, output_tokens: Σ over completed requests, from the server's usage.
        request_throughput: Requests/s; ``output_throughput`` and ``total_token_throughput`` in tokens/s.
        input_mean, output_mean: Measured tokens a request; the ``requested`` ones beside them.
        output_ratio_low: Smallest of output tokens / requested ones over completed requests.
        tokens_per_chunk: Of completed streams; 1 means that ITL is a token gap.
        cached_share: Prompt tokens that the usage says were cached / all; None where usage does not tell.
        first_error: Text of the first failure.
        reasons: Why a figure is None, by its name.
    """

    planned: int
    completed: int
    failed: int
    cancelled: int
    error_rate: float | None
    duration_s: float | None
    input_tokens: int | None
    output_tokens: int | None
    request_throughput: float | None
    output_throughput: float | None
    total_token_throughput: float | None
    latencies: Mapping[str, Latency] = field(default_factory=dict)
    steady: SteadyWindow = field(default_factory=SteadyWindow)
    goodput: Goodput | None = None
    input_mean: float | None = None
    input_requested_mean: float | None = None
    output_mean: float | None = None
    output_requested_mean: float | None = None
    output_ratio_low: float | None = None
    tokens_per_chunk: float | None = None
    cached_share: float | None = None
    first_error: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)

    def latency(self, metric: Metric) -> Latency:
        """Return the statistics of one latency."""
        return self.latencies.get(metric) or Latency(0, reason="not measured")


def summarize(result: LoadResult, objectives: Objectives | None = None) -> ServingMetrics:
    """Return the figures of a load; what could not be measured is None with a reason."""
    rows, done = result.requests, result.completed
    reasons: dict[str, str] = {}
    duration = _duration(result)
    inputs = _token_sum([row.prompt_tokens for row in done], "input_tokens", reasons)
    outputs = _token_sum([row.output_tokens for row in done], "output_tokens", reasons)
    if duration is None:
        reasons["duration_s"] = "no request was sent"

    def rate(amount: float | None, name: str) -> float | None:
        if amount is None or not duration:
            reasons.setdefault(name, reasons.get("output_tokens") or reasons.get("duration_s") or "no time passed")
            return None
        return amount / duration

    total = None if inputs is None or outputs is None else inputs + outputs
    cancelled = sum(row.status == "cancelled" for row in rows)
    return ServingMetrics(
        planned=len(rows),
        completed=len(done),
        failed=len(rows) - len(done) - cancelled,
        cancelled=cancelled,
        error_rate=(len(rows) - len(done)) / len(rows) if rows else None,
        duration_s=duration,
        input_tokens=inputs,
        output_tokens=outputs,
        request_throughput=rate(len(done), "request_throughput"),
        output_throughput=rate(outputs, "output_throughput"),
        total_token_throughput=rate(total, "total_token_throughput"),
        latencies={metric: _latency(metric, done) for metric in METRICS},
        steady=steady_window(result),
        goodput=None if objectives is None or objectives.is_empty else _goodput(done, len(rows), objectives, duration),
        input_mean=_mean([row.prompt_tokens for row in done]),
        input_requested_mean=_mean([row.requested_input for row in done]),
        output_mean=_mean([row.output_tokens for row in done]),
        output_requested_mean=_mean([row.requested_output for row in done]),
        output_ratio_low=_lowest_ratio(done),
        tokens_per_chunk=_tokens_per_chunk(done),
        cached_share=_cached_share(done),
        first_error=result.first_error,
        reasons=reasons,
    )


def _duration(result: LoadResult) -> float | None:
    begin, end = result.first_send_s, result.last_response_s
    rows = [row for row in result.requests if row.ended_s is not None]
    if begin is None:
        begin = min((row.scheduled_s for row in rows), default=None)
    if end is None:
        end = max((row.ended_s for row in rows if row.ended_s is not None), default=None)
    return None if begin is None or end is None or end <= begin else end - begin


def _token_sum(counts: Sequence[int | None], name: str, reasons: dict[str, str]) -> int | None:
    unknown = sum(count is None for count in counts)
    if unknown:
        reasons[name] = f"{plural(unknown, 'answer')} of {len(counts)} came without the server's token counts"
        return None
    return sum(count for count in counts if count is not None)


def _mean(values: Sequence[int | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return mean(known) if known else None


def _lowest_ratio(rows: Sequence[RequestRow]) -> float | None:
    ratios = [
        row.output_tokens / row.requested_output
        for row in rows
        if row.output_tokens is not None and row.requested_output
    ]
    return min(ratios, default=None)


def _tokens_per_chunk(rows: Sequence[RequestRow]) -> float | None:
    known = [row for row in rows if row.output_tokens is not None and row.chunks]
    chunks = sum(row.chunks for row in known)
    return sum(row.output_tokens or 0 for row in known) / chunks if chunks else None


def _cached_share(rows: Sequence[RequestRow]) -> float | None:
    known = [row for row in rows if row.cached_tokens is not None and row.prompt_tokens]
    tokens = sum(row.prompt_tokens or 0 for row in known)
    return sum(row.cached_tokens or 0 for row in known) / tokens if tokens else None


def values_ms(metric: Metric, rows: Sequence[RequestRow]) -> list[float]:
    """Return the values of one latency over completed requests, in ms."""
    if metric == "itl":
        return [gap / 1e3 for row in rows for gap in row.gaps_us]
    name = {"ttft": "ttft_s", "tpot": "tpot_s", "e2el": "latency_s", "service_latency": "service_latency_s"}[metric]
    found = (getattr(row, name) for row in rows)
    return [value * 1e3 for value in found if value is not None]


def _latency(metric: Metric, rows: Sequence[RequestRow]) -> Latency:
    values = values_ms(metric, rows)
    if not values:
        return Latency(0, reason=_why_none(metric, rows))
    values.sort()
    return Latency(
        n=len(values),
        mean_ms=mean(values),
        std_ms=standard_deviation(values),
        min_ms=values[0],
        max_ms=values[-1],
        percentiles=tuple(_percentile(metric, values, percent) for percent in PERCENTS),
        reason=None if len(values) >= len(rows) else f"only {len(values)} of {plural(len(rows), 'request')} have it",
    )


def _percentile(metric: Metric, values: Sequence[float], percent: float) -> Percentile:
    if metric == "itl":
        return Percentile(percent, percentile(values, percent), None, None, len(values), _NOT_INDEPENDENT)
    found = percentile_interval(values, percent)
    known = percent <= 50.0 or found.high is not None
    return Percentile(percent, found.point if known else None, found.low, found.high, found.n, found.reason)


def _why_none(metric: Metric, rows: Sequence[RequestRow]) -> str:
    if not rows:
        return "no request was completed"
    if not any(row.streamed for row in rows):
        return "the answers did not stream"
    if metric == "tpot":
        return "no completed request has a count of two output tokens or more"
    if metric == "itl":
        return "no answer had two chunks with content"
    return "no answer had content"


# The steady window.


def steady_window(result: LoadResult) -> SteadyWindow:
    """Return the throughput at full load.

    Closed loop: from the moment when all slots are in use to the first end that no new request follows. Otherwise:
    from the first end of a request to the last send. Tokens count when their chunk arrived, each chunk of a request
    for the same share of its tokens.
    """
    done = result.completed
    sends = sorted(row.sent_s for row in result.requests if row.sent_s is not None)
    ends = sorted(row.ended_s for row in result.requests if row.ended_s is not None and row.sent_s is not None)
    if not done or not sends or not ends:
        return SteadyWindow(reason="no request was completed")
    arrival = result.plan.arrival
    if isinstance(arrival, ClosedLoop):
        if len(sends) <= arrival.concurrency:
            return SteadyWindow(reason=f"{len(sends)} requests do not fill {arrival.concurrency} slots for long")
        begin = sends[arrival.concurrency - 1]
        after = bisect_left(ends, sends[-1])
        end = ends[min(after, len(ends) - 1)]
    else:
        begin, end = ends[0], sends[-1]
    if end <= begin:
        return SteadyWindow(reason="the load was never at its height")
    length = end - begin
    tokens = _tokens_within(done, begin, end)
    completions = bisect_right(ends, end) - bisect_right(ends, begin)
    return SteadyWindow(begin, end, completions / length, None if tokens is None else tokens / length)


def _tokens_within(rows: Sequence[RequestRow], begin: float, end: float) -> float | None:
    tokens = 0.0
    for row in rows:
        if row.output_tokens is None:
            return None
        if not row.chunks or row.first_content_s is None:
            continue
        times = list(accumulate((gap / 1e6 for gap in row.gaps_us), initial=row.first_content_s))
        inside = bisect_right(times, end + _ROUNDING_S) - bisect_left(times, begin - _ROUNDING_S)
        tokens += row.output_tokens * inside / len(times)
    return tokens


def _goodput(rows: Sequence[RequestRow], planned: int, objectives: Objectives, duration: float | None) -> Goodput:
    limits = (
        ("ttft_s", objectives.ttft_ms),
        ("tpot_s", objectives.tpot_ms),
        ("latency_s", objectives.e2el_ms),
    )

    def is_good(row: RequestRow) -> bool:
        for name, limit in limits:
            value = getattr(row, name)
            if limit is not None and (value is None or value * 1e3 > limit):
                return False
        return True

    good = sum(map(is_good, rows))
    return Goodput(objectives, good, good / duration if duration else None, good / planned if planned else 0.0)
