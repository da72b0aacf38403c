"""The pane asm: a candidate's instructions by class, and their difference from the baseline's."""

from __future__ import annotations

from collections.abc import Iterator

from magpie_tui.basics.tables import Column, format_table
from magpie_tui.tui.screens.candidates_text import Line, PaneInputs, fact, heading
from magpie_tui.tui.screens.workspace_report_lines import diff_contents
from magpie_tui.workspaces.assembly import Listing, classes_of, compare, counterpart, listings_of
from magpie_tui.workspaces.candidates import Candidate

NOTHING = (
    "no listing: kernels without a main, Triton kernels and programs (hip, cuda) have one where cuobjdump, "
    "llvm-objdump or objdump is installed"
)


def asm_lines(inputs: PaneInputs) -> list[Line]:
    """For each listing: counts by class beside the baseline's, then what differs; a baseline is listed as it is."""
    row, base = inputs.row, inputs.baseline
    own = _listings(row, inputs)
    if not own:
        return fact("asm", NOTHING, inputs.width)
    others = () if base is None or base is row else _listings(base, inputs)
    lines: list[Line] = []
    for listing in own:
        lines += ["", *_one(listing, others, inputs)] if lines else _one(listing, others, inputs)
    return lines


def _listings(row: Candidate, inputs: PaneInputs) -> tuple[Listing, ...]:
    extras = row.kernel.extras
    return () if extras is None else listings_of(inputs.detail.path, extras.more)


def _one(listing: Listing, others: tuple[Listing, ...], inputs: PaneInputs) -> Iterator[Line]:
    title = f"{listing.kind}  {listing.name}"
    if listing.reason is not None:
        yield from fact("asm", f"{title}: {listing.reason}", inputs.width)
        return
    other = counterpart(listing, others)
    yield from fact("asm", f"{title}, {len(listing.instructions):,} instructions", inputs.width)
    if listing.kind != "ttgir":
        yield from _counts(listing, other, inputs)
    if other is None:
        yield from ("  " + text for text in listing.instructions[:2000])
        return
    found = compare(other, listing)
    if found.note is not None:
        yield from fact("note", found.note, inputs.width)
    if not found.lines:
        yield from fact("diff", f"the instructions of {other.name} in the baseline, one by one", inputs.width)
        return
    yield from fact("diff", f"{found.added} instructions added, {found.removed} removed", inputs.width)
    yield from diff_contents(found.lines)


def _change(difference: int) -> str:
    return f"{difference:+d}" if difference else "0"


def _counts(listing: Listing, other: Listing | None, inputs: PaneInputs) -> Iterator[Line]:
    ours, theirs = listing.counts(), None if other is None else other.counts()
    rows = [
        (name, ours[name], *(() if theirs is None else (theirs[name], _change(ours[name] - theirs[name]))))
        for name in classes_of(listing.kind)
        if ours[name] or (theirs is not None and theirs[name])
    ]
    columns = [Column("class"), Column(inputs.row.name, "right", shrink=True)]
    if theirs is not None and inputs.baseline is not None:
        columns += [Column(inputs.baseline.name, "right", shrink=True), Column("change", "right")]
    head, *body = format_table(columns, rows, width=inputs.width).split("\n")
    yield heading(head)
    yield from body
