"""Places in a config: problems, origins, and YAML values that know their line and column."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, Union

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.text import plural, printable

Severity = Literal["error", "warning"]
OriginKind = Literal["file", "default", "environment", "framework", "command_line", "derived"]

MAX_PROBLEMS = 300
"""Problems kept of one file."""

Value: TypeAlias = Union[bool, int, float, str, "tuple[Value, ...]", "Mapping[str, Value]", None]
"""A plain configuration value: what JSON can say."""

ScalarValue: TypeAlias = bool | int | float | str | bytes | datetime.date | None


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, or doubtful, in a config.

    Attributes:
        line, column: Position in ``path``, counted from 1.
        code: Stable name of the kind of problem, such as ``unknown-key``.
        message: What is wrong, without a final stop.
        expected, found: What should stand there and what does; None where it makes no sense.
        hint: What to do, the nearest known key for instance.
    """

    path: Path
    line: int
    column: int
    severity: Severity
    code: str
    message: str
    expected: str | None = None
    found: str | None = None
    hint: str | None = None

    @property
    def place(self) -> str:
        """``file:line:column``."""
        return f"{self.path}:{self.line}:{self.column}"

    @property
    def text(self) -> str:
        """The problem as one line: place, severity, what, expected, found, code, hint."""
        parts = [self.message]
        if self.expected is not None:
            parts.append(f"expected {self.expected}")
        if self.found is not None:
            parts.append(f"found {self.found}")
        hint = f"; {self.hint}" if self.hint else ""
        return printable(f"{self.place}: {self.severity}: {', '.join(parts)}{hint} [{self.code}]")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an effective value comes from.

    Attributes:
        kind: ``file`` (this config), ``framework`` (the framework config), ``command_line``, ``environment``,
            ``default``, or ``derived`` from other values.
        path, line, column: Place of a value that was written in a file.
        detail: More about it: the variables that were filled in, the option, the rule.
    """

    kind: OriginKind
    path: Path | None = None
    line: int | None = None
    column: int | None = None
    detail: str | None = None

    @property
    def text(self) -> str:
        """The origin for people: ``kernels.yaml:12``, ``default``, ``command line (--workers)``."""
        if self.path is not None and self.line is not None:
            shown = f"{self.path}:{self.line}"
            if self.kind == "framework":
                shown = f"framework config {shown}"
        else:
            shown = {"command_line": "command line", "framework": "framework config"}.get(self.kind, self.kind)
        return f"{shown} ({self.detail})" if self.detail else shown


@dataclass(frozen=True, slots=True)
class Setting:
    """One effective value: dotted key, value, origin."""

    key: str
    value: Value
    origin: Origin


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A single YAML value.

    Attributes:
        value: What YAML made of it.
        text: What is written in the file, without quotes.
        plain: True when it is written without quotes (YAML then guesses its type).
        one_line: It begins and ends in one line, so that a place inside can be told.
        aliased: An alias elsewhere in the file refers to it.
    """

    value: ScalarValue
    text: str
    plain: bool
    line: int
    column: int
    one_line: bool = False
    aliased: bool = False

    def place(self, offset: int = 0) -> tuple[int, int]:
        """Return line and column of character ``offset`` of the text, or of its start where that cannot be told."""
        if not self.one_line:
            return self.line, self.column
        return self.line, self.column + offset + (0 if self.plain else 1)


@dataclass(frozen=True, slots=True, eq=False)
class ListNode:
    """A YAML sequence."""

    items: tuple[Node, ...]
    line: int
    column: int
    aliased: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A key of a mapping with its value; ``merged`` when it came in through ``<<``."""

    key: str
    key_node: Scalar
    value: Node
    merged: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MapNode:
    """A YAML mapping after merges; where a key is doubled, the last one is kept (and a problem was reported)."""

    entries: tuple[Entry, ...]
    line: int
    column: int
    aliased: bool = False

    def get(self, key: str) -> Entry | None:
        """Return the entry of ``key``, or None."""
        return next((entry for entry in self.entries if entry.key == key), None)

    def keys(self) -> tuple[str, ...]:
        """Return the keys in file order."""
        return tuple(entry.key for entry in self.entries)


Node: TypeAlias = Scalar | ListNode | MapNode


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML file as read.

    Attributes:
        root: The top value; None when the file is empty or could not be read at all.
        recovered: Parts of the file were left out after a syntax error, so what is missing proves nothing.
    """

    path: Path
    root: Node | None
    problems: tuple[Problem, ...]
    recovered: bool = False


@dataclass(slots=True)
class ProblemList:
    """Collects the problems of one file."""

    path: Path
    items: list[Problem] = field(default_factory=list)

    def add(
        self,
        severity: Severity,
        place: Node | tuple[int, int],
        code: str,
        message: str,
        *,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Add a problem at a node, or at ``(line, column)``."""
        line, column = place if isinstance(place, tuple) else (place.line, place.column)
        if len(self.items) > MAX_PROBLEMS:
            return
        if len(self.items) == MAX_PROBLEMS:
            message = f"there are more than {MAX_PROBLEMS} problems; the rest is left out"
            self.items.append(Problem(self.path, line, column, "error", "too-many-problems", message))
            return
        problem = Problem(self.path, line, column, severity, code, message, expected, found, hint)
        if problem not in self.items:
            self.items.append(problem)

    def error(
        self,
        place: Node | tuple[int, int],
        code: str,
        message: str,
        *,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Add an error."""
        self.add("error", place, code, message, expected=expected, found=found, hint=hint)

    def warning(
        self,
        place: Node | tuple[int, int],
        code: str,
        message: str,
        *,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Add a warning."""
        self.add("warning", place, code, message, expected=expected, found=found, hint=hint)

    def sorted(self) -> tuple[Problem, ...]:
        """Return the problems in file order."""
        return tuple(sorted(self.items, key=lambda problem: (problem.line, problem.column)))


def errors_of(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the errors among ``problems``."""
    return tuple(problem for problem in problems if problem.severity == "error")


def raise_on_errors(problems: Iterable[Problem]) -> None:
    """Raise one error that lists every error among ``problems``.

    Raises:
        UserInputError: There is at least one.
    """
    errors = errors_of(problems)
    if not errors:
        return
    first = errors[0]
    others = "".join(f"\n{problem.text}" for problem in errors)
    raise UserInputError(
        f"{plural(len(errors), 'problem')} in this config:{others}",
        path=first.path,
        line=first.line,
        column=first.column,
        hint=f"magpie-tui config check {printable(first.path)} shows the warnings as well",
    )


def walk(node: Node | None) -> Iterator[Node]:
    """Yield ``node`` and every value below it."""
    waiting = [] if node is None else [node]
    while waiting:
        current = waiting.pop()
        yield current
        if isinstance(current, ListNode):
            waiting.extend(reversed(current.items))
        elif isinstance(current, MapNode):
            waiting.extend(entry.value for entry in reversed(current.entries))
