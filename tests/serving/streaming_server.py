"""A streaming server that speaks the OpenAI API, logs when it truly emitted each chunk, and can misbehave on order.

Raw asyncio, no dependencies; uvloop where it is installed and asked for. It can stand in for ``vllm serve MODEL``:
arguments that it does not know are ignored.

    python tests/serving/streaming_server.py --port 0 --port-file P --model tiny --ttft-ms 20 --tpot-ms 1 --log F

The log has one JSON line a response: ``received_ns`` (the body had arrived), ``emits_ns`` (just before each write of
content), on CLOCK_MONOTONIC, as ``time.perf_counter_ns`` of another process sees it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

FAULTS = (
    "truncate",  # the stream ends after two chunks, the connection is closed
    "no-done",  # the message ends properly, without a finish reason and without [DONE]
    "status-429",
    "status-503",
    "slow-first",  # the first token takes ten times as long
    "no-stream",  # one JSON answer although a stream was asked for
    "no-usage",
    "error-in-stream",
    "close-each",  # answers properly, then closes the connection
    "hang",  # never answers
    "short",  # half of the tokens asked for
    "garbage",  # a data line that is no JSON
)
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the arguments; unknown ones are ignored."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path, help="written with the port as soon as the socket listens")
    parser.add_argument("--model", "--served-model-name", "--model-path", default="tiny")
    parser.add_argument("--flavour", choices=("vllm", "sglang"), default="vllm", help="names in /metrics")
    parser.add_argument("--ttft-ms", type=float, default=20.0)
    parser.add_argument("--tpot-ms", type=float, default=1.0)
    parser.add_argument("--noise", type=float, default=0.0, help="relative sd of both, drawn once a start")
    parser.add_argument("--noise-seed", type=int, default=None)
    parser.add_argument("--coalesce", type=int, default=1, help="chunks a write; the log has one time for all of them")
    parser.add_argument("--slots", type=int, default=256, help="requests served at once; others wait")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--fault-every", type=int, default=1, help="every n-th request has the fault")
    parser.add_argument("--cache-hit", type=float, default=0.0, help="share of prompt tokens said to be cached")
    parser.add_argument("--ready-after-s", type=float, default=0.0)
    parser.add_argument("--never-ready", action="store_true")
    parser.add_argument("--die-after", type=int, default=0, help="exit 9 when so many requests have been answered")
    parser.add_argument("--ignore-sigterm", action="store_true")
    parser.add_argument("--orphans", type=int, default=0, help="workers started in sessions of their own")
    parser.add_argument("--flood-mb", type=int, default=0, help="megabytes of stdout before it is ready")
    parser.add_argument("--uvloop", action="store_true")
    return parser.parse_known_args(arguments)[0]


@dataclass(slots=True)
class Histogram:
    """A Prometheus histogram of seconds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0
    n: int = 0

    def add(self, seconds: float) -> None:
        """Count one value."""
        self.total += seconds
        self.n += 1
        for place, bound in enumerate(BUCKETS):
            if seconds <= bound:
                self.counts[place] += 1
                return
        self.counts[-1] += 1

    def lines(self, name: str, labels: str) -> list[str]:
        """Write it as text."""
        lines, seen = [f"# TYPE {name} histogram"], 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            seen += count
            lines.append(f'{name}_bucket{{le="{bound}",{labels}}} {float(seen)}')
        return [*lines, f"{name}_sum{{{labels}}} {self.total}", f"{name}_count{{{labels}}} {float(self.n)}"]


@dataclass(slots=True)
class Counts:
    """What ``/metrics`` tells."""

    running: int = 0
    waiting: int = 0
    prompt: int = 0
    generated: int = 0
    queries: int = 0
    hits: int = 0
    answered: int = 0
    succeeded: int = 0
    ttft: Histogram = field(default_factory=Histogram)
    tpot: Histogram = field(default_factory=Histogram)
    e2e: Histogram = field(default_factory=Histogram)


