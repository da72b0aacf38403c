"""One row that shows where in a log its flagged lines and the cursor are."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from magpie_tui.tui.widgets.frame import Row


def ticks(flags: Sequence[int], cursor: int, total: int, width: int) -> str:
    """Lay the row out: ``402 !      <   18,911 end``; the first flag is named where there is room before it.

    Args:
        flags: Numbers of flagged lines, from 1.
        cursor: Number of the line with the cursor.
        total: Lines of the log.
        width: Cells of the row.
    """
    end = f" {total:,} end"
    room = width - len(end)
    if room < 10 or not total:
        return ""

    def place(line: int) -> int:
        return (min(max(line, 1), total) - 1) * (room - 1) // max(1, total - 1)

    cells = [" "] * room
    cells[place(cursor)] = "<"
    for line in flags:
        cells[place(line)] = "!"
    if flags:
        name = f"{flags[0]:,} "
        start = place(flags[0]) - len(name)
        if start >= 0 and all(cell == " " for cell in cells[start : start + len(name)]):
            cells[start : start + len(name)] = name
    return "".join(cells) + end


class TickRow(Row):
    """Hidden as long as nothing is flagged, and in low terminals."""

    DEFAULT_CSS = """
    TickRow { color: $warning; display: none; }
    TickRow.-flagged { display: block; }
    .-low TickRow.-flagged { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._flags: tuple[int, ...] = ()
        self._cursor = 1
        self._total = 0

    def show(self, flags: Sequence[int], cursor: int, total: int) -> None:
        """Show other places."""
        self._flags, self._cursor, self._total = tuple(flags), cursor, total
        self.set_class(bool(flags), "-flagged")
        if flags:
            self.update()

    def text(self, width: int) -> Content:
        """The row."""
        return Content(ticks(self._flags, self._cursor, self._total, width))
