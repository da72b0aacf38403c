"""Load the framework config: defaults for every command."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.configs.framework_fields import FRAMEWORK_FIELDS
from magpie_tui.configs.kernel_sections import read_roofline
from magpie_tui.configs.positions import (
    Document,
    MapNode,
    Origin,
    Problem,
    ProblemList,
    Setting,
    Value,
    raise_on_errors,
)
from magpie_tui.configs.schema import Reader, leaves, vocabulary
from magpie_tui.configs.syntax import load_document

_VOCABULARY = vocabulary(FRAMEWORK_FIELDS)


@dataclass(frozen=True, slots=True)
class FrameworkConfig:
    """Effective framework settings.

    Attributes:
        path: The file; None when upstream's shipped values hold.
        settings: Every effective value by dotted key. Keys that nothing reads are left out.
        problems: Warnings, and errors when the caller asked not to raise.
    """

    path: Path | None
    settings: Mapping[str, Setting]
    problems: tuple[Problem, ...] = ()

    def value(self, key: str) -> Value:
        """Return the effective value of a dotted key, None for unknown ones."""
        setting = self.settings.get(key)
        return None if setting is None else setting.value

    def below(self, prefix: str) -> dict[str, Value]:
        """Return the values directly below a dotted prefix."""
        start = f"{prefix}."
        return {
            key.removeprefix(start): setting.value for key, setting in self.settings.items() if key.startswith(start)
        }


def load_framework_config(path: Path | None, *, environment: Mapping[str, str] | None = None) -> FrameworkConfig:
    """Load a framework config; without a path, upstream's shipped values.

    Raises:
        UserInputError: The file cannot be read, or has errors; the message lists all of them.
    """
    if path is None:
        return FrameworkConfig(None, _with_defaults({}, named=False))
    config = read_framework_config(load_document(path), environment=environment)
    raise_on_errors(config.problems)
    return config


def read_framework_config(document: Document, *, environment: Mapping[str, str] | None = None) -> FrameworkConfig:
    """Read a parsed file as a framework config; all problems are in the result, none is raised."""
    problems = ProblemList(document.path, list(document.problems))
    reader = Reader(
        problems, os.environ if environment is None else environment, origin_kind="framework", vocabulary=_VOCABULARY
    )
    root = document.root
    if root is not None:
        reader.read(root, FRAMEWORK_FIELDS)
        performance = root.get("performance") if isinstance(root, MapNode) else None
        read_roofline(reader, performance.value if performance else None)
    elif not problems.items:
        problems.warning((1, 1), "empty-file", "the file is empty: upstream's defaults hold")
    return FrameworkConfig(document.path, _with_defaults(reader.settings, named=True), problems.sorted())


def _with_defaults(given: Mapping[str, Setting], *, named: bool) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    for key, item in leaves(FRAMEWORK_FIELDS):
        if item.ignored:
            continue
        if key in given:
            settings[key] = given[key]
        else:
            default = item.code_default if named and item.has_code_default else item.default
            settings[key] = Setting(key, default, Origin("default"))
    return settings
