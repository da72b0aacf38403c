"""Opens a config for editing inside the program, and writes it back without losing what it is on the disk."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.files import rewrite_bytes
from magpie_tui.basics.text import printable
from magpie_tui.tui.screens.configs_find import look_at

MOST_BYTES = 500_000
MOST_COLUMNS = 5_000
ELSEWHERE = "o edits it in $EDITOR"


@dataclass(frozen=True, slots=True)
class EditableText:
    """A text file that can be edited here.

    Attributes:
        text: Its content, line ends as they are.
        has_mark: It begins with a byte order mark, which is kept.
        stamp: How it lay on the disk when it was read.
    """

    text: str
    has_mark: bool
    stamp: tuple[int, int, int]


def open_to_edit(path: Path) -> EditableText:
    """Read a file that is to be edited.

    Raises:
        UserInputError: An editor of this program would damage it: it is too large, not UTF-8, or holds control
            characters.
        MachineError: It cannot be read.
    """
    file = look_at(path)
    try:
        with path.open("rb") as source:
            data = source.read(MOST_BYTES + 1)
    except OSError as error:
        raise MachineError(f"the config cannot be read: {error.strerror}", path=path) from error
    if file is None:
        raise UserInputError("this is not a regular file", path=path)
    if len(data) > MOST_BYTES:
        raise UserInputError(f"it is larger than {MOST_BYTES // 1000} kB", path=path, hint=ELSEWHERE)
    has_mark = data.startswith(codecs.BOM_UTF8)
    try:
        text = data[len(codecs.BOM_UTF8) if has_mark else 0 :].decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserInputError("it is not UTF-8", path=path, line=line, hint=ELSEWHERE) from error
    for number, content in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if printable(content, keep="\t") != content:
            raise UserInputError("it holds control characters", path=path, line=number, hint=ELSEWHERE)
        if len(content) > MOST_COLUMNS:
            raise UserInputError(
                f"it has a line of {len(content):,} characters", path=path, line=number, hint=ELSEWHERE
            )
    return EditableText(text, has_mark, file.stamp)


def save_text(path: Path, text: str, *, has_mark: bool = False) -> tuple[int, int, int]:
    """Write a config atomically and return its new stamp; links and permissions stay as they are.

    Raises:
        MachineError: It cannot be written.
        UserInputError: A directory has taken its place.
    """
    rewrite_bytes(path, (codecs.BOM_UTF8 if has_mark else b"") + text.encode("utf-8", "surrogateescape"))
    file = look_at(path)
    if file is None:
        raise MachineError("the file is gone again", path=path)
    return file.stamp


def keep_unsaved(directory: Path, name: str, text: str) -> Path:
    """Keep a text that was not saved when the program ended, and return where.

    Raises:
        MachineError: The directory cannot be written.
    """
    from magpie_tui.basics.files import write_text
    from magpie_tui.basics.paths import private_directory

    path = private_directory(directory) / f"unsaved-{printable(name).replace('/', '_')}"
    write_text(path, text)
    return path
