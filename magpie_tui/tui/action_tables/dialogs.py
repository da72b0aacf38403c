"""Actions of dialogs, choice lists, text views and forms."""

from __future__ import annotations

from magpie_tui.tui.actions import Action


def _moves(target: str, area: str, what: str) -> tuple[Action, ...]:
    """Return the movement keys that every list and text shares."""
    moves = (
        ("up", "cursor_up", ("up", "k"), f"Go up one {what}."),
        ("down", "cursor_down", ("down", "j"), f"Go down one {what}."),
        ("page_up", "page_up", ("pageup", "ctrl+b"), "Go up one page."),
        ("page_down", "page_down", ("pagedown", "ctrl+f"), "Go down one page."),
        ("first", "first", ("g", "home"), f"Go to the first {what}."),
        ("last", "last", ("G", "end"), f"Go to the last {what}."),
    )
    return tuple(
        Action(f"{area}.{name}", target, method, keys, description[:-1].lower(), description, area, in_palette=False)
        for name, method, keys, description in moves
    )


ACTIONS: tuple[Action, ...] = (
    Action(
        "dialog.close",
        "Dialog",
        "close",
        ("escape", "q"),
        "close the dialog",
        "Close the dialog and change nothing.",
        "dialog",
        label="close",
        in_palette=False,
    ),
    Action(
        "dialog.focus_next",
        "Dialog",
        "focus_part(1)",
        ("tab",),
        "focus the next part",
        "Move the focus to the next part of the dialog.",
        "dialog",
        in_palette=False,
    ),
    Action(
        "dialog.focus_previous",
        "Dialog",
        "focus_part(-1)",
        ("shift+tab",),
        "focus the previous part",
        "Move the focus to the previous part of the dialog.",
        "dialog",
        in_palette=False,
    ),
    Action(
        "dialog.choose",
        "ChoiceDialog",
        "choose",
        ("enter",),
        "choose the marked line",
        "Take the line under the cursor.",
        "dialog",
        label="choose",
        in_palette=False,
    ),
    Action(
        "dialog.up",
        "ChoiceDialog",
        "move(-1)",
        ("up",),
        "go up one line",
        "Go up one line while the filter is typed.",
        "dialog",
        in_palette=False,
    ),
    Action(
        "dialog.down",
        "ChoiceDialog",
        "move(1)",
        ("down",),
        "go down one line",
        "Go down one line while the filter is typed.",
        "dialog",
        in_palette=False,
    ),
    Action(
        "dialog.copy",
        "TextDialog",
        "copy_text",
        ("y",),
        "copy the text",
        "Copy everything the dialog shows.",
        "dialog",
        label="copy",
        in_palette=False,
    ),
    Action(
        "form.copy_command",
        "FormDialog",
        "copy_command",
        ("ctrl+y",),
        "copy the command line",
        "Copy the command line that the form stands for.",
        "form",
        label="copy command",
        in_palette=False,
    ),
    Action(
        "form.submit",
        "FormDialog",
        "submit",
        ("ctrl+s",),
        "run this",
        "Take the form as it is; it must be free of errors.",
        "form",
        label="run this",
        in_palette=False,
    ),
    Action(
        "form.next_word",
        "ChoiceField",
        "step(1)",
        ("right", "l", "space"),
        "choose the next word",
        "Choose the next of the words.",
        "form",
        in_palette=False,
    ),
    Action(
        "form.previous_word",
        "ChoiceField",
        "step(-1)",
        ("left", "h"),
        "choose the previous word",
        "Choose the previous of the words.",
        "form",
        in_palette=False,
    ),
    *_moves("ChoiceList", "list", "line"),
    *_moves("TextLines", "text", "line"),
    Action(
        "text.left",
        "TextLines",
        "scroll_left",
        ("left", "h"),
        "go left",
        "Scroll to the left.",
        "text",
        in_palette=False,
    ),
    Action(
        "text.right",
        "TextLines",
        "scroll_right",
        ("right", "l"),
        "go right",
        "Scroll to the right.",
        "text",
        in_palette=False,
    ),
)
