"""What makes a candidate differ from the baseline besides the text of its sources: files, flags, environment."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from magpie_tui.workspaces.values import as_list, as_mapping, as_text

_KINDS = (
    ("source_file_path", "source"),
    ("source_files", "source"),
    ("config_files", "configuration file"),
    ("env", "environment"),
    ("compile_options", "flag"),
    ("compiling_command", "flag"),
    ("compile_command", "flag"),
    ("testcase_command", "flag"),
    ("kernel_name", "function"),
    ("grid", "launch"),
    ("block", "launch"),
    ("shared_memory", "launch"),
    ("arguments", "arguments"),
    ("python", "interpreter"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two entries of a config.

    Attributes:
        kind: ``source``, ``configuration file``, ``environment``, ``flag``, ``launch`` and so on.
        text: What is new, and what it replaces.
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def entries_of(config: Mapping[str, object] | None) -> dict[str, Mapping[str, object]]:
    """Return kernel id to its entry, our own keys beside upstream's."""
    found: dict[str, Mapping[str, object]] = {}
    for item in as_list((config or {}).get("kernels")):
        entry = as_mapping(item)
        name = as_text(entry.get("kernel_id")) or as_text(entry.get("id"))
        if name is not None and name not in found:
            found[name] = {**entry, **as_mapping(entry.get("magpie_tui"))}
    return found


def changes_between(baseline: Mapping[str, object], candidate: Mapping[str, object]) -> list[Change]:
    """Return what the candidate's entry says otherwise than the baseline's, in the order of ``_KINDS``."""
    found = []
    for key, kind in _KINDS:
        old, new = baseline.get(key), candidate.get(key)
        if (old or None) == (new or None):
            continue
        text = _environment(old, new) if key == "env" else _tokens(old, new)
        if text:
            found.append(Change(kind, text))
    return found


def _environment(old: object, new: object) -> str:
    before, after = as_mapping(old), as_mapping(new)
    parts = []
    for name in dict.fromkeys([*after, *before]):
        if before.get(name) == after.get(name):
            continue
        if name not in after:
            parts.append(f"{name} unset")
        else:
            was = f" (was {before[name]})" if name in before else ""
            parts.append(f"{name}={after[name]}{was}")
    return ", ".join(parts)


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return shlex.split(value, posix=False)
    if isinstance(value, (list, tuple)):
        return [word for item in value for word in _words(item)]
    if isinstance(value, Mapping):
        return [f"{key}={' '.join(_words(item))}" for key, item in value.items()]
    return [] if value is None else [str(value)]


def _tokens(old: object, new: object) -> str:
    """Return the words that are new, and those they replace; paths by their last part."""
    before, after = _words(old), _words(new)
    added = [_short(word) for word in after if word not in before]
    gone = [_short(word) for word in before if word not in after]
    if not added and not gone:
        return "in another order" if before != after else ""
    text = " ".join(added) or "nothing"
    return f"{text} (was {' '.join(gone)})" if gone else text


def _short(word: str) -> str:
    return word.rpartition("/")[2] or word
