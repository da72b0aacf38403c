"""Actions of the form that starts a run."""

from __future__ import annotations

from magpie_tui.tui.actions import Action

ACTIONS: tuple[Action, ...] = (
    Action(
        "launch.start",
        "LaunchScreen",
        "start",
        ("S", "ctrl+s"),
        "start the run",
        "Start what the command line says as a run of its own, after asking, and go to it.",
        "launch",
        label="start",
        effect="starts",
    ),
    Action(
        "launch.copy",
        "LaunchScreen",
        "copy_command",
        ("y", "ctrl+y"),
        "copy the command line",
        "Copy the command line that the form stands for.",
        "launch",
        label="copy",
    ),
)
