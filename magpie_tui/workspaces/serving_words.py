"""What a benchmark's report says beyond upstream's summary, in lines that commands print and screens show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from magpie_tui.basics.text import plural
from magpie_tui.basics.units import format_bytes, format_clock
from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.values import as_count, as_list, as_mapping, as_number, as_text, as_texts


def serving_of(report: BenchmarkReport) -> Mapping[str, object]:
    """Return our part of a benchmark's report; empty for another program's."""
    return {} if report.extras is None else as_mapping(report.extras.more.get("serving"))


def outcome_lines(report: BenchmarkReport) -> tuple[str, ...]:
    """Return the lines: status, server, phases, client, cross-check, flags, capture, notes."""
    serving = serving_of(report)
    if not serving:
        return ()
    return tuple(_lines(serving))


def _lines(serving: Mapping[str, object]) -> Iterator[str]:
    reasons = as_texts(serving.get("reasons"))
    word = {"ok": "the numbers count", "invalid": "the numbers do not count", "failed": "there are no numbers"}
    status = as_text(serving.get("status")) or ""
    if serving.get("metrics") is None and serving.get("capture") is not None and status == "ok":
        yield "Run: steps of a server that another run measured; nothing was measured here"
    else:
        yield f"Run: {status}, {word.get(status, status)}" + (f": {reasons[0]}" if reasons else "")
    yield from _server_lines(as_mapping(serving.get("server")))
    phases = {name: as_number(value) for name, value in as_mapping(serving.get("phases_s")).items()}
    if phases:
        yield "Phases: " + " > ".join(f"{name} {format_clock(seconds)}" for name, seconds in phases.items())
    yield from _client_lines(as_mapping(serving.get("client")))
    checks = [as_mapping(item) for item in as_list(serving.get("cross_check"))]
    for check in checks:
        if check.get("agreement") in ("agrees", "differs"):
            mark = "agrees" if check["agreement"] == "agrees" else "DIFFERS"
            yield f"Server's own count: {mark}: {as_text(check.get('text'))}"
    window = as_mapping(serving.get("server_window"))
    hits, preempted = as_number(window.get("cache_hit_rate")), as_count(window.get("preemptions"))
    queue = as_number(window.get("queue_mean_ms"))
    words = [
        "" if hits is None else f"{100 * hits:.1f} % of prompt tokens from the prefix cache",
        "" if preempted is None else f"{preempted} preemptions",
        "" if queue is None else f"{queue:.1f} ms in its queue",
    ]
    if any(words):
        yield "Server's own metrics: " + ", ".join(word for word in words if word)
    yield from _capture_lines(as_mapping(serving.get("capture")))
    yield from _overhead_lines(as_mapping(serving.get("overhead")))
    for item in as_list(serving.get("flags")):
        flag = as_mapping(item)
        yield f"Flag: {as_text(flag.get('text'))} (server.log line {as_count(flag.get('line'))})"
    for note in as_texts(serving.get("notes")):
        yield f"Note: {note}"


def _server_lines(server: Mapping[str, object]) -> Iterator[str]:
    if not server:
        return
    start = as_number(server.get("start_s"))
    ready = "" if start is None else f", ready after {format_clock(start)}"
    version = as_text(server.get("version")) or "of unknown version"
    yield f"Server: {as_text(server.get('engine'))} {version} at {as_text(server.get('base_url'))}{ready}"


def _client_lines(client: Mapping[str, object]) -> Iterator[str]:
    if not client:
        return
    share, lag = as_number(client.get("cpu_share")), as_number(client.get("send_lag_p99_ms"))
    words = [
        "" if share is None else f"{100 * share:.0f} % of a core",
        "" if lag is None else f"send lag p99 {lag:.2f} ms",
    ]
    yield "Client: " + ", ".join(word for word in words if word)
    for text in as_texts(client.get("warnings")):
        yield f"Client: {text}"


def _capture_lines(capture: Mapping[str, object]) -> Iterator[str]:
    if not capture:
        return
    problem = as_text(capture.get("problem"))
    if problem is not None:
        yield f"Capture: {problem}"
        return
    files = as_texts(capture.get("files"))
    size, seconds = as_number(capture.get("size_bytes")), as_number(capture.get("wrote_s"))
    yield f"Capture: {plural(len(files), 'trace')}, {format_bytes(size)}, written in {format_clock(seconds)}"


def _overhead_lines(overhead: Mapping[str, object]) -> Iterator[str]:
    ratios = [
        f"{name.replace('_', ' ')} x {number:.3f}"
        for name, value in overhead.items()
        if (number := as_number(value)) is not None
    ]
    if ratios:
        yield f"Profiler overhead, twin / clean ({as_text(overhead.get('clean'))}): {', '.join(ratios)}"
