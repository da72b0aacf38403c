"""Rows put together: short kernels into one, or all rows of an operator, module, library or category."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from magpie_tui.basics.text import plural
from magpie_tui.traces.roofline.rows import SHORT_US, UNFIT_PERCENT, RooflineKernel, RooflineRow


class Fold(str, Enum):
    """What shares a row."""

    short = "short"
    """Rows below 10 µs a call; launch cost, not the roof, decides about them."""
    none = "none"
    op = "op"
    module = "module"
    library = "library"
    category = "category"


_KEYS: dict[Fold, Callable[[RooflineRow], str]] = {
    Fold.op: lambda row: row.name,
    Fold.module: lambda row: row.module or "no module recorded",
    Fold.library: lambda row: row.library or "unknown library",
    Fold.category: lambda row: row.category,
}


def folded(rows: Sequence[RooflineRow], by: Fold) -> list[RooflineRow]:
    """Put rows together; order is that of the first row of each."""
    if by is Fold.none:
        return list(rows)
    if by is Fold.short:
        short = [row for row in rows if row.is_short]
        if len(short) < 2:
            return list(rows)
        rest = [row for row in rows if not row.is_short]
        name = f"+ {len(short)} short ops"
        return [*rest, _together(name, f"under {SHORT_US:.0f} us each", short, reason="fuse, not tune", win=False)]
    groups: dict[str, list[RooflineRow]] = {}
    for row in rows:
        groups.setdefault(_KEYS[by](row), []).append(row)
    return [_group(name, group) for name, group in groups.items()]


def _group(name: str, group: Sequence[RooflineRow]) -> RooflineRow:
    if len(group) == 1 and name == group[0].name:
        return group[0]
    missing = [row for row in group if row.ceiling_us is None]
    reason = f"{len(missing)} of {len(group)} without a ceiling" if missing else None
    return _together(name, plural(len(group), "row"), group, reason=reason, win=True)


def _together(name: str, shapes: str, group: Sequence[RooflineRow], *, reason: str | None, win: bool) -> RooflineRow:
    """Add rows up; the percentage is that of those with a ceiling."""
    count, time_us = sum(row.count for row in group), sum(row.time_us for row in group)
    roofed = [row for row in group if row.ceiling_us is not None]
    at_roof = sum((row.ceiling_us or 0.0) * row.count for row in roofed)
    roofed_us = sum(row.time_us for row in roofed)
    percent = 100 * at_roof / roofed_us if win and roofed_us else None
    wins = [row.win_us for row in group if row.win_us is not None]
    bounds = {row.bound for row in roofed}
    libraries = sorted({row.library or "unknown" for row in group})
    kernels: dict[str, list[RooflineKernel]] = {}
    for row in group:
        for kernel in row.kernels:
            kernels.setdefault(kernel.name, []).append(kernel)
    return RooflineRow(
        name,
        group[0].category if len({row.category for row in group}) == 1 else "several",
        shapes,
        " ".join(dict.fromkeys(row.types for row in group if row.types)) if len(group) == 1 else "",
        count,
        time_us,
        sum(row.share for row in group),
        bound=bounds.pop() if win and len(bounds) == 1 else None,
        ceiling=roofed[0].ceiling if win and roofed else None,
        ceiling_us=at_roof / count if win and roofed and count else None,
        percent=percent,
        win_us=sum(wins) if win and wins else None,
        fits=percent is None or percent <= UNFIT_PERCENT,
        caveats=tuple(dict.fromkeys(text for row in group for text in row.caveats)),
        kernels=tuple(
            sorted(
                (
                    RooflineKernel(one, sum(item.calls for item in items), sum(item.time_us for item in items))
                    for one, items in kernels.items()
                ),
                key=lambda item: (-item.time_us, item.name),
            )
        ),
        library=libraries[0] if len(libraries) == 1 else f"{len(libraries)} libraries",
        module=group[0].module if len({row.module for row in group}) == 1 else None,
        reason=reason,
        inferred=any(row.inferred for row in group),
    )
