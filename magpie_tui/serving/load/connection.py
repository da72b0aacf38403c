"""One connection: a request out, its answer timed as it arrives. The protocol is parsed by ``httptools`` (llhttp).

The time of a chunk is taken once a read, before anything is parsed: what arrives together has one time, and all but
its first chunk count as coalesced.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import cast

import httptools

from magpie_tui.serving.load.events import StreamReader, body_error, read_whole

_EVENT_STREAM = b"text/event-stream"
_LARGEST_BODY_BYTES = 64 * 1024 * 1024


class Exchange:
    """One request on its way and what came back; times are ``time.perf_counter_ns``, 0 when not yet.

    Attributes:
        bytes_received: Of the whole response; 0 means that sending again is safe.
        streamed: The answer is an event stream.
        error: Why it failed; None while it has not.
    """

    __slots__ = (
        "_on_end",
        "body",
        "bytes_received",
        "chunks",
        "coalesced",
        "ended_ns",
        "error",
        "first_ns",
        "gaps_us",
        "http_status",
        "last_ns",
        "sent_ns",
        "stream",
        "streamed",
    )

    def __init__(self, on_end: Callable[[Exchange], None]) -> None:
        self._on_end = on_end
        self.sent_ns = self.first_ns = self.last_ns = self.ended_ns = 0
        self.http_status: int | None = None
        self.chunks = self.coalesced = self.bytes_received = 0
        self.gaps_us: list[int] = []
        self.stream = StreamReader()
        self.body = bytearray()
        self.streamed = False
        self.error: str | None = None

    def take_content(self, count: int, now_ns: int) -> None:
        """``count`` chunks with content arrived together at ``now_ns``."""
        if self.chunks == 0:
            self.first_ns = now_ns
            self.gaps_us.extend([0] * (count - 1))
        else:
            self.gaps_us.append((now_ns - self.last_ns + 500) // 1000)
            if count > 1:
                self.gaps_us.extend([0] * (count - 1))
        self.chunks += count
        self.coalesced += count - 1
        self.last_ns = now_ns

    def end(self, error: str | None, now_ns: int) -> None:
        """The answer is over, or will not come; later calls change nothing."""
        if self.ended_ns:
            return
        self.ended_ns = now_ns
        self.error = error
        self._on_end(self)


class Connection(asyncio.Protocol):
    """A connection that carries one exchange at a time.

    Attributes:
        connect_s: Time that opening it took.
        opened_ns: When it was open.
        uses: Requests sent on it.
    """

    def __init__(self, on_lost: Callable[[Connection], None]) -> None:
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._exchange: Exchange | None = None
        self._pieces: list[bytes] = []
        self._is_complete = self._framed = self._headers_seen = self._keeps = False
        self._kind = b""
        self.connect_s = 0.0
        self.opened_ns = 0
        self.uses = 0
        self.is_open = False

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the transport; bytes go out at once."""
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True
        self.opened_ns = time.perf_counter_ns()

    def data_received(self, data: bytes) -> None:
        """Time, parse, hand on."""
        now_ns = time.perf_counter_ns()
        exchange = self._exchange
        if exchange is None:
            self.close()  # bytes that nobody asked for
            return
        exchange.bytes_received += len(data)
        self._pieces.clear()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._finish(f"no proper HTTP response: {error}", now_ns)
            self.close()
            return
        if self._pieces:
            self._take_body(exchange, b"".join(self._pieces), now_ns)
        if self._is_complete:
            self._message_complete(exchange, now_ns)

    def eof_received(self) -> bool:
        """Close our side too."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End what was under way."""
        self.is_open = False
        exchange = self._exchange
        if exchange is not None:
            now_ns = time.perf_counter_ns()
            if self._headers_seen and not self._framed and exc is None:
                self._message_complete(exchange, now_ns)  # the end of the connection is the end of the body
            else:
                reason = f": {exc.strerror or exc}" if isinstance(exc, OSError) else ""
                self._finish(f"the connection was closed {_when(exchange)}{reason}", now_ns)
        self._on_lost(self)

    # What httptools calls.

    def on_message_begin(self) -> None:
        """A response begins."""
        self._is_complete = self._framed = self._headers_seen = False
        self._kind = b""

    def on_header(self, name: bytes, value: bytes) -> None:
        """Remember the two headers that matter."""
        lower = name.lower()
        if lower == b"content-type":
            self._kind = value.lower()
        elif lower in (b"content-length", b"transfer-encoding"):
            self._framed = True

    def on_headers_complete(self) -> None:
        """The status is known."""
        self._headers_seen = True
        exchange = self._exchange
        if exchange is not None:
            exchange.http_status = self._parser.get_status_code()
            exchange.streamed = exchange.http_status == 200 and self._kind.startswith(_EVENT_STREAM)

    def on_body(self, body: bytes) -> None:
        """Collect; it is read once all of this read has been parsed."""
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        """The response is whole."""
        self._is_complete = True
        self._keeps = self._parser.should_keep_alive()

    # Ours.

    def send(self, exchange: Exchange, data: bytes) -> None:
        """Send a request; ``exchange`` ends by its own callback."""
        if self._transport is None or self._exchange is not None or not self.is_open:
            raise RuntimeError("a request on a connection that is not free")
        self._exchange = exchange
        self.uses += 1
        exchange.sent_ns = time.perf_counter_ns()
        self._transport.write(data)

    def give_up(self, error: str) -> None:
        """End the exchange with ``error`` and close."""
        self._finish(error, time.perf_counter_ns())
        self.close()

    def close(self) -> None:
        """Close at once; the server sees that the answer is not wanted any more."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def _take_body(self, exchange: Exchange, data: bytes, now_ns: int) -> None:
        if exchange.streamed:
            count = exchange.stream.feed(data)
            if count:
                exchange.take_content(count, now_ns)
        elif len(exchange.body) + len(data) <= _LARGEST_BODY_BYTES:
            exchange.body += data

    def _message_complete(self, exchange: Exchange, now_ns: int) -> None:
        if exchange.streamed:
            count = exchange.stream.end()
            if count:
                exchange.take_content(count, now_ns)
            error = _stream_error(exchange)
        else:
            error = _whole_error(exchange, now_ns)
        self._finish(error, now_ns)
        if not (self._framed and self._keeps):
            self.close()

    def _finish(self, error: str | None, now_ns: int) -> None:
        exchange, self._exchange = self._exchange, None
        self._is_complete = False
        if exchange is not None:
            exchange.end(error, now_ns)


def _when(exchange: Exchange) -> str:
    if exchange.bytes_received == 0:
        return "before any answer"
    return f"in the middle of the answer, after {exchange.chunks} chunks"


def _stream_error(exchange: Exchange) -> str | None:
    stream = exchange.stream
    if stream.error is not None:
        return f"the stream says: {stream.error}"
    if not stream.done and stream.finish_reason is None:
        return f"truncated: the stream ended after {exchange.chunks} chunks without [DONE] and without a finish reason"
    return None


def _whole_error(exchange: Exchange, now_ns: int) -> str | None:
    body = bytes(exchange.body)
    status = exchange.http_status or 0
    if status != 200:
        return f"HTTP {status}: {body_error(body)}"
    answer = read_whole(body)
    exchange.stream.usage = answer.usage
    exchange.stream.finish_reason = answer.finish_reason
    if answer.error is None:
        exchange.last_ns = now_ns
    return answer.error
