"""What the keys of the screen of one trace do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on

from magpie_tui.basics.errors import MagpieTuiError, UserInputError
from magpie_tui.basics.files import write_text
from magpie_tui.basics.text import printable
from magpie_tui.traces.analysis import KernelReport
from magpie_tui.traces.roofline.folding import Fold
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.trace_panes import detail_of, listing_name, stage_of_row
from magpie_tui.tui.screens.trace_recent import remember_trace
from magpie_tui.tui.screens.trace_roofline import listing_key, row_key_of_kernel
from magpie_tui.tui.screens.trace_state import OPTIONS, VIEWS, TraceChoice, values_of_words
from magpie_tui.tui.screens.trace_summary import summary_text
from magpie_tui.tui.screens.trace_why import why_lines
from magpie_tui.tui.widgets.table_pane import ENDINGS, check_export_path
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from magpie_tui.traces.stage_names import Stage
    from magpie_tui.tui.screens.trace_answer import Prepared
    from magpie_tui.tui.screens.workspace_report_panes import Panes

WIDEST_DIALOG = 120


class TraceActs(PlaceScreen):
    """The actions of ``TraceViewScreen``, apart from it so that both stay readable."""

    choice: TraceChoice
    base: KernelReport | None
    wanted: Callable[[Prepared], str | None] | None = None
    """Gives the row that the cursor goes to once a listing is there."""

    @property
    def panes(self) -> Panes:
        """The panes."""
        raise NotImplementedError

    @property
    def table(self) -> VirtualTable | None:
        """The table that is shown."""
        raise NotImplementedError

    @property
    def prepared(self) -> Prepared | None:
        """The answer that the pane shows, when it is there."""
        raise NotImplementedError

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages that the trace has."""
        raise NotImplementedError

    @property
    def is_reading(self) -> bool:
        """True while an answer is awaited."""
        raise NotImplementedError

    def show_all(self) -> None:
        """Show what is chosen."""
        raise NotImplementedError

    def stop_reading(self) -> None:
        """Stop the reading process."""
        raise NotImplementedError

    def current_place(self) -> int | None:
        """Return where the listing has the row under the cursor."""
        raise NotImplementedError

    def remember(self) -> None:
        """Keep what is open in the list of traces that were opened; done in a thread."""
        root, now = self.choice.root, self.magpie.services.now()
        self.run_worker(lambda: remember_trace(root, now), thread=True, exit_on_error=False, name="remember the trace")

    # When it is possible

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if not self.is_mounted:
            return None
        choice = self.choice
        if action in ("next_stage", "previous_stage"):
            return None if self.stages else "the trace has no stages"
        if action == "next_rank":
            if choice.pane == "collectives":
                return "collectives are matched across all ranks"
            return None if self.base is not None and len(self.base.ranks) > 1 else "there is one rank"
        if action == "next_view" and choice.pane not in (*VIEWS, "roofline"):
            return f"{choice.pane} has one listing"
        if action == "choose_window" and choice.pane not in ("kernels", "summary"):
            return "only the ranking of kernels has that"
        if action == "toggle_names" and choice.pane not in ("kernels", "roofline"):
            return "only the ranking of kernels and the roofline have that"
        if action == "follow_row" and (choice.pane not in ("kernels", "roofline") or self.current_place() is None):
            return "put the cursor on a row of the roofline or of the kernels"
        if action in ("show_source", "prepare_config") and self._kernel() is None:
            return "put the cursor on a row of the roofline or of the kernels"
        if action in ("choose_ceilings", "export_tuning_list") and choice.pane != "roofline":
            return "only the roofline has that"
        if action == "export_tuning_list" and self.prepared is None:
            return "nothing is read yet"
        if action == "explain" and (self.prepared is None or choice.pane == "summary" or self.current_place() is None):
            return "put the cursor on a number of a table"
        if action in ("copy_summary", "export_summary"):
            if choice.pane != "summary":
                return "the table has the focus for that: tab"
            return None if self.prepared is not None else "nothing is read yet"
        return None

    # Choosing

    def choose(self, choice: TraceChoice) -> None:
        """Show another choice."""
        self.choice = choice
        self.show_all()

    def action_next_pane(self) -> None:
        """Go to the next pane."""
        self.go_to_pane(1)

    def action_previous_pane(self) -> None:
        """Go to the previous pane."""
        self.go_to_pane(-1)

    def go_to_pane(self, by: int) -> None:
        """Go to a neighbouring pane; the focus goes along."""
        self.panes.step(by)
        self.panes.focus_pane()
        self.choose(replace(self.choice, pane=self.panes.current))

    def action_next_stage(self) -> None:
        """Go to the next stage."""
        self._step_stage(1)

    def action_previous_stage(self) -> None:
        """Go to the previous stage."""
        self._step_stage(-1)

    def _step_stage(self, by: int) -> None:
        names = (None, *self.stages)
        now = names.index(self.choice.stage) if self.choice.stage in names else 0
        self.choose(replace(self.choice, stage=names[(now + by) % len(names)]))

    def action_next_rank(self) -> None:
        """Read the next rank alone, or all."""
        files = [None, *(rank.file.path for rank in (() if self.base is None else self.base.ranks))]
        now = files.index(self.choice.rank) if self.choice.rank in files else 0
        self.choose(replace(self.choice, rank=files[(now + 1) % len(files)]))

    def action_next_view(self) -> None:
        """Show the next listing of the pane."""
        if self.choice.pane == "roofline":
            self.choose(replace(self.choice, logarithmic=not self.choice.logarithmic))
            return
        names = VIEWS[self.choice.pane]
        self.choose(self.choice.with_view(names[(names.index(self.choice.view) + 1) % len(names)]))

    def action_toggle_names(self) -> None:
        """Put variants together or apart; of the roofline, go to the next way to put rows together."""
        if self.choice.pane == "roofline":
            folds = list(Fold)
            self.choose(replace(self.choice, fold=folds[(folds.index(self.choice.fold) + 1) % len(folds)]))
            return
        self.choose(replace(self.choice, exact=not self.choice.exact))

    def action_choose_window(self) -> None:
        """Ask for window and filters."""
        from magpie_tui.tui.dialogs.form import FormDialog

        command = ("magpie-tui", "trace", "kernels", str(self.choice.place))

        def take(words: tuple[str, ...] | None) -> None:
            if words is None:
                return
            try:
                choice = self.choice.with_values(values_of_words(words[len(command) :]))
            except UserInputError as error:
                self.magpie.show_error("choose window and filters", error)
                return
            self.panes.show("kernels")
            self.panes.focus_pane()
            self.choose(replace(choice, pane="kernels"))

        self.app.push_screen(
            FormDialog("Window and filters of the ranking", OPTIONS, command, self.choice.option_values()), take
        )

    # The roofline

    def action_follow_row(self) -> None:
        """Go from a row of the roofline to its kernels, or from a kernel to its row."""
        place, prepared = self.current_place(), self.prepared
        if place is None or prepared is None:
            return
        if self.choice.pane == "roofline":
            row = prepared.rooflines[listing_name(self.choice)][place]
            if not row.kernels:
                self.say("no kernels are known of this row")
                return
            kernel = row.kernels[0].name
            self.wanted = lambda answer: kernel if "exact" in answer.listings else None
            self._show_pane(replace(self.choice, pane="kernels", exact=True))
            return
        listing = prepared.listings[listing_name(self.choice)]
        name = listing.rows[place].key
        fold = Fold.none
        key = listing_key("all" if self.choice.stage is None else self.choice.stage.value, fold)
        self.wanted = lambda answer: row_key_of_kernel(answer, key, name)
        self._show_pane(replace(self.choice, pane="roofline", fold=fold))

    def _show_pane(self, choice: TraceChoice) -> None:
        self.panes.show(choice.pane)
        self.panes.focus_pane()
        self.choose(choice)

    def _kernel(self) -> tuple[str, tuple[str, ...]] | None:
        """Return the kernel that the row under the cursor spends most time in, and the names around it."""
        place, prepared = self.current_place(), self.prepared
        if place is None or prepared is None:
            return None
        name = listing_name(self.choice)
        if self.choice.pane == "roofline":
            row = prepared.rooflines[name][place]
            return (row.kernels[0].name, (row.name,)) if row.kernels else None
        if self.choice.pane != "kernels":
            return None
        key = prepared.listings[name].rows[place].key
        if isinstance(prepared.report, KernelReport) and name != "exact":
            for kernel in prepared.report.ranking.kernels:
                if kernel.name == key and kernel.variants:
                    return kernel.variants[0].name, ()
        return key, ()

    def action_show_source(self) -> None:
        """Search for the source of the kernel under the cursor."""
        from magpie_tui.tui.dialogs.source import SourceDialog

        found = self._kernel()
        if found is not None:
            self.app.push_screen(SourceDialog(found[0], found[1], self.action_prepare_config))

    def action_prepare_config(self) -> None:
        """Show the command that takes the kernel into the campaign, and start it after asking."""
        from magpie_tui.tui.screens.kernel_config import ask_for_config

        found = self._kernel()
        if found is not None:
            stage = None if self.choice.stage is None else self.choice.stage.value
            ask_for_config(self.magpie, found[0], self.choice.root, stage)

    def action_choose_ceilings(self) -> None:
        """Ask for the ceilings that the rows are compared with."""
        from magpie_tui.traces.roofline.ceilings import ceilings_for, devices
        from magpie_tui.tui.dialogs.ask import AskDialog

        names = ", ".join(device.name for device in devices()[:8])
        note = f"{names} ... (:achievable, :measured), or a JSON file in TraceLens' form; empty: those of the device"

        def take(text: str | None) -> None:
            if text is not None:
                self.choose(replace(self.choice, arch=text.strip() or None))

        def check(text: str) -> object:
            return ceilings_for(text.strip()) if text.strip() else None

        self.app.push_screen(AskDialog("Ceilings", self.choice.arch or "", note=note, check=check), take)

    def action_export_tuning_list(self) -> None:
        """Ask for a file for the shapes of products and mixtures of experts."""
        from magpie_tui.tui.dialogs.ask import AskDialog

        note = "CSV: sizes, types, calls, time and what is to be won of each shape, for a tuner of GEMM or MoE kernels"
        suggestion = str(self.magpie.root / "tuning-list.csv")
        self.app.push_screen(AskDialog("Write the shapes to tune", suggestion, note=note), self._write_tuning_list)

    def _write_tuning_list(self, text: str | None) -> None:
        from magpie_tui.traces.roofline.tuning import tuning_csv, tuning_list

        prepared = self.prepared
        if not text or prepared is None:
            return
        stage = "all" if self.choice.stage is None else self.choice.stage.value
        entries = tuning_list(prepared.rooflines.get(listing_key(stage, Fold.none), ()))
        path = Path(text).expanduser().absolute()
        try:
            write_text(path, tuning_csv(entries) + "\n")
        except MagpieTuiError as error:
            self.magpie.show_error("write the shapes to tune", error)
            return
        self.say(f"{len(entries)} shapes were written to {printable(path)}")

    def action_compare(self) -> None:
        """Ask for another trace and compare it with this one."""
        from magpie_tui.tui.dialogs.ask import AskDialog
        from magpie_tui.tui.screens.trace_list import check_trace_path

        def take(text: str | None) -> None:
            from magpie_tui.tui.screens.trace_compare import TraceDiffScreen

            if text is not None:
                self.app.push_screen(TraceDiffScreen(self.choice.root, check_trace_path(text)))

        note = "a trace file, a directory of traces or a workspace; this one is A, that one is B"
        self.app.push_screen(AskDialog("Compare with", note=note, check=check_trace_path), take)

    # One row

    @on(VirtualTable.RowOpened)
    def _open_row(self, event: VirtualTable.RowOpened) -> None:
        from magpie_tui.tui.dialogs.viewer import TextDialog

        place, prepared = self.current_place(), self.prepared
        if event.table is not self.table or place is None or prepared is None:
            return
        if self.choice.pane == "steps" and listing_name(self.choice) == "stages":
            self.panes.show("kernels")
            self.panes.focus_pane()
            self.choose(replace(self.choice, pane="kernels", stage=stage_of_row(prepared, place)))
            return
        title, lines = detail_of(
            self.choice, prepared, place, self._dialog_width(), ascii_only=self.magpie.traits.ascii_only
        )
        self.app.push_screen(TextDialog(printable(title) or "This row", lines))

    def _dialog_width(self) -> int:
        return min(WIDEST_DIALOG, self.app.size.width * 9 // 10) - 6

    def action_explain(self) -> None:
        """Explain the number under the cursor."""
        from magpie_tui.tui.dialogs.viewer import TextDialog

        place, prepared, table = self.current_place(), self.prepared, self.table
        if place is None or prepared is None or table is None:
            return
        name = listing_name(self.choice)
        column = next(column for column in table.source.columns if column.id == table.cursor_column)
        lines = why_lines(prepared, name, prepared.listings[name], place, column.title, self._dialog_width())
        self.app.push_screen(TextDialog(f"Why this {column.title}", lines))

    # The summary

    def action_copy_summary(self) -> None:
        """Copy the balance."""
        if self.prepared is not None and isinstance(self.prepared.report, KernelReport):
            self.magpie.copy_text(summary_text(self.prepared.report, "table").rstrip("\n"))

    def action_export_summary(self) -> None:
        """Ask for a file for the balance."""
        from magpie_tui.tui.dialogs.ask import AskDialog

        note = "the ending says how: .csv .json .md .txt (as the command prints them)"
        suggestion = str(self.magpie.root / "trace-summary.json")
        self.app.push_screen(
            AskDialog("Export the summary to a file", suggestion, note=note, check=check_export_path), self._export
        )

    def _export(self, text: str | None) -> None:
        if text is None or self.prepared is None or not isinstance(self.prepared.report, KernelReport):
            return
        path = check_export_path(text)
        try:
            write_text(path, summary_text(self.prepared.report, ENDINGS[path.suffix.lower()]))
        except MagpieTuiError as error:
            self.magpie.show_error("export the summary", error)
            return
        self.say(f"the summary was written to {printable(path)}")

    def action_stop_reading(self) -> None:
        """Stop reading, or go back."""
        if self.is_reading:
            self.stop_reading()
        else:
            self.magpie.action_go_back()
