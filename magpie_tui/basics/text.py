"""Text from outside (names, paths, logs, environment) made harmless for a terminal, and small text helpers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

# C0 and C1 control characters, DEL, bidirectional controls, zero-width characters, line and paragraph separators,
# lone surrogates, interlinear annotations: none of them may reach a terminal raw.
UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable(text: object, *, keep: str = "") -> str:
    """Return ``text`` with every character that could steer a terminal written as an escape such as ``\\x1b``.

    Args:
        text: Anything; ``str()`` is applied.
        keep: Control characters to leave as they are, for example ``"\\n\\t"``.
    """
    value = str(text)
    if value.isascii() and value.isprintable():
        return value
    if not keep:
        return UNPRINTABLE.sub(_escaped, value)
    return UNPRINTABLE.sub(lambda match: match.group() if match.group() in keep else _escaped(match), value)


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known word that is most like ``word``, ignoring case and ``-``/``_``, or None."""

    def folded(text: str) -> str:
        return text.lower().replace("-", "_")

    by_folded = {folded(item): item for item in known}
    found = difflib.get_close_matches(folded(word), by_folded, n=1, cutoff=cutoff)
    return by_folded[found[0]] if found else None


def utf8_bytes(text: str) -> bytes:
    """Return the UTF-8 form of any text.

    Bytes of file names that are not UTF-8 stay those bytes; other lone surrogates, which have no form in UTF-8, become
    escapes.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def plural(count: int, singular: str, plural_form: str | None = None) -> str:
    """Return ``"1 kernel"`` or ``"2 kernels"``."""
    return f"{count:,} {singular if count == 1 else (plural_form or singular + 's')}"
