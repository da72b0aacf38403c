"""Actions of the place Machine."""

from __future__ import annotations

from magpie_tui.tui.actions import Action

ACTIONS: tuple[Action, ...] = (
    Action(
        "machine.copy",
        "MachineScreen",
        "copy_report",
        ("y",),
        "copy the machine report",
        "Copy everything this screen shows, as text.",
        "machine",
        label="copy",
    ),
)
