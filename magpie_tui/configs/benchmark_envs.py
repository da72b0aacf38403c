"""The ``envs`` of a benchmark: workload, server arguments, and what Python's ``str()`` makes of each value."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass, field, replace
from itertools import pairwise

from magpie_tui.basics.redact import is_secret_name
from magpie_tui.basics.text import nearest
from magpie_tui.configs.benchmark_fields import DEFAULT_ENVS, ENV_FIELDS, ENV_FLAGS, EXTRA_ARGUMENTS, KNOWN_ENVS
from magpie_tui.configs.command_reading import report_faults
from magpie_tui.configs.commands import split_command
from magpie_tui.configs.positions import Entry, ListNode, MapNode, Node, Origin, Scalar, Setting, Value
from magpie_tui.configs.scalars import describe, type_of
from magpie_tui.configs.schema import Kind, Reader, plain_value

_WHOLE = re.compile(r"0|[1-9][0-9]*\Z")
_PATH_START = re.compile(r"(?:/|\./|\.\./|~/)")


@dataclass(slots=True)
class Envs:
    """What ``envs`` gives.

    Attributes:
        values: Exported text by upper-case name.
        arguments: Argument vectors of ``EXTRA_VLLM_ARGS`` and its like.
    """

    values: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, tuple[str, ...]] = field(default_factory=dict)


def read_envs(reader: Reader, node: Node | None) -> Envs:
    """Read ``envs``; where it is absent or empty, upstream's defaults stand for it as a whole."""
    result = Envs()
    absent = node is None or (isinstance(node, Scalar) and not node.value and not isinstance(node.value, str))
    if absent or (isinstance(node, MapNode) and not node.entries):
        for name, text in DEFAULT_ENVS.items():
            result.values[name] = text
            reader.settings[f"envs.{name}"] = Setting(f"envs.{name}", text, Origin("default"))
        return result
    if not isinstance(node, MapNode):
        if node is not None:
            reader.wrong_type(node, "envs", "a mapping of names to values")
        return result
    seen: dict[str, Entry] = {}
    for entry in node.entries:
        name = entry.key.upper()
        if name in seen:
            other = f"envs.{seen[name].key} (line {seen[name].key_node.line})"
            message = f"envs.{entry.key} and {other} are one variable: names become upper case"
            reader.problems.error(entry.key_node, "duplicate-key", message, hint="remove one of them")
        seen[name] = entry
        _read_one(reader, entry, name, result)
    _warn_missing(reader, node, result)
    return result


def _warn_missing(reader: Reader, node: MapNode, envs: Envs) -> None:
    given = {entry.key.upper() for entry in node.entries}
    missing = [name for name in ("TP", "CONC", "ISL", "OSL") if name not in given]
    if missing and "BENCHMARK_BASE_URL" not in envs.values and any(name in KNOWN_ENVS for name in envs.values):
        reader.problems.warning(
            node,
            "envs-not-merged",
            f"envs does not say {', '.join(missing)}: upstream's defaults hold only where envs is absent as a whole",
            hint="write " + ", ".join(f"{name}: {DEFAULT_ENVS[name]}" for name in missing) + " if those are meant",
        )


def _read_one(reader: Reader, entry: Entry, name: str, result: Envs) -> None:
    node, key = entry.value, f"envs.{entry.key}"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", entry.key):
        reader.problems.error(entry.key_node, "bad-key", f"{key} cannot be the name of a variable")
        return
    if name in EXTRA_ARGUMENTS.values():
        arguments = read_arguments(reader, node, key)
        if arguments is not None:
            result.arguments[name] = arguments
            result.values[name] = node.text if isinstance(node, Scalar) and node.value else shlex.join(arguments)
            reader.put(f"envs.{name}", arguments, node)
        return
    if name in ENV_FIELDS:
        text = _number(reader, node, name, key)
    else:
        _warn_unusual(reader, entry, name)
        text = _text(reader, node, name, key)
    if text is not None:
        result.values[name] = text
        reader.put(f"envs.{name}", text, node)


def _number(reader: Reader, node: Node, name: str, key: str) -> str | None:
    item = ENV_FIELDS[name]
    if isinstance(node, Scalar) and isinstance(node.value, str) and not node.plain:
        value = _quoted_number(node.text, whole=item.kind is Kind.INTEGER)
        if value is not None:
            node = replace(node, value=value)
    checked = reader.value(node, item, key)
    return str(checked) if isinstance(checked, (int, float)) else None


