"""A report as a list of blocks, written as Markdown or as one self-contained HTML page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from magpie_tui.basics.text import printable

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;"
    "background:#fff}table{border-collapse:collapse;margin:.5rem 0 1rem}th,td{border:1px solid #bbb;"
    "padding:.2rem .6rem;text-align:left;vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}"
    "pre{background:#f3f3f3;padding:.6rem;overflow-x:auto}svg{max-width:100%;height:auto}"
)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the title."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of items."""

    items: Sequence[str]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table.

    Attributes:
        right: Columns of numbers, from 0.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Code:
    """Lines that are copied into a shell."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot, as an ``svg`` element on one line, with what it shows in words."""

    svg: str
    caption: str


Block: TypeAlias = Heading | Paragraph | Bullets | Grid | Code | Plot


def to_markdown(blocks: Sequence[Block]) -> str:
    """Return the Markdown; plots stand in it as inline SVG."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {_plain(block.text)}"
    if isinstance(block, Paragraph):
        return _plain(block.text)
    if isinstance(block, Bullets):
        return "\n".join(f"- {_plain(item)}" for item in block.items)
    if isinstance(block, Grid):
        return _markdown_table(block)
    if isinstance(block, Code):
        body = "\n".join(printable(line) for line in block.lines)
        return f"```sh\n{body.replace('```', chr(39) * 3)}\n```"
    return f"{block.svg}\n\n*{_plain(block.caption)}*"


def _plain(text: str) -> str:
    """Keep a text from being read as markup."""
    # An underscore inside of a word is none.
    return re.sub(r"[\\`*\[\]<>|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\\g<0>", printable(text))


def _markdown_table(grid: Grid) -> str:
    marks = ["---:" if index in grid.right else "---" for index in range(len(grid.header))]
    rows = [[_plain(cell) for cell in row] for row in (grid.header, *grid.rows)]
    rows.insert(1, marks)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def to_html(blocks: Sequence[Block], title: str) -> str:
    """Return one page that needs nothing else."""
    body = "\n".join(part for block in blocks for part in _html(block))
    head = f'<meta charset="utf-8"><title>{_escaped(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _html(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"<h{block.level}>{_escaped(block.text)}</h{block.level}>"
    elif isinstance(block, Paragraph):
        yield f"<p>{_escaped(block.text)}</p>"
    elif isinstance(block, Bullets):
        yield f"<ul>{''.join(f'<li>{_escaped(item)}</li>' for item in block.items)}</ul>"
    elif isinstance(block, Grid):
        head = "".join(f"<th>{_escaped(cell)}</th>" for cell in block.header)
        yield f"<table><tr>{head}</tr>"
        for row in block.rows:
            cells = (
                f"<td{' class=n' if index in block.right else ''}>{_escaped(cell)}</td>"
                for index, cell in enumerate(row)
            )
            yield f"<tr>{''.join(cells)}</tr>"
        yield "</table>"
    elif isinstance(block, Code):
        body = "\n".join(_escaped(line) for line in block.lines)
        yield f"<pre>{body}</pre>"
    else:
        yield f"<figure>{block.svg}<figcaption>{_escaped(block.caption)}</figcaption></figure>"


def _escaped(text: str) -> str:
    return html.escape(printable(text))
