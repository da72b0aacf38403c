"""The command palette: everything that can be done now, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magpie_tui.tui.actions import ActiveAction, key_text
from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog

if TYPE_CHECKING:
    from collections.abc import Sequence


def palette_choices(actions: Sequence[ActiveAction]) -> list[Choice]:
    """Return one line an action, ``area: verb object`` and its keys; an impossible one carries its reason."""
    return [
        Choice(
            active.action.id,
            active.action.palette_entry,
            " ".join(key_text(key) for key in active.keys),
            active.reason,
        )
        for active in actions
        if active.action.in_palette
    ]


class PaletteDialog(ChoiceDialog):
    """Answers the id of the chosen action.

    Args:
        actions: What can be done on the screen below.
    """

    def __init__(self, actions: Sequence[ActiveAction]) -> None:
        super().__init__("Do", palette_choices(actions), has_filter=True)
