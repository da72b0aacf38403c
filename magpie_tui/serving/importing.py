"""Results of other clients, read into our figures, with what their figures mean.

Names alone do not make figures comparable: clients start their clocks at different moments, and one calls TPOT what
includes the first token. What cannot be mapped onto a definition of ours is left out, and said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.workspaces.benchmark import read_client_log, read_client_result
from magpie_tui.workspaces.damage import Damaged, kind_of, read_bounded, read_json_file
from magpie_tui.workspaces.figures import Latency, Throughput
from magpie_tui.workspaces.values import as_count, as_list, as_mapping, as_number, as_text, mapping_or_none

_LARGEST_BYTES = 512 << 20
_STATISTICS = (("p50", 50), ("p90", 90), ("p95", 95), ("p99", 99))
_CLOCK = "its clock starts when the request is handed to its HTTP library, ours at the scheduled send"


@dataclass(frozen=True, slots=True)
class ImportedResult:
    """A result of another client in our naming.

    Attributes:
        client: ``vllm bench serve``, ``InferenceX``, ``guidellm``, ``aiperf``, ``log`` or ``unknown``.
        throughput, latency: Only what the source holds and what means the same as ours.
        ttfts_s, latencies_s, output_lens: One a request where it keeps them.
        definitions: Our metric to how the source defines it.
        left_out: Figures of the source that mean something else, each with the reason.
        reasons: Why a figure is None.
        failed: Requests that failed, with the first error.
        status: ``failed`` when nothing was completed, ``unknown`` when the file does not tell.
    """

    client: str
    throughput: Throughput
    latency: Latency
    ttfts_s: tuple[float, ...] = ()
    latencies_s: tuple[float, ...] = ()
    output_lens: tuple[int, ...] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    failed: int | None = None
    first_error: str | None = None

    @property
    def status(self) -> str:
        """``ok``, ``failed`` or ``unknown``."""
        completed = self.throughput.completed_requests
        if completed == 0:
            return "failed"
        if completed is None and not self.latency.metrics and self.throughput.output_throughput is None:
            return "unknown"
        return "ok"

    def value(self, key: str) -> float | None:
        """Return a figure by our key, ``ttft_p99_ms`` or ``output_throughput``; None where the source has none."""
        if key in ("output_throughput", "total_token_throughput", "request_throughput"):
            number = getattr(self.throughput, key)
            return None if number is None else float(number)
        metric, _, rest = key.partition("_")
        return self.latency.value(metric, rest.removesuffix("_ms"))


_SAME_AS_OURS = {
    "tpot": "(latency - TTFT) / (output tokens - 1), mean over requests: as ours",
    "itl": "gaps between chunks, pooled over all requests: as ours",
    "e2el": f"last chunk - start of the request; {_CLOCK}",
    "ttft": f"first chunk with content - start of the request; {_CLOCK}; opening the connection is included",
}
_GUIDELLM = {
    "ttft": f"first token - start of the request; {_CLOCK}",
    "tpot": "its inter_token_latency: (latency - TTFT) / (tokens - 1), as our TPOT",
    "e2el": "its request_latency, given in seconds",
}
_AIPERF = {
    "ttft": f"first token - start of the request; {_CLOCK}",
    "tpot": "its inter_token_latency: (latency - TTFT) / (tokens - 1), as our TPOT",
    "itl": "its inter_chunk_latency: gaps between chunks",
    "e2el": "its request_latency",
}


def read_result_file(path: Path) -> ImportedResult:
    """Read a result file of any client that is known, or a text log of one.

    Raises:
        UserInputError: The file cannot be read, or holds no figure of a benchmark.
    """
    if path.suffix in (".txt", ".log"):
        return _from_log(path)
    value = read_json_file(path, limit_bytes=_LARGEST_BYTES)
    if isinstance(value, Damaged):
        raise value.error()
    result = import_result(value)
    if result is None:
        raise UserInputError(
            f"this is no result of a serving benchmark: {kind_of(value)} without figures that are known",
            path=path,
            hint="results of vllm bench serve, InferenceX, guidellm, aiperf, and their printed summaries are read",
        )
    return result


def import_result(value: object) -> ImportedResult | None:
    """Map a parsed result file; None when it is none."""
    keys = mapping_or_none(value)
    if keys is None:
        return None
    if isinstance(keys.get("benchmarks"), list):
        return _from_guidellm(keys)
    if mapping_or_none(keys.get("time_to_first_token")) or mapping_or_none(keys.get("request_latency")):
        return _from_aiperf(keys)
    return _from_flat(keys)


def _from_flat(keys: Mapping[str, object]) -> ImportedResult | None:
    throughput, latency, reasons = read_client_result(dict(keys))
    errors = [text for text in map(as_text, as_list(keys.get("errors"))) if text]
    known = (
        throughput.completed_requests,
        throughput.output_throughput,
        throughput.request_throughput,
        throughput.duration_seconds,
    )
    if not latency.metrics and all(item is None for item in known) and not errors:
        return None
    client = "vllm bench serve" if "endpoint_type" in keys or "request_goodput" in keys else "InferenceX"
    failed = as_count(keys.get("failed"))
    prompts = as_count(keys.get("num_prompts"))
    if failed is None and prompts is not None and throughput.completed_requests is not None:
        failed = max(0, prompts - throughput.completed_requests)
    return ImportedResult(
        client=client,
        throughput=throughput,
        latency=latency,
        ttfts_s=_floats(keys.get("ttfts")),
        latencies_s=_floats(keys.get("latencies")),
        output_lens=tuple(count for count in map(as_count, as_list(keys.get("output_lens"))) if count is not None),
        definitions={metric: _SAME_AS_OURS[metric] for metric in _SAME_AS_OURS if metric in latency.metrics},
        reasons=reasons,
        failed=failed if failed is not None else (len(errors) or None),
        first_error=errors[0] if errors else None,
    )


def _floats(value: object) -> tuple[float, ...]:
    return tuple(number for number in map(as_number, as_list(value)) if number is not None)


def _from_log(path: Path) -> ImportedResult:
    data = read_bounded(path, _LARGEST_BYTES)
    if isinstance(data, Damaged):
        raise data.error()
    throughput, latency, reasons = read_client_log(data.decode("utf-8", "replace"))
    if not latency.metrics and throughput.completed_requests is None and throughput.output_throughput is None:
        raise UserInputError("this log has no figures of a serving benchmark", path=path)
    definitions = {metric: _SAME_AS_OURS[metric] for metric in _SAME_AS_OURS if metric in latency.metrics}
    return ImportedResult("log", throughput, latency, definitions=definitions, reasons=reasons)


def _statistics(source: Mapping[str, object], factor: float = 1.0) -> dict[str, float]:
    """Read ``{mean|avg, median, std|std_dev, min, max, p50 …, percentiles: {…}}`` in ms after ``factor``."""
    found: dict[str, float] = {}
    spellings = {
        "mean_ms": ("mean", "avg"),
        "std_ms": ("std", "std_dev"),
        "min_ms": ("min",),
        "max_ms": ("max",),
        "median_ms": ("median", "p50"),
    }
    for name, keys in spellings.items():
        number = next((value for value in (as_number(source.get(key)) for key in keys) if value is not None), None)
        if number is not None:
            found[name] = number * factor
    percentiles = {**as_mapping(source.get("percentiles")), **source}
    for key, percent in _STATISTICS:
        number = as_number(percentiles.get(key))
        if number is not None:
            found.setdefault("median_ms" if percent == 50 else f"p{percent}_ms", number * factor)
    return found


def _from_guidellm(keys: Mapping[str, object]) -> ImportedResult | None:
    """Read guidellm's file: the first benchmark in it, successful requests only."""
    benchmarks = [as_mapping(item) for item in as_list(keys.get("benchmarks"))]
    if not benchmarks:
        return None
    metrics = as_mapping(benchmarks[0].get("metrics"))

    def successful(name: str) -> Mapping[str, object]:
        return as_mapping(as_mapping(metrics.get(name)).get("successful"))

    latency = {
        "ttft": _statistics(successful("time_to_first_token_ms")),
        "tpot": _statistics(successful("inter_token_latency_ms")),
        "e2el": _statistics(successful("request_latency"), 1e3),
    }
    requests = as_mapping(benchmarks[0].get("requests"))
    counts = {name: _size(requests.get(name)) for name in ("successful", "errored", "incomplete")}
    lost = None if counts["errored"] is None else counts["errored"] + (counts["incomplete"] or 0)
    left_out = {}
    if successful("time_per_output_token_ms"):
        left_out["time_per_output_token_ms"] = "request latency / output tokens: it includes the time to first token"
    if len(benchmarks) > 1:
        left_out["benchmarks"] = f"{len(benchmarks) - 1} further benchmarks of the same file"
    return ImportedResult(
        client="guidellm",
        throughput=Throughput(
            request_throughput=as_number(successful("requests_per_second").get("mean")),
            output_throughput=as_number(successful("output_tokens_per_second").get("mean")),
            total_token_throughput=as_number(successful("tokens_per_second").get("mean")),
            completed_requests=counts["successful"],
            duration_seconds=as_number(benchmarks[0].get("duration")),
            failed_requests=lost,
        ),
        latency=Latency({name: values for name, values in latency.items() if values}),
        definitions={name: _GUIDELLM[name] for name, values in latency.items() if values},
        left_out=left_out,
        failed=lost,
    )


