"""From the raw rows of ``samples.jsonl`` back to a measurement: every time and verdict can be computed again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from magpie_tui.kernels.dispatches import Dispatch, overlap
from magpie_tui.kernels.measurement import Measurement, Phase
from magpie_tui.kernels.model import Fact, Method, Quantity, Replicate, Series, Window

Row = Mapping[str, object]
_Key = tuple[int, bool, str, str, int]

_QUANTITIES: dict[str, Quantity] = {"device_time": "device_time", "call_time": "call_time"}
_METHODS: dict[str, Method] = {
    "device_stamps": "device_stamps",
    "event_pairs": "event_pairs",
    "perf_counter_ns": "perf_counter_ns",
    "graph_replay": "graph_replay",
}
_PHASES: dict[str, Phase] = {"choose": "choose", "confirm": "confirm"}


class RowsError(ValueError):
    """A row does not hold what it must; the message names the row and the key."""


def _number(row: Row, key: str) -> float:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RowsError(f"{key} is no number: {value!r}")
    return float(value)


def _whole(row: Row, key: str) -> int:
    return int(_number(row, key))


def _dispatches(value: object) -> tuple[Dispatch, ...] | None:
    if not isinstance(value, list):
        return None
    found = []
    for item in value:
        if not isinstance(item, list) or len(item) != 5:
            raise RowsError("dispatches holds something else than [name, start, duration, device, stream]")
        name, start, duration, device, stream = item
        found.append(
            Dispatch(str(name), None if start is None else float(start), float(duration), int(device or 0), stream)
        )
    return tuple(found)


def window_of(row: Row) -> Window:
    """Return the window that a row holds.

    Raises:
        RowsError: A stamp is missing or no number.
    """
    event = row.get("event_ns")
    return Window(
        _whole(row, "started_ns"),
        _whole(row, "ended_ns"),
        _whole(row, "seen_started_ns"),
        _whole(row, "seen_ended_ns"),
        _whole(row, "repeats"),
        _dispatches(row.get("dispatches")),
        None if event is None else _number(row, "event_ns"),
        _whole(row, "turn") if "turn" in row else None,
    )


def _series_key(row: Row) -> tuple[str, str, str]:
    return (str(row.get("quantity")), str(row.get("method")), str(row.get("cache")))


def _series_of(rows: Sequence[Row]) -> Series:
    quantity, method, cache = _series_key(rows[0])
    if quantity not in _QUANTITIES or method not in _METHODS:
        raise RowsError(f"unknown quantity or method: {quantity}, {method}")
    discarded = rows[0].get("discarded")
    return Series(
        _QUANTITIES[quantity],
        _METHODS[method],
        cache,
        tuple(window_of(row) for row in rows),
        offset_ns=_number(rows[0], "offset_ns") if "offset_ns" in rows[0] else 0.0,
        discarded={str(name): int(count) for name, count in discarded.items()} if isinstance(discarded, dict) else {},
    )


def measurement_of_rows(
    rows: Iterable[Row], *, shapes: Sequence[str] = ("",), weights: Mapping[str, float] | None = None
) -> Measurement:
    """Build the measurement that rows describe.

    Args:
        rows: Of one measurement, in the order in which they were written.
        shapes, weights: Its shape grid, as the report gives it.

    Raises:
        RowsError: A row does not hold what it must.
    """
    grouped: dict[_Key, dict[str, dict[tuple[str, str, str], list[Row]]]] = {}
    positions: dict[_Key, int] = {}
    for row in rows:
        phase = str(row.get("phase"))
        if phase not in _PHASES:
            raise RowsError(f"unknown phase: {phase}")
        key = (
            _whole(row, "arm"),
            row.get("control") is True,
            phase,
            str(row.get("shape") or ""),
            _whole(row, "replicate"),
        )
        positions[key] = _whole(row, "position")
        grouped.setdefault(key, {}).setdefault(str(row.get("part")), {}).setdefault(_series_key(row), []).append(row)
    measurement = Measurement(shapes=tuple(shapes))
    if weights is not None:
        measurement.weights = dict(weights)
    for key, parts in grouped.items():
        if "timed" in parts:
            measurement.replicates.append(_replicate(key, positions[key], parts))
    stamped = (window for item in measurement.replicates for window in item.main.windows if window.dispatches)
    if any(overlap(window.dispatches or ()) for window in stamped):
        measurement.reduction = "span"
    return measurement


def _replicate(key: _Key, position: int, parts: Mapping[str, Mapping[tuple[str, str, str], list[Row]]]) -> Replicate:
    arm, control, phase, shape, number = key
    (main,) = parts["timed"].values()
    warm_up = [window_of(row) for series in parts.get("warm_up", {}).values() for row in series]
    return Replicate(
        arm=arm,
        control=control,
        number=number,
        position=position,
        phase=_PHASES[phase],
        warm_up=tuple(warm_up),
        main=_series_of(main),
        others=tuple(_series_of(series) for series in parts.get("other", {}).values()),
        shape=shape,
        telemetry=_telemetry(main[0]),
    )


def _telemetry(row: Row) -> Mapping[str, Fact]:
    told = row.get("telemetry")
    return dict(told) if isinstance(told, dict) else {}
