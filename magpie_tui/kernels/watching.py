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


def _table_of(memory: _Memory, dictionary: int, keys_offset: int) -> bytes:
    """Return the table of a dictionary's entries."""
    head = memory.read(dictionary, keys_offset + 8)
    if len(head) < keys_offset + 8:
        return b""
    used = int(struct.unpack_from("<Q", head, 16)[0])
    table = int(struct.unpack_from("<Q", head, keys_offset)[0])
    # An entry has two or three words, a table is at least a third full, its indices come first.
    return memory.read(table, min(_LARGEST_TABLE, 64 + 128 * max(8, used)))


def _words_after(table: bytes, key: int) -> list[int]:
    """Return every word that stands behind ``key`` in a table: its value, and what follows where it is a value itself.

    A deleted entry has neither key nor value.
    """
    wanted = struct.pack("<Q", key)
    found: list[int] = []
    position = table.find(wanted)
    while position >= 0:
        if position % 8 == 0 and position + 16 <= len(table):
            found.append(int(struct.unpack_from("<Q", table, position + 8)[0]))
        position = table.find(wanted, position + 1)
    return found


class IdentityWatch:
    """What a process surveyed, and how its tables looked before the kernel was loaded."""

    def __init__(self, pid: int, survey: Message) -> None:
        self._pid = pid
        self._words = survey["words"]
        self._slots = survey["slots"]
        self._offset = int(survey["keys_offset"])
        self._before: dict[tuple[int, int], set[int]] = {}
        self._reason = self._begin()

    def _begin(self) -> str | None:
        """Read every place once; returns why that cannot be relied on, or None."""
        try:
            memory = _Memory(self._pid)
        except OSError as error:
            return f"the memory of the kernel's process cannot be read from outside ({error.strerror})"
        try:
            tables: dict[int, bytes] = {}
            for item in self._slots:
                key, words = self._slot_words(memory, item, tables)
                self._before[key] = set(words)
                if item["value"] and int(item["value"]) not in words:
                    return "the namespaces of this interpreter cannot be read from outside"
            return None
        finally:
            memory.close()

    def _slot_words(
        self, memory: _Memory, item: Message, tables: dict[int, bytes]
    ) -> tuple[tuple[int, int], list[int]]:
        dictionary, key = int(item["dictionary"]), int(item["key"])
        if dictionary not in tables:
            tables[dictionary] = _table_of(memory, dictionary, self._offset)
        return (dictionary, key), _words_after(tables[dictionary], key)

    def compare(self) -> Changed:
        """Compare the memory of the process with what it was."""
        if self._reason is not None:
            return Changed(reason=self._reason)
        try:
            memory = _Memory(self._pid)
        except OSError as error:
            return Changed(reason=f"the kernel's process is gone ({error.strerror})")
        try:
            return self._compare(memory)
        finally:
            memory.close()

    def _compare(self, memory: _Memory) -> Changed:
        changed: dict[str, None] = {}
        for item in self._words:
            if memory.word(int(item["address"])) != int(item["value"]):
                changed[str(item["name"])] = None
        tables: dict[int, bytes] = {}
        for item in self._slots:
            key, words = self._slot_words(memory, item, tables)
            value = int(item["value"])
            # A name that was not there must not be there; one that was must still stand beside its value.
            if value not in words if value else not set(words) <= self._before[key] | {0}:
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
