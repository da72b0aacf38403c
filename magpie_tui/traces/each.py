"""Reads the traces of all ranks one after the other, one in memory at a time."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.discover import TraceFile, TraceSet
from magpie_tui.traces.load import load_columns
from magpie_tui.traces.progress import Progress as Progress
from magpie_tui.traces.progress import Reading as Reading
from magpie_tui.traces.progress import reporter as reporter

if TYPE_CHECKING:
    from magpie_tui.traces.pool import DecodingService


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


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0
