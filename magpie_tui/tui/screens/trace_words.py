"""Words about a trace that is open: what is chosen, how far the reading is, why it failed."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from magpie_tui.basics.text import printable
from magpie_tui.basics.units import format_bytes
from magpie_tui.traces.discover import TraceFile
from magpie_tui.traces.roofline.folding import Fold
from magpie_tui.traces.selection import DEFAULT_CATEGORIES, DEFAULT_IGNORED

if TYPE_CHECKING:
    from magpie_tui.traces.stage_names import Stage
    from magpie_tui.tui.screens.trace_query import Reading, Refusal, TraceQuery
    from magpie_tui.tui.screens.trace_state import TraceChoice

MOST_RANKS = 8
_WHAT = {
    "kernels": "kernels",
    "stages": "steps",
    "gaps": "gaps",
    "collectives": "collectives",
    "roofline": "operators",
    "diff": "differences",
}
ESTIMATE_FROM_S = 2.0
ESTIMATE_FROM_SHARE = 0.05


def choice_words(choice: TraceChoice, stages: Sequence[Stage], files: Sequence[TraceFile], width: int) -> Content:
    """Return the row of what is chosen; what does not fit is left out, what was chosen last."""
    groups: list[list[tuple[str, str]]] = []
    if stages:
        names = ["all", *(stage.value for stage in stages)]
        groups.append(_words("stage", names, "all" if choice.stage is None else choice.stage.value))
    if len(files) > 1:
        chosen = next((str(file.rank) for file in files if file.path == choice.rank), "all")
        names = ["all", *(str(file.rank) for file in files)]
        if len(names) > MOST_RANKS:
            names = list(dict.fromkeys(["all", chosen]))
        groups.append(_words("rank", names, chosen))
    if choice.pane == "kernels":
        groups.append(_words("names", ["grouped", "exact"], "exact" if choice.exact else "grouped"))
        groups += [[("  ", ""), (text, "$foreground")] for text in selection_words(choice)]
    if choice.pane == "roofline":
        groups.append(_words("fold", [fold.value for fold in Fold], choice.fold.value))
        if choice.arch:
            groups.append([("  ", ""), (f"ceilings {printable(choice.arch)}", "$foreground")])
    if choice.salvage:
        groups.append([("  ", ""), ("salvaged", "$warning")])
    parts: list[tuple[str, str]] = []
    used = 0
    for group in groups:
        used += sum(len(text) for text, _style in group)
        if used > width:
            break
        parts += group
    return Content.assemble(*parts)


def _words(name: str, words: Sequence[str], chosen: str) -> list[tuple[str, str]]:
    found = [(f"{name} ", "$quiet")]
    for word in words:
        found.append((f"[{word}]", "$foreground bold") if word == chosen else (f" {word} ", "$quiet"))
    return [*found, ("  ", "")]


def selection_words(choice: TraceChoice) -> list[str]:
    """Return window and filters as far as they differ from the usual."""
    selection = choice.selection
    words = [] if selection.whole else [f"window {selection.start_pct:g}-{selection.end_pct:g} %"]
    if selection.min_duration_us > 0:
        words.append(f"from {selection.min_duration_us:g} us")
    if selection.categories != DEFAULT_CATEGORIES:
        words.append(f"only {' '.join(map(printable, selection.categories)) or 'everything'}")
    if selection.ignored != DEFAULT_IGNORED:
        words.append(f"without {' '.join(map(printable, selection.ignored)) or 'nothing'}")
    return words


def reading_text(query: TraceQuery, progress: Reading | None, seconds: float) -> str:
    """Return how far the reading is; the time left is estimated once there is something to estimate it from."""
    what = _WHAT[query.kind]
    stages = ", ".join(stage.value for stage in query.stages)
    what = f"{what} of {stages}" if stages else what
    if progress is None:
        return f"looking for {what}"
    if progress.done_bytes >= progress.total_bytes:
        return f"{format_bytes(progress.total_bytes)} read, adding up the {what}"
    left = ""
    if seconds >= ESTIMATE_FROM_S and progress.done_bytes >= progress.total_bytes * ESTIMATE_FROM_SHARE:
        left = f", {seconds / progress.done_bytes * (progress.total_bytes - progress.done_bytes):.0f} s left"
    return f"reading {format_bytes(progress.done_bytes)} of {format_bytes(progress.total_bytes)}{left}"


def failure_text(refusal: Refusal, choice: TraceChoice, width: int) -> str:
    """Return why there is nothing to see, where, and what to do, in lines of so many cells."""
    lines = [refusal.message]
    if refusal.path is not None and refusal.path != choice.root:
        lines.append(str(refusal.path))
    if refusal.hint:
        lines.append(refusal.hint)
    if "salvage" in refusal.hint and not choice.salvage:
        lines.append("w switches it on")
    if not refusal.hint.startswith("r "):
        lines.append("r reads again")
    wrapped = [part for line in lines for part in textwrap.wrap(printable(line), max(20, width)) or [""]]
    return "\n".join(wrapped)
