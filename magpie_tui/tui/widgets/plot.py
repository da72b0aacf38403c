"""Plots as rows of text: lines and points thinned out to two a column, histograms, and the widget that shows them.

Series differ by their marker and their label, never by colour alone.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import set_cell_size
from rich.segment import Segment
from textual.events import Resize
from textual.strip import Strip
from textual.widget import Widget

from magpie_tui.basics.tables import Column, format_table
from magpie_tui.basics.text import printable

MARKERS = "+*ox#@"
ASCII_LEVELS = " .:|#"
MANY_POINTS = 4_000
BLOCK_LEVELS = " ▁▂▃▄▅▆▇█"
_BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one line, in order of x; points that are not finite leave a gap.

    Attributes:
        label: Name, shown in the legend.
        xs, ys: Coordinates, equally many.
    """

    label: str
    xs: Sequence[float]
    ys: Sequence[float]

    def points(self) -> list[tuple[float, float]]:
        """The points that can be drawn; of very many, those that decide how a line of 2,000 columns looks."""
        if len(self.xs) > MANY_POINTS:
            return _thin_out_many(self.xs, self.ys)
        return [(x, y) for x, y in zip(self.xs, self.ys, strict=True) if math.isfinite(x) and math.isfinite(y)]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a plot shows."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float


def thin_out(points: Sequence[tuple[float, float]], columns: int, low: float, high: float) -> list[tuple[float, float]]:
    """At most two points a column, the lowest and the highest, in the order in which they came."""
    width = (high - low) or 1.0
    kept: dict[int, tuple[int, int]] = {}
    for index, (x, y) in enumerate(points):
        column = min(columns - 1, max(0, int((x - low) / width * columns)))
        least, most = kept.get(column, (index, index))
        kept[column] = (index if y < points[least][1] else least, index if y > points[most][1] else most)
    return [points[index] for index in sorted({index for pair in kept.values() for index in pair})]


