"""Models that users add through the entry point group ``magpie_tui.performance_models``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from magpie_tui.traces.models.model import Model

GROUP = "magpie_tui.performance_models"
"""Each entry point names a mapping of operator names to `Model`, or a function without arguments that returns one."""

_log = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def _loaded() -> tuple[Mapping[str, Model], tuple[str, ...]]:
    models: dict[str, Model] = {}
    problems: list[str] = []
    for point in sorted(entry_points(group=GROUP), key=lambda item: item.name):
        found, problem = _read(point)
        models.update(found)
        if problem:
            problems.append(problem)
            _log.warning("%s", problem)
    return models, tuple(problems)


def _read(point: EntryPoint) -> tuple[Mapping[str, Model], str | None]:
    """Load one entry point; what a plug-in raises must not stop the analysis, so it becomes a sentence."""
    label = f"performance models {point.name!r} ({point.value})"
    try:
        found = point.load()
        if callable(found):
            found = found()
    except Exception as error:  # a plug-in may raise anything; it is reported, not hidden
        return {}, f"{label} could not be loaded: {type(error).__name__}: {error}"
    if not isinstance(found, Mapping):
        return {}, f"{label} gives {type(found).__name__}, not a mapping of operator names to models"
    good = {name: model for name, model in found.items() if isinstance(name, str) and isinstance(model, Model)}
    if len(good) < len(found):
        return good, f"{label}: {len(found) - len(good)} of {len(found)} entries are no Model and were left out"
    return good, None


def added_models() -> Mapping[str, Model]:
    """Models of all entry points; a later name replaces an earlier one, in the order of the entry points' names."""
    return _loaded()[0]


def problems() -> tuple[str, ...]:
    """What was wrong with entry points, one sentence each."""
    return _loaded()[1]


def forget() -> None:
    """Read the entry points again at the next use."""
    _loaded.cache_clear()
