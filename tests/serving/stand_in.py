"""Starts the streaming server of the tests, and short loads against it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from magpie_tui.serving.load.model import ClosedLoop, LoadPlan, RandomPrompts

SERVER = Path(__file__).with_name("streaming_server.py")


@dataclass(frozen=True)
class StandIn:
    """A running server."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def emitted(self) -> dict[str, dict[str, Any]]:
        """What it logged, by the label of the request."""
        rows = [json.loads(line) for line in self.log.read_text().splitlines()]
        return {row["label"]: row for row in rows}


@contextlib.contextmanager
def stand_in(directory: Path, *arguments: str) -> Iterator[StandIn]:
    """Run the server with these arguments until the block ends."""
    port_file, log = directory / "port", directory / "emits.jsonl"
    port_file.unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, str(SERVER), "--port-file", str(port_file), "--log", str(log), *arguments],
        stdout=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while not port_file.exists():
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server did not listen"
            time.sleep(0.01)
        yield StandIn(int(port_file.read_text()), process, log)
    finally:
        process.terminate()
        process.wait()


def short_plan(url: str, **changes: Any) -> LoadPlan:
    """Return a plan of a few short requests."""
    values: dict[str, Any] = {
        "base_url": url,
        "endpoint": "completions",
        "model": "tiny",
        "requests": 6,
        "arrival": ClosedLoop(2),
        "prompts": RandomPrompts(10, 20),
        "output_min": 5,
        "output_max": 9,
        "timeout_s": 20.0,
    }
    return LoadPlan(**{**values, **changes})
