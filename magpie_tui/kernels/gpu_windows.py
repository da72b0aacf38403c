"""The timed windows of a block on a GPU: device stamps, event pairs as the second method, and ``call_time`` beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from magpie_tui.kernels.blocks import Block, Keep, KeptOutputs, NothingTimedError
from magpie_tui.kernels.device_stamps import StampsError, read_dispatches, split_calls
from magpie_tui.kernels.dispatches import Dispatch, device_span_ns
from magpie_tui.kernels.gate import Candidate
from magpie_tui.kernels.judges import Judge
from magpie_tui.kernels.model import Series, Window
from magpie_tui.kernels.rotation import Rotation
from magpie_tui.kernels.sessions import MarkedWindows, Message, Session, SessionFailedError
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.telemetry import DeviceReading, GpuSampler, summary, void_at
from magpie_tui.statistics.intervals import median

_EMPTY_PAIRS = 20
_LEAST_BUSY = 0.8
"""Share of event pairs that must have stood behind a busy stream; the others measured a launch."""
MOST_GRAPH_SETS = 16


@dataclass
class GpuTiming:
    """Times warmed-up processes on the GPU, one block after another.

    Attributes:
        sampler: Reads clocks and throttles all the time.
        no_stamps: Why device stamps cannot be had on this device; None when they can, or before the first block.
        stamped: A block has given device stamps.
        no_graph: Arm to the reason why its calls cannot be captured.
    """

    settings: TimingSettings
    judge: Judge
    timeout_s: float
    sampler: GpuSampler | None
    no_stamps: str | None = None
    stamped: bool = False
    no_graph: dict[int, str] = field(default_factory=dict)

    def run(
        self,
        session: Session,
        candidate: Candidate,
        warm_up: Sequence[Window],
        plan: Rotation,
        keep: Keep,
        *,
        share_s: float,
    ) -> tuple[Block, KeptOutputs]:
        """Run the timed windows of a block.

        Raises:
            SessionFailedError: The kernel did not answer.
            NothingTimedError: It ran nothing on the device.
        """
        call_s = max(1e-9, warm_up[-1].seen_per_call_ns / 1e9)
        fitting = max(5, int(share_s / (2 * call_s)))
        count = min(self.settings.windows, fitting)
        began_ns = warm_up[-1].seen_ended
        stamps, kept = self._stamps(session, candidate, plan, keep, min(self.settings.stamped_windows, fitting))
        pairs = self._pairs(session, plan, min(count, self.settings.second_windows))
        notes: dict[str, str] = {}
        kernels = kernels_of(stamps) if stamps is not None else ()
        calls = min(count, self.settings.call_windows)
        call, note = self._call_time(session, candidate, warm_up[-1], plan, calls, kernels)
        if note is not None:
            notes["graph_replay"] = note
        wants_calls = self.settings.quantity == "call_time"
        if stamps is None and not wants_calls:
            if pairs is None:
                raise SessionFailedError("invalid", f"no method gives its device time here: {self.no_stamps}")
            notes["device_stamps"] = str(self.no_stamps)
        device = stamps if stamps is not None else pairs
        series = [item for item in (stamps, pairs, call) if item is not None]
        main = call if wants_calls or device is None else device
        readings = self._readings(began_ns, main)
        main = without_void(main, readings)
        block = Block(
            tuple(warm_up),
            main,
            tuple(item for item in series if item.method != main.method),
            kernels,
            summary(readings) if self.sampler is not None else {},
            notes,
        )
        return block, kept

    def _stamps(
        self, session: Session, candidate: Candidate, plan: Rotation, keep: Keep, count: int
    ) -> tuple[Series | None, KeptOutputs]:
        """Trace ``count`` calls; without a tracer the windows give no series and their outputs are still checked."""
        if self.no_stamps is not None:
            return None, KeptOutputs({}, {}, 1)
        files = keep(candidate, count, 1)
        trace = self.judge.path("trace")
        request: Message = {"do": "device_windows", "method": "traced", "count": count, "repeats": 1, "keep": files}
        request |= {"settle": self.settings.settle, "trace": str(trace)}
        marked = session.run_marked(request, timeout_s=self.timeout_s)
        kept = KeptOutputs(files, marked.kept, 1)
        try:
            calls = split_calls(read_dispatches(trace), calls=count, settle=self.settings.settle)
        except StampsError as error:
            if self.stamped:
                raise SessionFailedError("invalid", f"its device stamps cannot be read: {error}") from error
            self.no_stamps = str(error)
            return None, kept
        finally:
            trace.unlink(missing_ok=True)
        self.stamped = True
        return self._series_of(marked, calls, plan), kept

    def _series_of(self, marked: MarkedWindows, calls: Sequence[tuple[Dispatch, ...]], plan: Rotation) -> Series:
        if not all(calls):
            raise NothingTimedError("no_kernel_launched: a timed call ran nothing on the device")
        windows = []
        for (window, _mark), dispatches in zip(marked.windows, calls, strict=True):
            windows.append(replace(window, dispatches=dispatches))
        _bounded(windows)
        return Series("device_time", "device_stamps", plan.state(1), tuple(windows))

    def _pairs(self, session: Session, plan: Rotation, count: int) -> Series | None:
        """Time calls between events; None when the stream could not be kept busy in front of them."""
        shown = session.ask({"do": "empty_pairs", "count": _EMPTY_PAIRS}, timeout_s=self.timeout_s)["shown_ns"]
        request: Message = {"do": "device_windows", "method": "paired", "count": count, "repeats": 1, "keep": {}}
        marked = session.run_marked(request, timeout_s=self.timeout_s)
        windows = tuple(
            replace(window, event_ns=float(mark["event_ns"])) for window, mark in marked.windows if mark["busy"]
        )
        if len(windows) < _LEAST_BUSY * count:
            return None
        offset = median([float(value) for value in shown])
        return Series("device_time", "event_pairs", plan.state(1), windows, offset_ns=offset)

    def _call_time(
        self, session: Session, candidate: Candidate, last: Window, plan: Rotation, count: int, kernels: Sequence[str]
    ) -> tuple[Series, str | None]:
        """Time whole calls by the clock, or replayed from graphs when they are short; and why not from graphs.

        Capturing comes last: a process in which it fails may be of no use afterwards.
        """
        windows, _kept = session.run_windows(count=count, repeats=last.repeats, keep={}, timeout_s=self.timeout_s)
        direct = Series("call_time", "perf_counter_ns", plan.state(last.repeats), tuple(windows))
        index = candidate.index
        if candidate.entry.in_place or last.per_call_ns >= self.settings.graph_below_s * 1e9:
            return direct, None
        if index in self.no_graph:
            return direct, self.no_graph[index]
        sets = min(plan.copies, MOST_GRAPH_SETS)
        trace = self.judge.path("trace")
        try:
            session.ask({"do": "capture", "count": sets, "trace": str(trace)}, timeout_s=self.timeout_s)
            (replay,) = split_calls(read_dispatches(trace), calls=1, settle=0)
            if kernels and len(replay) != len(kernels):
                self.no_graph[index] = f"a replay runs {len(replay)} kernels instead of {len(kernels)}"
                return direct, self.no_graph[index]
            return self._replayed(session, last, replace(plan, copies=sets), count), None
        except (SessionFailedError, StampsError) as error:
            self.no_graph[index] = str(error)
            return direct, self.no_graph[index]
        finally:
            trace.unlink(missing_ok=True)

    def _replayed(self, session: Session, last: Window, plan: Rotation, count: int) -> Series:
        request: Message = {"do": "device_windows", "method": "replayed", "count": count, "keep": {}}
        marked = session.run_marked({**request, "repeats": last.repeats}, timeout_s=self.timeout_s)
        windows = tuple(window for window, _mark in marked.windows)
        return Series("call_time", "graph_replay", plan.state(last.repeats), windows)

    def _readings(self, began_ns: int, main: Series) -> list[DeviceReading]:
        if self.sampler is None or not main.windows:
            return []
        return self.sampler.between(began_ns, main.windows[-1].seen_ended)


def _bounded(windows: Sequence[Window]) -> None:
    """Hold traced windows against the clocks: no call is longer on the device than its window was.

    The parent may see a start mark late and its end mark in time, so it bounds all windows together.

    Raises:
        SessionFailedError: The stamps claim more time than there was.
    """
    spans = [device_span_ns(window.dispatches or ()) or 0.0 for window in windows]
    whole = windows[-1].seen_ended - windows[0].seen_started
    beyond = any(span > window.ended - window.started for span, window in zip(spans, windows, strict=True))
    if beyond or sum(spans) > whole:
        raise SessionFailedError("invalid", "its device stamps claim more time than the clocks saw")


def kernels_of(series: Series) -> tuple[str, ...]:
    """Return the names of what most calls of a traced series ran, in order."""
    seen = Counter(tuple(item.name for item in window.dispatches or ()) for window in series.windows)
    return seen.most_common(1)[0][0] if seen else ()


def without_void(series: Series, readings: Sequence[DeviceReading]) -> Series:
    """Leave out the windows that the hardware's own readings void, and count them by reason."""
    void = Counter[str]()
    good = []
    for window in series.windows:
        reason = void_at(readings, window.seen_started)
        if reason is None:
            good.append(window)
        else:
            void[reason] += 1
    if not void:
        return series
    discarded: Mapping[str, int] = {**series.discarded, **void}
    return replace(series, windows=tuple(good), discarded=discarded)
