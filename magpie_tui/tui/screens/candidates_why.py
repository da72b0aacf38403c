"""How a number in the table of candidates came about, or why there is none."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_percent, format_seconds
from magpie_tui.tui.screens.candidates_panes import ratio_text
from magpie_tui.workspaces.candidates import Candidate, Candidates, settled_as
from magpie_tui.workspaces.detail import WorkspaceDetail
from magpie_tui.workspaces.values import as_list, as_mapping

WIDTH = 64
VERDICTS = {
    "faster": "the corrected interval lies above no difference and the ratio is at least the margin",
    "slower": "the corrected interval lies below no difference by at least the margin",
    "equivalent": "the whole interval lies inside the margin",
    "inconclusive": "the interval neither leaves no difference out nor fits inside the margin",
    "mixed": "it is slower on one shape at least",
    "suspect": "it is faster than seems possible, and a second method of timing does not agree",
    "invalid": "nothing can be said: the baseline differs from itself, or the device was unstable",
}


def why_lines(column: str, row: Candidate, found: Candidates, detail: WorkspaceDetail) -> list[str]:
    """Return formula, inputs, file, number of blocks and caveats of a candidate's numbers, ``column``'s first."""
    makers = {"verdict": _verdict, "ratio": _ratio, "time": _time, "rank": _rank, "change": _change, "binary": _binary}
    first = {"interval": "ratio", "errors": "verdict", "id": "verdict"}.get(column, column)
    first = "binary" if column in ("vgpr", "spill", "occ") else first
    lines: list[str] = []
    for name in sorted(makers, key=lambda item: item != first):
        for index, paragraph in enumerate(makers[name](row, found)):
            head = f"{name:<9}" if not index else " " * 9
            wrapped = textwrap.wrap(printable(paragraph), WIDTH - 9) or [""]
            lines += [head + wrapped[0], *(" " * 9 + more for more in wrapped[1:])]
        lines.append("")
    return [*lines, f"from     {printable(detail.path)}"]


def _rank(row: Candidate, _found: Candidates) -> Iterator[str]:
    if row.rank is None:
        yield f"no rank: {row.reasons.get('rank', 'it has no ratio')}"
        return
    yield (
        f"rank {row.rank}: correct kernels in the order of their ratios; those whose intervals against the leader of "
        "their group include no difference share its rank"
    )


def _verdict(row: Candidate, found: Candidates) -> Iterator[str]:
    if row.is_baseline:
        yield "the baseline: what the others are compared with"
    elif row.state != "correct":
        yield f"{row.state}: a kernel that is not proved correct has no verdict and no rank"
    else:
        yield f"{row.says}: {VERDICTS.get(row.word, 'the state of the kernel')}"
    if found.margin is not None and row.ratio is not None and not row.is_baseline:
        raised = ""
        if found.floor is not None and found.margin > found.floor:
            raised = f", raised from {format_percent(found.floor)} by what the baseline shows against itself"
        yield f"margin {format_percent(found.margin)}{raised}"
    yield from (row.reasons[key] for key in ("verdict", "state") if key in row.reasons)
    yield from row.errors


def _time(row: Candidate, _found: Candidates) -> Iterator[str]:
    if row.time_us is None:
        yield f"no time: {row.reasons.get('time', 'not measured')}"
        return
    timing = as_mapping(row.kernel.extras.timing) if row.kernel.extras is not None else {}
    yield f"{format_seconds(row.time_us * 1e-6)}: the median over blocks of each block's median window"
    quantity, cache = timing.get("quantity"), timing.get("cache")
    if quantity:
        yield f"quantity {quantity}, cache {cache}, {timing.get('replicates')} blocks, {timing.get('windows')} windows"
    if row.time_low_us is not None and row.time_high_us is not None:
        low, high = format_seconds(row.time_low_us * 1e-6), format_seconds(row.time_high_us * 1e-6)
        yield f"95 % interval {low} .. {high}"
    elif "time_interval" in row.reasons:
        yield f"no interval: {row.reasons['time_interval']}"
    flags = [str(item) for item in as_list(timing.get("shape"))]
    if flags:
        yield f"the samples look {', '.join(flags)}: see the pane samples"


def _ratio(row: Candidate, found: Candidates) -> Iterator[str]:
    if row.is_baseline:
        yield "1 by definition: the baseline's time divided by itself"
        return
    yield ratio_text(row)
    if row.ratio is not None:
        yield (
            "the mean over paired blocks of log(baseline's time / this time), as a ratio; its interval is a t interval "
            "over these blocks, widened by Holm's steps over all candidates"
        )
        margin = "unknown" if found.margin is None else format_percent(found.margin)
        yield f"margin {margin}; blocks are processes of their own, windows inside a block do not count as repeats"
    if row.needed is not None and row.replicates is not None:
        settled = settled_as(row.ratio, found.margin)
        yield f"{plural(row.replicates, 'block')} so far, about {row.needed} would settle it{settled}"
    if "verdict" in row.reasons:
        yield row.reasons["verdict"]


def _binary(row: Candidate, _found: Candidates) -> Iterator[str]:
    facts = row.binary
    if facts is None:
        yield row.reasons.get("binary", "nothing tells registers and spills")
        return
    yield f"{facts.registers} registers a thread, {facts.spills} spilled registers or bytes of local memory a thread"
    if facts.occupancy is not None:
        yield f"occupancy {facts.occupancy} of {facts.most_occupancy} waves a scheduler, by registers alone"
    yield f"{facts.name} for {facts.arch or 'an unknown device'}, read by {facts.source}"


def _change(row: Candidate, _found: Candidates) -> Iterator[str]:
    yield row.change or row.reasons.get("change", "the config does not say what this candidate changes")
