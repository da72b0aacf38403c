"""A process is stopped with its children, and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from magpie_tui.processes import pausing, procfs
from magpie_tui.processes.pausing import go_on, pause

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
print(child.pid, flush=True)
while True:
    pass
"""


def _state(pid: int) -> str:
    stat = procfs.read_stat(pid)
    return "" if stat is None else stat.state


def _becomes(pid: int, states: str) -> bool:
    ends = time.monotonic() + 5
    while time.monotonic() < ends:
        if _state(pid) in states:
            return True
        time.sleep(0.005)
    return False


def test_a_process_and_its_children_stop_and_go_on() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            for _again in range(3):
                stopped = pause(parent.pid)
                assert [item.pid for item in stopped] == [parent.pid, child]
                assert _becomes(parent.pid, "T") and _becomes(child, "T")
                go_on(stopped)
                assert _becomes(parent.pid, "RS") and _becomes(child, "RS")
        finally:
            for item in reversed(pause(parent.pid)):
                os.kill(item.pid, signal.SIGKILL)


def test_a_process_that_is_gone_stops_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert pause(child.pid) == []
    go_on([])
    assert pausing._children(child.pid) == []
