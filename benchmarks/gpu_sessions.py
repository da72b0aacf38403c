"""Processes with kernels of ``gpu_kernels/`` loaded, driven by the requests that ``analyze`` uses, without a gate."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels.device_stamps import read_dispatches, split_calls
from magpie_tui.kernels.dispatches import Dispatch
from magpie_tui.kernels.gate import Candidate
from magpie_tui.kernels.sessions import Harness, MarkedWindows, Message, Session

KERNELS = Path(__file__).resolve().parent / "gpu_kernels"
TIMEOUT_S = 120.0
SETTLE = 3


class GpuSessions:
    """Opens processes with a kernel loaded. Close it.

    Args:
        directory: For logs, inputs and traces.
        environment: Added to the processes' environment.
    """

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.loaded: Message = {}
        self._number = 0
        self._harness = Harness(
            python=sys.executable,
            environment={**os.environ, **(environment or {})},
            directory=None,
            log=directory / f"harness_{id(self)}.log",
            start_timeout_s=TIMEOUT_S,
        )

    def candidate(self, name: str) -> Candidate:
        """Return the kernel of a file."""
        source = KERNELS / f"{name}.py"
        entry = KernelEntry(name, "pytorch", (source,))
        return Candidate(0, entry, source, self._harness, self.directory, 1, None, 7, TIMEOUT_S)

    def path(self, name: str) -> Path:
        """Return a new path."""
        self._number += 1
        return self.directory / f"{name}_{id(self)}_{self._number}"

    @contextmanager
    def session(
        self, name: str, *, sets: int = 2, rotation: int = 4, flush: bool = True, fresh: bool = False
    ) -> Iterator[Session]:
        """Open a process with a kernel and its inputs loaded, and warm it up."""
        candidate = self.candidate(name)
        inputs = [candidate.own_inputs(seed, self.path("inputs")) for seed in range(sets)]
        try:
            with candidate.open(None, log=name, fresh=fresh) as session:
                self.loaded = candidate.loaded
                size = int((candidate.loaded.get("caches") or {}).get("flush_bytes") or 0)
                request: Message = {"do": "sets", "inputs": [str(path) for path in inputs], "rotation": rotation}
                session.ask({**request, "flush_bytes": size if flush else None}, timeout_s=TIMEOUT_S)
                session.run_windows(count=5, repeats=2, keep={}, timeout_s=TIMEOUT_S)
                yield session
        finally:
            for path in inputs:
                path.unlink(missing_ok=True)

    def traced(self, session: Session, count: int = 20) -> tuple[list[tuple[Dispatch, ...]], MarkedWindows]:
        """Trace calls and return what each ran."""
        trace = self.path("trace")
        request: Message = {"do": "device_windows", "method": "traced", "count": count, "repeats": 1, "keep": {}}
        marked = session.run_marked({**request, "settle": SETTLE, "trace": str(trace)}, timeout_s=TIMEOUT_S)
        try:
            return split_calls(read_dispatches(trace), calls=count, settle=SETTLE), marked
        finally:
            trace.unlink(missing_ok=True)

    def windows(self, session: Session, method: str, count: int, repeats: int = 1) -> MarkedWindows:
        """Run windows by another method."""
        request: Message = {"do": "device_windows", "method": method, "count": count, "repeats": repeats, "keep": {}}
        return session.run_marked(request, timeout_s=TIMEOUT_S)

    def close(self) -> None:
        """End the processes."""
        self._harness.close()
