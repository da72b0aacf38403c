"""The obvious reader: Python's json and one event after the other. What the fast one must agree with."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.decimals import MISSING

Row = tuple[Any, ...]


class Verbatim(str):
    """The text of a JSON number with a point."""


def nanoseconds(value: Any) -> int:
    """Microseconds, as a number or decimal text, in integer nanoseconds."""
    if value is None or isinstance(value, (dict, list, bool)):
        return MISSING
    try:
        number = Decimal(str(value).strip())
    except ArithmeticError:
        return MISSING
    if not number.is_finite() or number.adjusted() > 25:
        return MISSING
    result = int((number * 1000).to_integral_value(ROUND_HALF_EVEN))
    return result if abs(result) < 2**63 else MISSING


def whole(value: Any) -> int:
    """An id as int64."""
    if isinstance(value, str) and not isinstance(value, Verbatim):
        try:
            value = int(value, 0) if value[:2].lower() == "0x" else int(value)
        except ValueError:
            return MISSING
    if not isinstance(value, int) or isinstance(value, bool):
        return MISSING
    if 2**63 <= value < 2**64:
        return value - 2**64
    return value if -(2**63) <= value < 2**63 else MISSING


def naive_rows(text: str) -> list[Row]:
    """One tuple an event: phase, category, name, pid, tid, ts, dur, correlation, external id, stream, device, args."""
    value = json.loads(text, parse_float=Verbatim)
    events = value["traceEvents"] if isinstance(value, dict) else value
    rows = []
    for event in events:
        args = event.get("args") or {}
        flow = event.get("ph") in ("s", "t", "f")
        frame = event.get("cat") == "python_function"
        stream = None if frame else args.get("stream")
        device = args.get("device")
        rows.append(
            (
                event.get("ph", ""),
                event.get("cat", ""),
                event.get("name", "<?>"),
                event.get("pid"),
                event.get("tid"),
                nanoseconds(event.get("ts")),
                nanoseconds(event.get("dur")),
                whole(event.get("id")) if flow else MISSING if frame else whole(args.get("correlation")),
                MISSING if frame else whole(args.get("External id")),
                None if stream is None else str(stream),
                device if isinstance(device, int) and 0 <= device < 2**31 and not frame else -1,
                {} if flow or frame else json.loads(json.dumps(args)),
            )
        )
    return rows


def fast_rows(columns: TraceColumns) -> list[Row]:
    """The same from columns."""
    rows = []
    for row in range(len(columns)):
        track = columns.tracks[columns.track[row]]
        stream = int(columns.stream[row])
        rows.append(
            (
                chr(columns.phase[row]) if columns.phase[row] else "",
                columns.category_of(row),
                columns.name_of(row),
                track.pid,
                track.tid,
                int(columns.ts_ns[row]),
                int(columns.dur_ns[row]),
                int(columns.correlation[row]),
                int(columns.external_id[row]),
                None if stream < 0 else columns.streams[stream],
                int(columns.device[row]),
                json.loads(json.dumps(dict(columns.arguments(row)))),
            )
        )
    return rows


def write_trace(path: Path, events: list[dict[str, Any]], **top: Any) -> Path:
    """Write a trace as one object and return its path; ``.gz`` is packed."""
    import gzip

    text = json.dumps({**top, "traceEvents": events})
    data = gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode()
    path.write_bytes(data)
    return path


def kernel(name: str, ts: Any, dur: Any, correlation: int = 0, *, device: int = 0, stream: Any = 7, **more: Any) -> Any:
    """A kernel event."""
    args = {"device": device, "stream": stream, "correlation": correlation, **more}
    if stream is None:
        del args["stream"]
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": device,
        "tid": 7 if stream is None else stream,
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def launch(name: str, ts: Any, correlation: int, *, pid: int = 100, cat: str = "cuda_runtime", **more: Any) -> Any:
    """A runtime call."""
    args = {"correlation": correlation, "External id": correlation, **more}
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": pid, "ts": ts, "dur": 2, "args": args}


def op(name: str, ts: Any, dur: Any, external_id: int, dims: Any = None, *, pid: int = 100) -> Any:
    """A host op."""
    args: dict[str, Any] = {"External id": external_id}
    if dims is not None:
        args["Input Dims"] = dims
        args["Input type"] = ["float"] * len(dims)
        args["Input Strides"] = dims
        args["Concrete Inputs"] = [""] * len(dims)
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": pid, "tid": pid, "ts": ts, "dur": dur, "args": args}
