"""A further entry of a kernel config as text: written as its neighbours are, put behind them, the rest untouched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import yaml

from magpie_tui.configs.positions import MapNode, Value
from magpie_tui.configs.schema import plain_value

WIDTH = 120
_LONG = 100
_MERGED = re.compile(r"<<:\s*\*([^\s,}\]]+)")
_ANCHOR = re.compile(r"&([^\s,{}\[\]]+)")


def texts_with_entry(text: str, root: MapNode, base: MapNode, changes: Mapping[str, Value]) -> Iterator[str]:
    """Yield the whole config with an entry that is ``base`` but for ``changes``, the form nearest to the file's first.

    An entry with an anchor is merged (``<<: *base``), one that merges another one merges the same, any other is written
    out. Whether a text means what it shall is for the caller to find out.
    """
    lines = text.split("\n")
    end = "\r" if lines[0].endswith("\r") else ""
    for anchor, values in _forms(lines, base, changes):
        place = _place(lines, root)
        if place is None:
            return
        index, indent, before = place
        new = [
            line + end for line in (*before, *(" " * indent + line for line in _entry_lines(anchor, values, indent)))
        ]
        rest = lines[index:]
        yield "\n".join([*lines[:index], *new, *(rest or [""])])


def _forms(
    lines: Sequence[str], base: MapNode, changes: Mapping[str, Value]
) -> Iterator[tuple[str | None, dict[str, Value]]]:
    """Yield what to merge and what to write beside it."""
    here = lines[base.line - 1][base.column - 1 :]
    anchor = _ANCHOR.match(here)
    if anchor is not None:
        yield anchor[1], dict(changes)
    own = {entry.key: plain_value(entry.value) for entry in base.entries if not entry.merged}
    if len(own) < len(base.entries):
        merged = _MERGED.findall("\n".join(lines[base.line - 1 : base.line + 2]))
        if merged:
            yield merged[0], _changed(own, changes)
    yield None, _changed({entry.key: plain_value(entry.value) for entry in base.entries}, changes)


def _changed(values: Mapping[str, Value], changes: Mapping[str, Value]) -> dict[str, Value]:
    """Return ``values`` with the changes: id and change first, the others where they were."""
    first = {key: changes[key] for key in ("id", "change") if key in changes}
    return {**first, **{key: changes.get(key, value) for key, value in values.items() if key not in first}, **changes}


def _entry_lines(anchor: str | None, values: Mapping[str, Value], indent: int) -> list[str]:
    merge = [f"<<: *{anchor}"] if anchor is not None else []
    if merge:
        line = "- {" + ", ".join([*merge, *(_pair(key, value) for key, value in values.items())]) + "}"
        if len(line) + indent <= WIDTH:
            return [line]
    lines = list(merge)
    for key, value in values.items():
        pair = _pair(key, value)
        if isinstance(value, tuple) and len(pair) > _LONG:
            lines += [f"{key}:", *(f"  - {_flow([item])[1:-1]}" for item in value)]
        else:
            lines.append(pair)
    return [("- " if number == 0 else "  ") + line for number, line in enumerate(lines)]


def _pair(key: str, value: Value) -> str:
    return _flow({key: value})[1:-1]


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines in one, with escapes."""

    def ignore_aliases(self, data: object) -> bool:
        """Write everything out; names would clash with the file's own anchors."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def _flow(value: object) -> str:
    """Return a list or mapping in one line."""
    return yaml.dump(
        _plain(value), Dumper=_Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**9
    ).rstrip("\n")


def _plain(value: object) -> object:
    """Return a value in the types that YAML writes; unlike JSON it knows infinity."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value


def _place(lines: Sequence[str], root: MapNode) -> tuple[int, int, list[str]] | None:
    """Return before which line the entry goes, its indentation, and the lines that part it from what is above it.

    None where the kernels are not written below each other.
    """
    kernels = root.get("kernels")
    if kernels is None:
        last = max((number for number, line in enumerate(lines, 1) if line.strip()), default=0)
        return last, 2, ["", "kernels:"]
    start = kernels.key_node.line
    first = next((number for number in range(start, len(lines)) if _is_content(lines[number])), None)
    if first is None or not lines[first].lstrip().startswith("-"):
        return None
    indent = _indent(lines[first])
    last, items = first, [first]
    for number in range(first + 1, len(lines)):
        line = lines[number]
        if not line.strip():
            continue
        is_item = _indent(line) == indent and line.lstrip().startswith("-")
        if _indent(line) <= indent and not is_item and _is_content(line):
            break
        if is_item:
            items.append(number)
        if _is_content(line) or _indent(line) > indent:
            last = number
    above = items[-1] - 1
    while above > start and lines[above].lstrip().startswith("#"):
        above -= 1
    return last + 1, indent, [""] if len(items) > 1 and not lines[above].strip() else []


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
