"""Text of workspaces with a little colour: sections of a report, JSON, YAML. Colour only repeats what the text says."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from textual.content import Content

from magpie_tui.basics.text import printable
from magpie_tui.workspaces.lines import Section

STATUS_STYLES = {
    "ok": "$success",
    "failed": "$error",
    "damaged": "$error",
    "unfinished": "$warning",
    "unknown": "$warning",
}
_FACT = re.compile(r"(?P<name>[A-Z][\w ]*:)(?P<gap> +)(?P<value>.*)", re.DOTALL)
_KEY = re.compile(r'(?P<indent>\s*(?:- +)*)(?P<key>"(?:[^"\\]|\\.)*"|[\w.<$][^:#"]*?)(?P<colon>:)(?=\s|$)')


def section_contents(sections: Iterable[Section], width: int) -> list[Content]:
    """Return the lines of a report, headings bold, names of facts quiet, the status coloured; long ones are wrapped."""
    lines: list[Content] = []
    for section in sections:
        if lines:
            lines.append(Content(""))
        if section.title:
            lines.append(Content.assemble((f"{section.title}:", "bold $primary")))
        for index, line in enumerate(section.lines):
            first, *rest = _wrapped(section, line, width)
            lines += [_section_line(section, index, first), *map(Content, rest)]
    return lines


def _wrapped(section: Section, line: str, width: int) -> list[str]:
    if section.kind not in ("facts", "notes") or cell_len(line) <= width:
        return [line]
    indent = " " * (12 if section.kind == "facts" else 4)
    return textwrap.wrap(line, max(30, width), subsequent_indent=indent, break_on_hyphens=False) or [line]


def _section_line(section: Section, index: int, line: str) -> Content:
    if section.kind == "table":
        return Content.assemble((line, "bold")) if index == 0 else Content(line)
    if section.kind == "notes":
        return Content.assemble((line, "$error")) if line.lstrip(" -").startswith("damaged:") else Content(line)
    if section.kind in ("facts", "place"):
        match = _FACT.fullmatch(line)
        if match is None:
            return Content(line)
        value = match["value"]
        style = STATUS_STYLES.get(value, "") if match["name"] == "Status:" else ""
        return Content.assemble((match["name"], "$quiet"), match["gap"], (value, style) if style else value)
    return Content(line)


def document_contents(text: str) -> list[Content]:
    """Return the lines of a JSON or YAML text, keys in colour, comments quiet."""
    return [_document_line(printable(line.expandtabs(4))) for line in text.splitlines()]


def _document_line(line: str) -> Content:
    if line.lstrip().startswith("#"):
        return Content.assemble((line, "$quiet"))
    match = _KEY.match(line)
    if match is None:
        return Content(line)
    return Content.assemble(match["indent"], (match["key"], "$primary"), line[match.end("key") :])


def diff_contents(lines: Sequence[str]) -> list[Content]:
    """Return the lines of a unified text; what was added and removed differs by sign and by colour."""
    found = []
    for line in lines:
        text = printable(line.expandtabs(4))
        if line.startswith(("---", "+++")):
            found.append(Content.assemble((text, "bold")))
        elif line.startswith("@@"):
            found.append(Content.assemble((text, "$primary")))
        elif line.startswith("+"):
            found.append(Content.assemble((text, "$success")))
        elif line.startswith("-"):
            found.append(Content.assemble((text, "$error")))
        else:
            found.append(Content(text))
    return found
