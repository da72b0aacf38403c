"""Which comparison the place Candidates shows, and what it reads of it; in a thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import is_regular_file
from magpie_tui.basics.text import printable
from magpie_tui.tui.results import Results
from magpie_tui.tui.screens.workspace_report_files import WorkspaceFile, list_files
from magpie_tui.tui.screens.workspaces import WITH_CANDIDATES
from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.browse import WorkspaceSummary
from magpie_tui.workspaces.candidates import Candidates, candidates_of
from magpie_tui.workspaces.detail import WorkspaceDetail
from magpie_tui.workspaces.entry_difference import entries_of
from magpie_tui.workspaces.samples import Samples, read_samples
from magpie_tui.workspaces.values import as_list, as_text, as_texts

if TYPE_CHECKING:
    from magpie_tui.kernels.again import Again
    from magpie_tui.runs.model import Run

MOST_CHOICES = 500


@dataclass(frozen=True, slots=True)
class CandidatesReading:
    """A workspace as this place shows it.

    Attributes:
        detail: Everything about it.
        found: Its kernels.
        samples: Its timed windows.
        files: Its files, for the logs.
        failure: Why there are no kernels; empty when there are.
        again: How it was started; None when that cannot be done again.
        not_again: Why not.
        entries: Kernel id to its entry in the workspace's config.
    """

    detail: WorkspaceDetail
    found: Candidates
    samples: Samples
    files: tuple[WorkspaceFile, ...]
    failure: str = ""
    again: Again | None = None
    not_again: str = ""
    entries: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def file_to_edit(self, name: str) -> Path:
        """Return what an editor is opened on for a kernel: the tuning file that it has of its own, else its source.

        Raises:
            UserInputError: The workspace does not say, or the file is gone.
        """
        baseline = self.found.named(self.found.baseline)
        sources, tuning = self._files(name)
        base_sources, base_tuning = ((), ()) if baseline is None else self._files(baseline.name)
        own = [path for path in tuning if path not in base_tuning] if sources == base_sources else []
        if not own and not sources:
            raise UserInputError(f"the workspace does not say which file {printable(name)} is")
        path = (own or sources)[0]
        if not is_regular_file(path):
            raise UserInputError(f"the file of {printable(name)} is gone", path=path)
        return path

    def others_with(self, path: Path, name: str) -> list[str]:
        """Return the other kernels that a file belongs to."""
        rows = [row.name for row in self.found.rows if row.name != name]
        return [row for row in rows if any(path in files for files in self._files(row))]

    def _files(self, name: str) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Return sources and tuning files of a kernel, absolute."""
        entry = self.entries.get(name, {})
        place = Path(as_text((self.detail.record or {}).get("working_directory")) or Path.cwd())
        sources = as_texts(entry.get("source_file_path", entry.get("source_files")))
        tuning = as_texts(entry.get("config_files"))
        return tuple(place / text for text in sources), tuple(place / text for text in tuning)


def read_candidates(path: Path) -> CandidatesReading:
    """Read a workspace.

    Raises:
        UserInputError: It is not there, or is no workspace.
    """
    from magpie_tui.kernels.live import candidates_so_far
    from magpie_tui.workspaces.detail import show_workspace

    detail = show_workspace(path)
    report, found = detail.report, Candidates(())
    samples = read_samples(path)
    if report is None:
        damaged = detail.damaged_report
        failure = f"damaged: {damaged.text}" if damaged is not None else detail.summary.headline
        if damaged is None and detail.summary.kind == "compare" and as_list((detail.config or {}).get("kernels")):
            found, failure = candidates_so_far(detail.config or {}, samples, run_says(path)), ""
    elif isinstance(report, BenchmarkReport):
        failure = "a benchmark has no candidates"
    else:
        found = candidates_of(report, detail.config)
        failure = "" if found.rows else found.sentence
    files = tuple(list_files(path, "logs")) if (path / "logs").is_dir() else ()
    again, not_again = _again(detail)
    entries = entries_of(detail.config)
    return CandidatesReading(detail, found, samples, files, printable(failure), again, not_again, entries)


def _again(detail: WorkspaceDetail) -> tuple[Again | None, str]:
    """Say how it can be done again, or why not."""
    from magpie_tui.kernels.again import how_again, why_not

    try:
        return how_again(detail, _run_of(detail.path) if detail.record is None else None), ""
    except UserInputError as error:
        return None, why_not(error)


def _run_of(workspace: Path) -> Run | None:
    """Return the run that made a workspace; None when it is not known."""
    from magpie_tui.runs.store import list_runs

    return next((run for run in list_runs([workspace.parent]) if run.workspace == workspace), None)


def run_says(workspace: Path) -> str:
    """Return how far the run of a workspace is, or how it ended without a report."""
    from magpie_tui.runs.words import progress_text

    run = _run_of(workspace)
    if run is None:
        return "no report, and no run of ours that writes one"
    state = run.state.value.replace("_", " ")
    message = run.progress.message if run.progress is not None and not run.is_over else ""
    text = "; ".join(part for part in (progress_text(run), message) if part)
    return f"{state}: {text}" if text else state


def comparisons(results: Results) -> list[WorkspaceSummary]:
    """Return the workspaces with kernels, newest first."""
    return [item for item in results.workspaces if item.kind in WITH_CANDIDATES][:MOST_CHOICES]


def newest_comparison(results: Results) -> Path | None:
    """Return the newest comparison that has a report, else the newest with kernels at all."""
    compares = [item for item in results.workspaces if item.kind == "compare"]
    for item in compares:
        if item.status != "unfinished":
            return item.path
    rest = [item for item in results.workspaces if item.kind == "analyze" and item.status != "unfinished"]
    return (rest or compares)[0].path if rest or compares else None


def newer_note(results: Results, shown: Path | None) -> str:
    """Say that there is a newer comparison than the one that was chosen, and with which key it is opened."""
    newest = newest_comparison(results)
    places = [item.path for item in results.workspaces]
    if newest is None or shown not in places or places.index(shown) <= places.index(newest):
        return ""
    return f"newer: {newest.name}, o opens it"


def unfinished_note(results: Results, shown: Path | None) -> str:
    """Say that a newer comparison has no report yet."""
    for item in results.workspaces:
        if item.path == shown:
            return ""
        if item.kind == "compare" and item.status == "unfinished":
            return f"newer, no report yet: {item.name}"
    return ""
