"""The few facts about this machine that stand in row 1 of every screen."""

from __future__ import annotations

from dataclasses import dataclass

IDLE = "."
OURS = "r"
FOREIGN = "x"
THROTTLED = "!"
UNREADABLE = "?"


@dataclass(frozen=True, slots=True)
class FrameFacts:
    """What row 1 says on its right.

    Attributes:
        host: Name of this machine.
        devices: ``8 x MI300X``, or ``no GPU``.
        letters: One letter per GPU: idle, ours, somebody else's, throttled, unreadable.
        disk_free_bytes: Free space under the output directory; None when it cannot be read.
    """

    host: str
    devices: str = ""
    letters: str = ""
    disk_free_bytes: int | None = None


def count_devices(names: list[str]) -> str:
    """Return ``8 x MI300X`` for eight names alike, ``4 x A, 2 x B`` for a mixture, ``no GPU`` for none."""
    if not names:
        return "no GPU"
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(name if count == 1 == len(names) else f"{count} x {name}" for name, count in counts.items())
