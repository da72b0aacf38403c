"""Actions of Home."""

from __future__ import annotations

from magpie_tui.tui.actions import Action

ACTIONS: tuple[Action, ...] = (
    Action(
        "home.open",
        "HomeList",
        "open",
        ("enter",),
        "open the line under the cursor",
        "Open the run, workspace or place that the line names.",
        "home",
        label="open",
    ),
)
