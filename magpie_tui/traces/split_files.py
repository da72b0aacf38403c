"""Writes the traces of a split: one pass over the original's bytes, whatever its size."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import atomic_writer, create_directory, write_json, write_text
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.containers import Progress
from magpie_tui.traces.raw_events import event_texts
from magpie_tui.traces.split import SplitFile, SplitPlan, kind_count
from magpie_tui.traces.stage_names import Stage

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

CSV_COLUMNS = (
    "idx",
    "output_path",
    "event_count",
    "num_gpu_events",
    "gpu_duration",
    "gpu_busy_duration",
    "phase_num_prefill",
    "phase_num_prefilldecode",
    "phase_num_decode",
    "phase_avg_bs",
    "phase_avg_conc",
    "num_steps",
)
HELD_BYTES = 64 << 20
"""Event texts held in memory; beyond it they wait in temporary files."""
_COMPRESSION = 6
_PACKED_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class SplitResult:
    """Paths of what was written; ``traces`` in the order of the plan."""

    traces: tuple[Path, ...]
    details_csv: Path
    details_json: Path


@dataclass(slots=True)
class _Part:
    """Texts of one section of one file, in memory and, where those grew too large, on disk."""

    held: list[bytes]
    held_bytes: int = 0
    spilled: Path | None = None


class _Spool:
    """Texts waiting to be written. Key: (number of the file, section)."""

    def __init__(self, directory: Path, limit_bytes: int) -> None:
        self._directory = directory
        self._limit = limit_bytes
        self._held = 0
        self._parts: dict[tuple[int, int], _Part] = {}

    def add(self, key: tuple[int, int], text: bytes) -> None:
        part = self._parts.setdefault(key, _Part([]))
        part.held.append(text)
        part.held_bytes += len(text)
        self._held += len(text)
        if self._held > self._limit:
            self._spill()

    def _spill(self) -> None:
        """Move the largest parts to disk until half of the room is free."""
        for key, part in sorted(self._parts.items(), key=lambda item: -item[1].held_bytes):
            if self._held <= self._limit // 2:
                return
            part.spilled = part.spilled or self._directory / f"{key[0]}-{key[1]}"
            with part.spilled.open("ab") as file:
                file.write(b"".join(text + b",\n" for text in part.held))
            self._held -= part.held_bytes
            part.held, part.held_bytes = [], 0

    def copy(self, key: tuple[int, int], out: _Joined) -> None:
        """Write the texts of a section and forget them."""
        part = self._parts.pop(key, None)
        if part is None:
            return
        if part.spilled is not None:
            with part.spilled.open("rb") as file:
                out.stream(file)
            part.spilled.unlink()
        for text in part.held:
            out.text(text)
        self._held -= part.held_bytes


class _Joined:
    """Event texts with a comma between each two of them."""

    def __init__(self, out: Any) -> None:
        self._out = out
        self._first = True

    def text(self, text: bytes) -> None:
        self._out.write(text if self._first else b",\n" + text)
        self._first = False

    def stream(self, file: io.BufferedReader) -> None:
        """Copy texts that each end in a comma and a line feed; the last comma is left out."""
        if not self._first:
            self._out.write(b",\n")
        size = os.fstat(file.fileno()).st_size - 2
        while size > 0:
            block = file.read(min(size, 1 << 20))
            self._out.write(block)
            size -= len(block)
        self._first = False


def write_split(
    columns: TraceColumns,
    plan: SplitPlan,
    output_dir: Path,
    *,
    salvage: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    held_bytes: int = HELD_BYTES,
) -> SplitResult:
    """Write the traces of a plan and ``execution_details.csv`` and ``.json``, as upstream forms them.

    A trace holds the original's top-level keys, the host events of its steps in file order, then their arrows and
    device events in file order, then all events without a time stamp. Either all files appear or, after an error, no
    list of them.

    Raises:
        UserInputError: The trace changed while it was read.
        MachineError: The result cannot be written.
        ReadingCancelled: ``cancelled`` said so.
    """
    output_dir = create_directory(output_dir)
    temporary = Path(tempfile.mkdtemp(prefix=".split.", dir=output_dir))
    try:
        spool = _Spool(temporary, held_bytes)
        rest = _collect(columns, plan, spool, salvage=salvage, progress=progress, cancelled=cancelled)
        head = _head(columns.metadata)
        written = []
        for number, file in enumerate(plan.files):
            path = output_dir / file.name
            create_directory(path.parent)
            with (
                atomic_writer(path) as raw,
                gzip.GzipFile("", "wb", _COMPRESSION, raw, mtime=0) as packed,
                # Packed event by event, a file takes twice the time.
                io.BufferedWriter(cast(io.RawIOBase, packed), _PACKED_BYTES) as out,
            ):
                out.write(head)
                joined = _Joined(out)
                spool.copy((number, 0), joined)
                spool.copy((number, 1), joined)
                for text in rest:
                    joined.text(text)
                out.write(b"\n]}\n")
            written.append(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    details_json, details_csv = output_dir / "execution_details.json", output_dir / "execution_details.csv"
    write_json(details_json, [_details(file, path) for file, path in zip(plan.files, written, strict=True)])
    write_text(details_csv, details_as_csv(plan.files, written))
    return SplitResult(tuple(written), details_csv, details_json)


def _head(metadata: object) -> bytes:
    """Everything before the first event."""
    keys = metadata if isinstance(metadata, dict) else {}
    lines = [
        f"{json.dumps(key)}: {json.dumps(_finite(value), ensure_ascii=False, allow_nan=False)},"
        for key, value in keys.items()
        if key != "traceEvents"
    ]
    return ("{\n" + "".join(line + "\n" for line in lines) + '"traceEvents": [\n').encode("utf-8", "replace")


def _finite(value: object) -> object:
    """Not-a-number and infinity, which JSON forbids, become null."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def _wanted(plan: SplitPlan) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows to copy, ascending, and for each ``2 * file + section``; events of every file come as -1."""
    import numpy as np

    rows, owners = [plan.rest_rows], [np.full(len(plan.rest_rows), -1, np.int64)]
    for number, file in enumerate(plan.files):
        for section, part in enumerate((file.host_rows, file.device_rows)):
            rows.append(part)
            owners.append(np.full(len(part), 2 * number + section, np.int64))
    row, owner = np.concatenate(rows), np.concatenate(owners)
    order = np.argsort(row, kind="stable")
    return row[order], owner[order]


