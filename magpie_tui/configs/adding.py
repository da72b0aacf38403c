"""Add a candidate to a kernel config: a copy of its file beside the original, and an entry among those there are."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.files import rewrite_bytes
from magpie_tui.basics.options import OptionSpec, Values
from magpie_tui.basics.text import printable
from magpie_tui.configs.adding_kinds import KINDS, Draft, Kind, Planned, plan
from magpie_tui.configs.adding_text import texts_with_entry
from magpie_tui.configs.kernel import KernelConfig, KernelEntry, read_kernel_config
from magpie_tui.configs.positions import Document, ListNode, MapNode, Value, raise_on_errors
from magpie_tui.configs.schema import plain_value
from magpie_tui.configs.syntax import parse_document, read_config

ADD_OPTIONS: tuple[OptionSpec, ...] = (
    OptionSpec("config", (), "path", "Kernel config to add it to.", metavar="FILE", required=True),
    OptionSpec("id", ("--id",), "text", "Its id: its name in tables, and in the name of its file.", required=True),
    OptionSpec(
        "base",
        ("--from",),
        "text",
        "The kernel that it is made from, by index or id; all that is not changed is taken from it.",
        default="0",
        metavar="N|ID",
        title="from",
    ),
    OptionSpec(
        "kind",
        ("--kind",),
        "choice",
        "What it is: a copy of the source, a variable, a compiler flag, or a copy of a tuning file.",
        default="source",
        choices=KINDS,
    ),
    OptionSpec(
        "value",
        ("--value",),
        "text",
        "environment: NAME=VALUE; flag: what the compiler gets; file: which of config_files (the first).",
        metavar="TEXT",
    ),
    OptionSpec("change", ("--change",), "text", "One line: what it changes.", metavar="TEXT"),
)
_LONGEST_ID = 80


@dataclass(frozen=True, slots=True)
class Added:
    """What was added.

    Attributes:
        config: The config, which holds one entry more.
        id, change: Of the new kernel.
        line: Where its entry begins, counted from 1.
        copy: The new file to edit; None where nothing was copied.
        notes: What a person has to look at.
    """

    config: Path
    id: str
    change: str
    line: int
    copy: Path | None
    notes: tuple[str, ...]


def draft_of(values: Values) -> Draft:
    """Return what the options of ``ADD_OPTIONS`` ask for."""

    def text(name: str) -> str | None:
        value = values.get(name)
        return None if value is None or not str(value).strip() else str(value).strip()

    return Draft(
        base=text("base") or "0",
        id=text("id") or "",
        kind=cast(Kind, text("kind") or "source"),
        value=text("value"),
        change=text("change"),
    )


def add_candidate(path: Path, draft: Draft, *, caller_directory: Path | None = None) -> Added:
    """Add a candidate: copy what is copied, then write the config with one entry more; all of it or nothing.

    Comments and everything else in the config stay as they are, byte by byte.

    Args:
        caller_directory: What relative paths in the config belong to; None is the current directory.

    Raises:
        UserInputError: The config has errors, the id or the file's name is taken, the kind does not fit the kernel, or
            the config is written in a way that no entry can be added to.
        MachineError: A file cannot be written.
    """
    data = read_config(path)
    document = parse_document(data, path)
    config = read_kernel_config(document, caller_directory=caller_directory)
    raise_on_errors(config.problems)
    if config.is_snapshot or not isinstance(document.root, MapNode):
        raise UserInputError("this is the snapshot of a workspace, which says what was", path=path)
    if not os.access(path, os.W_OK):
        raise MachineError("this config may not be written", path=path, hint="copy it, or change its permissions")
    index = check_draft(config, draft)
    node = _entry_nodes(document.root)[index]
    planned = plan(config.kernels[index], node, draft)
    expected = {**_mapping(plain_value(node)), **planned.changes}
    with _copied(planned):
        text = _proven_text(data, document, node, planned, expected, caller_directory)
        if read_config(path) != data:
            raise UserInputError("the config was changed meanwhile", path=path, hint="try again")
        rewrite_bytes(path, text.encode("utf-8"))
    line = _entry_nodes(_root(parse_document(text.encode("utf-8"), path)))[-1].line
    copy = None if planned.copy is None else planned.copy[1]
    return Added(path, draft.id, str(planned.changes["change"]), line, copy, planned.notes)


def check_draft(config: KernelConfig, draft: Draft) -> int:
    """Return the index of the kernel that a candidate is made from.

    Raises:
        UserInputError: There is no such kernel, or the id cannot be taken.
    """
    ids = [entry.id for entry in config.kernels]
    if draft.base in ids:
        index = ids.index(draft.base)
    elif draft.base.isdigit() and int(draft.base) < len(ids):
        index = int(draft.base)
    else:
        known = ", ".join(f"{number} = {printable(name)}" for number, name in enumerate(ids))
        raise UserInputError(
            f"there is no kernel {printable(draft.base)}", path=config.path, key="--from", hint=f"choose from {known}"
        )
    check_id(draft.id, ids)
    return index


def check_id(text: str, taken: list[str]) -> None:
    """Refuse what cannot be the id of one more kernel.

    Raises:
        UserInputError: It is taken, or nobody could write or read it.
    """
    if text in taken:
        raise UserInputError(f"there is a kernel {printable(text)} already", key="--id", hint="choose another id")
    if not re.search(r"[A-Za-z0-9]", text) or printable(text) != text or len(text) > _LONGEST_ID:
        raise UserInputError(
            "an id needs a letter or a digit, no control characters, and at most 80 characters", key="--id"
        )
    if text.startswith("-") or text.isdigit():
        raise UserInputError("an id that is a number or begins with - reads like an index or an option", key="--id")


def _entry_nodes(root: MapNode) -> list[MapNode]:
    """Return the nodes of all kernels, as the loader counts them."""
    found = []
    for key in ("kernel", "kernels"):
        entry = root.get(key)
        items = () if entry is None else entry.value.items if isinstance(entry.value, ListNode) else (entry.value,)
        found += [item for item in items if isinstance(item, MapNode) and item.entries]
    return found


def _root(document: Document) -> MapNode:
    assert isinstance(document.root, MapNode)
    return document.root


def _mapping(value: Value) -> dict[str, Value]:
    return dict(value) if isinstance(value, dict) else {}


@contextlib.contextmanager
def _copied(planned: Planned) -> Iterator[None]:
    """Copy a file under its new name, never over another one; it goes away again when the block fails.

    Raises:
        UserInputError: There is such a file, or the original cannot be read.
        MachineError: It cannot be written.
    """
    if planned.copy is None:
        yield
        return
    source, target = planned.copy
    try:
        data = source.read_bytes()
    except OSError as error:
        raise UserInputError(f"it cannot be read: {error.strerror or error}", path=source) from error
    try:
        with target.open("xb") as file:
            file.write(data)
        shutil.copymode(source, target)
    except FileExistsError as error:
        raise UserInputError(
            "there is such a file already", path=target, key="--id", hint="choose another id"
        ) from error
    except OSError as error:
        with contextlib.suppress(OSError):
            if target.is_file() and target.read_bytes() != data:
                target.unlink()
        raise MachineError(f"cannot write: {error.strerror or error}", path=target) from error
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            target.unlink()
        raise


def _proven_text(
    data: bytes,
    document: Document,
    node: MapNode,
    planned: Planned,
    expected: dict[str, Value],
    caller_directory: Path | None,
) -> str:
    """Return the text of the config with the new entry, which loads and differs in that entry alone.

    Raises:
        UserInputError: The config's form does not allow for it.
    """
    root, path = _root(document), document.path
    before = _mapping(plain_value(root))
    kernels = before.get("kernels")
    wanted = {**before, "kernels": (*(kernels if isinstance(kernels, tuple) else ()), expected)}
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserInputError("it is not UTF-8: an entry has to be added by hand", path=path) from error
    for candidate in texts_with_entry(text, root, node, planned.changes):
        found = parse_document(candidate.encode("utf-8"), path)
        if not isinstance(found.root, MapNode) or plain_value(found.root) != wanted:
            continue
        config = read_kernel_config(found, caller_directory=caller_directory)
        raise_on_errors(config.problems)
        if planned.copy is None or planned.copy[1] in _files(config.kernels[-1]):
            return candidate
    raise UserInputError(
        "its kernels are not written below each other, each with - in front: the entry has to be added by hand",
        path=path,
        line=root.line,
    )


def _files(entry: KernelEntry) -> tuple[Path, ...]:
    return (*entry.source_files, *entry.config_files)
