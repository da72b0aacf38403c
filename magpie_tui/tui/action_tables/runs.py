"""Actions of the place Runs: the list, and one run on a screen of its own."""

from __future__ import annotations

from magpie_tui.tui.actions import Action, Effect


def _run(
    name: str,
    method: str,
    keys: tuple[str, ...],
    title: str,
    description: str,
    *,
    label: str = "",
    effect: Effect = "looks",
) -> Action:
    return Action(f"runs.{name}", "RunScreen", method, keys, title, description, "runs", label=label, effect=effect)


ACTIONS: tuple[Action, ...] = (
    _run(
        "stop_run",
        "stop_run",
        ("X",),
        "stop the run",
        "Stop the marked runs, or the one under the cursor, after asking; of a lost run, end what it left behind.",
        label="stop",
        effect="stops",
    ),
    _run(
        "next_pane", "turn_pane(1)", ("right_square_bracket",), "show the next log", "Show the next log.", label="log"
    ),
    _run("previous_pane", "turn_pane(-1)", ("left_square_bracket",), "show the log before", "Show the log before."),
    _run(
        "open_workspace",
        "open_workspace",
        ("w",),
        "open the workspace",
        "Go to the results of the run in Workspaces.",
        label="result",
    ),
    _run(
        "run_again",
        "run_again",
        ("R",),
        "run again",
        "Show what the run would do again, then start it as a new run.",
        label="again",
        effect="starts",
    ),
    _run(
        "remove_run",
        "remove_run",
        ("D",),
        "remove the run",
        "Delete state and logs of the marked runs, or of the one under the cursor, after asking; results stay.",
        label="remove",
        effect="writes",
    ),
    _run(
        "show_details",
        "show_details",
        ("i",),
        "show all that is known of the run",
        "Show command, directory, times, files, why it ended, and its steps.",
        label="why",
    ),
    _run(
        "toggle_bell",
        "toggle_bell",
        ("b",),
        "ring when the run ends",
        "Ring the bell, or do what MAGPIE_TUI_ON_RUN_END says, when the marked runs, or the one under the cursor, end.",
        label="bell",
    ),
    _run(
        "capture_steps",
        "capture_steps",
        ("P",),
        "capture steps of the server",
        "Record steps of the server that the run measures now, after saying what it takes; the run is not clean then.",
        label="capture",
        effect="starts",
    ),
    _run("copy_run_command", "copy_run_command", ("a",), "copy the run's command", "Copy the command that it runs."),
    _run(
        "copy_raw_commands",
        "copy_raw_commands",
        ("v",),
        "copy the raw commands of server and client",
        "Copy what a benchmark runs, a line each: the server's command and the client's, with their environment.",
    ),
    _run(
        "pause_live",
        "pause_live",
        ("p",),
        "pause live updates",
        "Let the whole screen stay as it is, or go on.",
    ),
)