def _collect(
    columns: TraceColumns,
    plan: SplitPlan,
    spool: _Spool,
    *,
    salvage: bool,
    progress: Progress | None,
    cancelled: Callable[[], bool] | None,
) -> list[bytes]:
    """Fill the spool; return the texts that go into every file."""
    import numpy as np

    rows, owners = _wanted(plan)
    rest: list[bytes] = []
    first = 0
    for texts in event_texts(columns.path, salvage=salvage, progress=progress, cancelled=cancelled):
        begin, end = np.searchsorted(rows, [first, first + len(texts)]).tolist()
        for row, owner in zip(rows[begin:end].tolist(), owners[begin:end].tolist(), strict=True):
            text = bytes(texts[row - first])
            if owner < 0:
                rest.append(text)
            else:
                spool.add(divmod(owner, 2), text)
        first += len(texts)
    if first != len(columns):
        raise UserInputError(
            f"the trace changed while it was read: {len(columns):,} events before, {first:,} now", path=columns.path
        )
    return rest


def _phase(file: SplitFile) -> dict[str, int]:
    count = len(file.steps)
    return {
        "num_prefill": kind_count(file.steps, Stage.prefill),
        "num_prefilldecode": kind_count(file.steps, Stage.prefilldecode),
        "num_decode": kind_count(file.steps, Stage.decode),
        "avg_bs": int(sum(step.batch_size for step in file.steps) / count),
        "avg_conc": int(sum(step.num_requests for step in file.steps) / count),
    }


def _details(file: SplitFile, path: Path) -> dict[str, object]:
    return {
        "idx": file.idx,
        "output_path": str(path),
        "event_count": file.event_count,
        "num_gpu_events": file.num_gpu_events,
        "gpu_duration": file.gpu_duration_us,
        "gpu_busy_duration": file.gpu_busy_duration_us,
        "steps": [
            {
                "batch_size": step.batch_size,
                "num_requests": step.num_requests,
                "context_requests": step.context_requests,
                "context_sum": step.context_sum,
                "generation_requests": step.generation_requests,
                "generation_sum": step.generation_sum,
            }
            for step in file.steps
        ],
        "phase": _phase(file),
    }


def details_as_csv(files: Sequence[SplitFile], paths: Sequence[Path]) -> str:
    """Upstream's ``execution_details.csv``."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for file, path in zip(files, paths, strict=True):
        writer.writerow(
            [
                file.idx,
                path,
                file.event_count,
                file.num_gpu_events,
                f"{file.gpu_duration_us:.2f}",
                f"{file.gpu_busy_duration_us:.2f}",
                *_phase(file).values(),
                len(file.steps),
            ]
        )
    return buffer.getvalue()
