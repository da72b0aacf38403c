"""Pairs of launching call and device event: as upstream joins them, and as we do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.traces.columns import LAUNCH_CATEGORIES, TraceColumns
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.links import is_launch, link_device_work
from magpie_tui.traces.sets import is_member

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_GRAPH_LAUNCHES = ("cudaGraphLaunch", "hipGraphLaunch")


@dataclass(frozen=True, slots=True)
class LaunchPairs:
    """Which call launched which device event; every event occurs at most once.

    Attributes:
        call: int64, row of the runtime or driver call, ascending.
        event: int64, row of the device event; the events of one call in file order.
    """

    call: npt.NDArray[np.int64]
    event: npt.NDArray[np.int64]

    def equals(self, other: LaunchPairs) -> bool:
        """True when both hold the same pairs."""
        import numpy as np

        return np.array_equal(self.call, other.call) and np.array_equal(self.event, other.event)


def upstream_pairs(columns: TraceColumns) -> LaunchPairs:
    """Join as upstream does.

    Graph launches own all events of their key. Any other call owns one event: the last one of its key on the track
    that the last arrow of that id ends at. Where several calls own an event the last one in the file counts.
    """
    import numpy as np

    calls = columns.rows_of(*LAUNCH_CATEGORIES)
    work = columns.device_rows()
    nothing = np.empty(0, np.int64)
    if not len(calls) or not len(work):
        return LaunchPairs(nothing, nothing)
    launch_names = np.array([is_launch(name) for name in columns.names], np.bool_)
    launches = calls[launch_names[columns.name[calls]]]
    by_correlation = not len(launches) or bool(columns.correlation[launches[0]] != MISSING)
    key = columns.correlation if by_correlation else columns.external_id
    calls, work = calls[key[calls] != MISSING], work[key[work] != MISSING]
    graph = np.array([name in _GRAPH_LAUNCHES for name in columns.names], np.bool_)
    is_graph = graph[columns.name[calls]]
    owned_call, owned = _joined(key, calls[is_graph], work)
    target_key, target = _arrow_targets(columns, key[calls[~is_graph]], work, key)
    order = np.argsort(target_key, kind="stable")
    target_key, target = target_key[order], target[order]
    others = calls[~is_graph]
    place = np.minimum(np.searchsorted(target_key, key[others]), max(len(target_key) - 1, 0))
    found = target_key[place] == key[others] if len(target_key) else np.zeros(len(others), np.bool_)
    return _pairs(np.concatenate([owned_call, others[found]]), np.concatenate([owned, target[place[found]]]))


def own_pairs(columns: TraceColumns) -> LaunchPairs:
    """Join by correlation within a process, also where arrows are missing."""
    links = link_device_work(columns, columns.device_rows())
    found = links.launch >= 0
    return _pairs(links.launch[found], links.rows[found])


def cpu_pairs(leaves: npt.NDArray[np.int64]) -> LaunchPairs:
    """Leaf ops of an engine on a CPU, each its own work."""
    import numpy as np

    rows = np.sort(leaves)
    return LaunchPairs(rows, rows)


def _pairs(call: npt.NDArray[np.int64], event: npt.NDArray[np.int64]) -> LaunchPairs:
    """Keep the last call of each event, and sort by call and event."""
    import numpy as np

    order = np.lexsort((call, event))
    call, event = call[order], event[order]
    last = np.ones(len(event), np.bool_)
    last[:-1] = event[1:] != event[:-1]
    call, event = call[last], event[last]
    order = np.lexsort((event, call))
    return LaunchPairs(call[order], event[order])


def _joined(
    key: npt.NDArray[np.int64], calls: npt.NDArray[np.int64], work: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pairs of calls and all events with the same key; of several calls with one key the last counts."""
    import numpy as np

    if not len(calls):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    calls = calls[np.lexsort((calls, key[calls]))]
    place = np.searchsorted(key[calls], key[work], "right") - 1
    found = (place >= 0) & (key[calls[np.maximum(place, 0)]] == key[work])
    return calls[place[found]], work[found]


def _arrow_targets(
    columns: TraceColumns,
    wanted: npt.NDArray[np.int64],
    work: npt.NDArray[np.int64],
    key: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Key and event that the arrows with the wanted ids lead to; the last of equals counts."""
    import numpy as np

    arrows = columns.rows_of("ac2g")
    arrows = arrows[columns.correlation[arrows] != MISSING]
    starts = columns.correlation[arrows[columns.phase[arrows] == ord("s")]]
    finishes = arrows[columns.phase[arrows] == ord("f")]
    finishes = finishes[is_member(columns.correlation[finishes], wanted)]
    finishes = finishes[is_member(columns.correlation[finishes], starts)]
    finishes = _last_of_each(finishes, columns.correlation[finishes])
    ids = columns.correlation[finishes]
    known = np.sort(ids)
    candidates = work[is_member(key[work], ids)]
    tracks = np.int64(len(columns.tracks))

    def places(rows: npt.NDArray[np.int64], of: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        result: npt.NDArray[np.int64] = np.searchsorted(known, of) * tracks + columns.track[rows]
        return result

    own = places(candidates, key[candidates])
    candidates = _last_of_each(candidates, own)
    reached = is_member(places(candidates, key[candidates]), places(finishes, ids))
    return key[candidates[reached]], candidates[reached]


def _last_of_each(rows: npt.NDArray[np.int64], values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Of the rows with equal values the last one, ordered by value."""
    import numpy as np

    order = np.lexsort((rows, values))
    ordered = values[order]
    last = np.ones(len(ordered), np.bool_)
    last[:-1] = ordered[1:] != ordered[:-1]
    result: npt.NDArray[np.int64] = rows[order[last]]
    return result
