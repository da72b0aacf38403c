"""Actions of a campaign, and of Home where one begins."""

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
    target: str = "CampaignScreen",
) -> Action:
    return Action(f"campaign.{name}", target, method, keys, title, description, "campaign", label=label, effect=effect)


ACTIONS: tuple[Action, ...] = (
    _action(
        "do_next",
        "do_next",
        ("A",),
        "do the next thing",
        "Show the command of the next step, then start it as a run of its own; ask for what only a person knows.",
        label="do next",
        effect="starts",
    ),
    _action(
        "explain",
        "explain",
        ("i",),
        "explain the state of the step",
        "Show what the step needs, which inputs are what they were, and which changed.",
        label="why",
    ),
    _action(
        "show_diff",
        "show_diff",
        ("d",),
        "show what a candidate changes",
        "Show what a candidate changes in config and sources against the baseline kernel.",
        label="diff",
    ),
    _action("add_note", "add_note", ("m",), "note something", "Keep a remark with the step.", label="note"),
    _action(
        "adopt",
        "adopt",
        ("I",),
        "adopt a workspace",
        "Choose a workspace that was made outside the campaign and put it into the step.",
        label="adopt",
        effect="writes",
    ),
    _action(
        "skip",
        "skip",
        ("K",),
        "skip the step, or take it in again",
        "Leave the step out, with the reason; on a skipped step, take it in again.",
        label="skip",
        effect="writes",
    ),
    _action(
        "set_goal",
        "set_goal",
        ("T",),
        "set the goal",
        "Say by which metric and by how many percent the whole is to gain, and what may not get worse.",
        effect="writes",
    ),
    _action(
        "write_report",
        "write_report",
        ("e",),
        "write the report",
        "Write the report to a file: .html or .md, .pr.md for a pull request, .tar.gz for a bundle that verifies "
        "anywhere; or the nine steps as .csv, .json or .txt.",
        label="report",
    ),
    _action(
        "read_step",
        "read_step",
        ("right_curly_bracket",),
        "go to the lines of the step",
        "Put the focus on all that is known of the step, to scroll and to go back with the same key.",
    ),
    _action(
        "copy_next",
        "copy_next",
        ("v",),
        "copy the command of the step",
        "Copy the command that the step waits for.",
        label="copy cmd",
    ),
    _action(
        "choose",
        "choose_campaign",
        ("o",),
        "open another campaign",
        "Choose another of the campaigns below the directory.",
    ),
    _action(
        "show_home",
        "show_home",
        ("b",),
        "show runs, results and where to begin",
        "Show what runs, what ended last, the newest results, what is wrong, and how to begin another campaign.",
        label="overview",
    ),
    _action(
        "new",
        "new_campaign",
        ("N",),
        "begin a campaign",
        "Choose what kind of campaign, name it, and begin it below campaigns/.",
        label="new campaign",
        effect="writes",
        target="HomeScreen",
    ),
    _action(
        "adopt_found",
        "adopt_found",
        ("I",),
        "begin a campaign with the results found",
        "Begin a campaign and put the newest result of each kind into its step.",
        label="adopt",
        effect="writes",
        target="HomeScreen",
    ),
    _action(
        "smoke",
        "smoke_run",
        ("S",),
        "try everything with the smoke campaign",
        "Begin the smoke campaign, a vector addition built twice, and walk it to its end as a run of its own.",
        label="smoke run",
        effect="starts",
        target="HomeScreen",
    ),
)
