"""What is looked at while a load runs: is the server alive, what does its log say, is it worth going on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.serving.control import metrics_text
from magpie_tui.serving.counters import read_counters
from magpie_tui.serving.lifecycle import RunningServer
from magpie_tui.serving.live import LiveSample, LiveWriter
from magpie_tui.serving.load.model import LoadProgress, LoadResult
from magpie_tui.serving.model import Phase, Reporter, RunRequest, ServerFlag
from magpie_tui.serving.server_log import Expectation, ServerLog
from magpie_tui.serving.telemetry import GpuMonitor

if TYPE_CHECKING:
    from magpie_tui.serving.outcome import Findings

_LOOK_S = 0.5
_SCRAPE_S = 2.0
_SCRAPE_TIMEOUT_S = 1.0
"""A server that hangs must not keep us from noticing it."""
_DEATH_S = 1.0
"""Refused connections are seen sooner than the end of the process behind them."""
_GUARD_AFTER_S = 20.0
_GUARD_AFTER_SHARE = 0.25
"""A throughput guard decides when so much time or so large a part of the load has passed, whichever is later."""

_GAUGES: Mapping[str, tuple[str, ...]] = {
    "running": ("vllm:num_requests_running", "sglang:num_running_reqs"),
    "waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs"),
    "kv_cache": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
    "preempted": ("vllm:num_preemptions_total", "sglang:num_retracted_reqs"),
    "cache_hits": ("sglang:cache_hit_rate",),
}


class RunWatch:
    """The callbacks of a load.

    Attributes:
        phase: What goes on; set by the run.
        reason: Why the load is to end; None while all is well.
        server_end: Why the server died; None while it lives.
        kernels_built: Flags about built kernels so far.
    """

    def __init__(
        self,
        server: RunningServer,
        live: LiveWriter,
        report: Reporter,
        found: Findings,
        request: RunRequest,
        expected: Expectation | None,
        out_of_time: Callable[[], str | None],
        config: BenchmarkConfig,
        monitor: GpuMonitor,
    ) -> None:
        self.phase = Phase.warm_up
        self.reason: str | None = None
        self.server_end: str | None = None
        self.kernels_built = 0
        self._server, self._live, self._report, self._found = server, live, report, found
        self._guard = request.guard_output_throughput
        stop_on = config.value("load.stop_on")
        own = tuple(map(str, stop_on)) if isinstance(stop_on, tuple) else ()
        self._stop_on = frozenset((*request.stop_on_flags, *own))
        self._log = None if server.log_path is None else ServerLog(server.log_path, expected or Expectation())
        self._out_of_time = out_of_time
        self._monitor = monitor
        self._looked_at = float("-inf")
        self._scraped_at = float("-inf")
        self._server_figures: dict[str, float] = {}
        self._measured: LoadProgress | None = None
        if self._log is not None:
            self.phase = Phase.start
            self.read_log()

    def cancelled(self) -> bool:
        """Whether the load is to end now; asked often."""
        now = time.monotonic()
        if self.reason is None and now - self._looked_at >= _LOOK_S:
            self._looked_at = now
            self.server_end = self._server.ended()
            self.read_log()
            self.reason = self.server_end or self.reason or self._out_of_time() or self._too_slow()
        return self.reason is not None

    def look_at_server(self, result: LoadResult) -> None:
        """After a load: if requests failed, did the server die under them?"""
        if result.failed and self._server.child is not None:
            self._server.child.wait(_DEATH_S)
        self.server_end = self.server_end or self._server.ended()
        self.read_log()

    def read_log(self) -> None:
        """Take in what the server has written since."""
        if self._log is None:
            return
        for flag in self._log.read(self.phase):
            self._take_flag(flag)

    def _take_flag(self, flag: ServerFlag) -> None:
        self._found.flags.append(flag)
        self._live.flag(flag)
        self._report.note(f"{flag.text} (server.log line {flag.line})")
        if flag.kind == "kernel_built":
            self.kernels_built += 1
        if flag.kind in self._stop_on and self.reason is None:
            self.reason = f"{flag.kind}: {flag.text} (server.log line {flag.line})"

    def _too_slow(self) -> str | None:
        """The guard: a run far below its baseline is not worth its minutes."""
        last = self._measured
        if self._guard is None or last is None or last.elapsed_s < _GUARD_AFTER_S or not last.total:
            return None
        if (last.completed + last.failed) / last.total < _GUARD_AFTER_SHARE:
            return None
        rate = last.output_tokens / last.elapsed_s
        if rate >= self._guard:
            return None
        return f"slower than its guard: {rate:,.1f} tok/s so far, at least {self._guard:,.1f} wanted"

    def progress(self, progress: LoadProgress) -> None:
        """Pass on how far the load is."""
        if self.phase is Phase.measure and progress.phase == "measuring":
            self._measured = progress
        now = time.monotonic()
        if now - self._scraped_at >= _SCRAPE_S:
            self._scraped_at = now
            text = metrics_text(self._server.base_url, timeout_s=_SCRAPE_TIMEOUT_S)
            self._server_figures = {} if text is None else figures_of(read_counters(text))
        done = progress.completed
        self._report.progress(self.phase, done, progress.total, "requests", self._said(progress))
        self._live.sample(
            LiveSample(
                at_s=round(self._live.run_s, 3),
                phase=self.phase.value,
                phase_s=round(progress.elapsed_s, 3),
                in_flight=progress.in_flight,
                done=done,
                failed=progress.failed,
                total=progress.total,
                tokens_per_s=progress.tokens_per_s,
                ttft_ms=progress.ttft_ms,
                server=self._server_figures,
                gpus=self._gpus(),
                message=progress.last_error or "",
            )
        )

    def _said(self, progress: LoadProgress) -> str:
        rate = "" if progress.tokens_per_s is None else f"{progress.tokens_per_s:,.0f} tok/s so far"
        failed = f"{progress.failed} failed" if progress.failed else ""
        return ", ".join(word for word in (rate, failed) if word)

    def _gpus(self) -> dict[str, dict[str, float]]:
        latest = {str(sample.index): dict(sample.values) for sample in self._monitor.newest()}
        return latest


def figures_of(counters: Mapping[str, float]) -> dict[str, float]:
    """Return the gauges that a screen shows, by short name."""
    found: dict[str, float] = {}
    for name, exposed in _GAUGES.items():
        for key in exposed:
            if key in counters:
                found[name] = counters[key]
                break
    queries = counters.get("vllm:prefix_cache_queries_total")
    if queries:
        found["cache_hits"] = counters.get("vllm:prefix_cache_hits_total", 0.0) / queries
    return found
