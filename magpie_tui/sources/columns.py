"""The source columns that follow upstream's six in ``gap_analysis.csv``, in its words and order."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.sources.categories import upstream_category
from magpie_tui.sources.families import FAMILIES
from magpie_tui.sources.find import SourceFinder
from magpie_tui.sources.model import Definition, Repository, SourceReport, TestMatch

COLUMNS = (
    "kind",
    "category",
    "source_repo",
    "source_file",
    "upstream_url",
    "test_file",
    "test_cmd",
    "baseline_ref_file",
    "baseline_ref_symbol",
    "baseline_ref_kind",
    "triton_ref_file",
    "triton_ref_symbol",
    "notes",
)
_FIRST = 7
"""Number of the first source column, from 1: six of the ranking stand before."""


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """Cells for each kernel name, and the comment lines above the header."""

    comment: str
    cells: Mapping[str, tuple[str, ...]]
    header: tuple[str, ...] = COLUMNS

    def of(self, name: str) -> tuple[str, ...]:
        """Return the cells of a kernel; empty ones where it was not looked up."""
        return self.cells.get(name, ("",) * len(COLUMNS))


def source_columns(finder: SourceFinder, names: Iterable[str]) -> SourceColumns:
    """Look every name up and lay the findings out as upstream does. Unknown values are empty."""
    given = [repository for repository in finder.repositories if repository.key != "inductor-cache"]
    return SourceColumns(_comment(given), {name: _cells(finder.find(name)) for name in names})


def _comment(repositories: Sequence[Repository]) -> str:
    lines = []
    if repositories:
        roots = [str(repository.root) for repository in repositories]
        base = os.path.commonpath(roots) if len(roots) > 1 else str(Path(roots[0]).parent)
        lines += ["# Repository Path Mappings:", f"# Base directory: {base}"]
        for variable, root in sorted(
            {repository.variable: str(repository.root) for repository in repositories}.items()
        ):
            lines.append(f"# {variable}=./{os.path.relpath(root, base)}")
        lines.append("#")
    last = _FIRST + len(COLUMNS) - 1
    lines.append(f"# Warning: columns {_FIRST}-{last} from find_kernel_sources are experimental.")
    return "\n".join(lines) + "\n"


def _cells(report: SourceReport) -> tuple[str, ...]:
    facts, source, test = report.facts, report.source, report.test
    baseline = test.baseline or "" if test else ""
    return (
        FAMILIES[facts.family].kind,
        upstream_category(facts.category),
        source.repository if source else "",
        f"{source.variable}/{source.path}" if source and source.variable else (source.path if source else ""),
        source.url or "" if source else "",
        _in(test.repository, test.path) if test else "",
        _command(test) if test else "",
        _in(test.repository, test.path) if test and baseline else "",
        baseline,
        test.baseline_kind if test else "none",
        _place(report.triton),
        report.triton.symbol if report.triton else "",
        "; ".join(_notes(report)),
    )


def _in(repository: Repository, path: str) -> str:
    return f"{repository.variable}/{path}"


def _place(definition: Definition | None) -> str:
    return _in(definition.repository, definition.path) if definition else ""


def _command(test: TestMatch) -> str:
    return f"cd {test.repository.variable} && pytest {shlex.quote(test.path)} -v"


def _notes(report: SourceReport) -> Iterable[str]:
    yield from (f"{key}={value}" for key, value in report.facts.facts.items())
    if report.source is not None:
        yield f"confidence={report.source.confidence}: {', '.join(report.source.reasons)}"
    elif report.reason:
        yield report.reason
