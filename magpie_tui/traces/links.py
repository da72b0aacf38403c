"""Launch ↔ device work, by correlation id within one process, also where several ranks lie in one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.traces.arrays import distinct
from magpie_tui.traces.columns import LAUNCH_CATEGORIES, TraceColumns
from magpie_tui.traces.decimals import MISSING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_ENOUGH = 0.999


@dataclass(frozen=True, slots=True)
class Links:
    """Which call launched which piece of device work.

    Attributes:
        rows: int64, device work in the order asked for.
        launch: int64, row of the runtime or driver call; -1 where none was found.
        key: What ids are resolved within: ``correlation``, ``pid+correlation``, ``device+correlation`` or
            ``order+correlation``; None when links are withheld.
        withheld: Why there are no links.
        processes: Host processes that launch work.
    """

    rows: npt.NDArray[np.int64]
    launch: npt.NDArray[np.int64]
    key: str | None
    withheld: str | None
    processes: tuple[object, ...]

    def graph_launched(self, columns: TraceColumns) -> npt.NDArray[np.bool_]:
        """Mask of device work that a graph launch started."""
        import numpy as np

        table = np.array([is_graph_launch(name) for name in columns.names] or [False], np.bool_)
        return (self.launch >= 0) & table[columns.name[np.maximum(self.launch, 0)]]


def is_graph_launch(name: str) -> bool:
    """True for ``cudaGraphLaunch``, ``hipGraphLaunch`` and their driver forms."""
    return "graphlaunch" in name.lower()


def is_launch(name: str) -> bool:
    """True for every call that launches kernels, of either vendor."""
    return "launch" in name.lower()


def link_device_work(columns: TraceColumns, rows: npt.NDArray[np.int64]) -> Links:
    """Find the call behind each piece of device work in ``rows``."""
    import numpy as np

    calls = columns.rows_of(*LAUNCH_CATEGORIES)
    calls = calls[columns.correlation[calls] != MISSING]
    nothing = np.full(len(rows), -1, np.int64)
    pid_codes, pids = _pid_codes(columns)
    call_pid = pid_codes[columns.track[calls]] if len(calls) else np.empty(0, np.int64)
    launching = calls[_launch_mask(columns, calls)]
    used = np.flatnonzero(np.bincount(pid_codes[columns.track[launching]])) if len(launching) else np.empty(0, np.int64)
    processes = tuple(pids[code] for code in used.tolist())
    if not len(calls) or not len(rows):
        return Links(rows, nothing, "correlation" if len(calls) else None, None, processes)
    zeros = np.zeros(len(columns), np.int64)
    if len(used) < 2 or not _shared(columns.correlation[launching], pid_codes[columns.track[launching]]):
        return Links(rows, _joined(columns, calls, rows, zeros, zeros), "correlation", None, processes)
    work_pid = pid_codes[columns.track[rows]]
    if np.isin(distinct(work_pid), used).all():
        scope = pid_codes[columns.track].astype(np.int64)
        return Links(rows, _joined(columns, calls, rows, scope, scope), "pid+correlation", None, processes)
    if (columns.device[launching] >= 0).all() and len(distinct(columns.device[launching])) >= len(used):
        scope = columns.device.astype(np.int64)
        return Links(rows, _joined(columns, calls, rows, scope, scope), "device+correlation", None, processes)
    pairing = _paired_by_time(columns, launching, pid_codes, rows)
    if isinstance(pairing, str):
        return Links(rows, nothing, None, pairing, processes)
    call_scope, work_scope = zeros.copy(), zeros.copy()
    call_scope[calls] = call_pid
    work_scope[rows] = np.array([pairing.get(device, -2) for device in columns.device[rows].tolist()])
    return Links(rows, _joined(columns, calls, rows, call_scope, work_scope), "order+correlation", None, processes)


def _pid_codes(columns: TraceColumns) -> tuple[npt.NDArray[np.int64], Sequence[object]]:
    import numpy as np

    codes: dict[str, int] = {}
    pids: list[object] = []
    table = []
    for track in columns.tracks:
        key = str(track.pid)
        if key not in codes:
            codes[key] = len(codes)
            pids.append(track.pid)
        table.append(codes[key])
    return np.array(table or [0], np.int64), pids


def _launch_mask(columns: TraceColumns, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    import numpy as np

    table = np.array([is_launch(name) for name in columns.names] or [False], np.bool_)
    return table[columns.name[rows]]


def _shared(correlation: npt.NDArray[np.int64], group: npt.NDArray[np.int64]) -> bool:
    """True when one id occurs in more than one group."""
    import numpy as np

    order = np.lexsort((group, correlation))
    same_id = correlation[order][1:] == correlation[order][:-1]
    return bool((same_id & (group[order][1:] != group[order][:-1])).any())


def _joined(
    columns: TraceColumns,
    calls: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    call_scope: npt.NDArray[np.int64],
    work_scope: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Join on (scope, correlation); of several calls with one key the last in the file counts, launches first."""
    import numpy as np

    known = distinct(columns.correlation[calls])

    def keys(of: npt.NDArray[np.int64], scope: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        place = np.minimum(np.searchsorted(known, columns.correlation[of]), len(known) - 1)
        key = scope[of] * len(known) + place
        return np.where(known[place] == columns.correlation[of], key, MISSING)

    call_keys, work_keys = keys(calls, call_scope), keys(rows, work_scope)
    order = np.lexsort((calls, _launch_mask(columns, calls), call_keys))
    calls, call_keys = calls[order], call_keys[order]
    place = np.searchsorted(call_keys, work_keys, "right") - 1
    usable = (place >= 0) & (work_keys != MISSING) & (columns.correlation[rows] != MISSING)
    found = usable & (call_keys[np.maximum(place, 0)] == work_keys)
    return np.where(found, calls[np.maximum(place, 0)], -1)


def _paired_by_time(
    columns: TraceColumns,
    launching: npt.NDArray[np.int64],
    pid_codes: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
) -> dict[int, int] | str:
    """Say which process drives which device, or why that can't be told.

    A process can drive a device only if it launches every piece of work there before it starts. Where that leaves
    exactly one process a device, ids are resolved by it.
    """

    used = distinct(pid_codes[columns.track[launching]])
    devices = distinct(columns.device[rows])
    if len(devices) != len(used):
        return (
            f"{len(used)} processes number their launches alike and use {len(devices)} devices: which one launched a "
            "kernel can't be told"
        )
    possible: dict[int, list[int]] = {}
    for device in devices.tolist():
        work = rows[columns.device[rows] == device]
        possible[device] = [
            process
            for process in used.tolist()
            if _fits(columns, launching[pid_codes[columns.track[launching]] == process], work)
        ]
    pairing: dict[int, int] = {}
    while single := [device for device, choices in possible.items() if len(choices) == 1]:
        device = single[0]
        process = possible.pop(device)[0]
        pairing[device] = process
        possible = {other: [item for item in choices if item != process] for other, choices in possible.items()}
    if possible:
        return "several processes number their launches alike, and nothing says which device each of them drives"
    return pairing


def _fits(columns: TraceColumns, calls: npt.NDArray[np.int64], work: npt.NDArray[np.int64]) -> bool:
    import numpy as np

    zeros = np.zeros(len(columns), np.int64)
    launch = _joined(columns, calls, work, zeros, zeros)
    linked = launch >= 0
    if linked.mean() < _ENOUGH:
        return False
    return bool((columns.ts_ns[launch[linked]] <= columns.ts_ns[work[linked]]).mean() >= _ENOUGH)
