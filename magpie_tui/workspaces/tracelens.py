"""TraceLens tables inside a workspace: which there are, for which stage, and their content by header name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.workspaces.damage import Damaged
from magpie_tui.workspaces.tables import CsvTable, read_csv
from magpie_tui.workspaces.values import as_number

_STAGE_OF_FOLDER = {"prefilldecode": "prefilldecode", "decode_only": "decode", "prefill_only": "prefill"}
_FLAT_FOLDERS = {
    "tracelens_rank0_csvs": "rank0",
    "tracelens_collective_csvs": "collective",
    "tracelens_comparison_csvs": "comparison",
}
_EXCEL_NAMES = {"tracelens_rank0_report.xlsx": "rank0", "tracelens_collective_report.xlsx": "collective"}
_ROOFLINE = re.compile(
    r"(?P<label>.+?)_ISL(?P<isl>[^_]+)_OSL(?P<osl>[^_]+)_CONC(?P<conc>[^_]+)_kernel_roofline_simple\.csv"
)


@dataclass(frozen=True, slots=True)
class TraceLensFile:
    """One table that TraceLens, or upstream from TraceLens's tables, wrote.

    Attributes:
        stage: ``prefilldecode``, ``decode``, ``prefill``, ``rank0``, ``collective``, ``comparison``, or the folder's
            own name when it is none of these.
        table: The table's name: the file's stem, or ``kernel_roofline_simple``.
        isl, osl, concurrency: From the name of a roofline table; None where it says ``unknown``.
    """

    stage: str
    table: str
    path: Path
    isl: float | None = None
    osl: float | None = None
    concurrency: float | None = None

    def read(self) -> CsvTable | Damaged:
        """Return the table; an Excel file is not read here."""
        if self.path.suffix.lower() == ".xlsx":
            return Damaged(self.path, "this is an Excel file; open it with pandas.read_excel")
        return read_csv(self.path)


def _files(directory: Path, suffix: str) -> list[Path]:
    """Return the files with ``suffix`` in a directory, by name; none when it is not there."""
    try:
        paths = sorted(directory.iterdir())
    except OSError:
        return []
    return [path for path in paths if path.name.lower().endswith(suffix) and not path.name.startswith(".")]


def _folders(directory: Path) -> list[Path]:
    try:
        with os.scandir(directory) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir())
    except OSError:
        return []


def _stage_of(label: str) -> str:
    return _STAGE_OF_FOLDER.get(label, label)


def _roofline_number(text: str) -> float | None:
    return as_number(text.replace("p", "."))


def _roofline_file(path: Path) -> TraceLensFile | None:
    match = _ROOFLINE.fullmatch(path.name)
    if match is None:
        if not path.name.endswith("_kernel_roofline_simple.csv"):
            return None
        return TraceLensFile(
            _stage_of(path.name.removesuffix("_kernel_roofline_simple.csv")), "kernel_roofline_simple", path
        )
    isl, osl, concurrency = (_roofline_number(match[name]) for name in ("isl", "osl", "conc"))
    return TraceLensFile(_stage_of(match["label"]), "kernel_roofline_simple", path, isl, osl, concurrency)


def find_tracelens_files(workspace: Path) -> tuple[TraceLensFile, ...]:
    """Return every TraceLens table in ``workspace``, roofline tables of a stage first."""
    return tuple(_found(workspace))


def _found(workspace: Path) -> Iterator[TraceLensFile]:
    directory = workspace / "tracelens"
    for path in _files(directory, ".csv"):
        roofline = _roofline_file(path)
        yield roofline or TraceLensFile("tracelens", path.stem, path)
    for folder in _folders(directory):
        for path in _files(folder, ".csv"):
            yield TraceLensFile(_stage_of(folder.name), path.stem, path)
    for name, stage in _FLAT_FOLDERS.items():
        for path in _files(workspace / name, ".csv"):
            yield TraceLensFile(stage, path.stem, path)
    for name, stage in _EXCEL_NAMES.items():
        if (workspace / name).is_file():
            yield TraceLensFile(stage, Path(name).stem, workspace / name)
