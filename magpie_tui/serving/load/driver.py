"""Sends a load and times its answers: connections first, then calibration, warm-up, and the measured part."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from urllib.parse import urlsplit

from magpie_tui import __version__
from magpie_tui.serving.load import prompts as contents
from magpie_tui.serving.load.arrivals import schedule
from magpie_tui.serving.load.connection import Connection, Exchange
from magpie_tui.serving.load.health import HealthMonitor, judge_client, library_text
from magpie_tui.serving.load.model import (
    ClientHealth,
    ClosedLoop,
    LoadPlan,
    LoadProgress,
    LoadResult,
    RequestRow,
    RowPart,
)
from magpie_tui.serving.load.pool import CannotConnectError, ConnectionPool
from magpie_tui.serving.load.timer import PreciseTimer
from magpie_tui.statistics.intervals import median

_PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}
_MOST_SPARE = 256
_OPEN_LOOP_SPARE = 8
_SECOND = 1e9


@dataclass(slots=True, eq=False)
class _Request:
    """A request under way."""

    index: int
    prepared: contents.Prepared
    scheduled_ns: int
    allowed_ns: int
    connect_s: float | None = None
    exchange: Exchange | None = None
    connection: Connection | None = None
    error: str | None = None
    cancelled: bool = False
    ended_ns: int = 0


@dataclass(slots=True)
class _Live:
    """What progress is told from."""

    phase: str = "connecting"
    total: int = 0
    began_ns: int = field(default_factory=time.perf_counter_ns)
    in_flight: set[_Request] = field(default_factory=set)
    completed: int = 0
    failed: int = 0
    chunks_of_ended: int = 0
    new_ttft_ms: list[float] = field(default_factory=list)
    last_error: str | None = None


def request_path(plan: LoadPlan) -> str:
    """Return the path that requests go to."""
    if plan.extra_path is not None:
        return plan.extra_path
    base = urlsplit(plan.base_url).path.rstrip("/").removesuffix("/v1")
    return base + _PATHS[plan.endpoint]


class LoadDriver:
    """Runs one plan in the running event loop.

    Args:
        plan: Checked beforehand.
    """

    def __init__(self, plan: LoadPlan) -> None:
        self._plan = plan
        self._live = _Live()
        self._pool = ConnectionPool(plan.base_url, self._spare())
        self._head = self._request_head()
        self._stopping: str | None = None
        self._finished: list[_Request] = []
        self._reconnects = 0
        self._monitor = HealthMonitor()
        self._progress_at = (time.perf_counter_ns(), 0)
        self._calibration = contents.Calibration()
        self._notes: list[str] = []

    def _spare(self) -> int:
        arrival = self._plan.arrival
        limit = arrival.concurrency
        if isinstance(arrival, ClosedLoop):
            return min(arrival.concurrency, max(self._plan.requests, 1))
        return min(_MOST_SPARE, self._plan.requests, limit if limit is not None else _OPEN_LOOP_SPARE * 2)

    def _request_head(self) -> bytes:
        url = urlsplit(self._plan.base_url)
        host = url.netloc.rpartition("@")[2]
        lines = [
            f"POST {request_path(self._plan)} HTTP/1.1",
            f"host: {host}",
            f"user-agent: magpie-tui/{__version__}",
            "content-type: application/json",
            "accept: text/event-stream" if self._plan.stream else "accept: application/json",
            *(f"{name}: {value}" for name, value in self._plan.headers.items()),
        ]
        return ("\r\n".join(lines) + "\r\n").encode("latin-1", "replace")

    # The parts of a load.

    async def run(self) -> LoadResult:
        """Run all parts and return the result; failures of requests are rows, never exceptions.

        Raises:
            UserInputError: A file of prompts or of times cannot be used.
        """
        plan = self._plan
        offsets = schedule(plan.arrival, plan.requests, plan.seed)
        try:
            await self._connect()
            warmup = await self._calibrate()
            if plan.warmup_requests and self._stopping is None:
                warmup += await self._warm_up(len(warmup))
            return await self._measure(offsets, warmup)
        finally:
            self._pool.close()

    def stop(self, reason: str) -> None:
        """Send nothing more and give up what is under way."""
        self._stopping = self._stopping or reason
        for request in list(self._live.in_flight):
            request.cancelled = True
            if request.connection is not None:
                request.connection.give_up(f"cancelled: {reason}")

    async def _connect(self) -> None:
        try:
            await self._pool.fill()
        except CannotConnectError as error:
            self._live.last_error = str(error)

    async def _calibrate(self) -> list[RequestRow]:
        """Learn how many tokens a text of random words has; the requests for it are rows of the warm-up.

        Two texts of one word tell what the frame of a chat message takes; one that holds every word of ours equally
        often tells what a word takes.
        """
        if not contents.uses_words(self._plan) or self._stopping is not None:
            return []
        texts = contents.calibration_texts()
        self._enter("calibrating", len(texts))
        counted: list[int] = []
        for index, text in enumerate(texts):
            request = self._new_request(index, contents.prepare(self._plan, contents.Prompt(text, None, 1)))
            await self._carry_out(request)
            usage = None if request.exchange is None else request.exchange.stream.usage
            if usage is not None and usage.prompt_tokens is not None:
                counted.append(usage.prompt_tokens)
        found = contents.calibrate(counted)
        if found is None:
            self._notes.append("the length of prompts could not be calibrated: one token a word was assumed")
        else:
            self._calibration = found
        return self._rows("warmup", time.perf_counter_ns())

    async def _warm_up(self, first_index: int) -> list[RequestRow]:
        plan = self._plan
        prepared = self._prepare("warmup", plan.warmup_requests)
        concurrency = min(plan.arrival.concurrency or 8, plan.warmup_requests)
        self._enter("warmup", plan.warmup_requests)
        await self._closed_loop(prepared, concurrency)
        rows = self._rows("warmup", time.perf_counter_ns())
        return [replace(row, index=row.index + first_index) for row in rows]

    async def _measure(self, offsets: Sequence[float] | None, warmup: list[RequestRow]) -> LoadResult:
        plan = self._plan
        prepared = self._prepare("measured", plan.requests)
        self._enter("measuring", plan.requests)
        started_at = _utc_now()
        origin = time.perf_counter_ns()
        self._monitor.start()
        if offsets is None:
            await self._closed_loop(prepared, plan.arrival.concurrency or 1)
        else:
            await self._open_loop(prepared, offsets)
        self._monitor.stop()
        rows = self._rows("measured", origin)
        rows += self._never_sent(prepared, rows)
        rows.sort(key=lambda row: row.index)
        sends = [row.sent_s for row in rows if row.sent_s is not None]
        ends = [row.ended_s for row in rows if row.http_status is not None and row.ended_s is not None]
        health = judge_client(self._monitor, rows, self._reconnects, library_text())
        opened = self._pool.connect_times_s
        return LoadResult(
            plan=plan,
            requests=tuple(rows),
            client=_with_notes(health, self._notes),
            warmup=tuple(warmup),
            started_at=started_at,
            ended_at=_utc_now(),
            first_send_s=min(sends, default=None),
            last_response_s=max(ends, default=None),
            stopped=self._stopping,
            connect_ms=median(opened) * 1e3 if opened else None,
        )

    def _prepare(self, part: RowPart, count: int) -> list[contents.Prepared]:
        plan = self._plan
        return [contents.prepare(plan, item) for item in contents.prompts_of(plan, part, count, self._calibration)]

    def _enter(self, phase: str, total: int) -> None:
        self._finished = []
        self._live = _Live(phase=phase, total=total)
        self._progress_at = (time.perf_counter_ns(), 0)

    # Sending.

    async def _closed_loop(self, prepared: Sequence[contents.Prepared], concurrency: int) -> None:
        waiting = deque(enumerate(prepared))

        async def slot() -> None:
            free_ns = time.perf_counter_ns()
            while waiting and self._stopping is None:
                index, item = waiting.popleft()
                request = self._new_request(index, item, free_ns)
                await self._carry_out(request, closed=True)
                free_ns = request.ended_ns

        await asyncio.gather(*(slot() for _ in range(min(concurrency, len(prepared)))))

    async def _open_loop(self, prepared: Sequence[contents.Prepared], offsets: Sequence[float]) -> None:
        limit = self._plan.arrival.concurrency
        free_slot = asyncio.Event()
        waiting: deque[_Request] = deque()
        tasks: set[asyncio.Task[None]] = set()

        def start(now_ns: int) -> None:
            while waiting and (limit is None or len(tasks) < limit) and self._stopping is None:
                request = waiting.popleft()
                request.allowed_ns = max(now_ns, request.scheduled_ns)
                task = asyncio.ensure_future(self._carry_out(request))
                tasks.add(task)
                task.add_done_callback(ended)

        def ended(task: asyncio.Task[None]) -> None:
            tasks.discard(task)
            free_slot.set()
            start(time.perf_counter_ns())

        timer = PreciseTimer(asyncio.get_running_loop())
        origin = time.perf_counter_ns()
        try:
            for index, (item, offset) in enumerate(zip(prepared, offsets, strict=True)):
                due = origin + int(offset * _SECOND)
                await timer.wait_until(due)
                if self._stopping is not None:
                    break
                waiting.append(self._new_request(index, item, due))
                start(due)
                self._pool.refill(_OPEN_LOOP_SPARE)
            while tasks or (waiting and self._stopping is None):
                free_slot.clear()
                await free_slot.wait()
        finally:
            timer.close()
        self._finished.extend(waiting)

    def _new_request(self, index: int, prepared: contents.Prepared, scheduled_ns: int | None = None) -> _Request:
        scheduled = time.perf_counter_ns() if scheduled_ns is None else scheduled_ns
        return _Request(index, prepared, scheduled, scheduled)

    async def _carry_out(self, request: _Request, *, closed: bool = False) -> None:
        """Send one request and wait for its end; one that a closing connection swallowed is sent again."""
        live = self._live
        live.in_flight.add(request)
        try:
            while True:
                await self._attempt(request, closed=closed)
                exchange = request.exchange
                if exchange is None or not self._was_swallowed(request, exchange):
                    break
                self._reconnects += 1
                request.exchange = request.connection = None
        finally:
            live.in_flight.discard(request)
            request.ended_ns = request.ended_ns or time.perf_counter_ns()
            self._finished.append(request)
            self._count(live, request)

    async def _attempt(self, request: _Request, *, closed: bool) -> None:
        try:
            connection, opened_s = await self._pool.take_or_open()
        except CannotConnectError as error:
            request.error = str(error)
            request.ended_ns = time.perf_counter_ns()
            return
        if opened_s is not None:
            if closed:  # nobody waits in a closed loop: the schedule begins when there is a connection
                request.scheduled_ns = request.allowed_ns = connection.opened_ns
            request.connect_s = (request.connect_s or 0.0) + opened_s
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def on_end(_exchange: Exchange) -> None:
            if not ended.done():
                ended.set_result(None)

        exchange = request.exchange = Exchange(on_end)
        request.connection = connection
        if self._stopping is not None:
            request.cancelled = True
            connection.give_up(f"cancelled: {self._stopping}")
            exchange.end(f"cancelled: {self._stopping}", time.perf_counter_ns())
            return
        timeout_s = self._plan.timeout_s
        limit = loop.call_later(timeout_s, connection.give_up, f"timed out after {timeout_s:g} s")
        try:
            connection.send(exchange, self._message(request))
            await ended
        finally:
            limit.cancel()
            self._pool.give_back(connection)
        request.ended_ns = exchange.ended_ns

    def _message(self, request: _Request) -> bytes:
        body = request.prepared.body
        label = f"{self._live.phase}-{request.index}"
        return b"%bx-request-id: %b\r\ncontent-length: %d\r\n\r\n%b" % (self._head, label.encode(), len(body), body)

    @staticmethod
    def _was_swallowed(request: _Request, exchange: Exchange) -> bool:
        """A connection used before was closed by the server just when the request went out."""
        connection = request.connection
        return (
            exchange.error is not None
            and not request.cancelled
            and exchange.bytes_received == 0
            and connection is not None
            and connection.uses > 1
            and not exchange.error.startswith("timed out")
        )

    def _count(self, live: _Live, request: _Request) -> None:
        exchange = request.exchange
        error = request.error if exchange is None else exchange.error
        if error is None and exchange is not None:
            live.completed += 1
            if exchange.first_ns:
                live.new_ttft_ms.append((exchange.first_ns - request.scheduled_ns) / 1e6)
        else:
            live.failed += 1
            live.last_error = error
        if exchange is not None:
            live.chunks_of_ended += exchange.chunks

    # What came of it.

    def _rows(self, part: RowPart, origin: int) -> list[RequestRow]:
        return [_row(part, request, origin) for request in sorted(self._finished, key=lambda item: item.index)]

    def _never_sent(self, prepared: Sequence[contents.Prepared], rows: Sequence[RequestRow]) -> list[RequestRow]:
        seen = {row.index for row in rows}
        reason = f"not sent: {self._stopping}"
        return [
            RequestRow(
                "measured",
                index,
                "cancelled",
                scheduled_s=0.0,
                requested_input=item.requested_input,
                requested_output=item.output,
                error=reason,
            )
            for index, item in enumerate(prepared)
            if index not in seen
        ]

    def progress(self) -> LoadProgress:
        """Return how far it is; medians and rates are those since the call before."""
        live, now = self._live, time.perf_counter_ns()
        chunks = live.chunks_of_ended + sum(
            request.exchange.chunks for request in live.in_flight if request.exchange is not None
        )
        before_ns, before = self._progress_at
        self._progress_at = (now, chunks)
        fresh, live.new_ttft_ms = live.new_ttft_ms, []
        seconds = (now - before_ns) / _SECOND
        return LoadProgress(
            phase=live.phase,
            in_flight=len(live.in_flight),
            completed=live.completed,
            failed=live.failed,
            total=live.total,
            elapsed_s=(now - live.began_ns) / _SECOND,
            output_tokens=chunks,
            ttft_ms=median(fresh) if fresh else None,
            tokens_per_s=(chunks - before) / seconds if seconds > 0 and chunks >= before else None,
            last_error=live.last_error,
        )


def _row(part: RowPart, request: _Request, origin: int) -> RequestRow:
    exchange, prepared = request.exchange, request.prepared

    def seconds(value: int) -> float | None:
        return None if value == 0 else (value - origin) / _SECOND

    error = request.error if exchange is None else exchange.error
    if exchange is None:
        status = "failed" if request.error else "cancelled"
        return RequestRow(
            part,
            request.index,
            "failed" if status == "failed" else "cancelled",
            scheduled_s=(request.scheduled_ns - origin) / _SECOND,
            ended_s=seconds(request.ended_ns),
            requested_input=prepared.requested_input,
            requested_output=prepared.output,
            error=error or "not sent",
        )
    usage = exchange.stream.usage
    details = None if usage is None else usage.prompt_tokens_details
    return RequestRow(
        part=part,
        index=request.index,
        status="completed" if error is None else ("cancelled" if request.cancelled else "failed"),
        scheduled_s=(request.scheduled_ns - origin) / _SECOND,
        sent_s=seconds(exchange.sent_ns),
        waited_s=(request.allowed_ns - request.scheduled_ns) / _SECOND,
        connect_s=request.connect_s,
        first_content_s=seconds(exchange.first_ns),
        last_content_s=seconds(exchange.last_ns),
        ended_s=seconds(exchange.ended_ns),
        http_status=exchange.http_status,
        prompt_tokens=None if usage is None else usage.prompt_tokens,
        output_tokens=None if usage is None else usage.completion_tokens,
        cached_tokens=None if details is None else details.cached_tokens,
        requested_input=prepared.requested_input,
        requested_output=prepared.output,
        chunks=exchange.chunks,
        coalesced=exchange.coalesced,
        gaps_us=tuple(exchange.gaps_us),
        finish_reason=exchange.stream.finish_reason,
        streamed=exchange.streamed,
        error=error,
    )


def _with_notes(health: ClientHealth, notes: Sequence[str]) -> ClientHealth:
    return replace(health, warnings=(*health.warnings, *notes)) if notes else health


def _utc_now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
