"""A comparison while it runs: what is measured so far goes to the samples file, and comes back as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from magpie_tui.basics.json_strict import dumps
from magpie_tui.basics.text import plural
from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.configs.positions import Value
from magpie_tui.kernels.measurement import Measurement, sample_rows
from magpie_tui.kernels.narrowing import so_far
from magpie_tui.kernels.shapes import points_of, weights_of
from magpie_tui.workspaces.candidates import Candidate, Candidates, changes_of
from magpie_tui.workspaces.kernel_state import KernelState
from magpie_tui.workspaces.samples import Samples
from magpie_tui.workspaces.values import as_count, as_list, as_mapping, as_text

MARGIN = 0.01
"""Margin before the A/A control has said more."""


class SamplesLog:
    """Appends new replicates to the samples file while kernels are timed.

    The file is written again as a whole at the end; until then a reader may find the last line cut off.
    """

    def __init__(self, path: Path, ids: Mapping[int, str]) -> None:
        self._path = path
        self._ids = ids
        self._written: dict[int, int] = {}

    def add(self, measurement: Measurement) -> None:
        """Append the replicates that came since the last call."""
        done = self._written.get(id(measurement), 0)
        new = measurement.replicates[done:]
        if not new:
            return
        self._written[id(measurement)] = done + len(new)
        rows = sample_rows(Measurement(replicates=list(new), reduction=measurement.reduction), self._ids)
        with self._path.open("a", encoding="utf-8") as file:
            file.write("".join(dumps(row, indent=None) + "\n" for row in rows))


def candidates_so_far(config: Mapping[str, object], samples: Samples, doing: str = "running") -> Candidates:
    """Return the kernels of a comparison that has no report yet: how far each is, its ratio so far, no verdict.

    Args:
        config: The workspace's ``config.yaml``.
        doing: What its run says, for people.
    """
    entries = [as_mapping(item) for item in as_list(config.get("kernels"))]
    own = as_mapping(config.get("magpie_tui"))
    baseline = as_count(own.get("baseline"))
    names = [
        as_text(item.get("kernel_id")) or as_text(item.get("id")) or f"kernel {i}" for i, item in enumerate(entries)
    ]
    changes = changes_of(config)
    weights = _as_sampled(_weights(entries, baseline), samples)
    base = names[baseline] if baseline is not None and baseline < len(names) else None
    rows = [
        _row(index, name, entries[index], base, samples, weights, changes.get(name)) for index, name in enumerate(names)
    ]
    timed = [row.replicates or 0 for row in rows if row.time_us is not None]
    sentence = "no verdict before the end" if timed else "kernels are being judged; none is timed yet"
    if timed:
        sentence = f"{plural(max(timed), 'block')} so far; {sentence}"
    return Candidates(tuple(rows), {}, baseline, None, MARGIN, MARGIN, (doing,), sentence)


def _weights(entries: Sequence[Mapping[str, object]], baseline: int | None) -> dict[str, float]:
    order = list(range(len(entries)))
    if baseline is not None and baseline < len(entries):
        order.insert(0, order.pop(baseline))
    for index in order:
        shapes = as_mapping(entries[index].get("magpie_tui")).get("shapes")
        if shapes:
            points = points_of(KernelEntry("", "cpp", shapes=tuple(_value(item) for item in as_list(shapes))))
            return weights_of(points)
    return {}


def _as_sampled(weights: Mapping[str, float], samples: Samples) -> dict[str, float]:
    """Return the weights under the names that the samples use: a snapshot has the dimensions in another order."""
    known = {frozenset(name.split()): weight for name, weight in weights.items()}
    found = {name: known.get(frozenset(name.split())) for name in samples.shapes}
    return {name: weight for name, weight in found.items() if weight is not None}


def _value(item: object) -> Value:
    if isinstance(item, Mapping):
        return {str(key): _value(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return tuple(_value(value) for value in item)
    return item if isinstance(item, (bool, int, float, str)) else None


def _row(
    index: int,
    name: str,
    entry: Mapping[str, object],
    baseline: str | None,
    samples: Samples,
    weights: Mapping[str, float],
    change: str | None,
) -> Candidate:
    own = samples.kernels.get(name)
    shape = samples.shapes[0] if samples.shapes else ""
    medians = {} if own is None else own.at(shape).block_medians_us()
    blocks = 0 if own is None else sum(len(own.at(item).block_medians_us()) for item in samples.shapes)
    is_baseline = name == baseline
    step = None if is_baseline or baseline is None else so_far(samples, baseline, name, weights)
    interval = None if step is None else step.interval
    times = sorted(medians.values())
    word = f"block {blocks}" if blocks else "judging"
    reasons = {
        "time": "it is not timed yet",
        "ratio": "it is being timed; two blocks of it and of the baseline give an interval",
        "rank": "nothing is ranked before the end",
        "verdict": "no verdict before the end: the interval is not corrected and may still move",
    }
    return Candidate(
        index=index,
        name=name,
        rank=None,
        is_baseline=is_baseline,
        change=change,
        word="baseline" if is_baseline and blocks else word,
        state="running",
        time_us=times[len(times) // 2] if times else None,
        time_low_us=None,
        time_high_us=None,
        ratio=1.0 if is_baseline and blocks else None if interval is None else interval.point,
        ratio_low=None if interval is None else interval.low,
        ratio_high=None if interval is None else interval.high,
        replicates=blocks or None,
        needed=None,
        errors=(),
        checks=(),
        shapes=(),
        reasons=reasons,
        kernel=KernelState(name, as_text(entry.get("kernel_type")) or ""),
    )
