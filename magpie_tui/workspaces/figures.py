"""Throughput and latency of a served model, read from every spelling into one naming.

Latency statistics are named ``<metric> × <statistic>``: metrics ``ttft``, ``tpot``, ``itl``, ``e2el``; statistics
``mean_ms``, ``median_ms``, ``std_ms``, ``min_ms``, ``max_ms`` and ``p<percent>_ms`` (``p50`` is ``median``). What a
source does not hold is absent; a percentile never stands in for another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from magpie_tui.workspaces.values import as_count, as_list, as_mapping, as_number

LATENCY_METRICS = ("ttft", "tpot", "itl", "e2el")
UPSTREAM_STATISTICS = ("mean_ms", "median_ms", "p99_ms", "std_ms")
ZERO_IS_UNKNOWN = "the report says 0, which its writer puts where it has no value"

_METRIC_NAMES = {
    "ttft": "ttft",
    "tpot": "tpot",
    "itl": "itl",
    "e2el": "e2el",
    "e2e": "e2el",
    "e2e_latency": "e2el",
    "e2e_request_latency": "e2el",
}
_METRIC = "|".join(sorted(_METRIC_NAMES, key=len, reverse=True))
_STATISTIC = r"mean|avg|median|std|min|max|p[0-9]{1,3}(?:[._][0-9]+)?"
_FLAT_KEY = re.compile(rf"(?P<statistic>{_STATISTIC})_(?P<metric>{_METRIC})_ms")
_PERCENTILE_LIST = re.compile(rf"percentiles_(?P<metric>{_METRIC})_ms")
_NESTED_KEY = re.compile(rf"(?P<statistic>{_STATISTIC})_ms")
_LOG_METRIC = "TTFT|TPOT|ITL|E2EL|E2E Latency|E2E"
_NUMBER = r"[-+]?[0-9][0-9,]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_LOG_LATENCY = re.compile(
    rf"^\W*(?P<statistic>mean|avg|median|std|min|max|p[0-9]+(?:\.[0-9]+)?)\s+(?P<metric>{_LOG_METRIC})\s*\(ms\)\s*:?\s*"
    rf"(?P<value>{_NUMBER})\s*$",
    re.IGNORECASE | re.MULTILINE,
)

_THROUGHPUT_NAMES: Mapping[str, tuple[str, ...]] = {
    "request_throughput": ("request_throughput", "request_throughput_req_s", "requests_per_second"),
    "output_throughput": ("output_throughput", "output_throughput_tok_s", "output_token_throughput"),
    "total_token_throughput": (
        "total_token_throughput",
        "total_token_throughput_tok_s",
        "total_throughput",
        "total_throughput_tok_s",
    ),
    "completed_requests": ("completed_requests", "completed"),
    "failed_requests": ("failed_requests", "failed"),
    "total_input_tokens": ("total_input_tokens",),
    "total_output_tokens": ("total_output_tokens",),
    "duration_seconds": ("duration_seconds", "duration"),
}
_COUNTS = frozenset({"completed_requests", "failed_requests", "total_input_tokens", "total_output_tokens"})
_RATES = ("request_throughput", "output_throughput", "total_token_throughput")
_LOG_THROUGHPUT = {
    "successful requests": "completed_requests",
    "failed requests": "failed_requests",
    "benchmark duration (s)": "duration_seconds",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "request throughput (req/s)": "request_throughput",
    "output token throughput (tok/s)": "output_throughput",
    "total token throughput (tok/s)": "total_token_throughput",
}
_LOG_LINE = re.compile(
    rf"^\s*(?P<title>[A-Za-z][A-Za-z ]+(?:\([a-z/]+\))?)\s*:\s*(?P<value>{_NUMBER})\s*$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Throughput:
    """Rates and counts of a benchmark; None for what is not known.

    Attributes:
        request_throughput: Requests a second.
        output_throughput, total_token_throughput: Tokens a second (output; input and output).
        completed_requests, failed_requests: Counts.
        duration_seconds: Of the measured window.
        more: Further keys of the object, kept as they are.
    """

    request_throughput: float | None = None
    output_throughput: float | None = None
    total_token_throughput: float | None = None
    completed_requests: int | None = None
    total_input_tokens: int | None = None
    total_output_tokens: int | None = None
    duration_seconds: float | None = None
    failed_requests: int | None = None
    more: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return upstream's object; what is not known is null."""
        values: dict[str, object] = {
            name: getattr(self, name) for name in _THROUGHPUT_NAMES if name != "failed_requests"
        }
        if self.failed_requests is not None:
            values["failed_requests"] = self.failed_requests
        return {**values, **self.more}


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency statistics in ms.

    Attributes:
        metrics: Metric (``ttft`` …) to statistic (``p99_ms`` …) to value; only what is known.
        more: Further keys of the object, kept as they are.
    """

    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    more: Mapping[str, object] = field(default_factory=dict)

    def value(self, metric: str, statistic: str) -> float | None:
        """Return one statistic in ms, for example ``value("ttft", "p99")``; None when it is not known."""
        return self.metrics.get(metric, {}).get(statistic_name(statistic.removesuffix("_ms")) or "")

    def to_json(self) -> dict[str, object]:
        """Return upstream's object: its four statistics a metric (null when unknown), then all others known."""
        values: dict[str, object] = {}
        for metric in LATENCY_METRICS:
            known = self.metrics.get(metric, {})
            upstream: dict[str, object] = {name: known.get(name) for name in UPSTREAM_STATISTICS}
            values[metric] = {**upstream, **{name: known[name] for name in sorted(known) if name not in upstream}}
        return {**values, **self.more}


