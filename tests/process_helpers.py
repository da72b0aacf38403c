"""What tests of processes need: wait for a condition, find every process that a test started."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from magpie_tui.processes.identity import ProcessIdentity, marked, signal_process
from magpie_tui.processes.procfs import read_bytes

TOKEN_VARIABLE = "MAGPIE_TUI_TEST_TOKEN"
PATIENCE_S = 60.0


def wait_for(condition: Callable[[], object], what: str = "the condition", patience_s: float = PATIENCE_S) -> None:
    """Look until ``condition`` holds; fail when it takes too long."""
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {patience_s:.0f} s")
        time.sleep(0.005)


class Family:
    """All processes that descend from one test, by a variable that the test has in its environment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.token = secrets.token_hex(12)
        monkeypatch.setenv(TOKEN_VARIABLE, self.token)

    def members(self) -> list[ProcessIdentity]:
        """Those that run now."""
        return marked({TOKEN_VARIABLE: self.token})

    def describe(self) -> list[str]:
        """Their command lines."""
        lines = [(read_bytes(f"/proc/{member.pid}/cmdline") or b"").replace(b"\0", b" ") for member in self.members()]
        return [line.decode("utf-8", "replace")[:200] for line in lines]

    def wait_until_gone(self, patience_s: float = PATIENCE_S) -> None:
        """Wait until none runs any more."""
        try:
            wait_for(lambda: not self.members(), patience_s=patience_s)
        except AssertionError:
            raise AssertionError(f"still running: {self.describe()}") from None

    def kill(self) -> None:
        """Clean up after a test that failed."""
        for member in self.members():
            signal_process(member, 9)


def script(directory: Path, name: str, text: str) -> list[str]:
    """Write a Python program and return the command that runs it, with a start as cheap as can be."""
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return [sys.executable, "-I", "-S", str(path)]


def has_zombie_child() -> bool:
    """Whether a process that this one started has ended and was not waited for."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def peak_memory_kb(pid: int) -> int:
    """Largest resident size that the process has had."""
    status = (read_bytes(f"/proc/{pid}/status") or b"").decode()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
