"""Exercises every way of timing on the GPU of this machine and says what failed, in about a minute.

Each check uses the same processes, requests and readers as ``magpie-tui analyze``, on kernels of ``gpu_kernels/``; the
last one is a whole comparison by the command line.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from benchmarks.gpu_sessions import KERNELS, TIMEOUT_S, GpuSessions
from magpie_tui.kernels.device_stamps import read_dispatches, split_calls
from magpie_tui.kernels.dispatches import device_span_ns, device_sum_ns, overlap
from magpie_tui.kernels.sessions import SessionFailedError
from magpie_tui.kernels.telemetry import GpuSampler, summary
from magpie_tui.statistics.intervals import median

COMPARE = """
kernels:
  - id: torch
    type: pytorch
    source_file_path: {directory}/torch_add.py
  - id: triton
    type: triton
    source_file_path: {directory}/triton_add.py
"""


class CheckFailedError(Exception):
    """A check did not hold."""


def expect(holds: bool, message: str) -> None:
    """Fail the running check when something does not hold."""
    if not holds:
        raise CheckFailedError(message)


class Smoke:
    """The checks, and what they share."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sessions = GpuSessions(directory)
        self.small = GpuSessions(directory, {"VECTOR_ELEMENTS": "80000"})
        self.stamps_ns: dict[str, float] = {}

    def close(self) -> None:
        """End the processes."""
        self.sessions.close()
        self.small.close()

    def check_machine(self) -> str:
        """The GPU, its caches, a process that is forked."""
        candidate = self.sessions.candidate("torch_add")
        candidate.open(None, log="machine").close()
        loaded = candidate.loaded
        expect(loaded["device"] == "cuda", f"the child sees no GPU: {loaded}")
        expect(bool(loaded["caches"]["flush_bytes"]), f"the size of the cache is unknown: {loaded['caches']}")
        return f"{loaded['device_name']}, torch {loaded['torch']}, caches {loaded['caches']}"

    def check_stamps(self, name: str, *, fresh: bool = False) -> str:
        """Device stamps of a kernel of 94 MB."""
        with self.sessions.session(name, fresh=fresh) as session:
            calls, marked = self.sessions.traced(session, 30)
        counts = {len(call) for call in calls}
        names = sorted({item.name[:60] for call in calls for item in call})
        expect(counts == {1}, f"kernels a call: {counts}, {names}")
        times = [device_sum_ns(call) for call in calls]
        self.stamps_ns[name] = median(times)
        seen = [window.seen_ended - window.seen_started for window, _mark in marked.windows]
        own = [window.ended - window.started for window, _mark in marked.windows]
        expect(all(time <= wall for time, wall in zip(times, own, strict=True)), "stamps exceed the process's clock")
        rate = 12 * 7_800_000 / median(times)
        return (
            f"{median(times) / 1e3:.2f} us (min {min(times) / 1e3:.2f}, max {max(times) / 1e3:.2f}), {rate:.0f} GB/s, "
            f"parent saw {median([float(value) for value in seen]) / 1e3:.0f} us, {names}"
        )

    def check_streams(self) -> str:
        """Work on two streams belongs to the call; its sum exceeds its span."""
        with self.sessions.session("two_streams") as session:
            calls, _marked = self.sessions.traced(session)
        total, span = device_sum_ns(calls[-1]), device_span_ns(calls[-1])
        streams = {item.stream for item in calls[-1]}
        names = [item.name[:40] for item in calls[-1]]
        expect(span is not None and overlap(calls[-1]), f"no overlap seen: sum {total}, span {span}, {names}")
        expect(len(streams) == 2, f"streams: {streams}")
        return f"sum {total / 1e3:.1f} us, span {(span or 0) / 1e3:.1f} us, streams {streams}, {len(names)} kernels"

    def check_events(self) -> str:
        """Event pairs behind a busy stream, less what an empty pair shows, agree with the stamps."""
        with self.sessions.session("torch_add") as session:
            empty = median(session.ask({"do": "empty_pairs", "count": 20}, timeout_s=TIMEOUT_S)["shown_ns"])
            marked = self.sessions.windows(session, "paired", 20)
        busy = sum(bool(mark["busy"]) for _window, mark in marked.windows)
        shown = median([float(mark["event_ns"]) for _window, mark in marked.windows])
        stamp = self.stamps_ns.get("torch_add", shown)
        text = f"{shown / 1e3:.2f} us, an empty pair {empty / 1e3:.2f} us, stamps {stamp / 1e3:.2f} us, busy {busy}/20"
        expect(busy >= 18, f"the stream was idle in front of the pair: {text}")
        expect(abs(shown - empty - stamp) < 0.1 * stamp + 3000, f"the methods disagree: {text}")
        return text

    def check_graphs(self) -> str:
        """One graph an input set, replayed in rotation; one replay holds one call."""
        with self.small.session("torch_add", rotation=8) as session:
            calls, _marked = self.small.traced(session)
            trace = self.small.path("trace")
            answer = session.ask({"do": "capture", "count": 8, "trace": str(trace)}, timeout_s=TIMEOUT_S)
            replay = split_calls(read_dispatches(trace), calls=1, settle=0)[0]
            marked = self.small.windows(session, "replayed", 15, repeats=200)
            eager, _kept = session.run_windows(count=15, repeats=200, keep={}, timeout_s=TIMEOUT_S)
        replayed = median([window.per_call_ns for window, _mark in marked.windows])
        direct = median([window.per_call_ns for window in eager])
        expect(answer["graphs"] == 8, f"graphs: {answer}")
        expect(len(replay) == 1, f"one replay ran {[item.name for item in replay]}")
        stamp = median([device_sum_ns(call) for call in calls])
        return f"replayed {replayed / 1e3:.2f} us a call, direct {direct / 1e3:.2f} us, stamps {stamp / 1e3:.2f} us"

    def check_capture_refused(self) -> str:
        """A call that waits for the device cannot be captured, and the process says so."""
        with self.sessions.session("waits") as session:
            try:
                request = {"do": "capture", "count": 2, "trace": str(self.sessions.path("trace"))}
                session.ask(request, timeout_s=TIMEOUT_S)
            except SessionFailedError as error:
                reason = error.reason
            else:
                raise CheckFailedError("the capture did not fail")
            try:
                session.run_windows(count=2, repeats=1, keep={}, timeout_s=TIMEOUT_S)
                after = "the process goes on"
            except SessionFailedError as error:
                after = f"the process is of no use afterwards: {error.reason[:120]}"
        return f"{reason[:160]}; {after}"

    def check_flush(self) -> str:
        """Without the flush a kernel of 1 MB is faster: its inputs are still in the cache."""
        found = {}
        for flush in (True, False):
            with self.small.session("torch_add", flush=flush) as session:
                calls, _marked = self.small.traced(session, 40)
            found[flush] = median([device_sum_ns(call) for call in calls])
        text = f"cold {found[True] / 1e3:.2f} us, warm {found[False] / 1e3:.2f} us"
        expect(found[True] > found[False], text)
        return text

    def check_telemetry(self) -> str:
        """Clocks and throttles while a kernel runs."""
        sampler = GpuSampler(self.directory)
        try:
            expect(sampler.source is not None, str(sampler.reason))
            with self.sessions.session("torch_add") as session:
                started = time.perf_counter_ns()
                while time.perf_counter_ns() - started < 2_000_000_000:
                    session.run_windows(count=5, repeats=500, keep={}, timeout_s=TIMEOUT_S)
                ended = time.perf_counter_ns()
            readings = sampler.between(started, ended)
            log = (self.directory / "telemetry.stderr").read_text()[-300:]
            expect(bool(readings), f"no readings: {sampler.reason} {log}")
            void = {item.void_because() for item in readings[3:]}
            return f"{summary(readings)}, void: {void}"
        finally:
            sampler.close()

    def check_compare(self) -> str:
        """A whole comparison by the command line."""
        config = self.directory / "compare.yaml"
        config.write_text(COMPARE.format(directory=KERNELS))
        results = self.directory / "results"
        command = [sys.executable, "-m", "magpie_tui", "compare", "-k", str(config), "--quick", "-o", str(results)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        report = next(iter(results.glob("*/compare_report.json")), None)
        expect(report is not None, f"exit {done.returncode}: {(done.stdout + done.stderr)[-3000:]}")
        told = json.loads(report.read_text() if report is not None else "{}")
        whole = told["magpie_tui"]["timing"]
        shown = [whole.get(name) for name in ("quantity", "cache", "method", "reduction", "ended_by", "margin")]
        expect(whole["quantity"] == "device_time", f"{shown}, {(done.stdout + done.stderr)[-3000:]}")
        text = json.dumps([kernel["magpie_tui"] for kernel in told["results"]["kernel_results"]])
        return f"exit {done.returncode}, {whole['elapsed_s']} s, {shown}\n{done.stdout[-1800:]}\n{text[:6000]}"

    def run(self) -> int:
        """Run every check and print a line for each; returns how many failed."""
        checks: list[tuple[str, Callable[[], str]]] = [
            ("the GPU as a child sees it", self.check_machine),
            ("device stamps, PyTorch add of 94 MB", lambda: self.check_stamps("torch_add")),
            ("device stamps, new interpreter", lambda: self.check_stamps("torch_add", fresh=True)),
            ("device stamps, Triton add", lambda: self.check_stamps("triton_add")),
            ("device stamps, CUDA add by NVRTC", lambda: self.check_stamps("cuda_add")),
            ("two streams: sum and span", self.check_streams),
            ("event pairs", self.check_events),
            ("graph replay", self.check_graphs),
            ("a call that cannot be captured", self.check_capture_refused),
            ("cache flush", self.check_flush),
            ("telemetry", self.check_telemetry),
            ("magpie-tui compare --quick", self.check_compare),
        ]
        failed = 0
        for title, check in checks:
            started = time.monotonic()
            try:
                said, word = check(), "ok  "
            # Whatever goes wrong in one check is its result; the others still run.
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                said, word = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})", "FAIL"
                failed += 1
            print(f"{word} {title} [{time.monotonic() - started:.1f} s]: {said}", flush=True)
        self.close()
        if failed:
            for log in sorted(self.directory.glob("*.stderr")) + sorted(self.directory.glob("*.log")):
                text = log.read_text(errors="replace").strip()
                if text:
                    print(f"--- {log.name}\n{text[-1500:]}")
        return failed


def run_smoke() -> int:
    """Run the checks in a temporary directory; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="magpie-tui-smoke-") as directory:
        failed = Smoke(Path(directory)).run()
    print(f"{failed} of the checks failed" if failed else "every way of timing works here")
    return 1 if failed else 0
