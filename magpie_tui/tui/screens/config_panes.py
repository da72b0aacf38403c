"""The lines of the panes of a config; each call blocks and is made in a thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.content import Content

from magpie_tui.basics.errors import MachineError
from magpie_tui.basics.tables import shorten_middle
from magpie_tui.basics.text import printable
from magpie_tui.configs.check import FileCheck, check_file
from magpie_tui.configs.positions import Problem

PANES = ("text", "effective", "review", "twin")
MOST_BYTES = 2_000_000
MOST_CELLS = 2_000

Line = str | Content


def read_text(path: Path) -> tuple[FileCheck, list[Line]]:
    """Check a file and return its lines with numbers, marks and colours.

    Raises:
        MachineError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise MachineError(f"cannot read: {error.strerror}", path=path) from error
    check = check_file(path)
    return check, text_lines(text, check.problems)


def text_lines(text: str, problems: Sequence[Problem]) -> list[Line]:
    """Return numbered lines: ``!`` marks an error, ``?`` a warning."""
    worst: dict[int, str] = {}
    for problem in problems:
        if worst.get(problem.line) != "error":
            worst[problem.line] = problem.severity
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    width = len(str(len(lines)))
    marks = {"error": ("!", "$error"), "warning": ("?", "$warning")}
    built: list[Line] = []
    for number, line in enumerate(lines, 1):
        mark, tone = marks.get(worst.get(number, ""), (" ", "$quiet"))
        built.append(
            Content.assemble((f"{number:>{width}} ", "$quiet"), (f"{mark} ", f"{tone} bold"), *_coloured(line))
        )
    return built


def _coloured(line: str) -> list[str | tuple[str, str]]:
    """Colour the comment, or the key, of a line."""
    shown = printable(line.rstrip("\r")[:MOST_CELLS].expandtabs(4))
    if len(line) > MOST_CELLS:
        shown += f" ... {len(line) - MOST_CELLS} characters more"
    bare = shown.lstrip(" -")
    if bare.startswith("#"):
        return [(shown, "$quiet")]
    key, colon, rest = shown.partition(":")
    if colon and (not rest or rest.startswith(" ")) and key.strip(" -") and '"' not in key:
        value, hash_sign, comment = rest.partition(" #")
        return [(key, "$primary"), colon, value, (hash_sign + comment, "$quiet")]
    return [shown]


def effective_lines(path: Path) -> list[Line]:
    """Return every value with its origin."""
    from magpie_tui.configs.display import value_text
    from magpie_tui.configs.effective import effective_config

    rows = [(item.key, value_text(item), item.origin.text) for item in effective_config(path).settings.values()]
    return _columns(("key", "value", "from"), rows)


def review_lines(path: Path, output_dir: Path) -> list[Line]:
    """Return what was looked at on this machine."""
    from magpie_tui.configs.review import review_config

    review = review_config(path, output_dir=output_dir)
    if review.has_errors:
        return ["the config has errors: the pane text lists them"]
    tones = {"blocker": "$error", "warning": "$warning", "ok": "$success"}
    lines: list[Line] = []
    for item in review.items:
        lines.append(
            Content.assemble(
                (f"{item.status:<8} ", tones.get(item.status, "$quiet")),
                f"{printable(item.name)}  ",
                (printable(item.evidence), "$quiet"),
            )
        )
        if item.hint and item.status != "ok":
            lines.append(f"         {item.hint}")
    return lines


def twin_lines(path: Path, directory: Path | None) -> list[Line]:
    """Return what the clean and the profiled form would be."""
    from magpie_tui.configs.display import value_text
    from magpie_tui.configs.twin import make_twins

    twins = make_twins(path, directory=directory)
    lines: list[Line] = [f"clean     {twins.clean_path}", f"profiled  {twins.profiled_path}", "W writes both", ""]
    if not twins.keeps_comments:
        lines += ["written anew: comments and anchors of the original are not in them", ""]
    rows = [(change.key, value_text(change.first), value_text(change.second)) for change in twins.changes]
    lines += _columns(("differs", "clean", "profiled"), rows)
    for title, text in (("clean", twins.clean_text), ("profiled", twins.profiled_text)):
        lines += ["", Content.assemble((f"the {title} config", "bold")), *text_lines(text, ())]
    return lines


def difference_lines(first: Path, second: Path) -> list[Line]:
    """Return the effective differences of two configs."""
    from magpie_tui.configs.difference import compare_configs
    from magpie_tui.configs.display import value_text
    from magpie_tui.configs.effective import effective_config

    difference = compare_configs(effective_config(first), effective_config(second))
    if difference.is_empty:
        return ["no effective difference"]
    lines: list[Line] = [f"A  {first}", f"B  {second}"]
    for group in difference.groups:
        rows = [(change.key, value_text(change.first), value_text(change.second)) for change in group.changes]
        lines += ["", *_columns((group.name, "A", "B"), rows)]
    return lines


def _columns(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Line]:
    cells = [[shorten_middle(printable(cell), 60) for cell in row] for row in rows]
    widths = [max(len(row[index]) for row in (*cells, titles)) for index in range(len(titles))]
    head = "  ".join(title.ljust(width) for title, width in zip(titles, widths, strict=True)).rstrip()
    return [
        Content.assemble((printable(head), "bold")),
        *("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells),
    ]
