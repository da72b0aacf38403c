"""Read a YAML file into values that know their place, and collect everything that is wrong with it as YAML.

The tree is built from parser events without recursion, so that neither deep nesting nor aliases of aliases can exhaust
the stack or the memory, and doubled keys are seen, which a usual loader hides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import yaml

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import open_regular
from magpie_tui.basics.logging_setup import log_debug
from magpie_tui.configs.positions import Document, Entry, ListNode, MapNode, Node, ProblemList, Scalar
from magpie_tui.configs.scalars import UnknownTagError, describe, resolve

MAX_BYTES = 512 * 1024
"""No config is larger; a larger file is something else."""
MAX_DEPTH = 40
MAX_VALUES = 20_000
"""Values after aliases are followed."""
_MAX_SYNTAX_ERRORS = 20
_MAX_PARSED_CHARACTERS = 400_000
"""Work spent on a file with many syntax errors."""

_KEY_LINE = re.compile(r"(?P<indent> *(?:- +)?)[\w.<][\w.<-]*:(?:\s(?P<value>.*))?$")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Mark(Protocol):
    line: int
    column: int


def load_document(path: Path) -> Document:
    """Read ``path`` with all its YAML problems; errors as for ``read_config``."""
    return parse_document(read_config(path), path)


def read_config(path: Path) -> bytes:
    """Return the bytes of a config; of a file that is too large for one, enough to see that.

    Raises:
        UserInputError: The file cannot be read at all (missing, a directory, no permission).
    """
    try:
        with open_regular(path) as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise UserInputError(
            "there is no such config", path=path, hint="check the path; it is relative to where you are"
        ) from error
    except IsADirectoryError as error:
        raise UserInputError("this is a directory, not a config", path=path, hint="name a YAML file in it") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserInputError(f"cannot read this config: {reason}", path=path) from error
    log_debug(__name__, "%d bytes read from %s", len(data), path)
    return data


def parse_document(data: bytes, path: Path) -> Document:
    """Parse the bytes of a YAML file; ``path`` is only named in problems."""
    problems = ProblemList(path)
    text = _decode(data, problems)
    if text is None:
        return Document(path, None, problems.sorted())
    lines = text.split("\n")
    root, recovered = _parse_with_repairs(lines, problems)
    return Document(path, root, problems.sorted(), recovered)


def _decode(data: bytes, problems: ProblemList) -> str | None:
    if len(data) > MAX_BYTES:
        problems.error((1, 1), "too-large", f"the file is larger than {MAX_BYTES // 1024} KiB; this is not a config")
        return None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            text = data.decode("utf-16")
        except UnicodeDecodeError:
            problems.error((1, 1), "not-utf8", "the file starts like UTF-16 but is damaged", hint="save it as UTF-8")
            return None
        data = text.encode("utf-8", "replace")
    if b"\0" in data:
        problems.error((1, 1), "binary-file", "this is a binary file, not a YAML config")
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        problems.error(
            (line, column), "not-utf8", f"byte 0x{data[error.start]:02x} is not UTF-8", hint="save the file as UTF-8"
        )
        text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    # PyYAML also ends lines at these; with one kind only, its line numbers are those of an editor.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    found = _UNPRINTABLE.search(text)
    if found is not None:
        before_text = text[: found.start()]
        place = (before_text.count("\n") + 1, found.start() - (before_text.rfind("\n") + 1) + 1)
        problems.error(
            place, "control-character", f"the control character U+{ord(found.group()):04X} has no place in YAML"
        )
        text = _UNPRINTABLE.sub("\ufffd", text)
    return re.sub("[\x85\u2028\u2029]", "\ufffd", text)


def _parse_with_repairs(lines: list[str], problems: ProblemList) -> tuple[Node | None, bool]:
    """Parse; after a syntax error report it, take the damaged lines out and go on with the rest."""
    lines = list(lines)
    shifts: dict[int, int] = {}
    recovered = False
    last_cut = -10
    budget = max(_MAX_PARSED_CHARACTERS, sum(map(len, lines)) + 1)
    while budget > 0:
        budget -= sum(map(len, lines)) + 100
        found = ProblemList(problems.path)
        try:
            root = _Builder(found, shifts).build("\n".join(lines) + "\n")
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            if "quoted scalar" in (error.context or ""):
                mark = error.context_mark
            index = min(mark.line if mark else 0, len(lines) - 1)
            if _replace_tabs(lines, index, shifts, problems):
                # The lines right below are most likely made alike.
                while index + 1 < len(lines) and _replace_tabs(lines, index + 1, shifts, problems):
                    index += 1
                continue
            recovered = True
            cut = _line_to_cut(error, lines, index)
            # What follows an open quote or bracket is often wrong for that reason only.
            if index > last_cut + 1 and len(problems.items) < _MAX_SYNTAX_ERRORS:
                column = (mark.column if mark else 0) + 1
                _report_syntax(problems, error, (index + 1, max(1, column - shifts.get(index, 0))), lines[index])
            if cut is None:
                return None, True
            context = error.context or ""
            last_cut = max(cut) if "quoted scalar" in context or "flow" in context else -10
            for number in cut:
                lines[number] = ""
            continue
        problems.items.extend(item for item in found.items if item not in problems.items)
        return root, recovered
    return None, True


def _replace_tabs(lines: list[str], index: int, shifts: dict[int, int], problems: ProblemList) -> bool:
    """Report and replace tabs in the indentation of line ``index``; False when there are none."""
    line = lines[index]
    indentation = line[: len(line) - len(line.lstrip(" \t"))]
    if "\t" not in indentation:
        return False
    problems.error(
        (index + 1, indentation.index("\t") + 1),
        "tab-indentation",
        "a tab is used as indentation, which YAML forbids",
        expected="spaces",
        found="a tab",
        hint="replace it by spaces",
    )
    # The neighbours tell how deep the line was meant: as deep as the nearest line above that is not less deep.
    width = _tab_width(lines, index, indentation)
    widened = indentation.replace("\t", " " * width)
    shifts[index] = len(widened) - len(indentation)
    lines[index] = widened + line[len(indentation) :]
    return True


def _tab_width(lines: list[str], index: int, indentation: str) -> int:
    depth = indentation.count("\t")
    for number in range(index - 1, -1, -1):
        match = _KEY_LINE.match(lines[number])
        if match is None:
            continue
        above = len(match["indent"])
        opens = not (match["value"] or "").strip() or (match["value"] or "").strip()[0] in "&!"
        wanted = above + 2 if opens else above
        spaces = len(indentation) - depth
        if wanted > spaces and (wanted - spaces) % depth == 0:
            return (wanted - spaces) // depth
        break
    return 2


def _line_to_cut(error: yaml.MarkedYAMLError, lines: list[str], index: int) -> list[int] | None:
    """Return the indices of the lines to leave out: the damaged one and what is indented below it."""
    context = error.context or ""
    start = index
    mark = error.context_mark
    if mark is not None and ("quoted scalar" in context or "flow" in context):
        start = min(mark.line, len(lines) - 1)
    while start >= 0 and not lines[start].strip():
        start -= 1
    if start < 0:
        return None
    indent = len(lines[start]) - len(lines[start].lstrip(" "))
    cut = [start]
    for number in range(start + 1, len(lines)):
        text = lines[number]
        if text.strip() and len(text) - len(text.lstrip(" ")) <= indent:
            break
        cut.append(number)
    return cut


def _report_syntax(problems: ProblemList, error: yaml.MarkedYAMLError, place: tuple[int, int], line: str) -> None:
    reason = (error.problem or "").strip() or "this is not YAML"
    hint = None
    if "mapping values are not allowed" in reason:
        hint = "put text that holds ': ' in quotes, or check the indentation"
    elif "quoted scalar" in (error.context or ""):
        hint = "the quote that opens here is not closed"
    elif "flow" in (error.context or "") and error.context_mark is not None:
        hint = f"the bracket opened in line {error.context_mark.line + 1} is not closed, or a comma is missing"
    elif "'\\t'" in reason:
        hint = "there is a tab between two parts of this line: replace it by a blank"
    elif "cannot start any token" in reason and re.search("[%@`]", line):
        hint = "put text that starts with %, @ or ` in quotes"
    elif "expected <block end>" in reason:
        hint = "check the indentation of this line"
    problems.error(place, "yaml-syntax", f"not valid YAML: {reason}", hint=hint)


@dataclass(slots=True)
class _Frame:
    """A list or mapping under construction."""

    is_map: bool
    line: int
    column: int
    anchor: str | None
    tag_ok: bool = True
    items: list[Node] = field(default_factory=list)
    pairs: list[tuple[Node, Node]] = field(default_factory=list)
    key: Node | None = None
    size: int = 1


class _Builder:
    """Builds the tree of one document from parser events."""

    def __init__(self, problems: ProblemList, shifts: dict[int, int]) -> None:
        self._problems = problems
        self._shifts = shifts
        self._anchors: dict[str, tuple[Node | None, tuple[int, int]]] = {}
        self._sizes: dict[int, int] = {}
        self._kept: list[Node] = []  # keeps the ids unique while the tree grows
        self._stack: list[_Frame] = []
        self._root: Node | None = None

    def build(self, text: str) -> Node | None:
        """Return the root, or None when the document is empty or was refused.

        Raises:
            yaml.MarkedYAMLError: A syntax error.
        """
        documents = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._problems.error(
                        self._place(event.start_mark),
                        "several-documents",
                        "a second YAML document starts here",
                        expected="one document in a file",
                        hint="put it in a file of its own",
                    )
                    break
            elif not self._take(event):
                return None
            if len(self._kept) > MAX_VALUES:
                self._problems.error(self._kept[-1], "too-many-values", f"there are more than {MAX_VALUES:,} values")
                return None
        root = self._root
        if root is not None and self._sizes.get(id(root), 1) > MAX_VALUES:
            self._problems.error(root, "too-many-values", f"the aliases expand to more than {MAX_VALUES:,} values")
            return None
        return root

    def _place(self, mark: _Mark | None) -> tuple[int, int]:
        if mark is None:
            return 1, 1
        return mark.line + 1, max(1, mark.column + 1 - self._shifts.get(mark.line, 0))

    def _take(self, event: yaml.Event) -> bool:
        if isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event), event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            return self._open(event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._close()
        return True

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> bool:
        line, column = self._place(event.start_mark)
        if len(self._stack) >= MAX_DEPTH:
            self._problems.error(
                (line, column), "too-deep", f"values are nested more than {MAX_DEPTH} levels deep; this is not a config"
            )
            return False
        is_map = isinstance(event, yaml.MappingStartEvent)
        if event.tag is not None and event.tag not in ("!", f"tag:yaml.org,2002:{'map' if is_map else 'seq'}"):
            self._unknown_tag((line, column), event.tag)
        if event.anchor is not None:
            self._define(event.anchor, None, (line, column))
        self._stack.append(_Frame(is_map, line, column, event.anchor))
        return True

    def _close(self) -> None:
        frame = self._stack.pop()
        node: Node
        if frame.is_map:
            node = MapNode(self._effective(frame.pairs), frame.line, frame.column)
        else:
            node = ListNode(tuple(frame.items), frame.line, frame.column)
        self._sizes[id(node)] = frame.size
        self._add(node, frame.anchor)

    def _add(self, node: Node, anchor: str | None) -> None:
        self._kept.append(node)
        if anchor is not None:
            if isinstance(node, Scalar):
                self._define(anchor, node, (node.line, node.column))
            else:
                self._anchors[anchor] = (node, self._anchors[anchor][1])
        self._attach(node)

    def _attach(self, node: Node) -> None:
        if not self._stack:
            self._root = node
            return
        frame = self._stack[-1]
        frame.size += self._sizes.get(id(node), 1)
        if not frame.is_map:
            frame.items.append(node)
        elif frame.key is None:
            frame.key = node
        else:
            frame.pairs.append((frame.key, node))
            frame.key = None

    def _define(self, anchor: str, node: Node | None, place: tuple[int, int]) -> None:
        earlier = self._anchors.get(anchor)
        if earlier is not None:
            self._problems.error(
                place,
                "duplicate-anchor",
                f"the anchor &{anchor} is defined twice, in line {earlier[1][0]} and in line {place[0]}",
                hint="give one of them another name",
            )
        self._anchors[anchor] = (node, place)

    def _alias(self, event: yaml.AliasEvent) -> None:
        place = self._place(event.start_mark)
        name = event.anchor or ""
        target = self._anchors.get(name)
        if target is None or target[0] is None:
            code, message = (
                ("unknown-alias", f"the alias *{name} has no anchor &{name} before it")
                if target is None
                else ("recursive-alias", f"the alias *{name} stands inside the value it names")
            )
            self._problems.error(place, code, message)
            self._add(Scalar(None, "", True, *place), None)
            return
        # Frozen for everybody else; the tree is still being built here.
        object.__setattr__(target[0], "aliased", True)
        self._attach(target[0])

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        place = self._place(event.start_mark)
        plain = event.style is None or event.style == ""
        start, end = event.start_mark, event.end_mark
        one_line = start is not None and end is not None and start.line == end.line
        value: str = event.value
        try:
            return Scalar(resolve(value, event.tag, event.implicit), value, plain, *place, one_line)
        except UnknownTagError as error:
            self._unknown_tag(place, str(error))
        except ValueError as error:
            self._problems.error(
                place,
                "bad-value",
                f"YAML cannot read this value: {error}",
                found=value[:60],
                hint="put it in quotes if it is meant as text",
            )
        return Scalar(value, value, plain, *place, one_line)

    def _unknown_tag(self, place: tuple[int, int], tag: str) -> None:
        name = tag.replace("tag:yaml.org,2002:", "!!")
        self._problems.error(place, "unknown-tag", f"the tag {name} is not allowed in a config", hint="remove it")

    def _effective(self, pairs: list[tuple[Node, Node]]) -> tuple[Entry, ...]:
        """Apply merges (own keys win, earlier merges win over later ones) and report doubled keys."""
        own: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key, value in pairs:
            if not isinstance(key, Scalar):
                self._problems.error(key, "bad-key", "a key must be a single word", found=describe(key))
            elif key.text == "<<" and key.plain:
                for entry in self._merged_entries(value):
                    merged.setdefault(entry.key, replace(entry, merged=True))
            else:
                self._own_entry(own, key, value)
        return tuple({**merged, **own}.values())

    def _own_entry(self, own: dict[str, Entry], key: Scalar, value: Node) -> None:
        if key.plain and (isinstance(key.value, bool) or not isinstance(key.value, (str, int))):
            self._problems.error(
                key,
                "bad-key",
                f"the key {key.text or '(empty)'} is not text for YAML",
                found=describe(key),
                hint="put it in quotes",
            )
        earlier = own.get(key.text)
        if earlier is not None:
            lines = f"in line {earlier.key_node.line} and in line {key.line}"
            self._problems.error(
                key,
                "duplicate-key",
                f"the key {key.text} stands twice in one mapping, {lines}",
                hint=f"remove one of them; YAML would silently use the one in line {key.line}",
            )
        own[key.text] = Entry(key.text, key, value)

    def _merged_entries(self, value: Node) -> tuple[Entry, ...]:
        if isinstance(value, MapNode):
            return value.entries
        if isinstance(value, ListNode) and all(isinstance(item, MapNode) for item in value.items):
            return tuple(entry for item in value.items if isinstance(item, MapNode) for entry in item.entries)
        self._problems.error(
            value,
            "bad-merge",
            "<< can only merge mappings",
            expected="a mapping or a list of mappings",
            found=describe(value),
        )
        return ()