def _size(value: object) -> int | None:
    if isinstance(value, list):
        return len(value)
    return as_count(value)


def _from_aiperf(keys: Mapping[str, object]) -> ImportedResult:
    """Read aiperf's ``profile_export_aiperf.json``: ``{metric: {unit, avg, p50 …}}``."""
    names = {
        "ttft": "time_to_first_token",
        "tpot": "inter_token_latency",
        "itl": "inter_chunk_latency",
        "e2el": "request_latency",
    }
    factors = {"ms": 1.0, "s": 1e3, "us": 1e-3, "ns": 1e-6}
    latency: dict[str, dict[str, float]] = {}
    left_out: dict[str, str] = {}
    for metric, name in names.items():
        source = as_mapping(keys.get(name))
        unit = as_text(source.get("unit")) or "ms"
        if not source:
            continue
        if unit not in factors:
            left_out[name] = f"its unit {unit!r} is not known"
            continue
        latency[metric] = _statistics(source, factors[unit])

    def average(name: str) -> float | None:
        return as_number(as_mapping(keys.get(name)).get("avg"))

    return ImportedResult(
        client="aiperf",
        throughput=Throughput(
            request_throughput=average("request_throughput"),
            output_throughput=average("output_token_throughput"),
            total_token_throughput=average("total_token_throughput"),
            completed_requests=as_count(average("request_count")),
            duration_seconds=average("benchmark_duration"),
            failed_requests=as_count(average("error_request_count")),
        ),
        latency=Latency(latency),
        definitions={name: _AIPERF[name] for name in latency},
        left_out=left_out,
        failed=as_count(average("error_request_count")),
    )


def left_out_text(result: ImportedResult) -> Sequence[str]:
    """Return one line for each figure that was not taken over."""
    return [f"{name} of {result.client} was left out: {reason}" for name, reason in result.left_out.items()]
