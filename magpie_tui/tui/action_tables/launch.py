"""Actions of the form that starts a run."""

from __future__ import annotations

from magpie_tui.tui.actions import Action

ACTIONS: tuple[Action, ...] = (
    Action(
        "launch.from_config",
        "PlaceScreen",
        "launch_from_config",
        (),
        "start a run from a config",
        "Choose a config of the place Configs, then fill in the form that starts a run from it.",
        "launch",
        effect="starts",
    ),
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
        "copy the command line of the run",
        "Copy the command line that the form stands for.",
        "launch",
        label="copy",
    ),
    Action(
        "launch.obstacles",
        "LaunchScreen",
        "show_obstacles",
        ("i",),
        "say what is in the way",
        "Show everything that blocks the run or makes it doubtful, with what to do.",
        "launch",
        label="why",
    ),
    Action(
        "launch.next_field",
        "LaunchScreen",
        "move_field(1)",
        ("down", "j"),
        "go to the next field",
        "Go to the next field of the form.",
        "launch",
    ),
    Action(
        "launch.previous_field",
        "LaunchScreen",
        "move_field(-1)",
        ("up", "k"),
        "go to the previous field",
        "Go to the previous field of the form.",
        "launch",
    ),
)