class Server:
    """All connections share its counters, its log and its slots."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.counts = Counts()
        self.slots = asyncio.Semaphore(options.slots)
        self.log = None if options.log is None else options.log.open("w", encoding="utf-8")
        self.started = time.monotonic()
        self.requests = 0
        self.profiling = False
        self.body = b""
        self.tasks: set[asyncio.Task[None]] = set()
        factor = 1.0
        if options.noise:
            factor = max(0.2, random.Random(options.noise_seed).gauss(1.0, options.noise))
        self.ttft_s = options.ttft_ms / 1e3 * factor
        self.tpot_s = options.tpot_ms / 1e3 * factor

    @property
    def ready(self) -> bool:
        """True once it says so."""
        return not self.options.never_ready and time.monotonic() - self.started >= self.options.ready_after_s

    def metrics(self) -> str:
        """Write the counters in the names of the engine it stands in for."""
        counts, vllm = self.counts, self.options.flavour == "vllm"
        labels = f'model_name="{self.options.model}"'
        single: dict[str, float]
        if vllm:
            single = {
                "vllm:num_requests_running": counts.running,
                "vllm:num_requests_waiting": counts.waiting,
                "vllm:num_preemptions_total": 0,
                "vllm:prompt_tokens_total": counts.prompt,
                "vllm:generation_tokens_total": counts.generated,
                "vllm:prefix_cache_queries_total": counts.queries,
                "vllm:prefix_cache_hits_total": counts.hits,
                "vllm:request_success_total": counts.succeeded,
            }
        else:
            single = {
                "sglang:num_running_reqs": counts.running,
                "sglang:num_queue_reqs": counts.waiting,
                "sglang:prompt_tokens_total": counts.prompt,
                "sglang:generation_tokens_total": counts.generated,
                "sglang:cached_tokens_total": counts.hits,
                "sglang:num_requests_total": counts.succeeded,
            }
        lines = [f"{name}{{{labels}}} {float(value)}" for name, value in single.items()]
        prefix = "vllm:" if vllm else "sglang:"
        lines += counts.ttft.lines(f"{prefix}time_to_first_token_seconds", labels)
        tpot = "request_time_per_output_token_seconds" if vllm else "time_per_output_token_seconds"
        lines += counts.tpot.lines(prefix + tpot, labels)
        lines += counts.e2e.lines(f"{prefix}e2e_request_latency_seconds", labels)
        return "\n".join(lines) + "\n"


async def sleep_until(when_ns: int) -> None:
    """Return at, or as shortly as the loop can after, a time of ``perf_counter_ns``."""
    left = (when_ns - time.perf_counter_ns()) / 1e9
    if left > 0:
        await asyncio.sleep(left)


@dataclass(slots=True)
class Wanted:
    """What a request asks for."""

    chat: bool
    stream: bool
    tokens: int
    prompt: int
    usage: bool
    received_ns: int
    label: str
    number: int
    fault: str | None = None


class Answer:
    """Writes one answer to a connection."""

    def __init__(self, server: Server, writer: asyncio.StreamWriter, wanted: Wanted) -> None:
        self.server = server
        self.writer = writer
        self.wanted = wanted
        self.emits: list[int] = []
        options = server.options
        self.fault: str | None = options.fault if wanted.number % max(1, options.fault_every) == 0 else None
        self.fault = wanted.fault or self.fault

    def usage(self, tokens: int) -> dict[str, object]:
        """Return the usage object."""
        wanted, hit = self.wanted, int(self.wanted.prompt * self.server.options.cache_hit)
        return {
            "prompt_tokens": wanted.prompt,
            "completion_tokens": tokens,
            "total_tokens": wanted.prompt + tokens,
            "prompt_tokens_details": {"cached_tokens": hit},
        }

    def event(self, text: str | None, *, finish: str | None = None, role: bool = False) -> bytes:
        """Return one event as a chunk of the body."""
        if self.wanted.chat:
            delta: dict[str, object] = {} if text is None else {"content": text}
            choice: dict[str, object] = {"index": 0, "delta": {"role": "assistant", **delta} if role else delta}
            kind = "chat.completion.chunk"
        else:
            choice, kind = {"index": 0, "text": text or ""}, "text_completion"
        body = {
            "id": f"cmpl-{self.wanted.number}",
            "object": kind,
            "created": 1_700_000_000,
            "model": self.server.options.model,
            "choices": [{**choice, "logprobs": None, "finish_reason": finish}],
        }
        return chunked(b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n")

    async def run(self) -> bool:
        """Answer; return True when the connection stays open."""
        wanted, server = self.wanted, self.server
        server.counts.prompt += wanted.prompt
        server.counts.queries += wanted.prompt
        server.counts.hits += int(wanted.prompt * server.options.cache_hit)
        if self.fault in ("status-429", "status-503"):
            status, text = (429, "Too Many Requests") if self.fault == "status-429" else (503, "Service Unavailable")
            body = json.dumps({"error": {"message": f"the stand-in is overloaded ({status})", "code": status}}).encode()
            self.writer.write(head(status, text, "application/json", len(body)) + body)
            return True
        if self.fault == "hang":
            await asyncio.sleep(3600)
        if not wanted.stream or self.fault == "no-stream":
            return await self.whole()
        return await self.stream()

    @property
    def tokens(self) -> int:
        """How many it will make."""
        return max(1, self.wanted.tokens // 2) if self.fault == "short" else self.wanted.tokens

    async def whole(self) -> bool:
        """One answer at the end."""
        wanted, server = self.wanted, self.server
        end = wanted.received_ns + int((server.ttft_s + (self.tokens - 1) * server.tpot_s) * 1e9)
        await sleep_until(end)
        text = "x " * self.tokens
        content: dict[str, object] = (
            {"message": {"role": "assistant", "content": text}} if wanted.chat else {"text": text}
        )
        body = json.dumps(
            {"choices": [{"index": 0, **content, "finish_reason": "length"}], "usage": self.usage(self.tokens)}
        ).encode()
        server.counts.generated += self.tokens
        self.emits.append(time.perf_counter_ns())
        self.writer.write(head(200, "OK", "application/json", len(body)) + body)
        self.account()
        return True

    async def stream(self) -> bool:
        """A stream of events on an absolute schedule."""
        wanted, server, writer = self.wanted, self.server, self.writer
        per_write = max(1, server.options.coalesce)
        writer.write(head(200, "OK", "text/event-stream; charset=utf-8", None))
        if wanted.chat:
            writer.write(self.event("", role=True))
        first = wanted.received_ns + int(server.ttft_s * 1e9 * (10 if self.fault == "slow-first" else 1))
        step_ns = server.tpot_s * 1e9
        one = self.event(" tok")
        for done in range(0, self.tokens, per_write):
            count = min(per_write, self.tokens - done)
            await sleep_until(first + int((done + count - 1) * step_ns))
            if self.fault == "truncate" and done >= 2:
                return False
            if self.fault == "error-in-stream" and done >= 2:
                writer.write(
                    chunked(b'data: {"error": {"message": "the engine died", "code": 500}}\n\n') + b"0\r\n\r\n"
                )
                return True
            if self.fault == "garbage" and done >= 2:
                writer.write(chunked(b"data: {not json\n\n"))
            self.emits.append(time.perf_counter_ns())
            writer.write(one * count)
            server.counts.generated += count
            if writer.transport.get_write_buffer_size() > 1 << 16:
                await writer.drain()
            if step_ns == 0:
                await asyncio.sleep(0)
        if self.fault == "no-done":
            writer.write(b"0\r\n\r\n")
            return True
        ending = self.event(None, finish="length")
        if wanted.usage and self.fault != "no-usage":
            usage = {"choices": [], "usage": self.usage(self.tokens), "model": server.options.model}
            ending += chunked(b"data: " + json.dumps(usage).encode() + b"\n\n")
        writer.write(ending + chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        self.account()
        return self.fault != "close-each"

    def account(self) -> None:
        """Count and log a complete answer."""
        wanted, counts = self.wanted, self.server.counts
        counts.succeeded += 1
        first, last = self.emits[0], self.emits[-1]
        counts.ttft.add((first - wanted.received_ns) / 1e9)
        if self.tokens > 1:
            counts.tpot.add((last - first) / 1e9 / (self.tokens - 1))
        counts.e2e.add((last - wanted.received_ns) / 1e9)
        if self.server.log is not None:
            row = {
                "number": wanted.number,
                "label": wanted.label,
                "received_ns": wanted.received_ns,
                "tokens": self.tokens,
                "emits_ns": self.emits,
            }
            self.server.log.write(json.dumps(row) + "\n")
            self.server.log.flush()


def chunked(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def head(status: int, reason: str, kind: str, length: int | None) -> bytes:
    """The head of a response; chunked without a length."""
    size = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    return f"HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\n{size}\r\n\r\n".encode()


def wanted_of(path: str, body: bytes, headers: dict[str, str], received_ns: int, number: int) -> Wanted:
    """Read the body of a request."""
    keys = json.loads(body)
    chat = "chat" in path
    if chat:
        prompt = 4 + sum(len(str(message.get("content", "")).split()) + 3 for message in keys["messages"])
    else:
        given = keys["prompt"]
        prompt = len(given) if isinstance(given, list) else max(1, len(str(given).split()))
    return Wanted(
        chat=chat,
        stream=bool(keys.get("stream")),
        tokens=int(keys.get("max_completion_tokens") or keys.get("max_tokens") or 16),
        prompt=prompt,
        usage=bool((keys.get("stream_options") or {}).get("include_usage")),
        received_ns=received_ns,
        label=headers.get("x-request-id", ""),
        number=number,
        fault=headers.get("x-fault"),
    )


async def requests_of(reader: asyncio.StreamReader) -> AsyncIterator[tuple[str, str, dict[str, str], bytes]]:
    """Yield method, path, headers and body of each request of a connection."""
    while True:
        try:
            data = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        first, *lines = data.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = first.split(" ", 2)
        yield method, path.partition("?")[0], headers, body


async def serve_connection(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection, one after another."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        async for method, path, headers, body in requests_of(reader):
            received_ns = time.perf_counter_ns()
            if method == "POST" and path.endswith("completions"):
                stays = await generate(server, writer, wanted_of(path, body, headers, received_ns, server.requests))
            else:
                server.body = body
                writer.write(other(server, method, path))
                stays = True
            await writer.drain()
            if not stays:
                break
    writer.close()


async def generate(server: Server, writer: asyncio.StreamWriter, wanted: Wanted) -> bool:
    """Wait for a slot and answer."""
    server.requests += 1
    counts = server.counts
    counts.waiting += 1
    async with server.slots:
        counts.waiting -= 1
        counts.running += 1
        try:
            stays = await Answer(server, writer, wanted).run()
        finally:
            counts.running -= 1
    counts.answered += 1
    if server.options.die_after and counts.answered >= server.options.die_after:
        os._exit(9)
    return stays


def other(server: Server, method: str, path: str) -> bytes:
    """Answer everything that is no generation."""
    kind, status, reason, text = "application/json", 200, "OK", "{}"
    if path == "/health":
        status, reason = (200, "OK") if server.ready else (503, "Service Unavailable")
    elif path == "/v1/models":
        listed = [{"id": server.options.model, "object": "model"}] if server.ready else []
        text = json.dumps({"object": "list", "data": listed})
    elif path == "/version":
        text = json.dumps({"version": "0.0.stand-in"})
    elif path == "/metrics":
        kind, text = "text/plain; version=0.0.4", server.metrics()
    elif path in ("/start_profile", "/stop_profile") and method == "POST":
        server.profiling = path == "/start_profile"
    elif path in ("/start_profile", "/stop_profile"):
        status, reason, text = 405, "Method Not Allowed", '{"detail": "Method Not Allowed"}'
    elif path in ("/reset_prefix_cache", "/flush_cache") and method == "POST":
        text = "{}"
    elif path != "/ping":
        status, reason, text = 404, "Not Found", '{"detail": "Not Found"}'
    body = text.encode()
    return head(status, reason, kind, len(body)) + body


async def main(options: argparse.Namespace) -> None:
    """Serve until told to stop."""
    server = Server(options)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        server.tasks.add(task)
        try:
            await serve_connection(server, reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            server.tasks.discard(task)

    listening = await asyncio.start_server(connected, options.host, options.port, backlog=1024, limit=1 << 24)
    port = listening.sockets[0].getsockname()[1]
    if options.port_file is not None:
        temporary = options.port_file.with_suffix(".tmp")
        temporary.write_text(str(port), encoding="utf-8")
        temporary.replace(options.port_file)
    print(f"INFO stand-in listens on {options.host}:{port}, model {options.model}", flush=True)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, (lambda: None) if options.ignore_sigterm else stop.set)
    gc.freeze()
    await stop.wait()
    listening.close()
    for task in list(server.tasks):
        task.cancel()


def start_orphans(count: int) -> None:
    """Start workers that live on in sessions of their own."""
    for _ in range(count):
        subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(3600)"],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
        )


def run(arguments: list[str]) -> None:
    """Start as the arguments say."""
    options = parse(arguments)
    start_orphans(options.orphans)
    line = "x" * 99 + "\n"
    for _ in range(options.flood_mb * 10_000):
        sys.stdout.write(line)
    if options.uvloop:
        import uvloop

        uvloop.run(main(options))
    else:
        asyncio.run(main(options))


if __name__ == "__main__":
    run(sys.argv[1:])
