"""A table of plain values: what the command line prints, a notebook opens, and the app draws."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.workspaces.damage import Damaged, read_bounded
from magpie_tui.workspaces.values import as_number

if TYPE_CHECKING:
    import pandas

LARGEST_CSV_BYTES = 256 * 1024 * 1024
_LONGEST_FIELD = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns.

    Attributes:
        name: What the table holds, or the stem of the file it came from.
        columns: Names, with the unit where values have one.
        rows: One tuple a row, as long as ``columns``; None for what was not measured.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas DataFrame (pandas is imported here)."""
        import pandas

        frame: pandas.DataFrame = pandas.DataFrame([list(row) for row in self.rows], columns=list(self.columns))
        return frame

    def column(self, name: str) -> tuple[object, ...]:
        """Return the values of one column.

        Raises:
            KeyError: There is no such column.
        """
        if name not in self.columns:
            raise KeyError(name)
        index = self.columns.index(name)
        return tuple(row[index] for row in self.rows)

    def records(self) -> list[dict[str, object]]:
        """Return one mapping a row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A CSV file as it is: texts by header name.

    Attributes:
        path: The file.
        comments: Leading lines that start with ``#``, without their line ends.
        columns: Header; a repeated name gets ``.2``, ``.3``, …
        rows: Fields as texts, filled up or cut to the header's length.
        problems: Rows that had too few or too many fields, with their line numbers.
    """

    path: Path
    comments: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    problems: tuple[str, ...] = ()

    def table(self) -> Table:
        """Return the rows with numbers as numbers and empty fields as None."""
        return Table(self.path.stem, self.columns, tuple(tuple(_value(text) for text in row) for row in self.rows))

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas DataFrame of the typed rows."""
        return self.table().to_pandas()


def _value(text: str) -> object:
    stripped = text.strip()
    if not stripped or stripped.lower() in ("nan", "none", "null", "inf", "-inf"):
        return None
    if stripped.lower() in ("true", "false"):
        return stripped.lower() == "true"
    number = as_number(stripped)
    if number is None or "," in stripped or "_" in stripped:
        return text
    digits = stripped.lstrip("+-")
    return int(stripped) if digits.isdigit() and len(digits) < 19 else number


def read_csv(path: Path) -> CsvTable | Damaged:
    """Read a CSV file by its header, skipping comment lines before it; LF and CRLF ends, with or without a BOM."""
    data = read_bounded(path, LARGEST_CSV_BYTES)
    if isinstance(data, Damaged):
        return data
    if b"\0" in data:
        return Damaged(path, f"not text: byte {data.index(0)} is NUL")
    # Kernel names of other encodings must not hide the numbers beside them.
    text = data.decode("utf-8-sig", "replace")
    lines = text.splitlines(keepends=True)
    first = 0
    while first < len(lines) and (lines[first].startswith("#") or not lines[first].strip()):
        first += 1
    comments = tuple(line.rstrip("\r\n") for line in lines[:first] if line.startswith("#"))
    if first == len(lines):
        return Damaged(path, "the file holds no header" if data.strip() else "the file is empty")
    return _parsed(path, "".join(lines[first:]), comments, first)


def _parsed(path: Path, body: str, comments: tuple[str, ...], lines_before: int) -> CsvTable | Damaged:
    previous_limit = csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(io.StringIO(body, newline=""))
    problems: list[str] = []
    rows: list[tuple[str, ...]] = []
    try:
        columns = _distinct([name.strip() for name in next(reader)])
        width = len(columns)
        for fields in reader:
            if not fields:
                continue
            if len(fields) != width:
                problems.append(f"line {lines_before + reader.line_num}: {len(fields)} fields instead of {width}")
                fields = (fields + [""] * width)[:width]
            rows.append(tuple(fields))
    except csv.Error as error:
        return Damaged(path, f"not CSV: {error}", lines_before + reader.line_num)
    finally:
        csv.field_size_limit(previous_limit)
    return CsvTable(path, comments, columns, tuple(rows), tuple(problems))


def _distinct(names: list[str]) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name}.{seen[name]}")
    return tuple(distinct)


_GAP_COLUMNS = {
    "name": "name",
    "calls": "calls",
    "self cuda total (us)": "self_cuda_total_us",
    "self cuda (us)": "self_cuda_total_us",
    "avg time (us)": "avg_time_us",
    "avg (us)": "avg_time_us",
    "% total": "pct_total",
    "input shapes": "input_shapes",
}


@dataclass(frozen=True, slots=True)
class GapRow:
    """One kernel of a gap analysis.

    Attributes:
        name: Exact kernel name.
        calls: Number of launches.
        self_cuda_total_us, avg_time_us: Device time in µs.
        pct_total: Share of all kernels' time in percent.
        input_shapes: Up to ten distinct shapes, joined by ``; ``.
        source: Columns of the source finder (``kind``, ``category``, ``source_file``, …, or ``source_symbol``).
    """

    name: str
    calls: int | None = None
    self_cuda_total_us: float | None = None
    avg_time_us: float | None = None
    pct_total: float | None = None
    input_shapes: str | None = None
    source: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GapTable:
    """A gap analysis CSV of any generation: five columns, six, or six and those of the source finder.

    Attributes:
        path: The file.
        rows: Kernels, in the file's order.
        repositories: Variable (``$VLLM_DIR``) to path, from the comment block.
        problems: What was odd.
    """

    path: Path
    rows: tuple[GapRow, ...]
    repositories: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def table(self) -> Table:
        """Return the rows under upstream's JSON names, then the source columns."""
        source_columns = list(dict.fromkeys(name for row in self.rows for name in row.source))
        names = ("name", "calls", "self_cuda_total_us", "avg_time_us", "pct_total", "input_shapes")
        rows = (
            (*(getattr(row, name) for name in names), *(row.source.get(name) for name in source_columns))
            for row in self.rows
        )
        return Table(self.path.stem, (*names, *source_columns), tuple(rows))

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas DataFrame."""
        return self.table().to_pandas()


def read_gap_csv(path: Path) -> GapTable | Damaged:
    """Read ``gap_analysis.csv`` or ``gap_analysis_rank<N>.csv`` by header names."""
    raw = read_csv(path)
    if isinstance(raw, Damaged):
        return raw
    known = {name: _GAP_COLUMNS[name.lower()] for name in raw.columns if name.lower() in _GAP_COLUMNS}
    if "name" not in known.values():
        return Damaged(path, "the header has no column `Name`: this is no gap analysis", 1 + len(raw.comments))
    rows = []
    for texts in raw.rows:
        fields = dict(zip(raw.columns, texts, strict=True))
        named = {known[name]: text for name, text in fields.items() if name in known}
        calls = as_number(named.get("calls"))
        rows.append(
            GapRow(
                name=named["name"],
                calls=None if calls is None else int(calls),
                self_cuda_total_us=as_number(named.get("self_cuda_total_us")),
                avg_time_us=as_number(named.get("avg_time_us")),
                pct_total=as_number(named.get("pct_total")),
                input_shapes=named.get("input_shapes"),
                source={name: text for name, text in fields.items() if name not in known},
            )
        )
    return GapTable(path, tuple(rows), _repositories(raw.comments), raw.problems)


def _repositories(comments: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for comment in comments:
        variable, separator, place = comment.lstrip("# ").partition("=")
        if separator and variable.startswith("$"):
            found[variable] = place
    return found
