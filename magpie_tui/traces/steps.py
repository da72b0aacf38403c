"""Steps of an engine: the labelled ranges of a trace, or what repeats in its call tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.traces.arrays import distinct
from magpie_tui.traces.balance import Caveat
from magpie_tui.traces.call_tree import repeated_ranges
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.labels import TIERS, Dialect, StepLabel, parse_label
from magpie_tui.traces.stage_names import Stage

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from magpie_tui.traces.columns import TraceColumns


_SHARE_OF_CALLS = 0.5
"""Part of the launches that repetitions in the call tree must hold to count as steps."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps by start time; all arrays have one entry a step.

    Attributes:
        labels: What each label says.
        row: int64, the annotation's row; -1 for steps from the call tree.
        start_ns, end_ns: int64, the range on the host.
        track: int32, code of the thread.
        caveats: What a reader should know about the choice.
    """

    labels: tuple[StepLabel, ...]
    row: npt.NDArray[np.int64]
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    track: npt.NDArray[np.int32]
    caveats: tuple[Caveat, ...] = ()

    def __len__(self) -> int:
        """Number of steps."""
        return len(self.labels)

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """Dialects of the labels, in order of appearance."""
        return tuple(dict.fromkeys(label.dialect for label in self.labels))


@dataclass(frozen=True, slots=True)
class _Labelled:
    """Annotations that parse, sorted by start."""

    row: npt.NDArray[np.int64]
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    track: npt.NDArray[np.int32]
    labels: Sequence[StepLabel]

    def of(self, dialects: Sequence[Dialect]) -> npt.NDArray[np.int64]:
        """Places of the labels of these dialects."""
        import numpy as np

        return np.flatnonzero(np.array([label.dialect in dialects for label in self.labels], np.bool_))

    def steps(self, places: npt.NDArray[np.int64], caveats: Sequence[Caveat] = ()) -> Steps:
        """Keep only these."""
        return Steps(
            tuple(self.labels[place] for place in places.tolist()),
            self.row[places],
            self.start_ns[places],
            self.end_ns[places],
            self.track[places],
            tuple(caveats),
        )


def find_steps(columns: TraceColumns, *, search: bool = True) -> Steps:
    """Find the steps of a trace as we show them.

    Every dialect is known. Where labels of several dialects lie around one step, the most detailed one counts; where
    labels of one dialect nest, the innermost. Without any label, what repeats in the call tree counts as steps.

    Args:
        search: Search the call tree where no step is labelled; off, there are no steps then.
    """
    import numpy as np

    found = _labelled(columns)
    chosen = np.empty(0, np.int64)
    processes = _process_codes(columns)
    for tier in TIERS:
        places = found.of(tier)
        if len(chosen):
            places = places[~_touching(found, processes, places, chosen)]
        places = places[~_containing(found, processes, places)]
        chosen = np.concatenate([chosen, places])
    if len(chosen):
        return found.steps(np.sort(chosen))
    return _from_call_tree(columns, share=_SHARE_OF_CALLS) if search else found.steps(chosen)


def upstream_steps(columns: TraceColumns) -> Steps:
    """Find the steps that upstream's splitter works on: the first tier of dialects that occurs, all of it.

    The old vLLM form, which upstream does not know, comes before the search in the call tree; profiler steps after it.
    """
    found = _labelled(columns)
    first, second, old, profiler = (found.of(tier) for tier in TIERS)
    if len(first):
        hidden = len(second)
        note = Caveat(
            "hidden_labels",
            f"{hidden} labels without sums are passed over because labels with sums are there",
            ("windows",),
        )
        return found.steps(first, [note] if hidden else [])
    for places in (second, old):
        if len(places):
            return found.steps(places)
    searched = _from_call_tree(columns, share=0.0)
    return searched if len(searched) or not len(profiler) else found.steps(profiler)


def _labelled(columns: TraceColumns) -> _Labelled:
    import numpy as np

    rows = columns.rows_of("user_annotation")
    codes = columns.name[rows]
    labels = {code: label for code in distinct(codes).tolist() if (label := parse_label(columns.names[code]))}
    known = np.isin(codes, np.array(list(labels), np.int64))
    rows = rows[known]
    timed = (columns.phase[rows] == ord("X")) & (columns.ts_ns[rows] != MISSING) & (columns.dur_ns[rows] != MISSING)
    rows = rows[timed & (columns.dur_ns[rows] >= 0)]
    rows = rows[np.argsort(columns.ts_ns[rows], kind="stable")]
    start = columns.ts_ns[rows]
    return _Labelled(
        rows,
        start,
        start + columns.dur_ns[rows],
        columns.track[rows],
        [labels[code] for code in columns.name[rows].tolist()],
    )


def _process_codes(columns: TraceColumns) -> npt.NDArray[np.int64]:
    """Code of the process of each track."""
    import numpy as np

    codes: dict[str, int] = {}
    table = [codes.setdefault(str(track.pid), len(codes)) for track in columns.tracks]
    return np.array(table or [0], np.int64)


def _touching(
    found: _Labelled,
    processes: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """Mask of ``places`` that overlap one of ``chosen`` in the same process."""
    import numpy as np

    result = np.zeros(len(places), np.bool_)
    process, other = processes[found.track[places]], processes[found.track[chosen]]
    for code in distinct(process).tolist():
        mine, theirs = process == code, np.sort(chosen[other == code])
        starts, ends = found.start_ns[theirs], np.maximum.accumulate(found.end_ns[theirs])
        before = np.searchsorted(starts, found.end_ns[places[mine]], "left")
        reached = np.where(before > 0, ends[np.maximum(before - 1, 0)] if len(ends) else 0, MISSING)
        result[mine] = (before > 0) & (reached > found.start_ns[places[mine]])
    return result


def _containing(
    found: _Labelled, processes: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Mask of ``places`` (by start) that hold another of them on their own thread."""
    import numpy as np

    result = np.zeros(len(places), np.bool_)
    tracks = found.track[places]
    for track in distinct(tracks).tolist():
        mine = np.flatnonzero(tracks == track)
        mine = mine[np.lexsort((-found.end_ns[places[mine]], found.start_ns[places[mine]]))]
        start, end = found.start_ns[places[mine]], found.end_ns[places[mine]]
        result[mine[:-1]] = (start[1:] < end[:-1]) & (end[1:] <= end[:-1])
    return result


def _from_call_tree(columns: TraceColumns, *, share: float) -> Steps:
    import numpy as np

    ranges = repeated_ranges(columns, share=share)
    label = [
        StepLabel(f"{ranges.name} #{index}", Dialect.call_tree, Stage.unknown) for index in range(len(ranges.start_ns))
    ]
    caveats = []
    if label:
        caveats.append(
            Caveat(
                "steps_from_call_tree",
                f"no step is labelled: {len(label)} repetitions below {ranges.parent} count as steps, their stage is "
                "unknown",
                ("stages", "steps"),
            )
        )
    return Steps(
        tuple(label),
        np.full(len(label), -1, np.int64),
        ranges.start_ns,
        ranges.end_ns,
        np.full(len(label), ranges.track, np.int32),
        tuple(caveats),
    )
