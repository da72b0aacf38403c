"""Computes the times and verdicts of a kernel workspace again from its raw rows, and says where a report differs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.json_strict import to_plain
from magpie_tui.kernels.measurement import Measurement
from magpie_tui.kernels.model import Comparison, Timing
from magpie_tui.kernels.ranking import Ranking, confirm, margin_json, rank, ratios_of
from magpie_tui.kernels.recomputing import Row, RowsError, measurement_of_rows
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.states import verdict_of
from magpie_tui.kernels.timings import timing_of
from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.detail import show_workspace
from magpie_tui.workspaces.kernel_state import KernelState
from magpie_tui.workspaces.reports import CompareReport
from magpie_tui.workspaces.values import as_count, as_list, as_mapping, as_number, as_text

SAMPLES_NAME = "samples.jsonl"
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class Recomputed:
    """One stated value, and what the raw rows give.

    Attributes:
        name: Kernel and key, such as ``fused: median_us``.
        stated, computed: Values; None where there is none.
    """

    name: str
    stated: object
    computed: object

    @property
    def agrees(self) -> bool:
        """True when both are the same, but for the last digits of a number."""
        one, other = self.stated, self.computed
        if isinstance(one, (int, float)) and isinstance(other, (int, float)) and not isinstance(one, bool):
            return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)
        return one == other


def recompute(workspace: Path) -> tuple[Recomputed, ...]:
    """Compute every time, ratio, verdict and the winner of a kernel workspace again.

    Raises:
        UserInputError: It is no kernel workspace of ours with a report, or its samples cannot be read.
    """
    detail = show_workspace(workspace)
    report = detail.report
    if report is None or isinstance(report, BenchmarkReport):
        raise UserInputError("this workspace has no report of analyze or compare", path=detail.path)
    settings = _settings(as_mapping(detail.record))
    rows = _rows(detail.path / SAMPLES_NAME)
    states = report.kernels
    if isinstance(report, CompareReport):
        more = {} if report.extras is None else report.extras.more
        return tuple(_compared(report, as_count(more.get("baseline")) or 0, rows, settings))
    found: list[Recomputed] = []
    for index, state in enumerate(states):
        own = [row for row in rows if row.get("arm") == index]
        measurement = _measurement(own, state)
        found += _times(state, timing_of(measurement, index, settings) if own else None)
    return tuple(found)


def _settings(record: Mapping[str, object]) -> TimingSettings:
    """Return the settings of the run as its record holds them; defaults for what it does not name."""
    config = as_mapping(record.get("effective_config"))
    given = as_mapping(as_mapping(config.get("settings")).get("timing"))
    known = {item.name for item in fields(TimingSettings)}
    return TimingSettings(**{name: value for name, value in given.items() if name in known})  # type: ignore[arg-type]


def _rows(path: Path) -> list[Row]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserInputError(f"the raw samples cannot be read: {error.strerror}", path=path) from error
    try:
        rows = [json.loads(line) for line in lines]
    except ValueError as error:
        raise UserInputError(f"the raw samples are damaged: {error}", path=path) from error
    return [as_mapping(row) for row in rows]


def _timing_of_state(state: KernelState) -> Mapping[str, object]:
    return as_mapping(None if state.extras is None else state.extras.timing)


def _measurement(rows: list[Row], state: KernelState) -> Measurement:
    """Build the measurement; shapes, their weights and the device's floors are facts that no row tells."""
    told = _timing_of_state(state)
    shapes = [text for item in as_list(told.get("shapes")) if (text := as_text(as_mapping(item).get("shape")))]
    weights = _weights(state)
    try:
        measurement = measurement_of_rows(rows, shapes=shapes or ("",), weights=weights if shapes else None)
    except RowsError as error:
        raise UserInputError(f"the raw samples are damaged: {error}") from error
    for item in as_list(told.get("shapes")) or [told]:
        floor = as_number(as_mapping(item).get("floor_us"))
        if floor is not None:
            measurement.floors_ns[as_text(as_mapping(item).get("shape")) or "" if shapes else ""] = floor * 1e3
    return measurement


def _weights(state: KernelState) -> dict[str, float]:
    """Return the share of each point in the mean, from the timing or else from the rows of the shape grid."""
    shares = dict(as_mapping(_timing_of_state(state).get("weights")))
    if not shares and state.extras is not None:
        rows = [as_mapping(row) for row in as_list(state.extras.more.get("shapes"))]
        shares = {name: row.get("share") for row in rows if (name := as_text(row.get("shape")))}
    return {name: float(value) for name, value in shares.items() if isinstance(value, (int, float))}