def statistic_name(text: str) -> str | None:
    """Return the one name of a statistic: ``p50`` is ``median_ms``, ``P99`` is ``p99_ms``; None when it is none."""
    word = text.strip().lower().replace("_", ".")
    if word in ("mean", "avg"):
        return "mean_ms"
    if word in ("median", "std", "min", "max"):
        return f"{word}_ms"
    if word.startswith("p"):
        percent = as_number(word[1:])
        return None if percent is None else percentile_name(percent)
    return None


def percentile_name(percent: float) -> str | None:
    """Return ``p99_ms`` for 99.0 and ``p99.9_ms`` for 99.9; None outside 0 … 100."""
    if not 0 <= percent <= 100:
        return None
    return "median_ms" if percent == 50 else f"p{percent:g}_ms"


@lru_cache(maxsize=1024)
def _flat_key(name: str) -> tuple[str, str | None] | None:
    """Read a key such as ``p99_ttft_ms``: metric and statistic, or None."""
    match = _FLAT_KEY.fullmatch(name)
    return None if match is None else (_METRIC_NAMES[match["metric"]], statistic_name(match["statistic"]))


@lru_cache(maxsize=1024)
def _nested_key(name: str) -> str | None:
    """Read a key such as ``p99_ms``: the statistic, or None."""
    match = _NESTED_KEY.fullmatch(name)
    return None if match is None else statistic_name(match["statistic"])


