"""Copying: a native tool where there is a display, else tmux, else OSC 52, else a file; always said how.

The order was measured: inside tmux with its default ``set-clipboard external`` a raw OSC 52 sequence is dropped, while
``tmux load-buffer -w`` arrives at the terminal's clipboard.
"""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.text import plural, printable

OSC52_LIMIT = 74_994
"""Most base64 bytes that common terminals take in one OSC 52 sequence."""

TOOL_TIMEOUT_S = 3.0

Runner = Callable[[Sequence[str], bytes], bool]


@dataclass(frozen=True, slots=True)
class CopyReport:
    """How a text was copied.

    Attributes:
        way: ``wl-copy``, ``xclip``, ``xsel``, ``tmux``, ``tmux buffer``, ``terminal`` or ``file``.
        characters: Length of the text.
        path: The file, when the text went to one.
    """

    way: str
    characters: int
    path: Path | None = None

    @property
    def sentence(self) -> str:
        """What the status line says."""
        amount = plural(self.characters, "character")
        if self.path is not None:
            return f"no clipboard here: {amount} written to {printable(self.path)}"
        if self.way == "tmux buffer":
            return f"copied {amount} to the tmux buffer (prefix ] pastes them)"
        return f"copied {amount} through {'the terminal (OSC 52)' if self.way == 'terminal' else self.way}"


def run_tool(command: Sequence[str], data: bytes) -> bool:
    """Feed ``data`` to a command; False when it is missing, fails or takes too long."""
    try:
        done = subprocess.run(
            list(command),
            input=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=TOOL_TIMEOUT_S,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _native_tools(environment: Mapping[str, str]) -> list[tuple[str, ...]]:
    tools: list[tuple[str, ...]] = []
    if environment.get("WAYLAND_DISPLAY"):
        tools.append(("wl-copy",))
    if environment.get("DISPLAY"):
        tools += [("xclip", "-selection", "clipboard"), ("xsel", "--clipboard", "--input")]
    return tools


def copy(
    text: str,
    *,
    environment: Mapping[str, str],
    write_to_terminal: Callable[[str], None],
    state_directory: Path,
    run: Runner = run_tool,
) -> CopyReport:
    """Copy ``text`` by the first way that works and report which that was. Blocks for seconds at worst.

    Args:
        write_to_terminal: Sends a control sequence to the terminal.
        state_directory: Where the file goes when nothing else works.
        run: Runs a command with bytes on its stdin; False when that failed.

    Raises:
        MachineError: The file cannot be written either.
    """
    data = text.encode("utf-8", "surrogateescape")
    for command in _native_tools(environment):
        if run(command, data):
            return CopyReport(command[0], len(text))
    if environment.get("TMUX"):
        if run(("tmux", "load-buffer", "-w", "-"), data):
            return CopyReport("tmux", len(text))
        if run(("tmux", "load-buffer", "-"), data):
            return CopyReport("tmux buffer", len(text))
    encoded = base64.b64encode(data).decode("ascii")
    # GNU screen swallows the sequence.
    if len(encoded) <= OSC52_LIMIT and not environment.get("STY") and not environment.get("TMUX"):
        write_to_terminal(f"\x1b]52;c;{encoded}\x07")
        return CopyReport("terminal", len(text))
    return _to_file(data, len(text), state_directory)


def _to_file(data: bytes, characters: int, state_directory: Path) -> CopyReport:
    from magpie_tui.basics.errors import MachineError
    from magpie_tui.basics.files import write_bytes
    from magpie_tui.basics.paths import private_directory

    try:
        path = private_directory(state_directory) / "copied.txt"
    except OSError as error:
        raise MachineError(f"cannot create it: {error.strerror or error}", path=state_directory) from error
    write_bytes(path, data)
    return CopyReport("file", characters, path)
