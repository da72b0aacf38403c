"""Finds workspaces below directories and sums each one up in a line; nothing that is broken hides the others."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.files import is_directory
from magpie_tui.basics.text import plural
from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.damage import Damaged, DamagedReportError, kind_of, read_json_file
from magpie_tui.workspaces.headlines import Report, experiment_headline, headline_of, status_of
from magpie_tui.workspaces.names import WorkspaceKind, WorkspaceName, parse_workspace_name, report_name
from magpie_tui.workspaces.reports import AnalyzeReport, CompareReport
from magpie_tui.workspaces.values import as_text, mapping_or_none

DEFAULT_DEPTH = 4
_MOST_DIRECTORIES = 100_000
_NOT_SEARCHED = frozenset(
    {"node_modules", "__pycache__", "site-packages", "torch_trace", "tracelens", "performance", "gap_analysis"}
)
_LARGEST_LISTED_REPORT_BYTES = 16 * 1024 * 1024

_ARTIFACT_NAMES = {
    "config.yaml": "config",
    "record.json": "record",
    "samples.jsonl": "samples",
    "requests.jsonl": "requests",
    "summary.txt": "summary",
    "server.log": "server log",
    "benchmark_stdout.log": "stdout",
    "container_stdout.log": "stdout",
    "benchmark_stderr.log": "stderr",
    "inferencex_result.json": "client result",
    "inferencemax_result.json": "client result",
    "torch_trace": "traces",
    "tracelens": "TraceLens",
    "tracelens_rank0_csvs": "TraceLens",
    "tracelens_collective_csvs": "TraceLens",
    "tracelens_rank0_report.xlsx": "TraceLens",
    "gap_analysis": "gap analysis",
    "performance": "profiler",
    "latency": "latency",
    "verdict.json": "verdict",
    "accuracy_report.json": "accuracy",
    "lm_eval": "accuracy",
    "logs": "logs",
}
_MAY_BE_EMPTY = frozenset({"logs", "torch_trace", "performance", "tracelens", "latency", "gap_analysis"})


@dataclass(frozen=True, slots=True)
class WorkspaceSummary:
    """One workspace in a list.

    Attributes:
        path: Absolute.
        kind: ``analyze``, ``compare``, ``benchmark`` or ``experiment``.
        label: Kernel id or framework; None where there is none.
        time: Local start time from the name, ``YYYY-mm-dd HH:MM:SS``; None for a renamed directory.
        status: ``ok``, ``failed``, ``unfinished``, ``unknown`` or ``damaged``.
        headline: What came out, one line.
        engine: ``magpie-tui``, ``magpie`` (with the code line where the report shows one), or None when nothing tells.
        artifacts: What lies in it, in words.
        problems: What is damaged or odd.
    """

    path: Path
    kind: WorkspaceKind
    label: str | None
    time: str | None
    status: str
    headline: str
    engine: str | None = None
    artifacts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The directory's own name."""
        return self.path.name

    def to_json(self) -> dict[str, object]:
        """Return the JSON object of a list."""
        return {
            "path": str(self.path),
            "name": self.name,
            "kind": self.kind,
            "label": self.label,
            "time": self.time,
            "status": self.status,
            "headline": self.headline,
            "engine": self.engine,
            "artifacts": list(self.artifacts),
            "problems": list(self.problems),
        }


@dataclass(frozen=True, slots=True)
class WorkspaceListing:
    """Workspaces below some directories.

    Attributes:
        workspaces: Newest first.
        total: How many there are; more than ``workspaces`` when the list was cut.
        notes: Directories that were not searched, and why.
    """

    workspaces: tuple[WorkspaceSummary, ...]
    total: int
    notes: tuple[str, ...] = ()


def find_workspaces(
    roots: Iterable[Path], *, max_depth: int = DEFAULT_DEPTH, notes: list[str] | None = None
) -> list[tuple[Path, WorkspaceName]]:
    """Return every directory with a workspace's name at or below ``roots``, newest first.

    Symbolic links are followed, each directory is searched once. Workspaces themselves are not searched, except
    experiments, which hold the workspaces of their pairs.

    Args:
        max_depth: How many levels below a root are searched.
        notes: Gets a line for each place that could not be searched.
    """
    said = [] if notes is None else notes
    seen: set[tuple[int, int]] = set()
    found: dict[Path, WorkspaceName] = {}
    for root in roots:
        for path, name in _search(root.absolute(), max_depth, seen, said):
            found[path] = name
    return sorted(found.items(), key=lambda item: (item[1].stamp, item[1].name, str(item[0])), reverse=True)


