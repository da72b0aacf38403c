"""Takes rights away from a kernel's process before its file is loaded: Landlock where there is one, a hook everywhere.

Landlock (Linux 5.13 and later, no privileges needed) is a one-way door of the kernel: afterwards nothing in the process
can open what is not allowed, whatever it runs. The audit hook of the interpreter sees what Python code opens, cannot be
removed, and tells of every attempt; it is the only guard where Landlock is missing, and native code passes it by.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import stat
import struct
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_NO_NEW_PRIVS = 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REFER, _TRUNCATE = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 13, 1 << 14
_VERSION_1 = (1 << 13) - 1
_SCOPES = 0b11
"""Abstract sockets and signals stay inside (since version 6)."""
MOST_ENTRIES = 20_000
"""Directory entries that are listed to hide something in their midst; more are too slow to allow one by one."""


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """Return the version of Landlock that this system offers, 0 for none."""
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"):
        return 0
    return max(0, int(_libc().syscall(_CREATE_RULESET, None, 0, 1)))


def _entries_but(directory: str, hidden: list[str]) -> Iterator[str]:
    """Yield paths that together are everything below ``directory`` but the ``hidden`` files and directories."""
    within = [path for path in hidden if path.startswith(directory.rstrip("/") + "/")]
    if not within:
        if directory not in hidden:
            yield directory
        return
    with os.scandir(directory) as found:
        entries = sorted(entry.path for entry in found)
    if len(entries) > MOST_ENTRIES:
        raise OSError(f"{directory} has {len(entries)} entries")
    for path in entries:
        if path not in hidden:
            if any(item.startswith(path + "/") for item in within):
                yield from _entries_but(path, within)
            else:
                yield path


class _Ruleset:
    def __init__(self, version: int) -> None:
        self.libc = _libc()
        self.rights = _VERSION_1 | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
        self.scopes = _SCOPES if version >= 6 else 0
        size = 8 if version < 4 else 16 if version < 6 else 24
        attributes = struct.pack("QQQ", self.rights, 0, self.scopes)[:size]
        self.descriptor = int(self.libc.syscall(_CREATE_RULESET, attributes, size, 0))
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "no ruleset")

    def allow(self, path: str, rights: int) -> None:
        """Allow ``rights`` for a file, or for everything below a directory; what is not there is left out."""
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return
        try:
            if not stat.S_ISDIR(os.fstat(opened).st_mode):
                rights &= _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
            rule = struct.pack("=Qi", rights & self.rights, opened)
            self.libc.syscall(_ADD_RULE, self.descriptor, _PATH_BENEATH, rule, 0)
        finally:
            os.close(opened)

    def enforce(self) -> None:
        """Apply to this thread and all that it will start; there is no way back."""
        if self.libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or self.libc.syscall(_RESTRICT_SELF, self.descriptor, 0):
            raise OSError(ctypes.get_errno(), "the rules were refused")
        os.close(self.descriptor)


def _landlock(hidden: list[str], writable: list[str]) -> dict[str, Any]:
    version = landlock_version()
    if not version:
        return {"landlock": 0, "reason": "this system has no Landlock"}
    try:
        rules = _Ruleset(version)
        rules.allow("/", _READ_DIR | _EXECUTE)
        for path in _entries_but("/", hidden):
            rules.allow(path, _READ_FILE)
        rules.allow("/dev", _READ_FILE | _WRITE_FILE | _TRUNCATE)
        # CUDA's driver names its threads there; without it no stream and no context can be made.
        rules.allow(f"/proc/{os.getpid()}", _READ_FILE | _WRITE_FILE | _TRUNCATE)
        rules.allow("/proc/driver", _READ_FILE | _WRITE_FILE | _TRUNCATE)
        for path in writable:
            rules.allow(path, rules.rights)
        rules.enforce()
    except OSError as error:
        return {"landlock": 0, "reason": f"Landlock could not be used: {error}"}
    return {"landlock": version, "signals": bool(rules.scopes), "reason": None}


_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = ("os.remove", "os.rename", "os.truncate", "os.chmod", "os.link", "os.symlink", "os.rmdir", "shutil.rmtree")
MOST_ATTEMPTS = 20


def watch_attempts(hidden: list[str], protected: list[str], family: list[int]) -> list[dict[str, str]]:
    """Refuse and note what Python code tries on files that it must not touch; returns the list that fills.

    Args:
        hidden: Files and directories that it must not read.
        protected: Those that it must not change.
        family: Processes that it must not send signals to.
    """
    attempts: list[dict[str, str]] = []
    realpath, fspath, separator = os.path.realpath, os.fspath, os.sep

    def below(path: Any, places: list[str]) -> str | None:
        try:
            found = realpath(os.fsdecode(fspath(path)))
        except (TypeError, ValueError, OSError):
            return None
        return next((found for place in places if found == place or found.startswith(place + separator)), None)

    def refuse(what: str, path: str) -> None:
        if len(attempts) < MOST_ATTEMPTS and not any(item["path"] == path for item in attempts):
            attempts.append({"what": what, "path": path})
        raise PermissionError(13, f"a kernel's process may not {what} it", path)

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = given
            if isinstance(path, int):
                return
            changing = bool((flags or 0) & _WRITING) or any(letter in (mode or "") for letter in "wax+")
            found = below(path, protected) if changing else None
            if found is not None:
                refuse("write", found)
            found = below(path, hidden)
            if found is not None:
                refuse("read", found)
        elif event in _CHANGES:
            for item in given[:2]:
                found = None if isinstance(item, int) else below(item, protected)
                if found is not None:
                    refuse("change", found)
        elif event in ("os.kill", "os.killpg") and abs(int(given[0])) in family:
            refuse("send a signal to", f"process {given[0]}")

    sys.addaudithook(hook)
    return attempts


def _can_read(path: str, *, confined: bool) -> bool:
    if os.path.isdir(path):  # noqa: PTH112
        return not confined  # the names in it can be listed, its files cannot be opened
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return False
    return True


def _can_write(path: str) -> bool:
    return os.access(path, os.W_OK) and _opens_for_writing(path)


def _opens_for_writing(path: str) -> bool:
    flags = os.O_WRONLY if not os.path.isdir(path) else os.O_WRONLY | os.O_TMPFILE  # noqa: PTH112
    try:
        os.close(os.open(path, flags, 0o600))
    except OSError:
        return False
    return True


class Confinement:
    """What a process may no longer do.

    Attributes:
        facts: ``landlock`` (version, 0 for none), ``reason``, ``readable`` (hidden files that can still be read),
            ``writable`` (protected places that can still be written) - both tried before the kernel is loaded.
        attempts: What it tried, see :func:`watch_attempts`.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        hidden = sorted({os.path.realpath(path) for path in request["hidden"]})
        protected = sorted({os.path.realpath(path) for path in request["protected"]})
        writable = [os.path.realpath(path) for path in request["writable"]]
        for name, value in request["environment"].items():
            os.environ[name] = value
            with contextlib.suppress(OSError):
                os.makedirs(value, exist_ok=True)  # noqa: PTH103
        # Modules of the harness that are imported later must not look like attempts to change it.
        sys.dont_write_bytecode = True
        tempfile.tempdir = None
        self.facts = _landlock(hidden, writable) if request["landlock"] else {"landlock": 0, "reason": "not asked for"}
        self.facts["readable"] = [path for path in hidden if _can_read(path, confined=bool(self.facts["landlock"]))]
        self.facts["writable"] = [path for path in protected if _can_write(path)]
        family = [os.getppid(), *request.get("family", [])]
        self.attempts = watch_attempts(hidden, protected, family)
