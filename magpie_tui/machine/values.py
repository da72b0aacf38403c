"""Turn what tools print into numbers: units, "N/A" in its many spellings, PCI addresses."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_PCI = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$")
_BYTES = {
    "b": 1,
    "bytes": 1,
    "kb": 1024,
    "kib": 1024,
    "mb": 1024**2,
    "mib": 1024**2,
    "gb": 1024**3,
    "gib": 1024**3,
}
"""The SMI tools write MB where they count in powers of two."""
_UNKNOWN = frozenset({"", "n/a", "[n/a]", "na", "none", "null", "unknown", "[unknown]", "unknown error"})


def known_text(value: object) -> str | None:
    """The text of a value, or ``None`` when the tool says in some spelling that it does not know."""
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        return None
    text = str(value).strip()
    lowered = text.lower()
    if lowered in _UNKNOWN or "not supported" in lowered or "deprecated" in lowered or lowered.startswith("[gpu"):
        return None
    return text


def number(value: object) -> float | None:
    """The first number in a value: ``1980 MHz``, ``80.75 W``, ``(1980Mhz)``, ``{"value": 10, "unit": "W"}``."""
    if isinstance(value, dict):
        return number(value.get("value"))
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value) if math.isfinite(value) else None
    text = known_text(value)
    if text is None:
        return None
    found = _NUMBER.search(text)
    result = float(found.group()) if found else None
    return result if result is not None and math.isfinite(result) else None


def integer(value: object) -> int | None:
    """As :func:`number`, as an integer."""
    found = number(value)
    return None if found is None else int(found)


def size_bytes(value: object, *, unit: str = "B") -> int | None:
    """A size in bytes: ``143771 MiB``, ``{"value": 196592, "unit": "MB"}``, or a plain number in ``unit``."""
    if isinstance(value, dict):
        written = value.get("unit")
        return size_bytes(value.get("value"), unit=written if isinstance(written, str) else unit)
    amount = number(value)
    if amount is None or amount < 0:
        return None
    written_unit = unit
    if isinstance(value, str):
        letters = re.search(r"[A-Za-z]+\s*$", value.strip())
        written_unit = letters.group().strip() if letters else unit
    factor = _BYTES.get(written_unit.lower())
    return None if factor is None else int(amount * factor)


def pci_address(value: object) -> str | None:
    """``0000:00:06.0`` from any spelling (``00000000:00:06.0``, ``0000:03:00.0``), or ``None``."""
    text = known_text(value)
    found = _PCI.match(text.lower()) if text else None
    if found is None:
        return None
    domain = int(found.group(1) or "0", 16)
    return f"{domain:04x}:{found.group(2)}:{found.group(3)}.{found.group(4)}"


def switch(value: object) -> bool | None:
    """True for Enabled/Active/on/1, False for Disabled/Not Active/off/0, ``None`` otherwise."""
    if isinstance(value, bool):
        return value
    text = (known_text(value) or "").lower()
    if text in ("enabled", "active", "on", "1", "yes", "true"):
        return True
    if text in ("disabled", "not active", "off", "0", "no", "false"):
        return False
    return None
