"""Was the client the bottleneck? CPU share, lag of its own timer, lag of its sends."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from magpie_tui.serving.load.model import ClientHealth, RequestRow
from magpie_tui.serving.load.timer import PreciseTimer
from magpie_tui.statistics.intervals import percentile

CPU_LIMIT = 0.80
"""Of one core; measurement.md: above it the client queues what the server has already answered."""
CPU_WARNING = 0.70
SEND_LAG_LIMIT_MS = 5.0
SEND_LAG_SHARE = 0.01
"""Of the mean time between sends."""
LOOP_LAG_WARNING_MS = 5.0
COALESCED_WARNING = 0.10
SHORTEST_JUDGED_S = 1.0
"""In a shorter time the first steps of an interpreter, or one hiccup of the machine, count for too much to judge by."""
_BEAT_NS = 20_000_000
_SECOND_NS = 1_000_000_000


@dataclass(slots=True)
class HealthMonitor:
    """Beats while the load is measured.

    Attributes:
        lags_ns: How late each beat was.
        shares: CPU share of each full second.
    """

    lags_ns: list[int] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    _began: tuple[int, int] = (0, 0)
    _ended: tuple[int, int] = (0, 0)
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to beat, in the running loop."""
        self._began = (time.perf_counter_ns(), time.thread_time_ns())
        self._task = asyncio.ensure_future(self._beat())

    async def _beat(self) -> None:
        timer = PreciseTimer(asyncio.get_running_loop())
        try:
            second = self._began
            due = time.perf_counter_ns() + _BEAT_NS
            while True:
                await timer.wait_until(due)
                now = time.perf_counter_ns()
                self.lags_ns.append(now - due)
                if now - second[0] >= _SECOND_NS:
                    used = time.thread_time_ns()
                    self.shares.append((used - second[1]) / (now - second[0]))
                    second = (now, used)
                due = max(due + _BEAT_NS, now)
        finally:
            timer.close()

    def stop(self) -> None:
        """Stop beating."""
        self._ended = (time.perf_counter_ns(), time.thread_time_ns())
        if self._task is not None:
            self._task.cancel()

    @property
    def wall_s(self) -> float:
        """Time between start and stop."""
        return (self._ended[0] - self._began[0]) / _SECOND_NS

    @property
    def cpu_share(self) -> float | None:
        """CPU time of the thread that does the work / wall time between start and stop."""
        wall = self._ended[0] - self._began[0]
        return (self._ended[1] - self._began[1]) / wall if wall > 0 else None


def send_lags_ms(rows: Sequence[RequestRow]) -> list[float]:
    """Return how late each request left, waiting for a slot and opening of connections taken out."""
    lags = []
    for row in rows:
        if row.sent_s is not None:
            lags.append(max(0.0, row.sent_s - row.scheduled_s - row.waited_s - (row.connect_s or 0.0)) * 1e3)
    return lags


def judge_client(monitor: HealthMonitor, rows: Sequence[RequestRow], reconnects: int, library: str) -> ClientHealth:
    """Return the health of the client, with the reasons why its run may not be judged."""
    lags = send_lags_ms(rows)
    loop_lags = [value / 1e6 for value in monitor.lags_ns]
    sends = [row.sent_s for row in rows if row.sent_s is not None]
    gap_ms = (max(sends) - min(sends)) / (len(sends) - 1) * 1e3 if len(sends) > 1 else None
    chunks = sum(row.chunks for row in rows)
    coalesced = sum(row.coalesced for row in rows) / chunks if chunks else None
    lag_p99 = percentile(lags, 99) if lags else None
    loop_p99 = percentile(loop_lags, 99) if loop_lags else None
    share = monitor.cpu_share
    bound: list[str] = []
    warnings: list[str] = []
    judged = bound if monitor.wall_s >= SHORTEST_JUDGED_S else warnings
    if share is not None and share >= CPU_LIMIT:
        judged.append(f"the client used {share:.0%} of a core (limit {CPU_LIMIT:.0%})")
    elif share is not None and share >= CPU_WARNING:
        warnings.append(f"the client used {share:.0%} of a core: single latencies may be its own")
    if lag_p99 is not None and lag_p99 > SEND_LAG_LIMIT_MS and (gap_ms is None or lag_p99 > SEND_LAG_SHARE * gap_ms):
        judged.append(f"requests left late: 99th percentile {lag_p99:.1f} ms (limit {SEND_LAG_LIMIT_MS:g} ms)")
    if loop_p99 is not None and loop_p99 > LOOP_LAG_WARNING_MS:
        warnings.append(f"the client's own timer was late: 99th percentile {loop_p99:.1f} ms")
    if coalesced is not None and coalesced > COALESCED_WARNING:
        warnings.append(
            f"{coalesced:.0%} of the chunks came together with an earlier one: gaps between chunks (ITL) say little"
        )
    return ClientHealth(
        cpu_share=share,
        cpu_share_peak=max(monitor.shares, default=share),
        loop_lag_p99_ms=loop_p99,
        loop_lag_max_ms=max(loop_lags, default=None),
        send_lag_p50_ms=percentile(lags, 50) if lags else None,
        send_lag_p99_ms=lag_p99,
        send_lag_max_ms=max(lags, default=None),
        coalesced_share=coalesced,
        reconnects=reconnects,
        client_bound=tuple(bound),
        warnings=tuple(warnings),
        library=library,
    )


def library_text() -> str:
    """Return which HTTP library and loop do the work."""
    import httptools

    python = ".".join(map(str, sys.version_info[:3]))
    return f"httptools {httptools.__version__}, asyncio of Python {python}"
