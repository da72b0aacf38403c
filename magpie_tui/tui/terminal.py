"""What the terminal can show, and how the app behaves on it: encoding, colours, SSH, signals, hang-up."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.filter import LineFilter

if TYPE_CHECKING:
    from rich.segment import Segment
    from textual.color import Color

MINIMUM_WIDTH = 60
MINIMUM_HEIGHT = 16
WIDE = 160
"""From this many columns on, screens put their panes side by side."""

REMOTE_FRAMES_PER_SECOND = 15


@dataclass(frozen=True, slots=True)
class TerminalTraits:
    """What was found out about the terminal before the app starts.

    Attributes:
        ascii_only: Its encoding is not UTF-8: nothing but ASCII is sent.
        remote: It is reached over SSH: fewer frames, no animation, slower live views.
        live_interval_s: Time between two updates of a live view: 2 Hz over SSH, 5 Hz here.
    """

    ascii_only: bool = False
    remote: bool = False

    @property
    def live_interval_s(self) -> float:
        """Seconds between two updates of a live view."""
        return 0.5 if self.remote else 0.2


def find_traits(environment: Mapping[str, str], encoding: str | None) -> TerminalTraits:
    """Return the traits of the terminal that ``encoding`` (that of stderr, on which Textual paints) leads to."""
    try:
        utf8 = codecs.lookup(encoding or "ascii").name == "utf-8"
    except LookupError:
        utf8 = False
    wanted = environment.get("MAGPIE_TUI_ASCII")
    ascii_only = wanted not in ("0", "no") if wanted else not utf8 or _is_plain(environment)
    remote = bool(environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"))
    return TerminalTraits(ascii_only=ascii_only, remote=remote)


def _is_plain(environment: Mapping[str, str]) -> bool:
    """True when the locale asks for plain ASCII, or for another encoding than UTF-8.

    Under LANG=C Python itself sets LC_CTYPE to C.UTF-8 (PEP 538), which does not teach the terminal UTF-8.
    """
    lang = environment.get("LANG", "")
    locale = environment.get("LC_ALL") or environment.get("LC_CTYPE") or lang
    if lang in ("C", "POSIX") and not environment.get("LC_ALL") and locale in ("C.UTF-8", "C.utf8", "UTF-8"):
        return True
    return locale in ("C", "POSIX") or ("." in locale and "utf" not in locale.lower())


def prepare(environment: Mapping[str, str] | None = None) -> TerminalTraits:
    """Find the traits and set what must be set before Textual is imported; return the traits."""
    environ = os.environ if environment is None else environment
    traits = find_traits(environ, getattr(sys.stderr, "encoding", None))
    if traits.remote and not environ.get("TEXTUAL_FPS"):
        os.environ["TEXTUAL_FPS"] = str(REMOTE_FRAMES_PER_SECOND)
    return traits


_ASCII = str.maketrans(
    {
        **dict.fromkeys("─━═╌┄┈╍▁▔╴╶", "-"),
        **dict.fromkeys("│┃║▏▎▍▕▐▌┆┊╎", "|"),
        **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝╠╣╦╩╬┏┓┗┛┣┫┳┻╋▗▖▝▘▛▜▙▟", "+"),
        **dict.fromkeys("█▉▊▋▇▆▅▄▃▂▀▓▒", "#"),
        "░": ".",
        "▲": "^",
        "▼": "v",
        "△": "^",
        "▽": "v",
        "◀": "<",
        "▶": ">",
        "←": "<",
        "→": ">",
        "↑": "^",
        "↓": "v",
        "•": "*",
        "●": "*",
        "○": "o",
        "·": ".",
        "…": ".",
        "–": "-",
        "—": "-",
        "−": "-",
        "×": "x",
        "±": "~",
        "µ": "u",
        "μ": "u",
        "°": " ",
        "“": '"',
        "”": '"',
        "‘": "'",
        "’": "'",
        "\u00a0": " ",
        "✓": "+",
        "✗": "x",
        **{chr(code): "#" for code in range(0x2801, 0x2900)},
        "\u2800": " ",
    }
)


def to_ascii(text: str) -> str:
    """Return ``text`` in ASCII, as many cells wide as before; what has no likeness becomes ``?``."""
    if text.isascii():
        return text
    from rich.cells import cell_len

    translated = text.translate(_ASCII)
    if translated.isascii():
        return translated
    return "".join(character if character.isascii() else "?" * cell_len(character) for character in translated)


class AsciiFilter(LineFilter):
    """Turns everything that is painted into ASCII; nothing moves."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments with their texts in ASCII."""
        from rich.segment import Segment

        return [
            segment if segment.text.isascii() else Segment(to_ascii(segment.text), segment.style, segment.control)
            for segment in segments
        ]


def let_go_of_terminal() -> None:
    """Point the standard streams at nothing, after a hang-up: the terminal is gone and cannot be written to.

    Input comes from a pipe into which nobody writes: /dev/null is always ready to be read, and who waits for keys there
    would turn in circles.
    """
    descriptor = os.open(os.devnull, os.O_RDWR)
    reader, _writer = os.pipe()
    os.dup2(reader, 0)
    for number in (1, 2):
        os.dup2(descriptor, number)
    os.close(descriptor)
    os.close(reader)
