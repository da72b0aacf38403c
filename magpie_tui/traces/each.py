"""Reads the traces of all ranks one after the other, one in memory at a time."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.discover import TraceFile, TraceSet
from magpie_tui.traces.load import load_columns

if TYPE_CHECKING:
    from magpie_tui.traces.pool import DecodingService


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes read so far, over all files."""

    done_bytes: int
    total_bytes: int
    file: Path


@dataclass(frozen=True, slots=True)
class Reading:
    """How traces are read.

    Attributes:
        salvage: Use what stands before a cut or damage.
        progress: Called with the bytes read.
        cancelled: Asked several times a second.
        use_cache: Off neither reads nor writes the cache.
    """

    salvage: bool = False
    progress: Callable[[Progress], None] | None = field(default=None, compare=False)
    cancelled: Callable[[], bool] | None = field(default=None, compare=False)
    use_cache: bool = True


def each_trace(traces: TraceSet, reading: Reading) -> Iterator[tuple[TraceFile, TraceColumns | UserInputError]]:
    """Yield each file with its columns, or with the reason why it can't be read.

    Raises:
        UserInputError: The only trace can't be read.
        ReadingCancelled: ``reading.cancelled`` said so.
    """
    paths = [file.path for file in traces.files]
    sizes = [_size(path) for path in paths]
    with contextlib.ExitStack() as stack:

        @functools.cache
        def service() -> DecodingService:
            from magpie_tui.traces.reader import decoding_service

            return stack.enter_context(decoding_service(paths))

        for index, file in enumerate(traces.files):
            report = reporter(reading.progress, file.path, sum(sizes[:index]), sum(sizes))
            try:
                columns = load_columns(
                    file.path,
                    salvage=reading.salvage,
                    progress=report,
                    cancelled=reading.cancelled,
                    service=service,
                    use_cache=reading.use_cache,
                )
            except UserInputError as error:
                if len(traces.files) == 1:
                    raise
                yield file, error
                continue
            yield file, columns
            del columns


def reporter(
    progress: Callable[[Progress], None] | None, path: Path, before: int, total: int
) -> Callable[[int, int], None] | None:
    """Turn the progress of one file into that of all."""
    if progress is None:
        return None
    return lambda done, _size: progress(Progress(before + done, total, path))


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0
