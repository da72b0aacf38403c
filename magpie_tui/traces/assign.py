"""Which step of an engine each piece of work belongs to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.traces.arrays import distinct
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.links import Links, link_device_work
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.steps import Steps, find_steps
from magpie_tui.traces.work import Work, trace_work

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from magpie_tui.traces.columns import TraceColumns

_INSIDE_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Assignment:
    """The step of each piece of work.

    Attributes:
        work: The work, sorted by track and start.
        step: int64, the step of each piece of ``work``; -1 outside all steps.
        links: Links of the device work.
    """

    steps: Steps
    work: Work
    step: npt.NDArray[np.int64]
    links: Links

    def stage_codes(self) -> npt.NDArray[np.int8]:
        """Place in :class:`Stage` of each piece of work; -1 outside all steps."""
        import numpy as np

        order = list(Stage)
        table = np.array([order.index(label.stage) for label in self.steps.labels] or [0], np.int8)
        return np.where(self.step >= 0, table[np.maximum(self.step, 0)], -1).astype(np.int8)


def assign_work(
    columns: TraceColumns, steps: Steps | None = None, work: Work | None = None, links: Links | None = None
) -> Assignment:
    """Give each piece of work the step that launched it.

    The launching call counts, on whatever thread of the process; the step of its own thread comes first. Work without
    a known launch counts by the projection of the step's label onto the device. For an engine on a CPU the op itself
    counts.
    """
    import numpy as np

    steps = find_steps(columns) if steps is None else steps
    work = work or trace_work(columns)
    links = links or link_device_work(columns, columns.device_rows())
    step = np.full(len(work.rows), -1, np.int64)
    if not len(steps) or not len(work.rows):
        return Assignment(steps, work, step, links)
    if work.device == "cpu":
        step = steps_at(columns, steps, work.rows)
    else:
        launch = np.full(len(columns), -1, np.int64)
        launch[links.rows] = links.launch
        call = launch[work.rows]
        linked = call >= 0
        step[linked] = steps_at(columns, steps, call[linked])
        if not linked.all():
            step[~linked] = _projected(columns, steps, work, ~linked)
    return Assignment(steps, work, step, links)


def steps_at(columns: TraceColumns, steps: Steps, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Step in which each host event starts: one of its thread, else one of its process; -1 for none."""
    import numpy as np

    codes: dict[str, int] = {}
    table = np.array([codes.setdefault(str(track.pid), len(codes)) for track in columns.tracks] or [0], np.int64)
    when = columns.ts_ns[rows]
    found = np.full(len(rows), -1, np.int64)
    for own, mine in ((steps.track, columns.track[rows]), (table[steps.track], table[columns.track[rows]])):
        for code in distinct(own).tolist():
            open_ones = np.flatnonzero((mine == code) & (found < 0) & (when != MISSING))
            found[open_ones] = _interval_of(steps, np.flatnonzero(own == code), when[open_ones])
    return found


def _interval_of(steps: Steps, chosen: npt.NDArray[np.int64], when: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The latest started of the chosen steps that is not over at each moment; -1 for none."""
    import numpy as np

    place = np.searchsorted(steps.start_ns[chosen], when, "right") - 1
    step = chosen[np.maximum(place, 0)]
    return np.where((place >= 0) & (when < steps.end_ns[step]), step, -1)


def _projected(columns: TraceColumns, steps: Steps, work: Work, wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Step of work by ``gpu_user_annotation``: the n-th of a name belongs to the n-th step of that name."""
    import numpy as np

    found = np.full(int(wanted.sum()), -1, np.int64)
    ranges = columns.rows_of("gpu_user_annotation")
    labelled = steps.row >= 0
    if not len(ranges) or not labelled.any():
        return found
    ranges = ranges[np.isin(columns.name[ranges], columns.name[steps.row[labelled]]) & (columns.dur_ns[ranges] >= 0)]
    ranges = ranges[np.argsort(columns.ts_ns[ranges], kind="stable")]
    owner = np.full(len(ranges), -1, np.int64)
    for code in distinct(columns.name[ranges]).tolist():
        mine = np.flatnonzero(columns.name[ranges] == code)
        own = np.flatnonzero(labelled & (columns.name[np.maximum(steps.row, 0)] == code))
        if len(mine) == len(own):
            owner[mine] = own
    rows, start = work.rows[wanted], work.start_ns[wanted]
    for track in distinct(columns.track[ranges]).tolist():
        mine = np.flatnonzero(columns.track[ranges] == track)
        begin = columns.ts_ns[ranges[mine]]
        end = begin + columns.dur_ns[ranges[mine]]
        here = np.flatnonzero(columns.track[rows] == track)
        place = np.searchsorted(begin, start[here], "right") - 1
        inside = (place >= 0) & (start[here] < end[np.maximum(place, 0)])
        found[here] = np.where(inside, owner[mine[np.maximum(place, 0)]], -1)
    return found


@dataclass(frozen=True, slots=True)
class StagePart:
    """The part of a trace that belongs to some stages.

    Attributes:
        events: Mask of all events: device work that the steps launched, and host events within the steps.
        window_us: Sum of the steps' device spans (host ranges for an engine on a CPU).
        steps: Number of steps.
    """

    events: npt.NDArray[np.bool_]
    window_us: float
    steps: int


def stage_part(columns: TraceColumns, assignment: Assignment, stages: Collection[Stage]) -> StagePart:
    """Mask the events of the steps of these stages."""
    import numpy as np

    steps, work = assignment.steps, assignment.work
    chosen = np.array([label.stage in stages for label in steps.labels], np.bool_)
    mask = np.zeros(len(columns), np.bool_)
    if not chosen.any():
        return StagePart(mask, 0.0, 0)
    host = np.flatnonzero((columns.ts_ns != MISSING) & ~columns.is_category("kernel", "gpu_memcpy", "gpu_memset"))
    for first in range(0, len(host), _INSIDE_AT_ONCE):
        rows = host[first : first + _INSIDE_AT_ONCE]
        step = steps_at(columns, steps, rows)
        mask[rows] = (step >= 0) & chosen[np.maximum(step, 0)]
    mine = (assignment.step >= 0) & chosen[np.maximum(assignment.step, 0)]
    mask[work.rows] = mine
    if work.device == "cpu":
        window = int((steps.end_ns - steps.start_ns)[chosen].sum())
    else:
        owner = assignment.step[mine]
        begin, end = np.full(len(steps), np.iinfo(np.int64).max), np.full(len(steps), MISSING)
        np.minimum.at(begin, owner, work.start_ns[mine])
        np.maximum.at(end, owner, work.clipped_end_ns[mine])
        window = int((end - begin)[end != MISSING].sum())
    return StagePart(mask, window / 1000, int(chosen.sum()))