def _thin_out_many(xs: Sequence[float], ys: Sequence[float]) -> list[tuple[float, float]]:
    """The same for a hundred thousand points, in order of x, with vector operations."""
    import numpy as np

    x, y = np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    if not len(x):
        return []
    edges = np.searchsorted(x, np.linspace(x[0], x[-1], MANY_POINTS // 2 + 1)[1:-1])
    kept = {0, len(x) - 1}
    for begin, end in itertools.pairwise([0, *edges.tolist(), len(x)]):
        if begin < end:
            kept |= {begin + int(y[begin:end].argmin()), begin + int(y[begin:end].argmax())}
    chosen = sorted(kept)
    return list(zip(x[chosen].tolist(), y[chosen].tolist(), strict=True))


def bounds_of(series: Sequence[Series]) -> Bounds | None:
    """The smallest bounds that hold every point, opened where they have no extent; None without points."""
    points = [point for one in series for point in one.points()]
    if not points:
        return None
    xs, ys = [x for x, _y in points], [y for _x, y in points]
    x_low, x_high = _opened(min(xs), max(xs))
    y_low, y_high = _opened(min(ys), max(ys))
    return Bounds(x_low, x_high, y_low, y_high)


def _opened(low: float, high: float) -> tuple[float, float]:
    if low < high:
        return low, high
    room = abs(low) * 0.05 or 1.0
    return low - room, high + room


def line_plot(
    series: Sequence[Series],
    width: int,
    height: int,
    *,
    bounds: Bounds | None = None,
    braille: bool = False,
    joined: bool = True,
    number: Callable[[float], str] = "{:.4g}".format,
) -> list[str]:
    """Draw series into ``height`` rows of ``width`` cells: y labels left, x labels and the legend below.

    Args:
        bounds: What to show; None shows all points.
        braille: 2 x 4 dots a cell for a single series; several series keep their markers.
        joined: Fill the way between two points; False draws points only.
        number: How values on the axes are written.
    """
    shown = bounds or bounds_of(series)
    if shown is None or height < 4 or width < 20:
        text = "no points" if shown is None else "too small for a plot"
        return [set_cell_size(text if row == 0 else "", width) for row in range(max(1, height))]
    labels = [number(shown.y_high), number((shown.y_low + shown.y_high) / 2), number(shown.y_low)]
    left = max(map(len, labels)) + 2
    columns, rows = width - left, height - 2
    if braille and len(series) == 1:
        canvas = _braille_canvas(series[0], columns, rows, shown, joined=joined)
    else:
        canvas = _marker_canvas(series, columns, rows, shown, joined=joined)
    places = {0: labels[0], rows // 2: labels[1], rows - 1: labels[2]}
    lines = [f"{places.get(row, ''):>{left - 2}} |{canvas[row]}" for row in range(rows)]
    begin, end = number(shown.x_low), number(shown.x_high)
    lines.append(" " * left + begin + end.rjust(max(0, columns - len(begin))))
    legend = "  ".join(f"{MARKERS[index % len(MARKERS)]} {printable(one.label)}" for index, one in enumerate(series))
    lines.append(" " * left + legend)
    return [set_cell_size(line, width) for line in lines]


def _marker_canvas(series: Sequence[Series], columns: int, rows: int, bounds: Bounds, *, joined: bool) -> list[str]:
    canvas = [[" "] * columns for _ in range(rows)]
    for index, one in enumerate(series):
        marker = MARKERS[index % len(MARKERS)]
        for x, y in _dots(one, columns, rows, bounds, joined=joined):
            canvas[y][x] = marker
    return ["".join(row) for row in canvas]


def _braille_canvas(one: Series, columns: int, rows: int, bounds: Bounds, *, joined: bool) -> list[str]:
    canvas = [[0] * columns for _ in range(rows)]
    for x, y in _dots(one, columns * 2, rows * 4, bounds, joined=joined):
        canvas[y // 4][x // 2] |= _BRAILLE[y % 4][x % 2]
    return ["".join(chr(0x2800 + dots) if dots else " " for dots in row) for row in canvas]


def _dots(one: Series, columns: int, rows: int, bounds: Bounds, *, joined: bool) -> list[tuple[int, int]]:
    """Cells of a grid that a series touches; row 0 is the top."""
    inside = [
        (x, y) for x, y in one.points() if bounds.x_low <= x <= bounds.x_high and bounds.y_low <= y <= bounds.y_high
    ]
    thinned = thin_out(inside, columns, bounds.x_low, bounds.x_high)
    cells = [
        (
            round((x - bounds.x_low) / (bounds.x_high - bounds.x_low) * (columns - 1)),
            round((bounds.y_high - y) / (bounds.y_high - bounds.y_low) * (rows - 1)),
        )
        for x, y in thinned
    ]
    if not joined:
        return cells
    dots = cells[:1]
    for (x1, y1), (x2, y2) in itertools.pairwise(cells):
        steps = max(abs(x2 - x1), abs(y2 - y1), 1)
        dots.extend(
            (round(x1 + (x2 - x1) * step / steps), round(y1 + (y2 - y1) * step / steps)) for step in range(1, steps + 1)
        )
    return dots


def histogram(values: Sequence[float], cells: int, low: float, high: float) -> list[int]:
    """Count finite values in ``cells`` equal bins from ``low`` to ``high``, both included; others are left out."""
    counts = [0] * cells
    edges = [low + (high - low) * (index + 1) / cells for index in range(cells)]
    for value in values:
        if math.isfinite(value) and low <= value <= high:
            counts[min(cells - 1, bisect_right(edges, value))] += 1
    return counts


def ridge(values: Sequence[float], cells: int, low: float, high: float, *, levels: str = ASCII_LEVELS) -> str:
    """A histogram in one row: ``.:|#|:.``; a bin with anything in it is never blank."""
    counts = histogram(values, cells, low, high)
    most = max(counts, default=0)
    top = len(levels) - 1
    return "".join(levels[math.ceil(count / most * top)] if count else levels[0] for count in counts)


class Plot(Widget):
    """Shows rows of text that a function draws for the size there is; drawn again only when size or data change.

    Args:
        draw: Returns the rows for a width and a height in cells.
        series: The data, for ``numbers_text``.
    """

    DEFAULT_CSS = """
    Plot { height: 1fr; min-height: 4; }
    """

    def __init__(
        self,
        draw: Callable[[Sequence[Series], int, int], list[str]] = line_plot,
        series: Sequence[Series] = (),
        *,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._draw = draw
        self._series = tuple(series)
        self._drawn: list[str] = []

    def show_series(self, series: Sequence[Series]) -> None:
        """Draw other data; equal data paint nothing."""
        if tuple(series) != self._series:
            self._series = tuple(series)
            self._draw_again()

    def _draw_again(self) -> None:
        drawn = self._draw(self._series, self.size.width, self.size.height) if self.size.width else []
        if drawn != self._drawn:
            self._drawn = drawn
            self.refresh()

    def on_resize(self, event: Resize) -> None:
        """Draw for the new size."""
        self._draw_again()

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        text = self._drawn[y] if y < len(self._drawn) else ""
        return Strip([Segment(set_cell_size(text, self.size.width), self.rich_style)])

    def numbers_text(self) -> str:
        """The numbers behind the plot as the commands print tables."""
        rows = [(one.label, x, y) for one in self._series for x, y in zip(one.xs, one.ys, strict=True)]
        return format_table((Column("series"), Column("x", "right"), Column("y", "right")), rows)
