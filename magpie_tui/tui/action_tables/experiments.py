"""Actions of the place Experiments."""

from __future__ import annotations

from magpie_tui.tui.actions import Action


def _action(name: str, method: str, keys: tuple[str, ...], title: str, description: str, *, label: str = "") -> Action:
    return Action(
        f"experiments.{name}", "ExperimentsScreen", method, keys, title, description, "experiments", label=label
    )


ACTIONS: tuple[Action, ...] = (
    _action(
        "next_pane",
        "next_pane",
        ("right_square_bracket",),
        "go to the next pane",
        "Go to the next of figures, pairs, trust and text.",
        label="pane",
    ),
    _action(
        "previous_pane",
        "previous_pane",
        ("left_square_bracket",),
        "go to the previous pane",
        "Go to the previous of figures, pairs, trust and text.",
    ),
    _action(
        "copy_sentence",
        "copy_sentence",
        ("y",),
        "copy the sentence of the verdict",
        "Copy the verdict with its interval, one sentence to send on.",
        label="copy sentence",
    ),
    _action(
        "copy_verdict",
        "copy_verdict",
        ("v",),
        "copy the whole verdict",
        "Copy the text of the verdict (Markdown): figures, pairs, what was compared, what was not checked.",
        label="copy verdict",
    ),
    _action(
        "open_pair",
        "open_pair",
        ("w",),
        "open the newest run of the experiment",
        "Show the workspace of the newest run of the experiment in the place Workspaces.",
        label="workspace",
    ),
)
