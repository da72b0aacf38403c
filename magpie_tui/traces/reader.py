"""File → :class:`~magpie_tui.traces.columns.TraceColumns`, in one pass over the bytes."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.assemble import ColumnBuilder
from magpie_tui.traces.careful import CarefulReader, DamagedEventError, tail_metadata
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.containers import ByteStream, Progress, expected_unpacked_bytes, open_stream
from magpie_tui.traces.decode import DecodedChunk
from magpie_tui.traces.framing import FormatError, Framer
from magpie_tui.traces.pool import PARALLEL_FROM_BYTES, DecodingService, LocalService, ProcessService

_SALVAGE_HINT = "use --salvage to work with the events before that place, or copy the trace again"


class EmptyTraceError(UserInputError):
    """The file holds nothing."""


class ReadingCancelled(Exception):
    """The caller's ``cancelled`` said so."""


@contextlib.contextmanager
def decoding_service(paths: list[Path]) -> Iterator[DecodingService]:
    """Yield reader processes where the files are large enough to need them, else a service in this process.

    Processes are started when the first file is really read.
    """
    expected = 0
    for path in paths:
        with contextlib.suppress(OSError):
            expected += expected_unpacked_bytes(path)
    if expected < PARALLEL_FROM_BYTES:
        yield LocalService()
        return
    service = ProcessService()
    try:
        yield service
    finally:
        service.close()


def read_columns(
    path: Path,
    *,
    salvage: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    service: DecodingService | None = None,
) -> TraceColumns:
    """Read a trace.

    Args:
        path: ``.json``, ``.json.gz`` or ``.zip``; told by content.
        salvage: Use what is before a cut or damage instead of refusing the file.
        progress: Called with bytes read and bytes in all, at least once a megabyte.
        cancelled: Asked several times a second; True ends the reading.
        service: Where chunks are decoded, from :func:`decoding_service`; made when not given.

    Raises:
        EmptyTraceError: There is nothing in the file.
        UserInputError: It can't be read, is no trace, or (without ``salvage``) is cut off or damaged.
        ReadingCancelled: ``cancelled`` said so.
    """
    if service is None:
        with decoding_service([path]) as own:
            return read_columns(path, salvage=salvage, progress=progress, cancelled=cancelled, service=own)
    collecting = gc.isenabled()
    gc.disable()
    try:
        with open_stream(path, progress) as stream:
            return _Reading(path, salvage, cancelled, service).read(stream)
    finally:
        if collecting:
            gc.enable()


class _Reading:
    """State of one pass."""

    def __init__(
        self, path: Path, salvage: bool, cancelled: Callable[[], bool] | None, service: DecodingService
    ) -> None:
        self._path = path
        self._salvage = salvage
        self._cancelled = cancelled or (lambda: False)
        self._service = service
        self._framer = Framer()
        self._builder = ColumnBuilder()
        self._careful: CarefulReader | None = None
        self._malformed = 0
        self._first_malformed_at: int | None = None

    def read(self, stream: ByteStream) -> TraceColumns:
        self._service.begin()
        ended: CarefulReader | None = None
        results = self._service.decoded(self._framer, self._framer.frames(self._checked(stream)))
        try:
            for result in results:
                if self._careful is None and result.chunk is not None:
                    self._builder.add(result.chunk, result.decoder, result.frame.offset)
                    continue
                # A chunk that follows a wrong cut may parse by chance, but no event starts where it begins.
                if result.chunk is not None:
                    self._builder.learn(result.decoder, result.chunk.new)
                careful = self._careful or self._careful_from(result.frame.offset)
                if result.frame.last:
                    careful.finish(result.frame.data)
                    ended = careful
                else:
                    careful.feed(result.frame.data)
                    self._careful = None if careful.aligned else careful
                if self._careful is None:
                    self._remember_malformed(careful)
        except FormatError as error:
            self._refuse(error, stream)
        except DamagedEventError as error:
            raise UserInputError(
                f"the event at byte {error.offset:,} is damaged ({error})", path=self._path, hint=_SALVAGE_HINT
            ) from error
        finally:
            results.close()  # type: ignore[attr-defined]
        return self._finished(stream, ended)

    def _checked(self, stream: ByteStream) -> Iterator[bytes]:
        for block in stream.blocks:
            if self._cancelled():
                raise ReadingCancelled
            yield block

    def _careful_from(self, offset: int) -> CarefulReader:
        def take(chunk: DecodedChunk, place: int) -> None:
            self._builder.add(chunk, 0, place)

        return CarefulReader(self._service.decoder, take, self._salvage, self._framer.separator, offset)

    def _remember_malformed(self, careful: CarefulReader) -> None:
        self._malformed += careful.malformed
        if self._first_malformed_at is None:
            self._first_malformed_at = careful.first_malformed_at

    def _refuse(self, error: FormatError, stream: ByteStream) -> None:
        if error.empty and stream.damage is None:
            raise EmptyTraceError("trace is empty", path=self._path, hint="the profiler wrote nothing; record again")
        place = f" at byte {error.offset:,}" if error.offset else ""
        reason = stream.damage or str(error)
        raise UserInputError(
            f"no events can be read: {reason}{place}", path=self._path, hint="give a trace of the torch profiler"
        ) from error

    def _finished(self, stream: ByteStream, ended: CarefulReader | None) -> TraceColumns:
        metadata = dict(self._framer.metadata)
        closed = False
        cut_at: int | None = None
        if ended is not None:
            cut_at = ended.cut_at
            if ended.ended:
                more, closed = tail_metadata(bytes(ended.tail), bare_list=self._framer.bare_list)
                if isinstance(more.get("traceEvents"), list):
                    raise UserInputError("the file has two traceEvents lists", path=self._path)
                metadata.update(more)
        if cut_at is None and stream.damage is not None and not closed:
            cut_at = stream.unpacked_bytes
        if cut_at is not None and not self._salvage:
            why = f": {stream.damage}" if stream.damage else ""
            raise UserInputError(
                f"the trace is cut off inside the event at byte {cut_at:,}{why}", path=self._path, hint=_SALVAGE_HINT
            )
        self._builder.facts = replace(
            self._builder.facts,
            container=stream.container,
            unpacked_bytes=stream.unpacked_bytes,
            truncated=cut_at is not None,
            truncated_at=cut_at,
            unterminated=cut_at is None and not closed,
            damage=stream.damage,
            malformed_events=self._malformed,
            first_malformed_at=self._first_malformed_at,
        )
        return self._builder.finish(self._path, metadata)
