"""Traces of graph captures: which files there are, for which batch sizes, and what they recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.columns import LAUNCH_CATEGORIES, TraceColumns
from magpie_tui.traces.decimals import MISSING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

CAPTURE_FOLDER = "capture_traces"
"""Name of the folder beside a trace that upstream's profiler settings write captures to."""
DETAILS_NAME = "execution_details.json"
_DISPATCHES = ("launch", "memcpy", "memset")


class CaptureMode(str, Enum):
    """How much of a step one graph holds."""

    full = "FULL"
    piecewise = "PIECEWISE"


@dataclass(frozen=True, slots=True)
class CaptureFile:
    """A trace of a capture run.

    Attributes:
        batch_size: Batch that it was captured for.
    """

    path: Path
    batch_size: int
    mode: CaptureMode


@dataclass(frozen=True, slots=True)
class CaptureRoot:
    """What was recorded between the begin and the end of one stream capture.

    Attributes:
        begin_ns, end_ns: End of the call that began it, start of the call that ended it.
        dispatches: int64, rows of the calls that launch, copy or fill, by time.
    """

    begin_ns: int
    end_ns: int
    dispatches: npt.NDArray[np.int64]


def folder_beside(trace: Path) -> Path | None:
    """Captures that lie beside a trace; None without any."""
    folder = trace.parent / CAPTURE_FOLDER
    return folder if folder.is_dir() and any(folder.glob("*.json*")) else None


def capture_files(folder: Path) -> list[CaptureFile]:
    """Read ``execution_details.json`` of a capture folder, or draw it up from the traces in it.

    Raises:
        UserInputError: The folder does not exist or its list can't be read.
    """
    if not folder.is_dir():
        raise UserInputError(
            "the capture folder does not exist", path=folder, hint="give the folder with the traces of the capture run"
        )
    details = folder / DETAILS_NAME
    if not details.is_file():
        return list(_drawn_up(folder))
    try:
        entries = json.loads(details.read_bytes())
    except (OSError, ValueError) as error:
        raise UserInputError(f"the list of captures can't be read: {error}", path=details) from error
    found = []
    for entry in entries if isinstance(entries, list) else ():
        modes = {mode.value: mode for mode in CaptureMode}
        if isinstance(entry, dict) and isinstance(entry.get("batch_size"), int) and entry.get("mode") in modes:
            found.append(CaptureFile(folder / str(entry.get("file")), entry["batch_size"], modes[entry["mode"]]))
    return found


def _drawn_up(folder: Path) -> Iterator[CaptureFile]:
    from magpie_tui.traces.load import load_columns

    for path in sorted({*folder.glob("*.json"), *folder.glob("*.json.gz")}):
        if path.name == DETAILS_NAME:
            continue
        columns = load_columns(path)
        begins = sum("StreamBeginCapture" in columns.name_of(row) for row in columns.rows_of(*LAUNCH_CATEGORIES))
        labelled = _labelled(columns)
        if labelled is not None:
            yield CaptureFile(path, *labelled)
            continue
        size = _usual_first_size(columns)
        if size is not None:
            yield CaptureFile(path, size, CaptureMode.full if begins <= 1 else CaptureMode.piecewise)


def _labelled(columns: TraceColumns) -> tuple[int, CaptureMode] | None:
    """Batch and mode by an annotation ``capture_<size>_<mode>``, where there is one for each dummy run."""
    names = [columns.name_of(row) for row in columns.rows_of("user_annotation").tolist()]
    labels = [name.split("_") for name in names if name.startswith("capture_")]
    dummy_runs = sum(columns.name_of(row).endswith(": _dummy_run") for row in columns.rows_of("python_function"))
    if not labels or len(labels) != dummy_runs:
        return None
    parts = labels[0]
    if len(parts) != 3 or not parts[1].isdecimal() or parts[2] not in {mode.value for mode in CaptureMode}:
        return None
    return int(parts[1]), CaptureMode(parts[2])


def _usual_first_size(columns: TraceColumns) -> int | None:
    """Most frequent first size over all inputs of the ops."""
    counts: Counter[int] = Counter()
    texts = Counter(columns.ops.dims[columns.ops.dims >= 0].tolist())
    for code, times in texts.items():
        dims = columns.ops.value(code)
        for item in dims if isinstance(dims, list) else ():
            if isinstance(item, list) and item and isinstance(item[0], int):
                counts[item[0]] += times
    return counts.most_common(1)[0][0] if counts else None


def chosen_file(files: Sequence[CaptureFile], batch_size: int, launches: int) -> CaptureFile | None:
    """Pick the file of the smallest batch that holds this one; of both modes FULL only for a single launch."""
    large = [file for file in files if file.batch_size >= batch_size]
    modes = {file.mode for file in large}
    if len(modes) > 1:
        wanted = CaptureMode.full if launches == 1 else CaptureMode.piecewise
        large = [file for file in large if file.mode is wanted]
    return min(large, key=lambda file: file.batch_size, default=None)


def capture_roots(columns: TraceColumns) -> list[CaptureRoot]:
    """Find the captures of a trace, in order of time."""
    import numpy as np

    calls = columns.rows_of(*LAUNCH_CATEGORIES)
    calls = calls[(columns.ts_ns[calls] != MISSING) & (columns.dur_ns[calls] != MISSING)]
    calls = calls[np.argsort(columns.ts_ns[calls], kind="stable")]
    lower = [name.lower() for name in columns.names]
    dispatching = np.array([any(word in name for word in _DISPATCHES) for name in lower] or [False], np.bool_)
    dispatches = calls[dispatching[columns.name[calls]]]
    names = [columns.name_of(row) for row in calls.tolist()]
    begins = [row for row, name in zip(calls.tolist(), names, strict=True) if "StreamBeginCapture" in name]
    ends = [row for row, name in zip(calls.tolist(), names, strict=True) if "StreamEndCapture" in name]
    times = columns.ts_ns[dispatches]
    found = []
    for begin, end in zip(begins, ends, strict=False):
        first, last = int(columns.ts_ns[begin] + columns.dur_ns[begin]), int(columns.ts_ns[end])
        inside = slice(int(np.searchsorted(times, first)), int(np.searchsorted(times, last)))
        found.append(CaptureRoot(first, last, dispatches[inside]))
    return found
