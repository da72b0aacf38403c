"""Everything about one workspace: report, config, record, tables and files, each read on its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import is_directory, is_regular_file
from magpie_tui.basics.text import nearest
from magpie_tui.workspaces.benchmark import BenchmarkReport, read_client_result
from magpie_tui.workspaces.benchmark_summary import BenchmarkSummary, read_benchmark_summary
from magpie_tui.workspaces.browse import (
    WorkspaceSummary,
    entry_names,
    find_workspaces,
    kind_from_files,
    load_report_of,
    read_report,
    summarize,
)
from magpie_tui.workspaces.damage import (
    LARGEST_REPORT_BYTES,
    Damaged,
    DamagedReportError,
    kind_of,
    read_json_file,
    read_yaml_file,
)
from magpie_tui.workspaces.figures import Latency, Throughput
from magpie_tui.workspaces.headlines import Report
from magpie_tui.workspaces.kernel_table import kernel_table
from magpie_tui.workspaces.names import WorkspaceKind, parse_workspace_name, report_name
from magpie_tui.workspaces.reports import AnalyzeReport, CompareReport
from magpie_tui.workspaces.tables import GapTable, Table, read_gap_csv
from magpie_tui.workspaces.tracelens import TraceLensFile, find_tracelens_files
from magpie_tui.workspaces.values import as_list, as_mapping, mapping_or_none

if TYPE_CHECKING:
    import pandas

_MOST_FILES = 100_000
_CLIENT_RESULTS = ("inferencex_result.json", "inferencemax_result.json")


_METRIC_COLUMNS = ("metric", "state", "baseline", "optimized", "unit", "ratio", "ratio_low", "ratio_high", "reason")


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file or directory directly in a workspace.

    Attributes:
        name: Its name; a directory's ends with ``/``.
        size_bytes: Of the file, or of all files below the directory.
        files: Number of files: 1 for a file.
    """

    name: str
    size_bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class WorkspaceDetail:
    """One workspace with all that can be read of it.

    Attributes:
        summary: Its line in a list.
        report: None when it is not there or damaged.
        config: ``config.yaml`` as plain data; None when it is not there or damaged.
        record: ``record.json``; None in upstream's workspaces.
        verdict: ``verdict.json`` of an experiment.
        text_summary: ``summary.txt`` of a benchmark.
        client_throughput, client_latency: From the result file of the benchmark client.
        gap_tables: Gap analysis CSVs: the merged one first, then ranks.
        tracelens: TraceLens tables; read one with ``.read()``.
        artifacts: Files and directories, by name.
        size_bytes: Of all files; a lower bound when there are very many.
        damaged: Files that are there but cannot be used.
    """

    summary: WorkspaceSummary
    report: Report | None = None
    config: Mapping[str, object] | None = None
    record: Mapping[str, object] | None = None
    verdict: Mapping[str, object] | None = None
    text_summary: BenchmarkSummary | None = None
    client_throughput: Throughput | None = None
    client_latency: Latency | None = None
    gap_tables: tuple[GapTable, ...] = ()
    tracelens: tuple[TraceLensFile, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    size_bytes: int = 0
    damaged: tuple[Damaged, ...] = ()

    @property
    def path(self) -> Path:
        """The workspace."""
        return self.summary.path

    @property
    def damaged_report(self) -> Damaged | None:
        """The report or verdict, when it is there but cannot be used."""
        names = (report_name(self.summary.kind) or "verdict.json",)
        return next((item for item in self.damaged if item.path.name in names), None)

    def table(self) -> Table:
        """Return the main table: kernels, figures of a benchmark (of its client when the report is gone), an
        experiment's metrics, or files.
        """
        if self.report is not None:
            return report_table(self.report)
        if self.verdict is not None:
            return Table("metrics", _METRIC_COLUMNS, tuple(_metric_rows(self.verdict)))
        if self.client_throughput is not None or self.client_latency is not None:
            return BenchmarkReport(None, throughput=self.client_throughput, latency=self.client_latency).table()
        return Table("files", ("name", "size_bytes", "files"), tuple(_artifact_rows(self.artifacts)))

    def to_pandas(self) -> pandas.DataFrame:
        """Return the main table as a pandas DataFrame."""
        return self.table().to_pandas()

    def to_json(self) -> dict[str, object]:
        """Return the JSON object that ``workspaces show --json`` prints."""
        return {
            **self.summary.to_json(),
            "size_bytes": self.size_bytes,
            "report": None if self.report is None else self.report.to_json(),
            "config": self.config,
            "record": self.record,
            "verdict": self.verdict,
            "client_result": self._client_json(),
            "gap_analysis": [{"path": str(table.path), "rows": table.table().records()} for table in self.gap_tables],
            "tracelens": [
                {"stage": file.stage, "table": file.table, "path": str(file.path)} for file in self.tracelens
            ],
            "files": [
                {"name": item.name, "size_bytes": item.size_bytes, "files": item.files} for item in self.artifacts
            ],
            "damaged": [
                {"path": str(item.path), "reason": item.reason, "line": item.line, "column": item.column}
                for item in self.damaged
            ],
        }

    def _client_json(self) -> dict[str, object] | None:
        if self.client_throughput is None or self.client_latency is None:
            return None
        return {"throughput": self.client_throughput.to_json(), "latency": self.client_latency.to_json()}


def _artifact_rows(artifacts: Sequence[Artifact]) -> Iterator[tuple[object, ...]]:
    return ((item.name, item.size_bytes, item.files) for item in artifacts)


def report_table(report: Report) -> Table:
    """Return the main table of a report."""
    if isinstance(report, BenchmarkReport):
        return report.table()
    return kernel_table(report)


class _Reader:
    """Reads the files of one workspace and collects the damaged ones."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged: list[Damaged] = []

    def note(self, item: Damaged) -> None:
        if not item.gone:
            self.damaged.append(item)

    def report(self, kind: WorkspaceKind) -> Report | None:
        report = load_report_of(self.path, kind, limit_bytes=LARGEST_REPORT_BYTES)
        if isinstance(report, Damaged):
            self.note(report)
            return None
        return report

    def mapping(self, name: str, value: object) -> dict[str, object] | None:
        if isinstance(value, Damaged):
            self.note(value)
            return None
        keys = mapping_or_none(value)
        if keys is None:
            self.note(Damaged(self.path / name, f"it holds {kind_of(value)} and no mapping"))
        return keys

    def json(self, name: str) -> dict[str, object] | None:
        return self.mapping(name, read_json_file(self.path / name))

    def yaml(self, name: str) -> dict[str, object] | None:
        return self.mapping(name, read_yaml_file(self.path / name))

    def text_summary(self) -> BenchmarkSummary | None:
        summary = read_benchmark_summary(self.path / "summary.txt")
        if isinstance(summary, Damaged):
            self.note(summary)
            return None
        return summary

    def client_result(self) -> tuple[Throughput | None, Latency | None]:
        for name in _CLIENT_RESULTS:
            value = read_json_file(self.path / name)
            if isinstance(value, Damaged):
                self.note(value)
                continue
            try:
                throughput, latency, _reasons = read_client_result(value)
            except DamagedReportError as error:
                self.note(Damaged(self.path / name, error.message))
                continue
            return throughput, latency
        return None, None

    def gap_tables(self) -> tuple[GapTable, ...]:
        try:
            paths = sorted((self.path / "gap_analysis").glob("gap_analysis*.csv"))
        except OSError:
            return ()
        tables = []
        for path in paths:
            table = read_gap_csv(path)
            if isinstance(table, Damaged):
                self.note(table)
            else:
                tables.append(table)
        return tuple(tables)

    def artifacts(self) -> tuple[Artifact, ...]:
        found = []
        try:
            entries = sorted(os.scandir(self.path), key=lambda entry: entry.name)
        except OSError as error:
            self.note(Damaged(self.path, f"the directory cannot be read: {error.strerror}"))
            return ()
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    found.append(Artifact(f"{entry.name}/", *_tree_size(entry.path)))
                else:
                    found.append(Artifact(entry.name, entry.stat(follow_symlinks=False).st_size, 1))
            except OSError:
                continue
        return tuple(found)


def _tree_size(directory: str) -> tuple[int, int]:
    """Return bytes and number of files below a directory; links are not followed."""
    size = files = 0
    for parent, _folders, names in os.walk(directory):
        for name in names:
            try:
                size += (Path(parent) / name).lstat().st_size
            except OSError:
                continue
            files += 1
            if files >= _MOST_FILES:
                return size, files
    return size, files


def show_workspace(path: Path) -> WorkspaceDetail:
    """Return everything about one workspace.

    Args:
        path: The directory, or the report in it. A directory that was renamed counts when a report lies in it.

    Raises:
        UserInputError: There is no such directory, or it is no workspace; the hint names workspaces nearby.
    """
    workspace = path.absolute()
    if is_regular_file(workspace):
        workspace = workspace.parent
    summary = summarize(workspace) if is_directory(workspace) else None
    if summary is None:
        raise _no_workspace(path.absolute())
    reader = _Reader(workspace)
    report = reader.report(summary.kind)
    is_benchmark = summary.kind == "benchmark"
    throughput, latency = reader.client_result() if is_benchmark else (None, None)
    config = reader.yaml("config.yaml")
    record = reader.json("record.json")
    verdict = reader.json("verdict.json") if summary.kind == "experiment" else None
    text_summary = reader.text_summary() if is_benchmark else None
    gap_tables = reader.gap_tables()
    artifacts = reader.artifacts()
    return WorkspaceDetail(
        summary=summary,
        report=report,
        config=config,
        record=record,
        verdict=verdict,
        text_summary=text_summary,
        client_throughput=throughput,
        client_latency=latency,
        gap_tables=gap_tables,
        tracelens=find_tracelens_files(workspace),
        artifacts=artifacts,
        size_bytes=sum(item.size_bytes for item in artifacts),
        damaged=tuple(reader.damaged),
    )


def _no_workspace(path: Path) -> UserInputError:
    exists = is_directory(path) or is_regular_file(path)
    message = "this is no workspace" if exists else "there is no such workspace"
    below = find_workspaces([path], max_depth=2) if is_directory(path) else []
    if below:
        names = ", ".join(str(place.relative_to(path)) for place, _name in below[:3])
        return UserInputError(message, path=path, hint=f"workspaces below it: {names}")
    parent = path.parent
    nearby = [place.name for place, _name in find_workspaces([parent], max_depth=1)] if is_directory(parent) else []
    if nearby:
        guess = nearest(path.name, nearby)
        names = ", ".join(([guess] if guess else []) + [name for name in nearby if name != guess][:2])
        return UserInputError(message, path=path, hint=f"workspaces in {parent}: {names}")
    return UserInputError(message, path=path, hint="magpie-tui workspaces list DIR finds them below a directory")


def load_report_file(path: Path) -> Report:
    """Return the report in a file, whatever its name: analyze, compare or benchmark.

    Args:
        path: The file, or a workspace that holds one.

    Raises:
        DamagedReportError: The file cannot be used; the reason and the place are said.
        UserInputError: The directory is no workspace.
    """
    place = path.absolute()
    if is_directory(place):
        name = parse_workspace_name(place.name)
        kind = kind_from_files(entry_names(place)) if name is None else name.kind
        file_name = None if kind is None else report_name(kind)
        if kind is None or file_name is None:
            raise UserInputError("no report lies in this directory", path=place)
        report = read_report(place / file_name, kind, limit_bytes=LARGEST_REPORT_BYTES)
    else:
        report = _report_of_any_kind(place)
    if isinstance(report, Damaged):
        raise report.error()
    return report


def _report_of_any_kind(path: Path) -> Report | Damaged:
    kind = kind_from_files([path.name])
    if kind is not None:
        return read_report(path, kind, limit_bytes=LARGEST_REPORT_BYTES)
    value = read_json_file(path)
    if isinstance(value, Damaged):
        return value
    keys = mapping_or_none(value) or {}
    try:
        if keys.get("mode") == "compare" or "kernel_results" in keys or "comparison_metrics" in keys:
            return CompareReport.from_json(value)
        if keys.get("mode") == "analyze" or isinstance(keys.get("results"), list) or "correctness_state" in keys:
            return AnalyzeReport.from_json(value)
        return BenchmarkReport.from_json(value)
    except DamagedReportError as error:
        return Damaged(path, error.message)


def _metric_rows(verdict: Mapping[str, object]) -> Iterator[tuple[object, ...]]:
    """The metrics of an experiment, the primary one first; ``ratio`` above 1 is better (shares: a difference)."""
    for item in (verdict.get("primary"), *as_list(verdict.get("guards"))):
        outcome = as_mapping(item)
        interval = as_mapping(outcome.get("interval"))
        own = [outcome.get(key) for key in ("metric", "state", "baseline", "optimized", "unit")]
        yield (*own, interval.get("point"), interval.get("low"), interval.get("high"), outcome.get("reason"))