class FigureReader:
    """Collects figures from several places of one report; the first place that has a value wins."""

    def __init__(self, *, zero_is_unknown: bool = True) -> None:
        """Start with nothing.

        Args:
            zero_is_unknown: Take 0 for a missing value, as upstream's writer puts it there.
        """
        self._zero_is_unknown = zero_is_unknown
        self._figures: dict[str, float] = {}
        self._metrics: dict[str, dict[str, float]] = {}
        self._zero_rates: list[str] = []
        self.reasons: dict[str, str] = {}

    def add_throughput(self, values: Mapping[str, object]) -> None:
        """Take rates and counts from an object, nested or flat."""
        for name, spellings in _THROUGHPUT_NAMES.items():
            for spelling in spellings:
                number = as_number(values.get(spelling))
                if number is None or number < 0:
                    continue
                self._set_figure(name, number)

    def _set_figure(self, name: str, number: float) -> None:
        if number == 0 and self._zero_is_unknown and name not in ("completed_requests", "failed_requests"):
            self._zero_rates.append(name)
            return
        self._figures.setdefault(name, number)

    def add_latency(self, values: Mapping[str, object]) -> None:
        """Take latency statistics from an object that has ``ttft: {…}`` or flat keys such as ``p99_ttft_ms``."""
        for key, value in values.items():
            name = key.lower()
            if name in _METRIC_NAMES and isinstance(value, Mapping):
                self._add_nested(_METRIC_NAMES[name], as_mapping(value))
                continue
            if not name.endswith("_ms"):
                continue
            flat = _flat_key(name)
            if flat is not None:
                self._set_latency(*flat, value)
                continue
            listed = _PERCENTILE_LIST.fullmatch(name)
            if listed is not None:
                self._add_percentiles(_METRIC_NAMES[listed["metric"]], value)

    def _add_nested(self, metric: str, values: Mapping[str, object]) -> None:
        for key, value in values.items():
            statistic = _nested_key(key.lower())
            if statistic is not None:
                self._set_latency(metric, statistic, value)
            elif key.lower() == "percentiles_ms":
                self._add_percentiles(metric, value)

    def _add_percentiles(self, metric: str, value: object) -> None:
        pairs: Iterable[object] = (
            [[key, item] for key, item in value.items()] if isinstance(value, Mapping) else as_list(value)
        )
        for item in pairs:
            pair = as_list(item)
            percent = as_number(str(pair[0]).lstrip("pP")) if len(pair) == 2 else None
            if percent is not None:
                self._set_latency(metric, percentile_name(percent), pair[1])

    def _set_latency(self, metric: str, statistic: str | None, value: object) -> None:
        number = as_number(value)
        if statistic is None or number is None or number < 0:
            return
        if number == 0 and self._zero_is_unknown:
            self.reasons.setdefault(f"latency.{metric}.{statistic}", ZERO_IS_UNKNOWN)
            return
        self._metrics.setdefault(metric, {}).setdefault(statistic, number)

    def add_log(self, text: str) -> None:
        """Take figures from the text that a benchmark client prints (``P99 TTFT (ms): 812.4``)."""
        for match in _LOG_LATENCY.finditer(text):
            metric = _METRIC_NAMES[match["metric"].lower().replace(" ", "_")]
            self._set_latency(metric, statistic_name(match["statistic"]), match["value"])
        for match in _LOG_LINE.finditer(text):
            name = _LOG_THROUGHPUT.get(" ".join(match["title"].lower().split()))
            number = as_number(match["value"])
            if name is not None and number is not None:
                self._set_figure(name, number)

    def throughput(self, more: Mapping[str, object] | None = None) -> Throughput:
        """Return the rates and counts; a zero rate is kept only where nothing was completed."""
        figures = dict(self._figures)
        nothing_completed = self._nothing_completed
        if figures.get("completed_requests") == 0 and not nothing_completed:
            # Requests did complete, so this 0 stands for a count that the writer did not have.
            del figures["completed_requests"]
            self.reasons["throughput.completed_requests"] = ZERO_IS_UNKNOWN
        for name in self._zero_rates:
            if name in figures:
                continue
            if nothing_completed and name != "duration_seconds":
                figures[name] = 0.0
            else:
                self.reasons[f"throughput.{name}"] = ZERO_IS_UNKNOWN
        counts = {name: as_count(value) for name, value in figures.items() if name in _COUNTS}
        rates = {name: value for name, value in figures.items() if name not in _COUNTS}
        return Throughput(
            request_throughput=rates.get("request_throughput"),
            output_throughput=rates.get("output_throughput"),
            total_token_throughput=rates.get("total_token_throughput"),
            completed_requests=counts.get("completed_requests"),
            total_input_tokens=counts.get("total_input_tokens"),
            total_output_tokens=counts.get("total_output_tokens"),
            duration_seconds=rates.get("duration_seconds"),
            failed_requests=counts.get("failed_requests"),
            more=dict(more or {}),
        )

    def latency(self, more: Mapping[str, object] | None = None) -> Latency:
        """Return the latency statistics; none where no request was completed."""
        if self._nothing_completed:
            self._metrics.clear()
            self.reasons["latency"] = "no request was completed"
        for metric, values in self._metrics.items():
            for statistic in values:
                self.reasons.pop(f"latency.{metric}.{statistic}", None)
        return Latency({metric: dict(values) for metric, values in self._metrics.items()}, dict(more or {}))

    @property
    def _nothing_completed(self) -> bool:
        return self._figures.get("completed_requests") == 0 and not any(
            self._figures.get(name, 0) > 0 for name in _RATES
        )

    @property
    def has_throughput(self) -> bool:
        """True when a rate or count was seen, even a zero."""
        return bool(self._figures or self._zero_rates)

    @property
    def has_latency(self) -> bool:
        """True when a statistic was seen, even a zero."""
        return bool(self._metrics) or any(key.startswith("latency.") for key in self.reasons)


def throughput_keys() -> frozenset[str]:
    """Return every spelling that ``add_throughput`` reads."""
    return frozenset(spelling for spellings in _THROUGHPUT_NAMES.values() for spelling in spellings)
