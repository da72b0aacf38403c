"""The texts of a trace's events, in the order of its rows, without keeping them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import msgspec

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.careful import CarefulReader, DamagedEventError
from magpie_tui.traces.containers import ByteStream, Progress, open_stream
from magpie_tui.traces.decode import ChunkDecoder, DecodedChunk, MalformedChunkError
from magpie_tui.traces.framing import FormatError, Framer
from magpie_tui.traces.repair import repaired_json


class _TextDecoder:
    """Cuts a chunk into events where :class:`ChunkDecoder` makes columns of it; repairs are the same."""

    def __init__(self) -> None:
        self._raws = msgspec.json.Decoder(list[msgspec.Raw])

    def decode(self, chunk: bytes, _separator: bytes | None = None) -> list[msgspec.Raw]:
        body = chunk.rstrip(b", \t\r\n")
        if not body.isascii():
            # Each run of bytes that is no UTF-8 lies within one event, so the cuts stay where they are.
            body = body.decode("utf-8", "replace").encode("utf-8")
        try:
            return self._decoded(body)
        except MalformedChunkError:
            body, repaired = repaired_json(body)
            if not repaired:
                raise
            return self._decoded(body)

    def _decoded(self, body: bytes) -> list[msgspec.Raw]:
        try:
            return self._raws.decode(b"[" + body + b"]")
        except (msgspec.DecodeError, RecursionError) as error:
            raise MalformedChunkError(str(error)) from error


def event_texts(
    path: Path,
    *,
    salvage: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Iterator[list[msgspec.Raw]]:
    """Yield lists of event texts; together they are the rows of the trace's columns.

    Raises:
        UserInputError: The file can't be read, or an event is damaged and ``salvage`` is off.
        ReadingCancelled: ``cancelled`` said so.
    """
    with open_stream(path, progress) as stream:
        try:
            yield from _lists(stream, salvage=salvage, cancelled=cancelled)
        except FormatError as error:
            raise UserInputError(f"no events can be read: {error}", path=path) from error
        except DamagedEventError as error:
            raise UserInputError(f"the event at byte {error.offset:,} is damaged ({error})", path=path) from error


def _lists(stream: ByteStream, *, salvage: bool, cancelled: Callable[[], bool] | None) -> Iterator[list[msgspec.Raw]]:
    from magpie_tui.traces.reader import ReadingCancelled

    framer, decoder = Framer(), _TextDecoder()
    ready: list[list[msgspec.Raw]] = []

    def take(chunk: DecodedChunk, _place: int) -> None:
        ready.append(cast("list[msgspec.Raw]", chunk))

    careful: CarefulReader | None = None
    for frame in framer.frames(stream.blocks):
        if cancelled is not None and cancelled():
            raise ReadingCancelled
        if careful is None and not frame.last:
            try:
                yield decoder.decode(frame.data)
                continue
            except MalformedChunkError:
                pass
        if careful is None:
            # The reader hands chunks through without looking into them.
            stand_in = cast("ChunkDecoder", decoder)
            careful = CarefulReader(stand_in, take, salvage, framer.separator, frame.offset)
        if frame.last:
            careful.finish(frame.data)
        else:
            careful.feed(frame.data)
        yield from ready
        ready.clear()
        careful = None if careful.aligned else careful