_NOT_IN_ROWS = frozenset({"kernels", "notes", "discarded", "shape", "flags"})
"""Parts of a timing that rest on more than the rows: names from the profiler, blocks that were left out as a whole."""


def _times(state: KernelState, timing: Timing | None) -> Iterator[Recomputed]:
    """Compare every value of a timing that both sides have; the median also where one of them has none."""
    told = _timing_of_state(state)
    computed = {} if timing is None else to_plain(timing.to_json())
    for key in ("median_us", "replicates", "windows"):
        if told.get(key) is not None:
            yield Recomputed(f"{state.kernel_id}: {key}", told[key], computed.get(key))
    bounds, again = as_list(told.get("interval_us")), as_list(computed.get("interval_us"))
    for name, position in (("interval_low_us", 0), ("interval_high_us", 1)):
        if bounds:
            yield Recomputed(f"{state.kernel_id}: {name}", bounds[position], again[position] if again else None)
    for key, value in told.items():
        if key in computed and key not in ("median_us", "replicates", "windows", "interval_us"):
            yield from _leaves(f"{state.kernel_id}: {key}", value, computed[key])


def _leaves(name: str, told: object, computed: object) -> Iterator[Recomputed]:
    if name.rpartition(".")[2].rpartition(": ")[2] in _NOT_IN_ROWS and not isinstance(told, str):
        return
    if isinstance(told, dict) and isinstance(computed, dict):
        for key, value in told.items():
            if key in computed:
                yield from _leaves(f"{name}.{key}", value, computed[key])
    elif isinstance(told, list) and isinstance(computed, list) and len(told) == len(computed):
        for index, (one, other) in enumerate(zip(told, computed, strict=True)):
            yield from _leaves(f"{name}[{index}]", one, other)
    else:
        yield Recomputed(name, told, computed)


def _compared(report: CompareReport, baseline: int, rows: list[Row], settings: TimingSettings) -> Iterator[Recomputed]:
    states = report.kernels
    if not rows:
        yield Recomputed("winner", report.winner, None)
        return
    measurement = _measurement(rows, states[baseline])
    arms = sorted({item.arm for item in measurement.replicates})
    timed = [index for index in arms if _timing_of_state(states[index]).get("median_us") is not None]
    timings = {index: timing_of(measurement, index, settings) for index in timed}
    for index in timed:
        yield from _times(states[index], timings[index])
    ranking: Ranking | None = None
    if baseline in timings and len(timings) > 1:
        ranking = rank(measurement, baseline, [index for index in timed if index != baseline], settings, timings)
        ranking = confirm(ranking, measurement, baseline, settings)
    yield Recomputed("winner", report.winner, None if ranking is None else ranking.winner)
    yield from _ranked(report, ranking, baseline)
    for index, state in enumerate(states):
        comparison = None if ranking is None else ranking.comparisons.get(index)
        yield from _verdicts(state, comparison)


def _ranked(report: CompareReport, ranking: Ranking | None, baseline: int) -> Iterator[Recomputed]:
    """Compare ratios, order, ranks and the margin."""
    ratios = {} if ranking is None else ratios_of(ranking, baseline)
    for index, told in enumerate(report.perf_scores):
        yield Recomputed(f"perf_scores[{index}]", told, ratios.get(index))
    order = sorted(ratios, key=lambda index: (-ratios[index], index))
    yield Recomputed("rankings", [index for index, _ in report.rankings], order)
    for index, told in report.rankings:
        yield Recomputed(f"rankings[{index}]", told, ratios.get(index))
    extras = report.extras
    if extras is None:
        return
    ranks = {} if ranking is None else {str(index): value for index, value in ranking.ranks.items()}
    yield Recomputed("ranks", dict(as_mapping(extras.more.get("ranks"))), ranks)
    told_margin = as_mapping(as_mapping(extras.timing).get("margin"))
    margin = None if ranking is None or ranking.margin is None else margin_json(ranking.margin)
    for key, value in told_margin.items():
        yield Recomputed(f"margin.{key}", value, None if margin is None else margin.get(key))


def _verdicts(state: KernelState, comparison: Comparison | None) -> Iterator[Recomputed]:
    told = None if state.extras is None else state.extras.verdict
    if told is None:
        return
    computed = {} if comparison is None else to_plain(verdict_of(comparison).to_json())
    for key, value in told.to_json().items():
        yield from _leaves(f"{state.kernel_id}: {'verdict' if key == 'word' else key}", value, computed.get(key))
