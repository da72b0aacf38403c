"""``samples.jsonl``: every timed window of a comparison, as times a call by kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.basics.units import format_bytes
from magpie_tui.workspaces.values import as_count, as_mapping, as_number, as_text

SAMPLES_NAME = "samples.jsonl"
LARGEST_SAMPLES_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class KernelSamples:
    """The timed windows of one kernel, in the order of time.

    Attributes:
        kernel: Its id.
        started_s: Start of each window in seconds after the first window of the file.
        per_call_us: Time of one call in each window, in µs.
        blocks: Block (replicate) of each window.
        control: Which windows belong to the A/A control.
        warm_up: Windows of the warm-up, which are not used.
        shapes: Point of the shape grid of each window; empty texts without a grid.
        confirming: Which windows belong to the confirmation of a winner.
        turns: Turn of each window, where the processes of a replicate took turns.
    """

    kernel: str
    started_s: tuple[float, ...] = ()
    per_call_us: tuple[float, ...] = ()
    blocks: tuple[int, ...] = ()
    control: tuple[bool, ...] = ()
    warm_up: int = 0
    shapes: tuple[str, ...] = ()
    confirming: tuple[bool, ...] = ()
    turns: tuple[int | None, ...] = ()

    @property
    def used_us(self) -> tuple[float, ...]:
        """Times of the windows that count, without those of the control."""
        return tuple(time for time, control in zip(self.per_call_us, self.control, strict=True) if not control)

    def at(self, shape: str) -> KernelSamples:
        """Return the windows of one point of the shape grid."""
        keep = [index for index, name in enumerate(self.shapes) if name == shape]
        return KernelSamples(
            self.kernel,
            tuple(self.started_s[index] for index in keep),
            tuple(self.per_call_us[index] for index in keep),
            tuple(self.blocks[index] for index in keep),
            tuple(self.control[index] for index in keep),
            self.warm_up,
            tuple(self.shapes[index] for index in keep),
            tuple(self.confirming[index] for index in keep),
            tuple(self.turns[index] for index in keep),
        )

    def block_medians_us(self) -> dict[int, float]:
        """Return block to the median of its windows, without the control and the confirmation."""
        found: dict[int, list[float]] = {}
        rows = zip(self.blocks, self.per_call_us, self.control, self.confirming, strict=True)
        for block, time, control, confirming in rows:
            if not control and not confirming:
                found.setdefault(block, []).append(time)
        return {block: _median(times) for block, times in found.items()}

    def turn_medians_us(self) -> dict[int, dict[int, float]]:
        """Return block to turn to the median of its windows, as ``block_medians_us``; empty without turns."""
        found: dict[int, dict[int, list[float]]] = {}
        rows = zip(self.blocks, self.turns, self.per_call_us, self.control, self.confirming, strict=True)
        for block, turn, time, control, confirming in rows:
            if not control and not confirming:
                of_block = found.setdefault(block, {})
                if turn is not None:
                    of_block.setdefault(turn, []).append(time)
        return {block: {turn: _median(times) for turn, times in of_block.items()} for block, of_block in found.items()}


@dataclass(frozen=True, slots=True)
class Samples:
    """What a file of samples holds.

    Attributes:
        kernels: By kernel id.
        reason: Why there are none; None when there are.
        damaged_lines: Lines that could not be read.
    """

    kernels: Mapping[str, KernelSamples] = field(default_factory=dict)
    reason: str | None = None
    damaged_lines: int = 0

    @property
    def shapes(self) -> tuple[str, ...]:
        """Points of the shape grid in the order of their first windows; one empty text without a grid."""
        return tuple(dict.fromkeys(name for item in self.kernels.values() for name in item.shapes))


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@dataclass(slots=True)
class _Growing:
    started_s: list[float] = field(default_factory=list)
    per_call_us: list[float] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    control: list[bool] = field(default_factory=list)
    warm_up: int = 0
    shapes: list[str] = field(default_factory=list)
    confirming: list[bool] = field(default_factory=list)
    turns: list[int | None] = field(default_factory=list)


def read_samples(workspace: Path) -> Samples:
    """Read the samples of a workspace; never raises, a file that cannot be read is a reason."""
    path = workspace / SAMPLES_NAME
    try:
        size = path.stat().st_size
        if size > LARGEST_SAMPLES_BYTES:
            limit = format_bytes(LARGEST_SAMPLES_BYTES)
            return Samples(reason=f"{SAMPLES_NAME} has {format_bytes(size)}; more than {limit} is not read")
        with path.open("rb") as file:
            return _read(file.read(LARGEST_SAMPLES_BYTES).splitlines())
    except FileNotFoundError:
        return Samples(reason=f"there is no {SAMPLES_NAME}: nothing was timed, or another program wrote this workspace")
    except OSError as error:
        return Samples(reason=f"{SAMPLES_NAME} cannot be read: {error.strerror}")


def _read(lines: list[bytes]) -> Samples:
    growing: dict[str, _Growing] = {}
    first_ns: float | None = None
    damaged = 0
    for line in lines:
        try:
            keys = as_mapping(json.loads(line))
        except (ValueError, RecursionError):
            damaged += 1
            continue
        kernel, started, ended = (
            keys.get("kernel"),
            as_number(keys.get("started_ns")),
            as_number(keys.get("ended_ns")),
        )
        repeats = as_count(keys.get("repeats")) or 0
        if not isinstance(kernel, str) or started is None or ended is None or not repeats:
            damaged += 1
            continue
        first_ns = started if first_ns is None else first_ns
        of_kernel = growing.setdefault(kernel, _Growing())
        part = as_text(keys.get("part"))
        if part == "other":
            continue  # another quantity or method of the same processes, never mixed with what is compared
        if part != "timed":
            of_kernel.warm_up += 1
            continue
        of_kernel.started_s.append((started - first_ns) / 1e9)
        own = as_number(keys.get("per_call_ns"))
        of_kernel.per_call_us.append(((ended - started) / repeats if own is None else own) / 1e3)
        of_kernel.blocks.append(as_count(keys.get("replicate")) or 0)
        of_kernel.control.append(keys.get("control") is True)
        of_kernel.shapes.append(as_text(keys.get("shape")) or "")
        of_kernel.confirming.append(keys.get("phase") == "confirm")
        of_kernel.turns.append(as_count(keys.get("turn")))
    kernels = {
        name: KernelSamples(
            name,
            tuple(item.started_s),
            tuple(item.per_call_us),
            tuple(item.blocks),
            tuple(item.control),
            item.warm_up,
            tuple(item.shapes),
            tuple(item.confirming),
            tuple(item.turns),
        )
        for name, item in growing.items()
    }
    reason = None if any(item.per_call_us for item in kernels.values()) else f"{SAMPLES_NAME} holds no timed window"
    return Samples(kernels, reason, damaged)
