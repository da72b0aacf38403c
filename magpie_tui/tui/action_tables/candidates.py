"""Actions of the place Candidates."""

from __future__ import annotations

from magpie_tui.tui.actions import Action, Effect


def _action(
    name: str,
    method: str,
    keys: tuple[str, ...],
    title: str,
    description: str,
    *,
    label: str = "",
    effect: Effect = "looks",
) -> Action:
    target = "CandidatesScreen"
    return Action(f"candidates.{name}", target, method, keys, title, description, "candidates", label, effect)


ACTIONS: tuple[Action, ...] = (
    _action(
        "next_pane",
        "next_pane",
        ("right_square_bracket",),
        "go to the next pane",
        "Go to the next of shapes, gate, samples, intervals, counters, diff, logs and build.",
        label="pane",
    ),
    _action(
        "previous_pane",
        "previous_pane",
        ("left_square_bracket",),
        "go to the previous pane",
        "Go to the previous of shapes, gate, samples, intervals, counters, diff, logs and build.",
    ),
    _action(
        "show_diff",
        "show_diff",
        ("d",),
        "show the source diff",
        "Show what the candidate changes in its sources against the baseline.",
        label="diff",
    ),
    _action(
        "choose",
        "choose_workspace",
        ("o",),
        "open another comparison",
        "Choose the comparison or analysis to look at.",
        label="open",
    ),
    _action(
        "add",
        "add_candidate",
        ("A",),
        "add a candidate",
        "Copy the source of the kernel under the cursor, or add a flag, a variable or a tuning file, as a candidate.",
        label="add",
        effect="writes",
    ),
    _action(
        "run_again",
        "run_again",
        ("R",),
        "run it again",
        "Start the same comparison or analysis again, as the workspace says it was started; asks first.",
        label="again",
        effect="starts",
    ),
    _action(
        "confirm",
        "confirm_leader",
        ("C",),
        "confirm the leader",
        "Compare the leader, or what is marked, with the baseline alone and on fresh seeds; asks first.",
        label="confirm",
        effect="starts",
    ),
    _action(
        "edit",
        "edit_candidate",
        ("E",),
        "edit the source",
        "Open the source (or the tuning file) of the candidate under the cursor in $VISUAL or $EDITOR.",
        label="edit",
        effect="writes",
    ),
    _action(
        "explain",
        "explain",
        ("i",),
        "explain the number",
        "Say how the number under the cursor came about, or why there is none.",
        label="why",
    ),
    _action(
        "open_report",
        "open_report",
        ("v",),
        "open the workspace",
        "Show the report, files and logs of this comparison in the place Workspaces.",
        label="workspace",
    ),
    _action(
        "next_log",
        "next_log",
        ("full_stop",),
        "go to the next log",
        "Show the next log of the candidate.",
    ),
    _action(
        "previous_log",
        "previous_log",
        ("comma",),
        "go to the previous log",
        "Show the previous log of the candidate.",
    ),
    _action(
        "copy_pane",
        "copy_pane",
        ("y",),
        "copy the text of the pane",
        "Copy what the pane below shows.",
        label="copy",
    ),
)
