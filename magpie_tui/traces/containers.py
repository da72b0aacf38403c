"""The bytes of a trace file, whatever wraps them: plain, gzip or zip, told by content and not by suffix."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, cast

from magpie_tui.basics.errors import UserInputError

BLOCK_BYTES = 1 << 18
UNPACKED_BLOCK_BYTES = 1 << 20
Progress = Callable[[int, int], None]
"""Called with bytes of the file read so far and the file's size."""


class _Inflater(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    @property
    def unconsumed_tail(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...

    def flush(self, length: int = ...) -> bytes: ...


@dataclass(slots=True)
class ByteStream:
    """Blocks of unpacked bytes, and how the stream ended once they are used up.

    Attributes:
        path, size_bytes: The file.
        container: ``plain``, ``gzip`` or ``zip``.
        damage: Why the stream ended early, or None.
        unpacked_bytes: How many bytes came out so far.
    """

    path: Path
    size_bytes: int
    container: str
    blocks: Iterator[bytes]
    damage: str | None = None
    unpacked_bytes: int = 0
    file: IO[bytes] | None = None

    def __enter__(self) -> ByteStream:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.file is not None:
            self.file.close()


def expected_unpacked_bytes(path: Path) -> int:
    """Estimate the unpacked size without unpacking: exact for most files, at least the packed size."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4)
        if head[:2] != b"\x1f\x8b":
            return size * 10 if head[:2] == b"PK" else size
        if size < 18:
            return size
        # The last four bytes of a gzip member hold its unpacked size modulo 4 GiB.
        file.seek(-4, os.SEEK_END)
        stated = int.from_bytes(file.read(4), "little")
    return stated if size <= stated <= 2000 * size else size * 12


def open_stream(path: Path, progress: Progress | None = None) -> ByteStream:
    """Open ``path`` for one pass, in a ``with`` block.

    Raises:
        UserInputError: There is no such file, it can't be read, or it is a zip without a trace.
    """
    try:
        size = path.stat().st_size
        file = path.open("rb")
    except IsADirectoryError as error:
        raise UserInputError("this is a directory, not a trace file", path=path) from error
    except OSError as error:
        raise UserInputError(
            f"cannot read the trace: {error.strerror or error}", path=path, hint="check the path and its permissions"
        ) from error
    head = file.read(4)
    file.seek(0)
    report = progress or (lambda _done, _total: None)
    stream = ByteStream(path, size, "plain", iter(()), file=file)
    if head[:2] == b"\x1f\x8b":
        stream.container = "gzip"
        stream.blocks = _gzip_blocks(file, stream, report)
    elif head == b"PK\x03\x04":
        stream.container = "zip"
        stream.blocks = _zip_blocks(file, stream, report)
    else:
        stream.blocks = _plain_blocks(file, stream, report)
    return stream


def _plain_blocks(file: IO[bytes], stream: ByteStream, progress: Progress) -> Iterator[bytes]:
    while block := file.read(UNPACKED_BLOCK_BYTES):
        stream.unpacked_bytes += len(block)
        progress(stream.unpacked_bytes, stream.size_bytes)
        yield block


def _inflater() -> tuple[Callable[[], _Inflater], type[Exception]]:
    try:
        from isal import isal_zlib
    except ImportError:
        return lambda: zlib.decompressobj(31), zlib.error
    # The stub says that the class is an instance.
    return lambda: isal_zlib.decompressobj(31), cast("type[Exception]", isal_zlib.error)


def _gzip_blocks(file: IO[bytes], stream: ByteStream, progress: Progress) -> Iterator[bytes]:
    """Members one after the other; trailing zero bytes and garbage are ignored as gzip does."""
    make, fault = _inflater()
    inflater = make()
    started = False
    while True:
        packed = file.read(BLOCK_BYTES)
        if not packed:
            # A limited call may leave a little output inside although it took all input.
            if started and not inflater.eof and (block := inflater.flush()):
                stream.unpacked_bytes += len(block)
                yield block
            if not started or not inflater.eof:
                stream.damage = "the gzip stream ends in the middle"
            return
        while packed:
            if inflater.eof:
                packed = packed.lstrip(b"\0")
                if packed[:2] != b"\x1f\x8b"[: len(packed)]:
                    return
                inflater = make()
            started = True
            try:
                block = inflater.decompress(packed, UNPACKED_BLOCK_BYTES)
            except (fault, OSError, EOFError) as error:
                stream.damage = f"the gzip stream is damaged ({error})"
                return
            packed = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            if block:
                stream.unpacked_bytes += len(block)
                progress(file.tell() - len(packed), stream.size_bytes)
                yield block
            elif not inflater.eof:
                break


def _zip_blocks(file: IO[bytes], stream: ByteStream, progress: Progress) -> Iterator[bytes]:
    """The largest ``.json`` member."""
    path = stream.path
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise UserInputError(f"the zip archive is damaged ({error})", path=path, hint="copy it again") from error
    members = [info for info in archive.infolist() if info.filename.lower().endswith((".json", ".json.gz"))]
    if not members:
        raise UserInputError("the zip archive holds no .json file", path=path, hint="give the trace itself")
    chosen = max(members, key=lambda info: info.file_size)
    try:
        with archive.open(chosen) as member:
            if chosen.filename.lower().endswith(".gz"):
                yield from _gzip_blocks(member, stream, lambda _done, _total: None)
                return
            while block := member.read(UNPACKED_BLOCK_BYTES):
                stream.unpacked_bytes += len(block)
                progress(min(file.tell(), stream.size_bytes), stream.size_bytes)
                yield block
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        stream.damage = f"the zip member {chosen.filename} is damaged ({error})"


def compress(data: bytes) -> bytes:
    """Deflate quickly (ISA-L where it is installed)."""
    try:
        from isal import isal_zlib
    except ImportError:
        import zlib

        return zlib.compress(data, 1)
    compressed: bytes = isal_zlib.compress(data, level=1)
    return compressed
