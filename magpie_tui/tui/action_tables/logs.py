"""Actions of the one log view."""

from __future__ import annotations

from magpie_tui.tui.actions import Action


def _log(
    name: str,
    method: str,
    keys: tuple[str, ...],
    title: str,
    description: str,
    *,
    label: str = "",
    in_palette: bool = True,
) -> Action:
    return Action(f"log.{name}", "LogView", method, keys, title, description, "log", label=label, in_palette=in_palette)


ACTIONS: tuple[Action, ...] = (
    _log("up", "scroll_line_up", ("up", "k"), "go up one line", "Go up one line and stop following.", in_palette=False),
    _log("down", "scroll_line_down", ("down", "j"), "go down one line", "Go down one line.", in_palette=False),
    _log("left", "scroll_side_left", ("left", "h"), "go left", "Scroll to the left.", in_palette=False),
    _log("right", "scroll_side_right", ("right", "l"), "go right", "Scroll to the right.", in_palette=False),
    _log(
        "page_up",
        "scroll_page_up",
        ("pageup", "ctrl+b"),
        "go up one page",
        "Go up one page and stop following.",
        in_palette=False,
    ),
    _log(
        "page_down",
        "scroll_page_down",
        ("pagedown", "ctrl+f"),
        "go down one page",
        "Go down one page.",
        in_palette=False,
    ),
    _log("first", "go_first", ("g", "home"), "go to the first line", "Go to the first line.", in_palette=False),
    _log(
        "last",
        "go_last",
        ("G", "end"),
        "go to the last line",
        "Go to the last line and follow new ones.",
        in_palette=False,
    ),
    _log("follow", "follow_log", ("f",), "follow new lines", "Follow new lines, or stop following.", label="follow"),
    _log(
        "search",
        "search_log",
        ("slash",),
        "search the log",
        "Search the whole log; capitals make it exact, /between slashes/ is a regular expression.",
        label="search",
    ),
    _log("next_match", "next_match", ("n",), "go to the next match", "Go to the next line that matches."),
    _log("previous_match", "previous_match", ("N",), "go to the previous match", "Go to the line before that matches."),
    _log(
        "next_flag",
        "next_flag",
        ("exclamation_mark",),
        "go to the next flag",
        "Go to the next line that makes a result doubtful.",
        label="next flag",
    ),
    _log(
        "jump_to_time",
        "jump_to_time",
        ("t",),
        "go to a time",
        "Go to the first line at or after a time such as 14:10 or 2026-12-02 14:10:05.",
    ),
    _log(
        "fold",
        "fold_lines",
        ("z",),
        "fold equal lines",
        "Show neighbouring lines that differ in their time stamps only as one, or each again.",
        label="fold",
    ),
    _log(
        "wrap",
        "wrap_lines",
        ("x",),
        "wrap long lines",
        "Let long lines take several rows, or one each again; that and folding are remembered.",
        label="wrap",
    ),
    _log("pause", "pause_updates", ("p",), "pause the log", "Stop looking at the file, or go on."),
    _log(
        "open_line",
        "open_line",
        ("enter",),
        "open the line",
        "Read the current line whole, however long.",
        label="open",
    ),
    _log("copy_line", "copy_line", ("y",), "copy the line", "Copy the whole current line.", label="copy"),
    _log("copy_page", "copy_page", (), "copy the lines seen", "Copy the lines that are on the screen."),
)
