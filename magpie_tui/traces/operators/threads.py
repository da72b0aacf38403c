"""Names of processes and threads, from the metadata events of a trace."""

from __future__ import annotations

from magpie_tui.traces.columns import TraceColumns, Track

UNKNOWN = "Unknown"


class ThreadNames:
    """What the trace calls its processes and threads; ``Unknown`` where it says nothing."""

    def __init__(self, columns: TraceColumns) -> None:
        import numpy as np

        self._process: dict[str, str] = {}
        self._label: dict[str, str] = {}
        self._thread: dict[tuple[str, str], str] = {}
        for row in np.flatnonzero(columns.phase == ord("M")).tolist():
            track, arguments = columns.tracks[int(columns.track[row])], columns.arguments(row)
            kind = columns.name_of(row)
            if kind == "process_name":
                self._process[str(track.pid)] = str(arguments.get("name", UNKNOWN))
            elif kind == "process_labels":
                self._label[str(track.pid)] = str(arguments.get("labels", UNKNOWN))
            elif kind == "thread_name":
                self._thread[str(track.pid), str(track.tid)] = str(arguments.get("name", UNKNOWN))

    def of(self, track: Track) -> tuple[str, str, str]:
        """Process name, process label and thread name."""
        pid, tid = str(track.pid), str(track.tid)
        return (
            self._process.get(pid, UNKNOWN),
            self._label.get(pid, UNKNOWN),
            self._thread.get((pid, tid), UNKNOWN),
        )
