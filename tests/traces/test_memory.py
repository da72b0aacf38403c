"""Memory stays within the bound that docs/traces.md states, however much text a trace unpacks to."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from benchmarks.traces import grow, run, small_trace

_BYTES_AN_EVENT = 60
_BYTES_A_READER = 60_000_000
_CONSTANT_BYTES = 250_000_000
_TEXT_BYTES = int(os.environ.get("MAGPIE_TUI_TEST_TRACE_MB", "250")) * 1_000_000


def test_a_large_trace_stays_within_the_stated_memory(tmp_path: Path) -> None:
    path = tmp_path / "large-rank-0.pt.trace.json.gz"
    grow(small_trace(), path, _TEXT_BYTES)
    command = [sys.executable, "-m", "magpie_tui", "trace", "kernels", str(path), "--json"]
    cost = run(command, {**os.environ, "MAGPIE_TUI_CACHE_DIR": str(tmp_path / "cache")})
    path.unlink()
    quality = json.loads(cost.stdout)["magpie_tui"]["quality"]
    readers = len(os.sched_getaffinity(0))
    bound = _BYTES_AN_EVENT * quality["events"] + _BYTES_A_READER * readers + _CONSTANT_BYTES
    assert quality["status"] == "ok"
    assert cost.peak_bytes <= bound
