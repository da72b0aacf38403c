"""What all panes of the place Candidates are made from and with."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from textual.content import Content

from magpie_tui.basics.text import printable
from magpie_tui.workspaces.candidates import Candidate, Candidates
from magpie_tui.workspaces.detail import WorkspaceDetail
from magpie_tui.workspaces.samples import Samples

Line = str | Content


@dataclass(frozen=True, slots=True)
class PaneInputs:
    """What a pane is made from.

    Attributes:
        detail: The workspace.
        found: All candidates.
        row: The candidate under the cursor.
        samples: What ``samples.jsonl`` holds.
        width: Cells of the pane.
        ascii_only: Draw with ASCII.
    """

    detail: WorkspaceDetail
    found: Candidates
    row: Candidate
    samples: Samples
    width: int
    ascii_only: bool = False

    @property
    def baseline(self) -> Candidate | None:
        """The baseline."""
        return self.found.named(self.found.baseline)


def fact(name: str, text: str, width: int, style: str = "") -> list[Line]:
    """Return a named line, wrapped under itself."""
    first, *rest = textwrap.wrap(printable(text), max(20, width - 11)) or [""]
    head = Content.assemble((f"{name:<9} ", "$quiet"), (first, style) if style else first)
    return [head, *(" " * 10 + more for more in rest)]


def heading(text: str) -> Content:
    """Return a bold line."""
    return Content.assemble((text, "bold"))


def reason_lines(inputs: PaneInputs) -> list[Line]:
    """Say in front of every pane what is wrong with the candidate, if anything is."""
    row = inputs.row
    lines: list[Line] = []
    for error in row.errors:
        lines += fact(row.state, error, inputs.width, "$error")
    if not row.errors and row.reasons.get("state"):
        lines += fact(row.state, row.reasons["state"], inputs.width)
    if row.reasons.get("verdict"):
        lines += fact("verdict", f"{row.says}: {row.reasons['verdict']}", inputs.width)
    return lines
