"""Rooflines as they are printed: the same columns and rows for commands and screens."""

from __future__ import annotations

from collections.abc import Sequence

from magpie_tui.basics.tables import Column
from magpie_tui.traces.listings import digits
from magpie_tui.traces.roofline.bounds import rate_text
from magpie_tui.traces.roofline.rows import Bound, RooflineRow, RooflineStage

_BOUND_WORDS = {Bound.compute: "comp", Bound.memory: "mem", Bound.link: "link"}


def roofline_columns() -> list[Column]:
    """Columns of a roofline."""
    return [
        Column("op", shrink=True),
        Column("shape", shrink=True),
        Column("n", "right"),
        Column("ms", "right"),
        Column("%", "right"),
        Column("us", "right"),
        Column("bound"),
        Column("reached", "right"),
        Column("% of ceiling", "right"),
        Column("win ms", "right"),
        Column("library", shrink=True),
        Column("note", shrink=True),
    ]


def roofline_rows(rows: Sequence[RooflineRow]) -> list[list[object]]:
    """Rows of a roofline."""
    return [
        [
            row.name,
            row.shapes or None,
            row.count,
            digits(row.time_us / 1000, 3),
            digits(row.share * 100, 2),
            digits(row.mean_us, 1),
            _BOUND_WORDS[row.bound] if row.bound is not None else None,
            reached(row),
            digits(row.percent, 1),
            digits(None if row.win_us is None else row.win_us / 1000, 3),
            row.library,
            note(row),
        ]
        for row in rows
    ]


def reached(row: RooflineRow) -> str | None:
    """What the row achieves of the kind that bounds it; None where that is not known."""
    if row.bound is Bound.link and row.percent is not None:
        return None
    if row.bound is Bound.compute and row.achieved_tflops is not None:
        return rate_text(row.achieved_tflops * 1e12, Bound.compute)
    if row.achieved_tbps is not None:
        return rate_text(row.achieved_tbps * 1e12, Bound.memory)
    if row.achieved_tflops is not None:
        return rate_text(row.achieved_tflops * 1e12, Bound.compute)
    return None


def note(row: RooflineRow) -> str:
    """What a reader should know about a row, in few words."""
    words = []
    if row.inferred:
        words.append("inferred")
    if not row.fits:
        words.append("model does not fit")
    if row.reason is not None:
        words.append(row.reason)
    return "; ".join(words)


def summary_text(stage: RooflineStage) -> str:
    """One line about a stage."""
    parts = [
        f"{stage.stage}: {stage.busy_us / 1000:.3f} ms busy",
        f"{stage.steps} steps",
        f"{len(stage.rows)} ops",
        f"{sum(row.count for row in stage.rows)} calls",
        f"{stage.modelled_share * 100:.1f} % of the time modelled",
    ]
    linked = stage.linked_modelled_share
    if linked is not None and linked - stage.modelled_share > 0.001:
        parts.append(f"{linked * 100:.1f} % of what has a launching call")
    if stage.architecture is not None:
        parts.append(f"{stage.ceiling_share * 100:.1f} % has a ceiling of {stage.architecture}")
        parts.append(f"sum of win {stage.win_us / 1000:.3f} ms")
    if stage.graph_share:
        parts.append(f"{stage.graph_share * 100:.1f} % graph-launched, capture {stage.capture}")
    return ", ".join(parts)
