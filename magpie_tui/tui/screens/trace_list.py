"""Which traces there are to open: profiled workspaces, files below a directory, and what was opened before."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.discover import rank_of, why_not_a_rank
from magpie_tui.tui.screens.trace_recent import RecentTrace
from magpie_tui.workspaces.browse import WorkspaceSummary

DEEPEST = 6
MOST_ENTRIES = 50_000
_NOT_SEARCHED = frozenset({"node_modules", "__pycache__", "site-packages"})
_ENDINGS = (".json", ".json.gz", ".zip")


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """Something that can be opened.

    Attributes:
        path: Absolute: file, directory or workspace.
        kind: ``workspace``, ``directory`` or ``file``.
        ranks: Traces of ranks, as far as the names tell.
        size_bytes: Of all of them; None where it could not be read.
        written: When the newest was written; None where it could not be read.
        opened: When it was opened last; None for never.
        says: One line about it.
    """

    path: Path
    kind: str
    ranks: int
    size_bytes: int | None
    written: datetime | None
    opened: datetime | None = None
    says: str = ""

    @property
    def touched(self) -> float:
        """When it was written or opened, whichever is later."""
        return max((moment.timestamp() for moment in (self.written, self.opened) if moment is not None), default=0.0)


@dataclass(frozen=True, slots=True)
class FoundTraces:
    """What a search brought.

    Attributes:
        entries: Newest first.
        notes: What was not searched, and why.
    """

    entries: tuple[TraceEntry, ...]
    notes: tuple[str, ...] = ()


def has_trace_name(name: str) -> bool:
    """True for names that profilers of torch give to their traces."""
    lower = name.lower()
    return ".trace.json" in lower and lower.endswith(_ENDINGS)


def search(root: Path, apart: Collection[Path], cancelled: Callable[[], bool]) -> FoundTraces:
    """Look for traces below ``root``, by name only; symbolic links to directories are not followed.

    Args:
        apart: Directories that are not searched because they are entries of their own.
    """
    entries: list[TraceEntry] = []
    notes: list[str] = []
    left = MOST_ENTRIES
    pending = [(root, 0)]
    while pending and not cancelled():
        directory, depth = pending.pop(0)
        try:
            with os.scandir(directory) as found:
                items = [item for _place, item in zip(range(left + 1), found, strict=False)]
        except OSError as error:
            if directory != root or not isinstance(error, FileNotFoundError):
                notes.append(f"{directory} was not searched: {error.strerror or error}")
            continue
        if len(items) > left:
            notes.append(f"the search ended after {MOST_ENTRIES:,} files and directories; o opens any path")
            break
        left -= len(items)
        files = [Path(item.path) for item in items if has_trace_name(item.name)]
        entries += entries_of(directory, sorted(files), root)
        for item in sorted(items, key=lambda item: item.name):
            inner = Path(item.path)
            hidden = item.name.startswith(".") or item.name in _NOT_SEARCHED or inner in apart
            if not hidden and depth < DEEPEST and item.is_dir(follow_symlinks=False):
                pending.append((inner, depth + 1))
    return FoundTraces(tuple(entries), tuple(notes))


def entries_of(directory: Path, files: Sequence[Path], root: Path) -> list[TraceEntry]:
    """Make one entry of the files of a directory when each is another rank of one run, else one a file."""
    workers = [path for path in files if why_not_a_rank(path, directory) is None]
    ranks = [found[0] for path in workers if (found := rank_of(path)) is not None]
    if len(workers) > 1 and len(set(ranks)) == len(workers):
        return [_entry(directory, "directory", workers, _below(directory, root))]
    return [_entry(path, "file", [path], why_not_a_rank(path, directory) or "") for path in files]


def _below(directory: Path, root: Path) -> str:
    return "" if directory != root else "the directory the app is open on"


def _entry(path: Path, kind: str, files: Sequence[Path], says: str) -> TraceEntry:
    sizes, times = [], []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        sizes.append(status.st_size)
        times.append(status.st_mtime)
    written = datetime.fromtimestamp(max(times)).astimezone() if times else None
    return TraceEntry(path, kind, len(files), sum(sizes) if sizes else None, written, None, says)


def workspace_entries(summaries: Iterable[WorkspaceSummary]) -> list[TraceEntry]:
    """Return the workspaces that hold traces."""
    found = []
    for summary in summaries:
        directory = summary.path / "torch_trace"
        if "traces" not in summary.artifacts:
            continue
        files = [path for path in sorted(directory.rglob("*")) if path.name.lower().endswith(_ENDINGS)]
        workers = [path for path in files if why_not_a_rank(path, directory) is None]
        entry = _entry(summary.path, "workspace", workers, f"{summary.status}: {summary.headline}")
        if workers:
            found.append(entry)
    return found


def joined(found: Iterable[TraceEntry], recent: Iterable[RecentTrace]) -> tuple[TraceEntry, ...]:
    """Add when each was opened, and what was opened elsewhere; the newest of both first."""
    entries = {entry.path: entry for entry in found}
    for trace in recent:
        entry = entries.get(trace.path) or elsewhere(trace.path)
        entries[trace.path] = replace(entry, opened=trace.opened_at)
    return tuple(sorted(entries.values(), key=lambda entry: (-entry.touched, str(entry.path))))


def elsewhere(path: Path) -> TraceEntry:
    """Return the entry of any path, with what its names tell."""
    if path.is_file():
        return _entry(path, "file", [path], "")
    directory = path / "torch_trace" if (path / "torch_trace").is_dir() else path
    kind = "directory" if directory == path else "workspace"
    try:
        files = [item for item in sorted(directory.iterdir()) if has_trace_name(item.name)]
    except OSError:
        files = []
    workers = [item for item in files if why_not_a_rank(item, directory) is None]
    return _entry(path, kind, workers, "")


def check_trace_path(text: str) -> Path:
    """Return the path that was typed.

    Raises:
        UserInputError: There is nothing there.
    """
    path = Path(text.strip()).expanduser()
    if not text.strip() or not path.exists():
        raise UserInputError("there is no such file or directory", path=path)
    return path.absolute()
