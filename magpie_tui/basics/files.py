"""Files that are never half-written, and directories that are never shared by accident."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.json_strict import dumps
from magpie_tui.basics.text import utf8_bytes


@contextlib.contextmanager
def atomic_writer(path: Path, *, durable: bool = False) -> Iterator[IO[bytes]]:
    """Yield a binary file that takes the place of ``path`` only when the block ends without an error.

    Args:
        path: Target; its directory must exist.
        durable: Force the bytes to the disk before the rename (reports, state that must survive a power cut).

    Raises:
        MachineError: The disk is full or the directory cannot be written.
    """
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise _writing_failed(path, error) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        if isinstance(error, OSError):
            raise _writing_failed(path, error) from error
        raise


def _writing_failed(path: Path, error: OSError) -> MachineError:
    return MachineError(
        f"cannot write: {error.strerror or error}",
        path=path,
        hint="free some space or choose another output directory with --output-dir",
    )


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file to read its bytes; a pipe, socket or device under its name is not waited for.

    Raises:
        OSError: There is none (a name that no file can have included), it may not be read, or it is something else
            than a regular file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a NUL, or what has no form in bytes
        raise FileNotFoundError(errno.ENOENT, f"this is no file name: {error}", os.fspath(path)) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        raise OSError(errno.EINVAL, "this is no regular file", os.fspath(path))
    return os.fdopen(descriptor, "rb")


def read_small(path: Path, *, limit_bytes: int = 1 << 20) -> bytes:
    """Return the bytes of a file that a program or a person keeps settings or state in.

    Raises:
        OSError: As ``open_regular``, or it has more bytes than such a file ever has.
    """
    with open_regular(path) as file:
        data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise OSError(errno.EFBIG, f"it has more than {limit_bytes:,} bytes", os.fspath(path))
    return data


def is_directory(path: Path) -> bool:
    """True for a directory that can be reached; never an error, whatever the path is."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def is_regular_file(path: Path) -> bool:
    """True for a file that can be reached; never an error, whatever the path is."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def write_bytes(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a whole file atomically."""
    with atomic_writer(path, durable=durable) as file:
        file.write(data)


def rewrite_bytes(path: Path, data: bytes) -> None:
    """Write a person's file anew, atomically and durably: a link is followed, permissions stay.

    Raises:
        UserInputError: A directory has taken its place.
        MachineError: It cannot be written.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
    except OSError:
        mode = None
    if target.is_dir():
        raise UserInputError("a directory is in the way of this file", path=path)
    write_bytes(target, data, durable=True)
    if mode is not None:
        try:
            target.chmod(mode)
        except OSError as error:
            raise MachineError(f"its permissions cannot be set: {error.strerror}", path=path) from error


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a whole UTF-8 file atomically, line ends as given."""
    write_bytes(path, utf8_bytes(text), durable=durable)


def write_json(path: Path, value: Any, *, indent: int | None = 2, durable: bool = False) -> None:
    """Write strict JSON atomically, with a final newline."""
    write_text(path, dumps(value, indent=indent) + "\n", durable=durable)


def create_directory(path: Path) -> Path:
    """Create ``path`` with its parents (it may exist) and return it absolute.

    Raises:
        UserInputError: A file is in the way.
        MachineError: The place cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UserInputError("a file is in the way of this directory", path=path) from error
    except OSError as error:
        raise _writing_failed(path, error) from error
    return path.absolute()


def create_timestamped_directory(
    parent: Path,
    name_for: Callable[[str], str],
    *,
    clock: Callable[[], float] = time.time,
) -> Path:
    """Create ``parent/name_for(stamp)`` as a new directory and return it absolute.

    The stamp is local time ``YYYYmmdd_HHMMSS``. Where that name is taken, the next free second is used, so that two
    runs that start in the same second get two directories.
    """
    create_directory(parent)
    second = int(clock())
    while True:
        path = parent / name_for(time.strftime("%Y%m%d_%H%M%S", time.localtime(second)))
        try:
            path.mkdir()
        except FileExistsError:
            second += 1
            continue
        except OSError as error:
            raise _writing_failed(path, error) from error
        return path.absolute()