def _quoted_number(text: str, *, whole: bool) -> int | float | None:
    if _WHOLE.fullmatch(text) and len(text) < 20:
        return int(text)
    if whole:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _text(reader: Reader, node: Node, name: str, key: str) -> str | None:
    if isinstance(node, Scalar) and isinstance(node.value, str):
        reader.not_expanded(node, key, lenient=True)
        return node.text
    exported = str(_python_value(plain_value(node)))
    if isinstance(node, Scalar) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        if _same_number(node.text, exported):
            return exported
    elif not isinstance(node, Scalar) and name in ENV_FLAGS:
        reader.wrong_type(node, key, "text")
        return None
    shown = repr(exported if len(exported) <= 60 else f"{exported[:57]}...")
    secret = is_secret_name(name)
    reader.problems.warning(
        node,
        "env-mangled",
        f"{key} is not text and reaches the script as {'a text' if secret else shown}",
        expected="text",
        found=type_of(node) if secret else describe(node),
        hint="put it in quotes" if isinstance(node, Scalar) else "write it as text in quotes",
    )
    return exported


def _same_number(text: str, exported: str) -> bool:
    if text == exported:
        return True
    try:
        return "." in text and float(text) == float(exported)
    except ValueError:
        return False


def _python_value(value: Value) -> object:
    """Return lists for tuples, so that ``str()`` writes what upstream exports."""
    if isinstance(value, tuple):
        return [_python_value(item) for item in value]
    if isinstance(value, dict):
        return {key: _python_value(item) for key, item in value.items()}
    return value


def _warn_unusual(reader: Reader, entry: Entry, name: str) -> None:
    if name in KNOWN_ENVS:
        return
    guess = nearest(name, KNOWN_ENVS, cutoff=0.86)
    if guess is not None:
        reader.problems.warning(
            entry.key_node,
            "unusual-variable",
            f"envs.{entry.key} is exported, but nothing known reads it",
            hint=f"did you mean {guess}?",
        )


def read_arguments(reader: Reader, node: Node, key: str) -> tuple[str, ...] | None:
    """Read extra server arguments: text is split once by shell rules, a list is passed on untouched.

    Returns:
        The argument vector, or None when it could not be read.
    """
    if isinstance(node, ListNode):
        return _listed(reader, node, key)
    if not isinstance(node, Scalar) or isinstance(node.value, (bool, int, float, bytes)):
        reader.wrong_type(node, key, "text or a list of texts")
        return None
    if node.value is None:
        reader.problems.warning(
            node, "env-mangled", f"{key} is empty and would reach upstream's script as 'None'", hint='write ""'
        )
        return ()
    report_faults(reader, node, key)
    reader.not_expanded(node, key)
    tokens = split_command(node.text).tokens
    _warn_stray(reader, node, key, tokens)
    return tokens


def _listed(reader: Reader, node: ListNode, key: str) -> tuple[str, ...] | None:
    arguments = []
    for index, item in enumerate(node.items):
        if not isinstance(item, Scalar) or item.value is None:
            reader.wrong_type(item, f"{key}[{index}]", "text", "write JSON in quotes, as one item")
            continue
        if not isinstance(item.value, str):
            reader.warn_surprise(item, f"{key}[{index}]")
        else:
            reader.not_expanded(item, f"{key}[{index}]")
        arguments.append(item.text)
    reader.problems.warning(
        node,
        "list-arguments",
        f"{key} is a list: each item is passed on as one argument, but upstream's own scripts cannot read a list",
        hint="for upstream's engine write text: " + shlex.join(arguments) if len(arguments) < 12 else None,
    )
    return tuple(arguments) if len(arguments) == len(node.items) else None


def _warn_stray(reader: Reader, node: Scalar, key: str, tokens: tuple[str, ...]) -> None:
    """Warn of a path with a blank outside quotes: ``--path /data/with space/x``."""
    for before, token in pairwise(tokens):
        if _PATH_START.match(before) and not token.startswith("-") and "/" in token and not _PATH_START.match(token):
            message = f"{key}: {token} is an argument of its own, after {before}"
            reader.problems.warning(node, "stray-argument", message, hint="put a path that holds a blank in quotes")
