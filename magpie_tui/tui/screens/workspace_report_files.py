"""The files of a workspace: which there are, which are logs, and what a viewer can make of one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from magpie_tui.basics.text import printable
from magpie_tui.basics.units import format_bytes
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn

MOST_FILES = 5_000
LARGEST_DOCUMENT_BYTES = 1_000_000
MOST_DOCUMENT_LINES = 5_000
_HEAD_BYTES = 8192
_LOG_ENDINGS = (".log", ".stdout", ".stderr", ".out", ".err")

FileKind = Literal["json", "yaml", "text", "binary", "gone"]


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """One file.

    Attributes:
        name: Path relative to the workspace.
        path: Absolute.
        size_bytes: Its size.
    """

    name: str
    path: Path
    size_bytes: int

    @property
    def is_log(self) -> bool:
        """True for what programs printed."""
        return self.name.endswith(_LOG_ENDINGS)


def list_files(workspace: Path, under: str = "") -> list[WorkspaceFile]:
    """Return the files below a workspace by name, directories not followed through links, at most ``MOST_FILES``."""
    return sorted(_walk(workspace, workspace / under if under else workspace), key=lambda item: item.name)


def _walk(workspace: Path, start: Path) -> Iterator[WorkspaceFile]:
    count = 0
    for parent, folders, names in os.walk(start):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent) / name
            try:
                size = path.lstat().st_size
            except OSError:
                continue
            yield WorkspaceFile(str(path.relative_to(workspace)), path, size)
            count += 1
            if count >= MOST_FILES:
                return


def logs_of(files: Sequence[WorkspaceFile], under: str = "") -> list[WorkspaceFile]:
    """Return the logs, those with something in them first."""
    logs = [item for item in files if item.is_log and item.name.startswith(under)]
    return sorted(logs, key=lambda item: (not item.size_bytes, item.name))


def file_source(files: Sequence[WorkspaceFile] = ()) -> ListSource[WorkspaceFile]:
    """Return a table of files."""
    columns = (
        RowColumn[WorkspaceFile](id="name", title="file", value=lambda item: item.name, max_width=80),
        RowColumn[WorkspaceFile](
            id="size",
            title="size",
            kind="number",
            width=10,
            value=lambda item: item.size_bytes,
            text=lambda item: format_bytes(item.size_bytes),
        ),
        RowColumn[WorkspaceFile](id="kind", title="kind", value=lambda item: kind_by_name(item.name)),
    )
    return ListSource(columns, lambda item: item.name, files)


def kind_by_name(name: str) -> str:
    """Return what a file is by its name, in a word."""
    lower = name.lower()
    for endings, word in (
        ((".json", ".jsonl"), "JSON"),
        ((".yaml", ".yml"), "YAML"),
        (_LOG_ENDINGS, "log"),
        ((".gz", ".zst", ".xz", ".zip"), "compressed"),
        ((".csv",), "CSV"),
        ((".txt", ".md"), "text"),
        ((".xlsx",), "Excel"),
    ):
        if lower.endswith(endings):
            return word
    return "other"


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """What a viewer shows.

    Attributes:
        kind: How: a document with colours, a log view, or words about a binary file.
        text: The whole text of a small document; words about a file that cannot be shown.
        note: Size and form.
    """

    kind: FileKind
    text: str = ""
    note: str = ""


def open_file(path: Path) -> OpenedFile:
    """Look into a file and decide how it is shown; never raises."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            return OpenedFile("gone", "this is no regular file, it is not read")
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
            note = format_bytes(size)
            if b"\0" in head:
                return OpenedFile("binary", _binary_text(head, size), f"{note}, binary")
            suffix = path.suffix.lower()
            if suffix in (".json", ".yaml", ".yml") and size <= LARGEST_DOCUMENT_BYTES:
                return _document(head + file.read(), suffix, note)
            if _undecodable(head):
                return OpenedFile("binary", _binary_text(head, size), f"{note}, binary")
    except FileNotFoundError:
        return OpenedFile("gone", "the file is gone")
    except OSError as error:
        return OpenedFile("gone", f"the file cannot be read: {error.strerror}")
    return OpenedFile("text", note=note)


def _undecodable(head: bytes) -> bool:
    """True when a good part of the text is no UTF-8 (a cut last character counts little)."""
    text = head.decode("utf-8", "replace")
    return text.count("\ufffd") > max(3, len(text) // 10)


def _document(data: bytes, suffix: str, note: str) -> OpenedFile:
    import json

    text = data.decode("utf-8", "replace")
    if suffix == ".json":
        try:
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError) as error:
            note += f", damaged: {printable(error)}"
    if text.count("\n") > MOST_DOCUMENT_LINES:
        return OpenedFile("text", note=f"{note}, as it is")
    return OpenedFile("json" if suffix == ".json" else "yaml", text, note)


def _binary_text(head: bytes, size: int) -> str:
    lines = [f"A binary file of {format_bytes(size)}: it is not shown as text. It begins with", ""]
    for start in range(0, min(len(head), 256), 16):
        row = head[start : start + 16]
        shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        lines.append(f"  {start:04x}  {row.hex(' '):<47}  {shown}")
    return "\n".join(lines)
