"""Reads the memory of a kernel's process from outside and compares what must not have changed."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

from magpie_tui.kernels.harness.frames import Message

_PAGE = 4096
_LARGEST_TABLE = 4 << 20
"""Bytes of a dictionary's table that are read at most."""


@dataclass(frozen=True, slots=True)
class Changed:
    """What the comparison found.

    Attributes:
        names: Functions and namespaces that are no longer what they were.
        watched: How many places were compared.
        reason: Why nothing could be compared, else None.
    """

    names: tuple[str, ...] = ()
    watched: int = 0
    reason: str | None = None


class _Memory:
    """Memory of another process through ``/proc/<pid>/mem``."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._descriptor)

    def read(self, address: int, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer where the mapping ends."""
        parts: list[bytes] = []
        while size > 0:
            # Page by page beyond the first: a read across the end of a mapping fails as a whole.
            step = min(size, _PAGE - address % _PAGE)
            try:
                data = os.pread(self._descriptor, step, address)
            except (OSError, OverflowError):
                break
            parts.append(data)
            if len(data) < step:
                break
            address, size = address + step, size - step
        return b"".join(parts)

    def word(self, address: int) -> int | None:
        data = self.read(address, 8)
        return int(struct.unpack("<Q", data)[0]) if len(data) == 8 else None


def _values_in(memory: _Memory, dictionary: int, layout: Message) -> dict[int, int]:
    """Return address of a key to address of its value for every entry of a dictionary; empty when it is not readable.

    The layout is CPython's: the dictionary points to a table of a header, indices, and entries in the order in which
    they were made. An entry is key and value, or hash, key and value; a deleted one has neither key nor value.
    """
    head = memory.read(dictionary, int(layout["keys"]) + 8)
    if len(head) < int(layout["keys"]) + 8:
        return {}
    table = int(struct.unpack_from("<Q", head, int(layout["keys"]))[0])
    header = memory.read(table, 48)
    if len(header) < 48:
        return {}
    if layout["compact"]:
        indices, general = 1 << min(header[9], 40), header[10] == 0
        count, start = int(struct.unpack_from("<q", header, 24)[0]), 32 + indices
    else:
        size = int(struct.unpack_from("<q", header, 8)[0])
        count, general = int(struct.unpack_from("<q", header, 32)[0]), True
        start = 40 + size * (1 if size <= 0xFF else 2 if size <= 0xFFFF else 4)
    words = 3 if general else 2
    if not 0 <= count * words * 8 <= _LARGEST_TABLE:
        return {}
    data = memory.read(table + start, count * words * 8)
    entries = struct.unpack(f"<{len(data) // 8}Q", data[: len(data) // 8 * 8])
    first = 1 if general else 0
    return dict(zip(entries[first::words], entries[first + 1 :: words], strict=False))


class IdentityWatch:
    """What a process surveyed before the kernel was loaded."""

    def __init__(self, pid: int, survey: Message) -> None:
        self._pid = pid
        self._words = survey["words"]
        self._slots = survey["slots"]
        self._layout: Message = survey["layout"]
        before = self.compare()
        self._reason = before.reason
        if before.names:
            self._reason = "the namespaces of this interpreter cannot be read from outside"

    _reason: str | None = None

    def compare(self) -> Changed:
        """Compare the memory of the process with what it surveyed."""
        if self._reason is not None:
            return Changed(reason=self._reason)
        try:
            memory = _Memory(self._pid)
        except OSError as error:
            return Changed(reason=f"the memory of the kernel's process cannot be read from outside ({error.strerror})")
        try:
            return self._compare(memory)
        finally:
            memory.close()

    def _compare(self, memory: _Memory) -> Changed:
        if self._words and memory.word(int(self._words[0]["address"])) is None:
            return Changed(reason="the memory of the kernel's process cannot be read from outside (it has ended)")
        changed: dict[str, None] = {}
        for item in self._words:
            if memory.word(int(item["address"])) != int(item["value"]):
                changed[str(item["name"])] = None
        tables: dict[int, dict[int, int]] = {}
        for item in self._slots:
            dictionary = int(item["dictionary"])
            if dictionary not in tables:
                tables[dictionary] = _values_in(memory, dictionary, self._layout)
            # A name that was not there must not be there.
            if tables[dictionary].get(int(item["key"]), 0) != int(item["value"]):
                changed[str(item["name"])] = None
        return Changed(tuple(changed), len(self._words) + len(self._slots))


def thread_times(pid: int) -> dict[int, int]:
    """Return the CPU time of every thread of a process, in ns; empty when it cannot be read."""
    found: dict[int, int] = {}
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names of a virtual directory
    except OSError:
        return found
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:  # noqa: PTH123
                found[int(thread)] = int(file.read().split()[0])
        except (OSError, ValueError, IndexError):
            continue
    return found


def running_threads(pid: int) -> set[int]:
    """Return the threads of a process that run or wait for a CPU."""
    found: set[int] = set()
    for thread in thread_times(pid):
        try:
            with open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                if file.read().rpartition(")")[2].split()[0] == "R":
                    found.add(thread)
        except (OSError, IndexError):
            continue
    return found
