"""Runs ``magpie-tui`` with a limit of time: shows its steps as they come, and where its processes stand if it hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.processes.identity import descendants, identify, signal_process

ROOT = Path(__file__).resolve().parent.parent
POLL_S = 0.25
DUMP_S = 3.0
"""Time for the processes to write their stacks."""
DUMP_LINES = 40


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that is over.

    Attributes:
        workspace: None when it did not get as far.
        hung: It was ended at the limit.
        said: The end of what it printed.
    """

    status: int
    workspace: Path | None
    hung: bool
    seconds: float
    said: str


class _Steps:
    """Prints the events of a run as they are written, with the time since it started."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._read: dict[Path, int] = {}
        self._started = time.monotonic()
        self.workspace: Path | None = None

    def show(self) -> None:
        """Print what is new."""
        for path in self._output.glob(".magpie-tui/runs/*/events.jsonl"):
            lines = path.read_text(errors="replace").splitlines()
            for line in lines[self._read.get(path, 0) :]:
                event = json.loads(line)
                self.workspace = Path(event["workspace"]) if event.get("workspace") else self.workspace
                done = "" if event.get("done") is None else f" {event['done']:g} of {event.get('total') or 0:g}"
                elapsed = time.monotonic() - self._started
                print(f"  {elapsed:6.1f} s  {event['step']}{done} {event.get('message', '')}", flush=True)
            self._read[path] = len(lines)


def _dump(process: subprocess.Popen[bytes], place: Path) -> None:
    """Let every process write its stacks and end, and print the ends of all logs below ``place``."""
    own = identify(process.pid)
    family = [*descendants(process.pid), *([own] if own is not None else [])]
    for member in family:
        try:
            command = Path(f"/proc/{member.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            waits_in = Path(f"/proc/{member.pid}/wchan").read_text(errors="replace")
        except OSError:
            continue
        print(f"  process {member.pid} ({waits_in}): {command[:160]}")
    for member in family:
        signal_process(member, signal.SIGABRT)
    time.sleep(DUMP_S)
    for member in family:
        signal_process(member, signal.SIGKILL)
    for path in sorted(place.rglob("*")):
        if path.suffix in (".log", ".stderr", ".err") and path.is_file():
            text = path.read_text(errors="replace").strip().splitlines()
            if text:
                print(f"--- {path}", *text[-DUMP_LINES:], sep="\n", flush=True)


def run_watched(arguments: list[str], output: Path, *, limit_s: float) -> Ended:
    """Run ``magpie-tui`` with workspaces in ``output``; at ``limit_s`` its processes say where they are, and end."""
    output.mkdir(parents=True, exist_ok=True)
    # Every interpreter that it starts writes its stacks when it is aborted.
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "magpie_tui", *arguments, "-o", str(output)]
    stdout, stderr = output / "run.out", output / "run.err"
    steps, started, hung = _Steps(output), time.monotonic(), False
    with stdout.open("wb") as out, stderr.open("wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment, cwd=ROOT, start_new_session=True)
        while process.poll() is None:
            steps.show()
            if time.monotonic() - started > limit_s:
                hung = True
                print(f"  no end after {limit_s:g} s: where its processes stand", flush=True)
                _dump(process, output)
                break
            time.sleep(POLL_S)
        status = process.wait()
    steps.show()
    said = f"{stdout.read_text(errors='replace')[-4000:]}\n{stderr.read_text(errors='replace')[-3000:]}"
    return Ended(status, steps.workspace, hung, time.monotonic() - started, said)
