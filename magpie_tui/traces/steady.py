"""Steady state of a served model: upstream's regions and windows over the list of steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError

if TYPE_CHECKING:
    from magpie_tui.traces.labels import UpstreamStep

DEFAULT_NUM_STEPS = 32
_OPENS_AT = 6


@dataclass(frozen=True, slots=True)
class SteadyOptions:
    """Upstream's options.

    Attributes:
        num_steps: Wanted length of a window.
        iterations: Half-open range of steps that replaces the search.
        concurrency, output_length, ratio: ``--CONC``, ``--OSL``, ``--R``; all three or none have an effect.
    """

    num_steps: int = DEFAULT_NUM_STEPS
    iterations: tuple[int, int] | None = None
    concurrency: int | None = None
    output_length: float | None = None
    ratio: float | None = None

    def check(self) -> None:
        """Raise UserInputError when a value is out of range."""
        if self.num_steps < 1:
            raise UserInputError("--num-steps must be one or more", key="--num-steps")
        if self.iterations is not None and not 0 <= self.iterations[0] < self.iterations[1]:
            raise UserInputError(
                "--iterations must be START:END with 0 <= START < END", key="--iterations", hint="for instance 3:6"
            )
        for key, value in (("--conc", self.concurrency), ("--osl", self.output_length)):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UserInputError(f"{key} must be above zero", key=key)
        if self.ratio is not None and not math.isfinite(self.ratio):
            raise UserInputError("--r must be a number", key="--r")

    @property
    def ideal_ratio(self) -> float | None:
        """Share of steps with context that the load implies; None unless all three numbers are given."""
        if self.concurrency is None or self.output_length is None or self.ratio is None:
            return None
        ratio = min(1.0, max(0.0, self.ratio))
        return 2 * self.concurrency / (self.output_length * (1 + ratio))


@dataclass(frozen=True, slots=True)
class Window:
    """Steps ``first`` (included) to ``last`` (excluded) under one of upstream's labels."""

    label: str
    first: int
    last: int

    def __len__(self) -> int:
        """Number of steps."""
        return self.last - self.first


def parse_iterations(text: str) -> tuple[int, int]:
    """Read ``START:END``.

    Raises:
        UserInputError: It has another form.
    """
    first, colon, last = text.partition(":")
    if not colon or not first.strip().isdecimal() or not last.strip().isdecimal():
        raise UserInputError(
            f"--iterations must be START:END, not {text!r}", key="--iterations", hint="for instance 3:6"
        )
    return int(first), int(last)


def steady_regions(steps: Sequence[UpstreamStep], options: SteadyOptions) -> tuple[tuple[int, int], ...]:
    """Return the half-open regions in which the number of requests stays near its maximum.

    A region opens at the sixth step within tolerance and begins five steps earlier; within it each step outside
    tolerance takes one off the counter, so that it runs on for about six steps after a drop.
    """
    count = len(steps)
    if options.iterations is not None:
        first, last = options.iterations
        return ((first, min(last, count)),) if first < count else ()
    if not count:
        return ()
    requests = [step.num_requests for step in steps]
    largest = max(requests)
    tolerance = max(1.0, (0.1 if count >= options.num_steps else 0.2) * largest)
    regions = []
    opened: int | None = None
    counter = 0
    for index, number in enumerate(requests):
        near = largest - number <= tolerance
        if opened is None:
            counter += near
            if counter == _OPENS_AT:
                opened = index - (_OPENS_AT - 1)
        elif not near:
            counter -= 1
            if counter == 0:
                regions.append((opened, index))
                opened = None
    if opened is not None:
        regions.append((opened, count - 1))
    if regions:
        return tuple(regions)
    cut = min(count, max(8, options.num_steps - count))
    first = cut // 2
    last = count - cut // 2
    return ((first, last),) if first < last else ()


def trailing_steps(steps: Sequence[UpstreamStep], region: tuple[int, int]) -> int:
    """Number of steps at the end of a region that lie after the drop of the load."""
    part = [step.num_requests for step in steps[region[0] : region[1]]]
    if not part:
        return 0
    tolerance = max(1.0, 0.1 * max(part))
    number = 0
    while number < len(part) and max(part) - part[-1 - number] > tolerance:
        number += 1
    return number


