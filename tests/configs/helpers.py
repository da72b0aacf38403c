"""Small helpers of the config tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from magpie_tui.configs.check import ConfigKind, FileCheck, Mode, check_document
from magpie_tui.configs.positions import Problem
from magpie_tui.configs.syntax import parse_document


def check_text(
    text: str,
    *,
    path: Path = Path("config.yaml"),
    environment: Mapping[str, str] | None = None,
    mode: Mode | None = None,
    kind: ConfigKind | None = None,
    caller: Path | None = None,
) -> FileCheck:
    """Check YAML text as if it stood in ``path``."""
    document = parse_document(text.encode(), path)
    return check_document(document, environment=environment or {}, mode=mode, kind=kind, caller_directory=caller)


def found(check: FileCheck, code: str) -> list[Problem]:
    """Return the problems of one code."""
    return [problem for problem in check.problems if problem.code == code]


def places(check: FileCheck) -> set[tuple[str, int, int]]:
    """Return code, line and column of every problem."""
    return {(problem.code, problem.line, problem.column) for problem in check.problems}


def errors(check: FileCheck) -> list[str]:
    """Return the text of every error."""
    return [problem.text for problem in check.errors]
