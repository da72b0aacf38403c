"""``magpie-tui source``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import AnswerIsNoError, UserInputError
from magpie_tui.basics.text import printable
from magpie_tui.cli.group import Command, command_app
from magpie_tui.cli.output import wants_json, write, write_json

if TYPE_CHECKING:
    from magpie_tui.sources.model import Repository, SourceReport

SCHEMA = "magpie-tui/source/1"

app = command_app("Say what a kernel's name means and where its source lies.")


@app.command(cls=Command)
def source(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Kernel names as in a trace; - reads stdin.")],
    repos: Annotated[
        list[Path] | None,
        typer.Option("--repos", "--kernel-source-repos", metavar="DIR...", help="Checkouts to search."),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            "--python", metavar="PYTHON", help="Interpreter of the serving environment, to search its packages."
        ),
    ] = None,
    packages: Annotated[
        bool, typer.Option("--packages/--no-packages", help="Search the installed packages too (default).")
    ] = True,
) -> None:
    """Say what a kernel's name means and where its source, its test and its reference lie.

    Only the given checkouts and installed packages are searched; nothing is cloned. Exit 1 when no name has a source.

    Example: magpie-tui source _matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1 --repos ~/src/triton
    """
    from magpie_tui.sources.find import SourceFinder
    from magpie_tui.sources.repositories import gather
    from magpie_tui.sources.text import report_lines

    wanted = [name for name in _names(names) if name.strip()]
    if not wanted:
        raise UserInputError("no kernel name given", hint="give the name as the trace has it, in quotes")
    repositories = gather(repos or (), python=python, packages=packages)
    with SourceFinder(repositories) as finder:
        finder.update(_progress())
        reports = [finder.find(name) for name in wanted]
    if wants_json():
        write_json({"schema": SCHEMA, "kernels": [report_json(report) for report in reports]})
    else:
        for number, report in enumerate(reports):
            if number:
                write()
            for line in report_lines(report):
                write(line)
    if all(report.source is None for report in reports):
        raise AnswerIsNoError("no source found", hint="name checkouts with --repos, or an environment with --python")


def _names(names: list[str]) -> Iterator[str]:
    for name in names:
        if name == "-":
            yield from (line.rstrip("\n") for line in sys.stdin)
        else:
            yield name


def _progress() -> Callable[[Repository, int, int], None] | None:
    if not sys.stderr.isatty():
        return None

    def show(repository: Repository, done: int, total: int) -> None:
        text = f"indexing {printable(str(repository.root))}: {done:,} of {total:,} files"
        sys.stderr.write(f"\r\x1b[K{text}" if done < total - 400 else "\r\x1b[K")
        sys.stderr.flush()

    return show


def report_json(report: SourceReport) -> dict[str, object]:
    """One kernel as a JSON object; what is not known is null."""
    from magpie_tui.sources.families import FAMILIES

    facts, found, test, triton = report.facts, report.source, report.test, report.triton
    family = FAMILIES[facts.family]
    return {
        "name": facts.name,
        "plain": facts.plain,
        "function": facts.function,
        "family": facts.family,
        "kind": family.kind,
        "library": family.library,
        "category": facts.category,
        "facts": dict(facts.facts),
        "source": None
        if found is None
        else {
            "repository": found.repository,
            "path": found.path,
            "file": found.file,
            "line": found.line,
            "confidence": found.confidence,
            "reasons": list(found.reasons),
            "url": found.url,
            "losers": [{"place": loser.place, "reason": loser.reason} for loser in found.losers],
        },
        "reason": report.reason,
        "test": None
        if test is None
        else {
            "file": test.file,
            "command": list(test.command),
            "reason": test.reason,
            "baseline": test.baseline,
            "baseline_kind": test.baseline_kind,
        },
        "triton": None if triton is None else {"file": triton.file, "line": triton.line, "symbol": triton.symbol},
        "searched": [{"repository": one.key, "root": one.root, "installed": one.installed} for one in report.searched],
    }
