"""Files that others wrote, read so that a damaged one is a result with a reason and never an accident."""

from __future__ import annotations

import errno
import json
import math
import os
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import open_regular
from magpie_tui.basics.units import format_bytes

LARGEST_REPORT_BYTES = 64 * 1024 * 1024
LARGEST_CONFIG_BYTES = 4 * 1024 * 1024
_MOST_YAML_NODES = 200_000
_DEEPEST = 100
"""Levels of lists and objects in a file; deeper ones are no reports, and would exhaust the stack when shown."""


class DamagedReportError(UserInputError):
    """A file cannot be used: not there, not JSON, truncated, or of a shape that no generation has."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file that is there but cannot be used.

    Attributes:
        path: The file.
        reason: What is wrong, one sentence without a final stop.
        line, column: Where, both counted from 1; None when there is no such place.
        gone: The file was not there (any more).
        too_large: The file has more bytes than the reader was allowed to read.
    """

    path: Path
    reason: str
    line: int | None = None
    column: int | None = None
    gone: bool = False
    too_large: bool = False

    @property
    def text(self) -> str:
        """``name:line:column: reason`` as far as it is known."""
        place = self.path.name
        if self.line is not None:
            place += f":{self.line}" + ("" if self.column is None else f":{self.column}")
        return f"{place}: {self.reason}"

    def error(self) -> DamagedReportError:
        """Return the error that says the same."""
        return DamagedReportError(self.reason, path=self.path, line=self.line, column=self.column)


def read_bounded(path: Path, limit_bytes: int) -> bytes | Damaged:
    """Return the bytes of a regular file of at most ``limit_bytes``.

    A pipe, socket or device under the name of a report is not waited for.
    """
    try:
        file = open_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        return Damaged(path, "the file is not there", gone=True)
    except IsADirectoryError:
        return Damaged(path, "this is no regular file")
    except OSError as error:
        return Damaged(path, _refused(error))
    with file:
        size = os.fstat(file.fileno()).st_size
        if size > limit_bytes:
            limit = format_bytes(limit_bytes)
            return Damaged(path, f"the file has {format_bytes(size)}; more than {limit} is not read", too_large=True)
        try:
            data = file.read(limit_bytes + 1)
        except OSError as error:
            return Damaged(path, _refused(error))
    if len(data) > limit_bytes:
        return Damaged(path, f"the file grew beyond {format_bytes(limit_bytes)} while it was read")
    return data


def _refused(error: OSError) -> str:
    return "this is no regular file" if error.errno == errno.EINVAL else f"the file cannot be read: {error.strerror}"


def read_json_file(path: Path, *, limit_bytes: int = LARGEST_REPORT_BYTES) -> object:
    """Return the JSON value in ``path``, NaN and Infinity as None; a ``Damaged`` when there is none."""
    data = read_bounded(path, limit_bytes)
    if isinstance(data, Damaged):
        return data
    if not data.strip():
        return Damaged(path, "the file is empty")
    try:
        value: object = json.loads(data, parse_constant=_unknown, parse_float=_finite)
    except json.JSONDecodeError as error:
        text = error.doc.rstrip()
        if error.pos >= len(text) or error.msg.startswith("Unterminated string"):
            line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
            return Damaged(path, "the JSON text is truncated", line, column)
        return Damaged(path, f"not JSON: {error.msg}", error.lineno, error.colno)
    except UnicodeDecodeError as error:
        return Damaged(path, f"not text: byte {error.start} is not {error.encoding.upper()}")
    except RecursionError:
        return Damaged(path, "the JSON text is nested too deeply")
    except ValueError as error:
        return Damaged(path, f"not JSON that can be read: {error}")
    if data.count(b"[") + data.count(b"{") > _DEEPEST and _depth(value) > _DEEPEST:
        return Damaged(path, "the JSON text is nested too deeply")
    return value


def _unknown(_name: str) -> None:
    """NaN and Infinity: the value was not measured."""


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _depth(value: object) -> int:
    """Return how many levels of lists and objects lie inside each other, at most one more than is allowed."""
    level: list[dict[str, object] | list[object]] = [value] if isinstance(value, (dict, list)) else []
    depth = 0
    while level and depth <= _DEEPEST:
        depth += 1
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, (dict, list))
        ]
    return depth


def read_yaml_file(path: Path, *, limit_bytes: int = LARGEST_CONFIG_BYTES) -> object:
    """Return the plain JSON form of the YAML document in ``path``; a ``Damaged`` when there is none."""
    import yaml

    data = read_bounded(path, limit_bytes)
    if isinstance(data, Damaged):
        return data
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        value = _plain(yaml.load(data, Loader=loader), [_MOST_YAML_NODES])
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        problem = error.problem or error.context or "not YAML"
        if mark is None:
            return Damaged(path, f"not YAML: {problem}")
        return Damaged(path, f"not YAML: {problem}", mark.line + 1, mark.column + 1)
    except yaml.YAMLError as error:
        return Damaged(path, f"not YAML: {' '.join(str(error).split())}")
    except RecursionError:
        return Damaged(path, "the YAML text is nested too deeply")
    except (ValueError, OverflowError, TypeError) as error:
        return Damaged(path, f"not YAML that can be read: {error}")
    return Damaged(path, "the YAML text is nested too deeply") if _depth(value) > _DEEPEST else value


def _plain(value: object, nodes_left: list[int]) -> object:
    """Turn what YAML makes of a document into JSON values; aliases that multiply without end are refused."""
    nodes_left[0] -= 1
    if nodes_left[0] < 0:
        raise ValueError(f"its aliases expand to more than {_MOST_YAML_NODES:,} values")
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(item, nodes_left) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, nodes_left) for item in value]
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    return str(value)


def kind_of(value: object) -> str:
    """Name the JSON type of ``value`` for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"
