"""The same client written on other HTTP libraries, to choose one by measurement.

Run by ``load_accuracy.py`` as a process of its own. All of them read events with our own reader, open their
connections first, and run a closed loop; only the library between socket and events differs.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any, cast

from magpie_tui.serving.load.events import StreamReader


@dataclass
class Timing:
    """Times of one request on CLOCK_MONOTONIC, in ns."""

    label: str
    scheduled_ns: int
    first_ns: int = 0
    last_ns: int = 0
    ended_ns: int = 0
    tokens: int = 0


class _Reading:
    """Counts content and keeps its first and last time."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self.stream = StreamReader()

    def feed(self, data: bytes, now_ns: int) -> None:
        """Take bytes of the body."""
        if self.stream.feed(data):
            self.timing.first_ns = self.timing.first_ns or now_ns
            self.timing.last_ns = now_ns

    def end(self) -> None:
        """The answer is over: take the count of the usage."""
        self.timing.ended_ns = time.perf_counter_ns()
        usage = self.stream.usage
        self.timing.tokens = 0 if usage is None else usage.completion_tokens or 0


def body_of(options: argparse.Namespace) -> bytes:
    """Return the body that all requests have."""
    return json.dumps(
        {
            "model": "tiny",
            "prompt": list(range(1000, 1020)),
            "max_tokens": options.tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()


class _H11Connection(asyncio.Protocol):
    """One connection on h11."""

    def __init__(self) -> None:
        import h11

        self.h11 = h11
        self.state = h11.Connection(our_role=h11.CLIENT)
        self.reading: _Reading | None = None
        self.ended: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the transport."""
        self.transport = cast(asyncio.Transport, transport)

    async def ask(self, head: list[tuple[str, str]], path: str, body: bytes, reading: _Reading) -> None:
        """Send one request and wait for its end."""
        h11 = self.h11
        self.reading, self.ended = reading, asyncio.get_running_loop().create_future()
        request = self.state.send(h11.Request(method="POST", target=path, headers=head))
        data = self.state.send(h11.Data(data=body))
        self.transport.write((request or b"") + (data or b"") + (self.state.send(h11.EndOfMessage()) or b""))
        await self.ended
        self.state.start_next_cycle()

    def data_received(self, data: bytes) -> None:
        """Time and parse."""
        now_ns = time.perf_counter_ns()
        assert self.reading is not None and self.ended is not None
        self.state.receive_data(data)
        pieces: list[bytes] = []
        is_over = False
        while True:
            event = self.state.next_event()
            if event is self.h11.NEED_DATA or event is self.h11.PAUSED:
                break
            if isinstance(event, self.h11.Data):
                pieces.append(bytes(event.data))
            elif isinstance(event, self.h11.EndOfMessage):
                is_over = True
                break
        if pieces:
            self.reading.feed(b"".join(pieces), now_ns)
        if is_over:
            self.reading.end()
            self.ended.set_result(None)


async def closed_loop(options: argparse.Namespace, ask: Any) -> list[Timing]:
    """Keep ``streams`` requests in flight; ``ask(slot, label, reading)`` does one."""
    waiting = deque(range(options.requests))
    timings: list[Timing] = []

    async def slot(number: int) -> None:
        free_ns = time.perf_counter_ns()
        while waiting:
            label = f"measuring-{waiting.popleft()}"
            timing = Timing(label, free_ns)
            timings.append(timing)
            await ask(number, label, _Reading(timing))
            free_ns = timing.ended_ns

    await asyncio.gather(*(slot(number) for number in range(options.streams)))
    return timings


async def with_h11(options: argparse.Namespace) -> list[Timing]:
    """Run on h11."""
    loop = asyncio.get_running_loop()
    connections = [
        (await loop.create_connection(_H11Connection, "127.0.0.1", options.port))[1] for _ in range(options.streams)
    ]
    body = body_of(options)
    head = [("host", f"127.0.0.1:{options.port}"), ("content-type", "application/json")]

    async def ask(number: int, label: str, reading: _Reading) -> None:
        headers = [*head, ("x-request-id", label), ("content-length", str(len(body)))]
        await connections[number].ask(headers, "/v1/completions", body, reading)

    timings = await closed_loop(options, ask)
    for connection in connections:
        connection.transport.close()
    return timings


async def with_aiohttp(options: argparse.Namespace) -> list[Timing]:
    """Run on aiohttp; its pool is filled by a request to /health on every connection."""
    import aiohttp

    body, url = body_of(options), f"http://127.0.0.1:{options.port}"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=options.streams)) as session:

        async def touch() -> None:
            async with session.get(f"{url}/health") as response:
                await response.read()

        await asyncio.gather(*(touch() for _ in range(options.streams)))

        async def ask(number: int, label: str, reading: _Reading) -> None:
            headers = {"content-type": "application/json", "x-request-id": label}
            async with session.post(f"{url}/v1/completions", data=body, headers=headers) as response:
                async for data in response.content.iter_any():
                    reading.feed(data, time.perf_counter_ns())
            reading.end()

        return await closed_loop(options, ask)


def main() -> None:
    """Run one client and print its timings as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", choices=("h11", "aiohttp"), required=True)
    for name in ("port", "streams", "requests", "tokens"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    gc.collect()
    gc.freeze()
    gc.disable()
    run = with_h11 if options.library == "h11" else with_aiohttp
    began, used = time.perf_counter(), time.process_time()
    timings = asyncio.run(run(options))
    wall = time.perf_counter() - began
    json.dump(
        {"timings": [asdict(timing) for timing in timings], "cpu_share": (time.process_time() - used) / wall},
        sys.stdout,
    )


if __name__ == "__main__":
    main()