def _search(
    root: Path, max_depth: int, seen: set[tuple[int, int]], notes: list[str]
) -> Iterator[tuple[Path, WorkspaceName]]:
    pending: list[tuple[str, int]] = [(str(root), 0)]
    root_name = parse_workspace_name(root.name)
    if root_name is not None and is_directory(root):
        identity = _identity(root.stat())
        if identity not in seen:
            yield root, root_name
        if root_name.kind != "experiment":
            seen.add(identity)
            return
    while pending:
        directory, depth = pending.pop()
        if len(seen) >= _MOST_DIRECTORIES:
            notes.append(f"{root}: more than {_MOST_DIRECTORIES:,} directories; the rest was not searched")
            return
        try:
            identity = _identity(Path(directory).stat())
            if identity in seen:
                continue
            seen.add(identity)
            with os.scandir(directory) as entries:
                folders = [entry for entry in entries if _is_searched(entry)]
        except FileNotFoundError:
            if depth == 0:
                notes.append(f"{directory}: there is no such directory")
            continue
        except ValueError as error:
            notes.append(f"{directory}: not searched: {error}")
            continue
        except OSError as error:
            notes.append(f"{directory}: not searched: {error.strerror}")
            continue
        for entry in folders:
            name = parse_workspace_name(entry.name)
            if name is not None and _is_new(entry, seen, experiment=name.kind == "experiment"):
                yield Path(entry.path), name
            if depth < max_depth and (name is None or name.kind == "experiment"):
                pending.append((entry.path, depth + 1))


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _is_new(entry: os.DirEntry[str], seen: set[tuple[int, int]], *, experiment: bool) -> bool:
    """True for a workspace that no other link led to before; an experiment is marked when it is searched."""
    try:
        identity = _identity(entry.stat())
    except OSError:
        return False
    if identity in seen:
        return False
    if not experiment:
        seen.add(identity)
    return True


