"""From a kernel of a trace to its configs: which campaign, which command, and its start after asking."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.tui.screens.configs_base import shown_path

if TYPE_CHECKING:
    from magpie_tui.tui.app import MagpieApp


def config_words(campaign: Path, kernel: str | None, trace: Path | None, stage: str | None) -> tuple[str, ...]:
    """Return the words after ``magpie-tui`` that write a kernel's configs.

    Args:
        kernel: Exact name; None takes the recommended one.
        trace: None takes the twin's.
    """
    from magpie_tui.tui.source_repos import remembered_repos

    words = ["campaign", "config", str(campaign)]
    if kernel is not None:
        words += ["--kernel", kernel]
    if trace is not None:
        words += ["--trace", str(trace)]
    if stage is not None:
        words += ["--stage", stage]
    repos = remembered_repos()
    return (*words, *(("--repos", *map(str, repos)) if repos else ()))


def ask_for_config(app: MagpieApp, kernel: str, trace: Path, stage: str | None) -> None:
    """Look for the campaign that the kernel goes into, then show the command and start it after asking."""

    def found(campaigns: tuple[Path, ...]) -> None:
        if not campaigns:
            app.say("no campaign is below this directory: 1, then N begins one", "warning")
        else:
            confirm_config(app, campaigns[0], config_words(campaigns[0], kernel, trace, stage))

    def work() -> None:
        from magpie_tui.campaigns.find import find_campaigns

        app.call_from_thread(found, find_campaigns(app.root))

    app.run_worker(work, thread=True, group="campaign-act", exit_on_error=False, name="look for campaigns")


def confirm_config(app: MagpieApp, campaign: Path, words: tuple[str, ...]) -> None:
    """Show the command and start it as a run of its own after asking."""
    from magpie_tui.tui.dialogs.confirm import YES, ConfirmDialog
    from magpie_tui.tui.screens.campaign_runs import command_request, start_run

    line = shlex.join(("magpie-tui", *(shown_path(Path(word)) if word.startswith("/") else word for word in words)))
    details = (
        f"$ {line}\n\n"
        "It runs the existing test, writes configs and a first candidate, which is a copy of the source, and marks\n"
        "what a person has to fill in. No source is edited. 2  Runs  shows it."
    )

    def answered(answer: str | None) -> None:
        if answer != YES:
            return
        try:
            request = command_request(campaign, words, "config")
        except MagpieTuiError as error:
            app.show_error("write the configs", error)
        else:
            start_run(app, request, "write the configs")

    app.push_screen(ConfirmDialog("Take the kernel and write its configs?", "start", details), answered)