def largest_region(regions: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """The longest one, the first of equals."""
    return max(regions, key=lambda region: region[1] - region[0], default=None)


def steady_windows(
    steps: Sequence[UpstreamStep], regions: Sequence[tuple[int, int]], options: SteadyOptions
) -> tuple[Window, ...]:
    """Upstream's three windows inside the largest region; one that would be empty is left out."""
    region = largest_region(regions)
    if region is None or region[0] >= region[1]:
        return ()
    windows = [
        _mixed(steps, regions, region, options),
        _longest_run(steps, region, options.num_steps, context=False, label="decode_only_steady_state"),
        _longest_run(steps, region, options.num_steps, context=True, label="prefilldecode_steady_state"),
    ]
    return tuple(window for window in windows if window is not None and len(window) > 0)


def _mixed(
    steps: Sequence[UpstreamStep],
    regions: Sequence[tuple[int, int]],
    region: tuple[int, int],
    options: SteadyOptions,
) -> Window:
    length = options.num_steps
    steady = [step for first, last in regions for step in steps[first:last]]
    reference = sum(step.has_context for step in steady) / len(steady) if steady else 0.0
    ideal = options.ideal_ratio
    if ideal is not None:
        reference = ideal
        length = max(length, math.ceil(1 / ideal))
    stride = max(1, length // max(1, min(length // 2, 10)))
    first, last = region
    candidates = [(start, start + length) for start in range(first, last - length + 1, stride)] or [region]
    with_context = [(a, b) for a, b in candidates if any(step.has_context for step in steps[a:b])]

    def worth(candidate: tuple[int, int]) -> tuple[float, float]:
        part = steps[candidate[0] : candidate[1]]
        ratio = sum(step.has_context for step in part) / len(part)
        return abs(ratio - reference), -sum(step.num_requests for step in part) / len(part)

    best = min(with_context or candidates, key=worth)
    return Window("mixed_steady_state", *best)


def _longest_run(
    steps: Sequence[UpstreamStep], region: tuple[int, int], length: int, *, context: bool, label: str
) -> Window | None:
    """Longest run of steps with (or without) context, cut to ``length``; the first of equals."""
    best: tuple[int, int] | None = None
    begin: int | None = None
    for index in range(region[0], region[1] + 1):
        inside = index < region[1] and (
            steps[index].has_context
            if context
            else steps[index].generation_requests > 0 and not steps[index].has_context
        )
        if inside and begin is None:
            begin = index
        elif not inside and begin is not None:
            if best is None or index - begin > best[1] - best[0]:
                best = (begin, index)
            begin = None
    return None if best is None else Window(label, best[0], min(best[1], best[0] + length))


def phase_runs(steps: Sequence[UpstreamStep], regions: Sequence[tuple[int, int]]) -> tuple[Window, ...]:
    """All steady steps in runs of equal phase; labels ``prefilldecodemix_chunk<i>`` and ``decode_only_chunk<i>``."""
    counts = {"prefilldecodemix": 0, "decode_only": 0}
    runs = []
    for first, last in regions:
        begin = first
        for index in range(first, last):
            if index + 1 == last or steps[index + 1].has_context != steps[index].has_context:
                phase = "prefilldecodemix" if steps[index].has_context else "decode_only"
                runs.append(Window(f"{phase}_chunk{counts[phase]}", begin, index + 1))
                counts[phase] += 1
                begin = index + 1
    return tuple(runs)


def steady_notes(steps: Sequence[UpstreamStep], regions: Sequence[tuple[int, int]], *, searched: bool) -> list[str]:
    """What a reader should know about the windows."""
    if not searched:
        return []
    region = largest_region(regions)
    if region is None:
        return ["too few steps for a steady state: no window"]
    trailing = trailing_steps(steps, region)
    if trailing:
        return [
            f"the steady region {region[0]}:{region[1]} holds {trailing} steps after the load dropped, as upstream's "
            "search has it"
        ]
    return []
