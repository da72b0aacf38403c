"""What can be done to a comparison: run it again, confirm its leader, add a candidate, edit one; each asks first."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import MagpieTuiError, UserInputError
from magpie_tui.basics.options import OptionSpec, Values, read_words
from magpie_tui.basics.text import printable
from magpie_tui.tui.dialogs.confirm import YES, CommandDialog, ConfirmDialog
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.configs_base import shown_path
from magpie_tui.workspaces.candidates import Candidate

if TYPE_CHECKING:
    from magpie_tui.configs.adding import Added
    from magpie_tui.configs.kernel import KernelConfig
    from magpie_tui.kernels.again import Again
    from magpie_tui.runs.launch import LaunchRequest
    from magpie_tui.tui.screens.candidates_reading import CandidatesReading
    from magpie_tui.tui.widgets.virtual_table import VirtualTable

ACTS = frozenset({"run_again", "confirm_leader", "add_candidate", "edit_candidate"})


class CandidatesActs(PlaceScreen):
    """The actions of ``CandidatesScreen`` that start or write, apart from it so that both stay readable."""

    @property
    def reading(self) -> CandidatesReading | None:
        """What was read of the workspace that is shown."""
        raise NotImplementedError

    @property
    def table(self) -> VirtualTable:
        """The table of kernels."""
        raise NotImplementedError

    def current(self) -> Candidate | None:
        """Return the candidate under the cursor."""
        raise NotImplementedError

    # What is possible

    def act_impossible(self, action: str) -> str | None:
        """Say why one of ``ACTS`` is impossible now."""
        from magpie_tui.kernels.again import require, why_not

        reading = self.reading
        if reading is None:
            return "no comparison is open"
        if action == "edit_candidate":
            return self._edit_impossible(reading)
        if reading.again is None:
            return reading.not_again
        try:
            require(reading.again)
            if action == "add_candidate":
                return self._add_impossible(reading.again)
            if action == "confirm_leader":
                self.to_confirm()
        except UserInputError as error:
            return why_not(error)
        return self._still_going(reading, reading.again if action == "run_again" else None)

    def _still_going(self, reading: CandidatesReading, again: Again | None) -> str | None:
        from magpie_tui.kernels.again import started_alike

        live = self.magpie.live_runs
        run = next((run for run in live if run.workspace == reading.detail.path), None)
        if run is None and again is not None:
            run = started_alike(again, live)
        return None if run is None else f"it runs already: {run.id}, in 2  Runs"

    def _edit_impossible(self, reading: CandidatesReading) -> str | None:
        from magpie_tui.kernels.again import why_not

        row = self.current()
        if row is None:
            return "there is no candidate"
        try:
            reading.file_to_edit(row.name)
        except UserInputError as error:
            return why_not(error)
        return None

    def _add_impossible(self, again: Again) -> str | None:
        if again.config is None:
            return "it was started from source files: there is no config to add a candidate to"
        if not os.access(again.config.parent, os.W_OK):
            return f"its config's directory may not be written: {again.config.parent}"
        return None

    def to_confirm(self) -> tuple[Candidate, tuple[Candidate, ...]]:
        """Return the baseline, and the marked candidates or else the leader.

        Raises:
            UserInputError: There is nothing to confirm, with the reason.
        """
        found = None if self.reading is None else self.reading.found
        baseline = None if found is None else found.named(found.baseline)
        if found is None or baseline is None:
            raise UserInputError("nothing is compared here: there is nothing to confirm")
        marked = tuple(row for row in found.rows if row.name in self.table.marked_keys)
        if baseline in marked:
            raise UserInputError(f"{baseline.name} is the baseline: space takes its mark away")
        if marked:
            wrong = next((row for row in marked if row.ratio is None), None)
            if wrong is not None:
                raise UserInputError(f"{wrong.name} has no ratio to confirm: it is {wrong.word}")
            return baseline, marked
        # Rows are in the order of their ranks; the winner is the first of its rank, unless it shares it.
        timed = [row for row in found.rows if row is not baseline and row.ratio is not None]
        if not timed:
            raise UserInputError("no candidate has a ratio to the baseline: there is no leader")
        return baseline, (found.named(found.winner) or timed[0],)

    # Run again, confirm

    def action_run_again(self) -> None:
        """Show the command, then start it."""
        reading = self.reading
        if reading is None or reading.again is None:
            return
        again = reading.again
        name = again.label if again.config is None else again.config.name

        def look() -> Again:
            from magpie_tui.kernels.again import check_again

            check_again(again)
            return again

        title, path = f"Start {again.mode} with {name} again?", reading.detail.path
        self._in_thread(f"run {name} again", look, lambda found: self._ask(title, found, path))

    def action_confirm_leader(self) -> None:
        """Show the command that compares some candidates alone, then start it."""
        reading = self.reading
        if reading is None or reading.again is None:
            return
        again, (baseline, candidates) = reading.again, self.to_confirm()
        names = [row.name for row in candidates]

        def look() -> Again:
            from magpie_tui.kernels.again import confirming

            return confirming(again, baseline.name, names)

        title = f"Compare {' and '.join(names)} with {baseline.name} alone, on fresh seeds?"
        path = reading.detail.path
        self._in_thread(f"confirm {', '.join(names)}", look, lambda found: self._ask(title, found, path))

    def _ask(self, title: str, again: Again, path: Path) -> None:
        request = _request(again)

        def answered(answer: str | None) -> None:
            from magpie_tui.tui.screens.campaign_runs import start_run

            if answer == YES:
                start_run(self.magpie, request, f"start {again.mode} of {again.label}", lead_there=True)

        elsewhere = "" if again.directory == Path.cwd() else f"cd {shlex.quote(str(again.directory))} && "
        line = elsewhere + shlex.join(("magpie-tui", *again.words))
        self.app.push_screen(CommandDialog(title, "start", line, "\n".join(self._told(again, path))), answered)

    def _told(self, again: Again, path: Path) -> list[str]:
        """Return what there is to know before it is started.

        Args:
            path: The workspace that is shown.
        """
        from magpie_tui.tui.screens.launch_checks import duration_text

        lines = [f"results  {again.output_dir}"]
        run = next((run for run in self.magpie.runs or () if run.workspace == path), None)
        seconds = None if run is None else run.took_s(self.magpie.services.now())
        if seconds is not None:
            lines.append(f"takes    what is shown here took {duration_text(seconds)}")
        if again.values.get("quick"):
            lines.append("quick    a first look, as before; y copies the command, to be started without --quick")
        if again.changed():
            lines.append("The config has changed since: what it says now is compared.")
        return [*lines, "It goes on when this program is closed; 2  Runs  shows it."]

    # Add a candidate

    def action_add_candidate(self) -> None:
        """Ask what to add; copy the file and write the config."""
        from magpie_tui.kernels.again import check_again

        reading, row = self.reading, self.current()
        if reading is None or reading.again is None:
            return
        again = reading.again

        def ask(config: KernelConfig | None) -> None:
            if config is not None:
                ids = [entry.id for entry in config.kernels]
                base = row.name if row is not None and row.name in ids else ids[0]
                self._ask_candidate(again, ids, {"base": base})

        self._in_thread("add a candidate", lambda: check_again(again), ask)

    def _ask_candidate(self, again: Again, ids: Sequence[str], values: Values) -> None:
        from magpie_tui.configs.adding import ADD_OPTIONS, check_id
        from magpie_tui.tui.dialogs.form import FormDialog

        assert again.config is not None
        command = ("magpie-tui", "config", "add", shown_path(again.config))

        def check(given: Values) -> None:
            check_id(str(given.get("id") or ""), list(ids))

        def take(words: tuple[str, ...] | None) -> None:
            if words is not None:
                given = read_words(ADD_OPTIONS, words[3:])
                self._add(again, ids, {name: value for name, value in given.items() if name != "config"})

        note = "the copy lies beside the original; the config's other lines stay as they are; no file is replaced"
        dialog = FormDialog("Add a candidate", _form_specs(ids), command, values, note=note, check=check)
        self.app.push_screen(dialog, take)

    def _add(self, again: Again, ids: Sequence[str], values: Values) -> None:
        from magpie_tui.configs.adding import add_candidate, draft_of

        config, app = again.config, self.magpie
        assert config is not None

        def refused(error: MagpieTuiError) -> None:
            self._ask_candidate(again, ids, values)
            app.show_error("add a candidate", error)

        self._in_thread(
            "add a candidate",
            lambda: add_candidate(config, draft_of(values), caller_directory=again.directory),
            lambda added: self._added(again, added),
            refused,
        )

    def _added(self, again: Again, added: Added) -> None:
        told = f"{added.id} is in {added.config.name}:{added.line}"
        only = again.values.get("only")
        says = "R compares again with it" if not only else "R compares some kernels only, 7 and L all of them"
        if added.copy is None and not added.notes:
            self.magpie.say(f"{told}: {says}")
            return
        details = "\n".join([f"{told}.", *(f"to do: {note}" for note in added.notes), f"{says}."])
        path = added.copy or added.config

        def answered(answer: str | None) -> None:
            if answer == YES:
                self._edit(path, added.id)
            else:
                self.magpie.say(f"{told}: {says}")

        title = f"Open {path.name} in the editor?"
        self.app.push_screen(ConfirmDialog(title, "open", details), answered)

    # Edit

    def action_edit_candidate(self) -> None:
        """Open the file of the candidate in the editor."""
        reading, row = self.reading, self.current()
        if reading is not None and row is not None:
            path = reading.file_to_edit(row.name)
            self._edit(path, row.name, reading.others_with(path, row.name))

    def _edit(self, path: Path, name: str, others: Sequence[str] = ()) -> None:
        from magpie_tui.tui.editor import edit_file

        code = edit_file(self.magpie, path, instead=f": {shown_path(path)}")
        if code is None:
            return
        self.reload()
        ended = "" if code == 0 else f"the editor ended with {code}; "
        also = f", and so {'is' if len(others) == 1 else 'are'} {', '.join(others)}" if others else ""
        self.say(
            printable(f"{ended}{name} is {path.name}{also}: R compares again"), "warning" if others else "information"
        )

    def _in_thread(
        self,
        what: str,
        work: Callable[[], object],
        done: Callable[..., None],
        failed: Callable[[MagpieTuiError], None] | None = None,
    ) -> None:
        app = self.magpie

        def run() -> None:
            try:
                result = work()
            except MagpieTuiError as error:
                app.call_from_thread(failed or (lambda told: app.show_error(what, told)), error)
            else:
                app.call_from_thread(done, result)

        app.run_worker(run, thread=True, group="act", exit_on_error=False, name=what)


def _request(again: Again) -> LaunchRequest:
    from magpie_tui.runs import layout
    from magpie_tui.runs.launch import LaunchRequest
    from magpie_tui.tui.screens.launch import own_program

    return LaunchRequest(
        kind=again.mode,
        label=again.label,
        command=(*own_program(), *again.words),
        output_dir=again.output_dir,
        cwd=again.directory,
        env={**os.environ, "COLUMNS": "120", layout.COLOR_VARIABLE: "0"},
        engine=again.engine,
        detach=True,
    )


def _form_specs(ids: Sequence[str]) -> tuple[OptionSpec, ...]:
    """Return the fields of the form; the kernels stand side by side where there is room for them."""
    from magpie_tui.configs.adding import ADD_OPTIONS
    from magpie_tui.tui.screens.launch_checks import can_choose

    shown = []
    for spec in ADD_OPTIONS:
        if spec.name == "base" and can_choose(ids):
            spec = replace(spec, kind="choice", choices=tuple(ids), default=ids[0])
        if spec.name != "config":
            shown.append(spec)
    return tuple(shown)