def _is_searched(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name in _NOT_SEARCHED:
        return False
    try:
        return entry.is_dir()
    except OSError:
        return False


class SummaryCache:
    """Summaries by path, each valid as long as nothing in its workspace changed; for screens that refresh."""

    def __init__(self, most: int = 20_000) -> None:
        """Start empty; beyond ``most`` entries it starts anew."""
        self._most = most
        self._entries: dict[Path, tuple[tuple[tuple[int, int], ...], WorkspaceSummary]] = {}

    def get(self, path: Path, signature: tuple[tuple[int, int], ...]) -> WorkspaceSummary | None:
        """Return the summary of ``path`` when ``signature`` is unchanged."""
        entry = self._entries.get(path)
        return entry[1] if entry is not None and entry[0] == signature else None

    def put(self, path: Path, signature: tuple[tuple[int, int], ...], summary: WorkspaceSummary) -> None:
        """Keep a summary."""
        if len(self._entries) >= self._most:
            self._entries.clear()
        self._entries[path] = (signature, summary)


def _signature(path: Path, kind: WorkspaceKind) -> tuple[tuple[int, int], ...]:
    """Return times and sizes of what a summary is made from; (0, 0) for what is not there."""
    stamps = []
    for place in (path, path / (report_name(kind) or "verdict.json"), path / "record.json", path / "torch_trace"):
        try:
            status = place.stat()
        except OSError:
            stamps.append((0, 0))
        else:
            stamps.append((status.st_mtime_ns, status.st_size))
    return tuple(stamps)


def list_workspaces(
    roots: Iterable[Path], *, max_depth: int = DEFAULT_DEPTH, cache: SummaryCache | None = None
) -> list[WorkspaceSummary]:
    """Return a summary of every workspace at or below ``roots``, newest first."""
    return list(scan_workspaces(roots, max_depth=max_depth, cache=cache).workspaces)


def scan_workspaces(
    roots: Iterable[Path],
    *,
    kinds: Collection[str] | None = None,
    limit: int | None = None,
    max_depth: int = DEFAULT_DEPTH,
    cache: SummaryCache | None = None,
) -> WorkspaceListing:
    """Return the newest workspaces at or below ``roots``, with what could not be searched.

    Args:
        kinds: Only these kinds.
        limit: At most so many; only those are read.
    """
    notes: list[str] = []
    found = [
        (path, name)
        for path, name in find_workspaces(roots, max_depth=max_depth, notes=notes)
        if kinds is None or name.kind in kinds
    ]
    summaries = (cached_summary(path, name, cache) for path, name in found[:limit])
    return WorkspaceListing(tuple(item for item in summaries if item is not None), len(found), tuple(notes))


def cached_summary(path: Path, name: WorkspaceName, cache: SummaryCache | None) -> WorkspaceSummary | None:
    """Sum one workspace up as ``summarize`` does, from the cache where nothing in it has changed."""
    if cache is None:
        return summarize(path, name)
    signature = _signature(path, name.kind)
    summary = cache.get(path, signature)
    if summary is None:
        summary = summarize(path, name)
        if summary is not None:
            cache.put(path, signature, summary)
    return summary


def summarize(path: Path, name: WorkspaceName | None = None) -> WorkspaceSummary | None:
    """Sum one workspace up; None when the directory is gone or is no workspace."""
    entries = _entry_names(path)
    if isinstance(entries, Damaged) and entries.gone:
        return None
    name = name or parse_workspace_name(path.name)
    names: Sequence[str] = () if isinstance(entries, Damaged) else entries
    kind = name.kind if name is not None else kind_from_files(names)
    if kind is None:
        return None
    label = None if name is None else name.label
    time = None if name is None else name.time.isoformat(sep=" ")
    if isinstance(entries, Damaged):
        return WorkspaceSummary(path, kind, label, time, "damaged", entries.reason, problems=(entries.text,))
    artifacts = _artifacts(path, names)
    outcome = _outcome(path, kind, names)
    return WorkspaceSummary(
        path=path,
        kind=kind,
        label=label or outcome.label,
        time=time,
        status=outcome.status,
        headline=outcome.headline,
        engine=outcome.engine,
        artifacts=artifacts,
        problems=outcome.problems,
    )


def entry_names(path: Path) -> list[str]:
    """Return the names in a directory; none when it cannot be read."""
    names = _entry_names(path)
    return [] if isinstance(names, Damaged) else names


def _entry_names(path: Path) -> list[str] | Damaged:
    try:
        return [entry.name for entry in path.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return Damaged(path, "the directory is not there", gone=True)
    except OSError as error:
        return Damaged(path, f"the directory cannot be read: {error.strerror}")


def kind_from_files(names: Collection[str]) -> WorkspaceKind | None:
    """Return the kind of a directory whose name says nothing, from the reports that lie in it."""
    kinds: tuple[WorkspaceKind, ...] = ("compare", "analyze", "benchmark")
    for kind in kinds:
        if report_name(kind) in names:
            return kind
    return "experiment" if "verdict.json" in names else None


def _artifacts(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    present = []
    for name, word in _ARTIFACT_NAMES.items():
        if name in names and word not in present and not (name in _MAY_BE_EMPTY and _is_empty(path / name)):
            present.append(word)
    return tuple(present)


def _is_empty(path: Path) -> bool:
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is None
    except OSError:
        return True


@dataclass(frozen=True, slots=True)
class _Outcome:
    status: str
    headline: str
    label: str | None = None
    engine: str | None = None
    problems: tuple[str, ...] = ()


def load_report_of(
    path: Path, kind: WorkspaceKind, *, limit_bytes: int = _LARGEST_LISTED_REPORT_BYTES
) -> Report | Damaged:
    """Read the report of a workspace; a ``Damaged`` when it is not there or cannot be used."""
    name = report_name(kind)
    if name is None:
        return Damaged(path, "an experiment has no report", gone=True)
    return read_report(path / name, kind, limit_bytes=limit_bytes)


def read_report(
    path: Path, kind: WorkspaceKind, *, limit_bytes: int = _LARGEST_LISTED_REPORT_BYTES
) -> Report | Damaged:
    """Read a report file of a known kind; a ``Damaged`` when it is not there or cannot be used."""
    value = read_json_file(path, limit_bytes=limit_bytes)
    if isinstance(value, Damaged):
        return value
    try:
        if kind == "analyze":
            return AnalyzeReport.from_json(value)
        if kind == "compare":
            return CompareReport.from_json(value)
        return BenchmarkReport.from_json(value)
    except DamagedReportError as error:
        return Damaged(path, error.message)


def engine_of(report: Report) -> str:
    """Name the program, and its code line where the report shows one, that wrote a report."""
    if report.extras is not None:
        return "magpie-tui"
    if isinstance(report, BenchmarkReport):
        line = report.generation
        return "magpie" if line == "upstream" else f"magpie [{line}]"
    states = report.kernels
    if "summary" in report.more or any(state.latency_state is not None for state in states):
        return "magpie [lat]"
    return "magpie"


def _outcome(path: Path, kind: WorkspaceKind, names: Sequence[str]) -> _Outcome:
    if kind == "experiment":
        return _experiment_outcome(path, names)
    report = load_report_of(path, kind)
    if not isinstance(report, Damaged):
        label = report.framework if isinstance(report, BenchmarkReport) else None
        return _Outcome(status_of(report), headline_of(report), label or None, engine_of(report), report.problems)
    ours = "magpie-tui" if "record.json" in names else None
    if report.gone:
        if kind == "benchmark" and "summary.txt" in names:
            return _Outcome("unfinished", "no report, but a summary.txt", engine=ours)
        return _Outcome("unfinished", "no report: still running, or ended before it was written", engine=ours)
    if report.too_large:
        return _Outcome("unknown", f"not read in a list: {report.reason}; workspaces show may", engine=ours)
    return _Outcome("damaged", f"damaged: {report.text}", engine=ours, problems=(report.text,))


def _experiment_outcome(path: Path, names: Sequence[str]) -> _Outcome:
    if "verdict.json" not in names:
        pairs = len({name.rsplit("_", 1)[0] for name in names if name.startswith("pair_")})
        return _Outcome("unfinished", f"no verdict yet, {plural(pairs, 'pair')}", engine="magpie-tui")
    place = path / "verdict.json"
    value = read_json_file(place, limit_bytes=_LARGEST_LISTED_REPORT_BYTES)
    keys = mapping_or_none(value)
    if keys is None:
        damaged = value if isinstance(value, Damaged) else Damaged(place, f"no JSON object but {kind_of(value)}")
        return _Outcome("damaged", f"damaged: {damaged.text}", engine="magpie-tui", problems=(damaged.text,))
    status, headline = experiment_headline(keys)
    return _Outcome(status, headline, as_text(keys.get("label")), "magpie-tui")
