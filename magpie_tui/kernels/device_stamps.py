"""Reads the trace of timed calls that a kernel's process wrote: which kernels belong to which call.

The harness runs each call between two marker kernels, with the whole device idle before and after it. Whatever ran
between the markers, on whatever stream, belongs to the call; the times of the markers themselves do not count. The
format is Kineto's Chrome trace: complete events with ``cat`` kernel, gpu_memcpy or gpu_memset, ``ts`` and ``dur`` in
microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from magpie_tui.kernels.dispatches import Dispatch

MARKER = "spin_kernel"
"""Part of the name of the marker kernel on both vendors' GPUs."""
_DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
LARGEST_TRACE_BYTES = 512 * 1024 * 1024


class StampsError(Exception):
    """The trace does not hold the stamps of the calls; the message says why."""


def read_dispatches(path: Path) -> list[Dispatch]:
    """Return everything that ran on devices, by start; times in ns.

    Raises:
        StampsError: The file is missing, too large, or no trace.
    """
    try:
        if path.stat().st_size > LARGEST_TRACE_BYTES:
            raise StampsError(f"the tracer wrote more than {LARGEST_TRACE_BYTES >> 20} MiB")
        trace = json.loads(path.read_bytes())
    except OSError as error:
        raise StampsError(f"the tracer wrote no file: {error.strerror}") from error
    except ValueError as error:
        raise StampsError(f"the tracer's file holds no JSON: {error}") from error
    events = trace.get("traceEvents") if isinstance(trace, dict) else None
    if not isinstance(events, list):
        raise StampsError("the tracer's file holds no events")
    found = [item for event in events if isinstance(event, dict) and (item := _dispatch(event)) is not None]
    return sorted(found, key=_start)


def _start(item: Dispatch) -> float:
    return 0.0 if item.start_ns is None else item.start_ns


def _dispatch(event: dict[str, object]) -> Dispatch | None:
    if event.get("ph") != "X" or event.get("cat") not in _DEVICE_CATEGORIES:
        return None
    start, duration, arguments = event.get("ts"), event.get("dur"), event.get("args")
    if not isinstance(start, (int, float)) or not isinstance(duration, (int, float)):
        return None
    values = arguments if isinstance(arguments, dict) else {}
    device, stream = values.get("device"), values.get("stream")
    return Dispatch(
        name=str(event.get("name", "")),
        start_ns=float(start) * 1e3,
        duration_ns=float(duration) * 1e3,
        device=device if isinstance(device, int) else 0,
        stream=stream if isinstance(stream, int) else None,
    )


def is_marker(item: Dispatch) -> bool:
    """True for the kernel that the harness puts around a call."""
    return MARKER in item.name


def split_calls(dispatches: Sequence[Dispatch], *, calls: int, settle: int) -> list[tuple[Dispatch, ...]]:
    """Return what each traced call ran, in the order of the calls.

    Args:
        dispatches: By start.
        calls: Traced calls, two markers each.
        settle: Calls before them, one marker each.

    Raises:
        StampsError: The number of markers is another, so that nothing can be attributed.
    """
    if not dispatches:
        raise StampsError("the tracer saw no kernel at all (it may lack the permission to trace the device)")
    places = [position for position, item in enumerate(dispatches) if is_marker(item)]
    if len(places) != settle + 2 * calls:
        raise StampsError(f"the trace holds {len(places)} markers instead of {settle + 2 * calls}")
    marks = places[settle:]
    return [tuple(dispatches[first + 1 : last]) for first, last in zip(marks[::2], marks[1::2], strict=True)]


def stamp_resolution_ns(dispatches: Sequence[Dispatch]) -> float:
    """Return 1000 when every duration is a whole number of microseconds, as older tracers write them; else 1."""
    return 1000.0 if dispatches and all(item.duration_ns % 1000.0 == 0.0 for item in dispatches) else 1.0
