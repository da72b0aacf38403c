"""Which call of a capture stands behind each piece of work of a replay."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

_ROCCLR_FILL = "fillbuffer"


class WorkKind(str, Enum):
    """What a piece of device work is."""

    kernel = "kernel"
    copy = "copy"
    fill = "fill"


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A launching call of a capture.

    Attributes:
        api: Name of the call.
        kernel: Name of the kernel, where the profiler wrote it (AMD); None otherwise.
    """

    api: str
    kernel: str | None

    @property
    def kind(self) -> WorkKind:
        """What it launches."""
        lower = self.api.lower()
        if "memcpy" in lower:
            return WorkKind.copy
        return WorkKind.fill if "memset" in lower else WorkKind.kernel


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of work of a replay.

    Attributes:
        kind: By the category of its event.
    """

    name: str
    stream: int
    kind: WorkKind


def fits(dispatch: Dispatch, piece: Piece) -> bool:
    """True when the call may have launched the piece; a call without a kernel name fits every kernel."""
    if dispatch.kind is not WorkKind.kernel:
        fill = dispatch.kind is WorkKind.fill and _ROCCLR_FILL in piece.name.lower()
        return fill or dispatch.kind is piece.kind
    if piece.kind is not WorkKind.kernel:
        return False
    return dispatch.kernel is None or _plain(dispatch.kernel) == _plain(piece.name)


def _plain(name: str) -> str:
    return name.removesuffix(".kd")


def matched(dispatches: Sequence[Dispatch], pieces: Sequence[Piece]) -> list[int] | None:
    """Place of the piece of each dispatch, -1 for none; None when they can't be matched.

    Args:
        dispatches: By time.
        pieces: By time.
    """
    if len({piece.stream for piece in pieces}) > 1:
        return _several_streams(dispatches, pieces)
    if len(dispatches) == len(pieces):
        if all(fits(dispatch, piece) for dispatch, piece in zip(dispatches, pieces, strict=True)):
            return list(range(len(pieces)))
        return _by_groups(dispatches, pieces)
    return _scanned(dispatches, pieces)


def _scanned(dispatches: Sequence[Dispatch], pieces: Sequence[Piece]) -> list[int] | None:
    """Forward scan: each piece takes the next dispatch that fits; surplus dispatches stay without."""
    if any(dispatch.kind is WorkKind.kernel and dispatch.kernel is None for dispatch in dispatches):
        return None
    found = [-1] * len(dispatches)
    place = 0
    for index, piece in enumerate(pieces):
        while place < len(dispatches) and not fits(dispatches[place], piece):
            place += 1
        if place == len(dispatches):
            return None
        found[place] = index
        place += 1
    return found


def _by_groups(dispatches: Sequence[Dispatch], pieces: Sequence[Piece]) -> list[int] | None:
    """The n-th dispatch of a name takes the n-th piece of that name, if there are equally many of each."""
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for index, piece in enumerate(pieces):
        waiting[_plain(piece.name) if piece.kind is WorkKind.kernel else piece.kind.value].append(index)
    found = []
    for dispatch in dispatches:
        key = _plain(dispatch.kernel or "") if dispatch.kind is WorkKind.kernel else dispatch.kind.value
        if not waiting[key]:
            return None
        found.append(waiting[key].popleft())
    return found


def _several_streams(dispatches: Sequence[Dispatch], pieces: Sequence[Piece]) -> list[int] | None:
    """Queues of the streams: each dispatch goes to the stream whose head fits, of several to the longest run."""
    if any(dispatch.kind is WorkKind.kernel and dispatch.kernel is None for dispatch in dispatches):
        return None
    queues: dict[int, list[int]] = defaultdict(list)
    for index, piece in enumerate(pieces):
        queues[piece.stream].append(index)
    heads = dict.fromkeys(queues, 0)
    found = [-1] * len(dispatches)
    for place, dispatch in enumerate(dispatches):
        fitting = [
            stream
            for stream, queue in queues.items()
            if heads[stream] < len(queue) and fits(dispatch, pieces[queue[heads[stream]]])
        ]
        if not fitting:
            continue
        stream = fitting[0]
        if len(fitting) > 1:
            stream = max(fitting, key=lambda item: _run(dispatches, place, pieces, queues[item], heads[item]))
        found[place] = queues[stream][heads[stream]]
        heads[stream] += 1
    taken = sum(index >= 0 for index in found)
    return found if taken == len(pieces) else None


def _run(dispatches: Sequence[Dispatch], place: int, pieces: Sequence[Piece], queue: Sequence[int], head: int) -> int:
    """How many dispatches from ``place`` on fit the queue from ``head`` on."""
    length = 0
    while (
        place + length < len(dispatches)
        and head + length < len(queue)
        and fits(dispatches[place + length], pieces[queue[head + length]])
    ):
        length += 1
    return length
