"""Timed windows on a GPU: device stamps by the tracer, event pairs behind a busy stream, replayed graphs.

Every window is bracketed by marks on the socket, which the parent stamps itself. A traced window holds one call; two
marker kernels, with the whole device idle around them, say in the trace which kernels belong to it. The trace is a
file that the parent reads: nothing is added up here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from magpie_tui.kernels.harness.cold import CacheFlush, cache_sizes, flush_bytes

# Taken before any kernel's file is loaded, so that replacing the functions in their modules changes nothing here.
_clock = time.perf_counter_ns

Mark = Callable[[dict[str, Any]], None]
Fresh = Callable[[int], "tuple[list[int], list[list[Any]]]"]
Call = Callable[..., Any]

LONGEST_SPIN_S = 0.02
FASTEST_CLOCK_HZ = 3e9
"""A spin of so many cycles a second lasts at least a second on every GPU there is."""


def device_profiler() -> Any:
    """Return a profiler that records what runs on the device and nothing else.

    The class beside it in ``torch.profiler`` imports the compiler stack when it starts, which takes seconds in every
    process.
    """
    from torch.autograd.profiler import profile

    return profile(use_device="cuda", use_cpu=False, use_kineto=True)


class DeviceTimer:
    """Runs timed windows of one kernel on the GPU.

    Args:
        mark: Sends a frame to the parent.
        fresh: Copies the input sets of the next calls to new addresses.
    """

    def __init__(self, mark: Mark, fresh: Fresh) -> None:
        import torch

        self._mark = mark
        self._fresh = fresh
        self._synchronize: Any = torch.cuda.synchronize
        # A kernel that only counts cycles; with none to count it is a marker of about 1 us.
        self._spin: Any = torch.cuda._sleep
        self._event: Any = torch.cuda.Event
        self._profiler: Any = device_profiler
        self._no_grad: Any = torch.no_grad
        self._stream: Any = torch.cuda.Stream
        self._flush: CacheFlush | None = None
        self._graphs: list[tuple[Any, list[Any], Any]] = []
        self._graph_sets: list[int] = []

    def facts(self) -> dict[str, Any]:
        """Return what is known about the caches of this device."""
        sizes = cache_sizes()
        return {**sizes, "flush_bytes": flush_bytes(sizes)}

    def prepare(self, size_bytes: int | None) -> dict[str, Any]:
        """Allocate the buffer that is written between calls; without a size the caches stay as they are."""
        self._flush = CacheFlush("cuda", size_bytes) if size_bytes else None
        return {"resets_carve_outs": self._flush.resets_carve_outs if self._flush else False}

    def _clean(self) -> None:
        if self._flush is not None:
            self._flush()

    def traced(self, call: Call, request: dict[str, Any], keep: Callable[[int, Any, list[int]], None]) -> None:
        """Run ``count`` windows of one call under the tracer and write its trace to ``trace``."""
        with self._profiler() as profiler:
            for _ in range(request["settle"]):
                # The first kernels after the tracer starts pay for its buffers.
                self._spin(1)
                _which, copies = self._fresh(1)
                with self._no_grad():
                    call(*copies[0])
                self._synchronize()
            for window in range(request["count"]):
                which, copies = self._fresh(1)
                self._clean()
                self._synchronize()
                self._mark({"mark": "start"})
                started = _clock()
                self._spin(1)
                self._synchronize()
                with self._no_grad():
                    result = call(*copies[0])
                self._synchronize()
                ended = _clock()
                self._spin(1)
                self._mark({"mark": "end", "started": started, "ended": ended})
                keep(window, result, which)
            self._synchronize()
        profiler.export_chrome_trace(request["trace"])

    def paired(self, call: Call, request: dict[str, Any], keep: Callable[[int, Any, list[int]], None]) -> None:
        """Run ``count`` windows of one call between two events, with the stream kept busy in front of them.

        The end mark carries the time between the events in ns, and whether the stream was still busy when everything
        was queued; a pair behind an idle stream measures the launch instead.
        """
        spin = self._spin_for(call)
        for window in range(request["count"]):
            which, copies = self._fresh(1)
            begin, end = self._event(enable_timing=True), self._event(enable_timing=True)
            self._synchronize()
            self._mark({"mark": "start"})
            started = _clock()
            self._clean()
            self._spin(spin)
            begin.record()
            with self._no_grad():
                result = call(*copies[0])
            end.record()
            busy = not begin.query()
            self._synchronize()
            ended = _clock()
            elapsed = begin.elapsed_time(end) * 1e6
            self._mark({"mark": "end", "started": started, "ended": ended, "event_ns": elapsed, "busy": busy})
            keep(window, result, which)

    def _spin_for(self, call: Call) -> int:
        """Return how many cycles keep the stream busy while one call is queued: three times what queueing took."""
        longest = 0
        for _ in range(3):
            _which, copies = self._fresh(1)
            self._synchronize()
            started = _clock()
            with self._no_grad():
                call(*copies[0])
            longest = max(longest, _clock() - started)
            self._synchronize()
        seconds = min(LONGEST_SPIN_S, 3e-9 * longest + 3e-5)
        return int(seconds * FASTEST_CLOCK_HZ)

    def empty_pairs(self, count: int) -> list[float]:
        """Return what event pairs with nothing between them show behind a busy stream, in ns."""
        shown = []
        for _ in range(count):
            begin, end = self._event(enable_timing=True), self._event(enable_timing=True)
            self._synchronize()
            self._spin(int(3e-5 * FASTEST_CLOCK_HZ))
            begin.record()
            end.record()
            self._synchronize()
            shown.append(begin.elapsed_time(end) * 1e6)
        return shown

    def capture(self, call: Call, count: int) -> dict[str, Any]:
        """Capture one graph of one call for each of ``count`` input sets.

        Raises:
            RuntimeError: The call cannot be captured (it waits for the device, or copies to the host).
        """
        import torch

        which, sets = self._fresh(count)
        stream: Any = self._stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), self._no_grad():
            for _ in range(3):
                call(*sets[0])
        torch.cuda.current_stream().wait_stream(stream)
        self._synchronize()
        self._graphs = []
        for arguments in sets:
            graph = torch.cuda.CUDAGraph()
            with self._no_grad(), torch.cuda.graph(graph):
                result = call(*arguments)
            self._graphs.append((graph, arguments, result))
        self._graph_sets = which
        self._synchronize()
        return {"graphs": len(self._graphs)}

    def _refill(self) -> list[int]:
        """Give every graph's inputs new content at their old addresses; returns which sets."""
        which, fresh = self._fresh(len(self._graphs))
        for (_graph, arguments, _result), new in zip(self._graphs, fresh, strict=True):
            _copy_into(arguments, new)
        return which

    def replayed(self, request: dict[str, Any], keep: Callable[[int, Any, list[int]], None]) -> None:
        """Run ``count`` windows of ``repeats`` replays, rotating over the graphs."""
        repeats, graphs = request["repeats"], [graph for graph, _arguments, _result in self._graphs]
        count = len(graphs)
        for window in range(request["count"]):
            which = self._refill()
            self._clean()
            self._synchronize()
            self._mark({"mark": "start"})
            started = _clock()
            for step in range(repeats):
                graphs[step % count].replay()
            self._synchronize()
            ended = _clock()
            self._mark({"mark": "end", "started": started, "ended": ended})
            last = (repeats - 1) % count
            keep(window, self._graphs[last][2], [which[last]])

    def trace_replay(self, path: str) -> None:
        """Trace one replay of the first graph between two markers."""
        with self._profiler() as profiler:
            self._spin(1)
            self._synchronize()
            self._graphs[0][0].replay()
            self._synchronize()
            self._spin(1)
            self._synchronize()
        profiler.export_chrome_trace(path)


def _copy_into(target: Any, source: Any) -> None:
    """Copy the tensors of ``source`` into those of ``target``, in place."""
    import torch

    if isinstance(target, torch.Tensor):
        target.copy_(source)
    elif isinstance(target, (list, tuple)):
        for mine, theirs in zip(target, source, strict=True):
            _copy_into(mine, theirs)
    elif isinstance(target, dict):
        for key, mine in target.items():
            _copy_into(mine, source[key])
