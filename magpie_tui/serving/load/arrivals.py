"""When requests are sent, for loads that do not wait for answers."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec

from magpie_tui.basics.errors import UserInputError
from magpie_tui.serving.load.model import Arrival, ClosedLoop, ConstantRate, GammaRate, Replay

_TIME_KEYS = ("timestamp", "time", "arrival_time", "relative_time")


def schedule(arrival: Arrival, requests: int, seed: int) -> tuple[float, ...] | None:
    """Return the send times in s after the start, the first one 0; None for a closed loop.

    Gamma gaps have shape ``burstiness`` and scale ``1 / (rate * burstiness)``, so their mean is ``1 / rate`` and their
    coefficient of variation ``1 / sqrt(burstiness)``; shape 1 is a Poisson process.

    Raises:
        UserInputError: A file of times cannot be read, is not in order, or has too few.
    """
    if isinstance(arrival, ClosedLoop):
        return None
    if isinstance(arrival, ConstantRate):
        return tuple(index / arrival.requests_per_s for index in range(requests))
    if isinstance(arrival, GammaRate):
        generator = random.Random(f"{seed}:arrivals")
        scale = 1.0 / (arrival.requests_per_s * arrival.burstiness)
        times, now = [], 0.0
        for _ in range(requests):
            times.append(now)
            now += generator.gammavariate(arrival.burstiness, scale)
        return tuple(times)
    return _replayed(arrival, requests)


def _replayed(replay: Replay, requests: int) -> tuple[float, ...]:
    factor = (1e-3 if replay.unit == "ms" else 1.0) / replay.speed
    times = read_times(replay.path)
    if len(times) < requests:
        raise UserInputError(
            f"{requests} requests are asked for, and the file has the times of {len(times)}",
            path=replay.path,
            hint="ask for fewer requests, or give a longer file",
        )
    return tuple((time - times[0]) * factor for time in times[:requests])


def read_times(path: Path) -> list[float]:
    """Return the times of a file: JSON lines with ``timestamp``, or one number a line.

    Raises:
        UserInputError: It cannot be read, a line has no time, or the times do not rise.
    """
    times: list[float] = []
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        time = _time_of(line)
        if time is None:
            raise UserInputError(
                "this line has no time", path=path, line=number, hint=f"a number, or an object with {_TIME_KEYS[0]!r}"
            )
        if times and time < times[-1]:
            raise UserInputError("the times of a replay must not fall", path=path, line=number)
        times.append(time)
    return times


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except OSError as error:
        raise UserInputError(f"the file of times cannot be read: {error.strerror}", path=path) from error


def _time_of(line: bytes) -> float | None:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if isinstance(value, dict):
        value = next((value[key] for key in _TIME_KEYS if key in value), None)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)
