"""Actions of the place Configs: the list, and one config on a screen of its own."""

from __future__ import annotations

from magpie_tui.tui.actions import Action

ACTIONS: tuple[Action, ...] = (
    Action(
        "configs.edit_config",
        "ConfigScreen",
        "edit_config",
        ("o",),
        "edit the config",
        "Open the config in $EDITOR, and check it again afterwards.",
        "configs",
        label="edit",
    ),
    Action(
        "configs.launch_config",
        "ConfigScreen",
        "launch_config",
        ("L",),
        "launch from the config",
        "Open the form that starts analyze or compare from this kernel config.",
        "configs",
        label="launch",
        effect="starts",
    ),
    Action(
        "configs.diff_configs",
        "ConfigsScreen",
        "diff_configs",
        ("d",),
        "compare two configs",
        "Show in which effective values the two marked configs differ.",
        "configs",
        label="diff",
    ),
    Action(
        "configs.next_pane",
        "ConfigDetailScreen",
        "turn_pane(1)",
        ("right_square_bracket",),
        "show the next pane",
        "Show the next of text, effective values, review and twins.",
        "configs",
        label="pane",
    ),
    Action(
        "configs.previous_pane",
        "ConfigDetailScreen",
        "turn_pane(-1)",
        ("left_square_bracket",),
        "show the pane before",
        "Show the pane before.",
        "configs",
    ),
    Action(
        "configs.write_twins",
        "ConfigDetailScreen",
        "write_twins",
        ("W",),
        "write the twins",
        "Write the clean and the profiled form of a benchmark config, after asking.",
        "configs",
        label="twins",
        effect="writes",
    ),
)
