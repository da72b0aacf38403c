"""A real terminal for tests: one private tmux server each, polled until it shows what is waited for."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

MAGPIE = f"{shlex.quote(sys.executable)} -m magpie_tui"
PATIENCE_S = 60.0


class Terminal:
    """A tmux session with a shell in it.

    Args:
        directory: Where the shell starts, and where its files go.
        width, height: Size in cells.
        environment: Variables on top of a small fixed set; a value of None takes one away.
    """

    def __init__(
        self,
        directory: Path,
        *,
        width: int = 100,
        height: int = 28,
        environment: Mapping[str, str | None] | None = None,
    ) -> None:
        self._socket = f"magpie-{uuid.uuid4().hex[:12]}"
        self._environment = {
            name: value for name, value in os.environ.items() if name.startswith("MAGPIE_TUI_") or name == "PATH"
        }
        self._environment |= {"HOME": str(directory), "LANG": "C.UTF-8", "PS1": "shell> ", "SHELL": "/bin/sh"}
        self._environment |= {"PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *sys.path]))}
        for name, value in (environment or {}).items():
            self._environment.pop(name, None)
            if value is not None:
                self._environment[name] = value
        self.tmux(
            *("-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", str(width), "-y", str(height)),
            *("-c", str(directory), "/bin/sh", "-i"),
        )
        self.tmux("set-option", "-g", "status", "off")
        self.tmux("set-option", "-g", "default-terminal", "tmux-256color")
        self.tmux("resize-window", "-t", "t", "-x", str(width), "-y", str(height))
        self.wait_for("shell>")

    def tmux(self, *arguments: str, data: bytes | None = None) -> str:
        """Run one tmux command on the private server and return its output."""
        done = subprocess.run(
            ["tmux", "-u", "-L", self._socket, *arguments],
            env=self._environment,
            input=data,
            capture_output=True,
            check=True,
            timeout=PATIENCE_S,
        )
        return done.stdout.decode("utf-8", "replace")

    def close(self) -> None:
        """End everything in the terminal."""
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], capture_output=True, check=False)

    def type(self, line: str, *, enter: str = "Enter") -> None:
        """Type a line and enter."""
        self.tmux("send-keys", "-t", "t", "-l", line)
        self.press(enter)

    def reset(self) -> None:
        """Make the terminal sane again after a program was killed; a raw terminal takes only a line feed as enter."""
        self.type("", enter="C-j")
        self.type("reset; echo r''eady", enter="C-j")
        self.wait_for("ready")

    def press(self, *keys: str) -> None:
        """Press keys by their tmux names (``Escape``, ``C-z``, ``Enter``) or characters."""
        self.tmux("send-keys", "-t", "t", *keys)

    def screen(self, *, escapes: bool = False) -> str:
        """Return what is visible now, rows without trailing blanks."""
        arguments = ["capture-pane", "-p", "-t", "t", *(["-e"] if escapes else [])]
        return "\n".join(row.rstrip() for row in self.tmux(*arguments).split("\n"))

    def show(self, expression: str) -> str:
        """Return a tmux format, for example ``#{alternate_on}``."""
        return self.tmux("display-message", "-p", "-t", "t", expression).strip()

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Poll ``condition``, less and less often; fail with the present screen when it never holds."""
        deadline, pause_s = time.monotonic() + PATIENCE_S, 0.02
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for {what}; the screen is:\n{self.screen()}")
            time.sleep(pause_s)
            pause_s = min(1.2 * pause_s, 0.2)

    def wait_for(self, text: str) -> str:
        """Wait until ``text`` is visible and return the screen."""
        self.wait_until(lambda: text in self.screen(), repr(text))
        return self.screen()

    def wait_gone(self, text: str) -> str:
        """Wait until ``text`` is not visible any more and return the screen."""
        self.wait_until(lambda: text not in self.screen(), f"{text!r} to go away")
        return self.screen()

    def wait_sane(self, status: int) -> None:
        """Wait for the shell's line about the exit status, then prove that the terminal is as it was before."""
        self.wait_for(f"status={status};")
        assert self.show("#{alternate_on} #{mouse_any_flag} #{cursor_flag}") == "0 0 1"
        self.type("echo e''choed")
        self.wait_for("echoed")

    def start_app(self, arguments: str = "", *, expect: str = "[1 Campaign]", prefix: str = "") -> str:
        """Start the app so that the shell prints ``status=N;`` after it; wait until it shows ``expect``."""
        self.type(f"clear; {prefix}{MAGPIE} {arguments}; echo status=$?';'")
        return self.wait_for(expect)

    def pane_process(self) -> int:
        """Return the pid of the app: the child of the pane's shell."""
        shell = self.show("#{pane_pid}")
        children = Path(f"/proc/{shell}/task/{shell}/children").read_text(encoding="ascii").split()
        return int(children[-1])
