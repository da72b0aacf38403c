"""Launch: from a kernel config to a run, by a form that is declared once with the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.options import OptionValue, summary
from magpie_tui.basics.text import plural, printable
from magpie_tui.kernels.options import ANALYZE_OPTIONS, COMPARE_OPTIONS, analyze_request, compare_request
from magpie_tui.runs import layout
from magpie_tui.runs.launch import LaunchRequest
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.dialogs.confirm import YES, ConfirmDialog
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.widgets.option_form import ChoiceField, CommandPreview, OptionForm

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from magpie_tui.configs.review import Review
    from magpie_tui.runs.model import Run
    from magpie_tui.tui.screens.configs_reading import ConfigRow

MODES = ("analyze", "compare")
ENGINES = ("builtin", "magpie")
_GIVEN = frozenset({"kernels", "kernel_config", "testcase", "type", "compile_cmd"})
"""Options that the config stands for."""

_SPECS = {
    mode: tuple(spec for spec in specs if spec.name not in _GIVEN)
    for mode, specs in (("analyze", ANALYZE_OPTIONS), ("compare", COMPARE_OPTIONS))
}


class LaunchScreen(PlaceScreen):
    """Mode, engine, options, the command line, and what keeps it from starting.

    Args:
        config: A kernel config.
    """

    PLACE = "configs"
    CSS_PATH = "launch.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("LaunchScreen")
    HELP = (
        "Starts analyze or compare from a kernel config as a run of its own, which goes on when this program is "
        "closed.\n\n"
        "tab goes from field to field; left and right change a choice. The line with $ is the command that the form "
        "stands for. In a text field letters are text: there ctrl+s starts and ctrl+y copies.\n\n"
        "The config is checked for the mode and this machine is reviewed; what blocks the run is said below the "
        "command, and nothing can be started until it is gone. r looks again."
    )

    class Reviewed(Message):
        """A thread has reviewed the config for a mode."""

        def __init__(self, mode: str, review: Review | None, failure: str = "") -> None:
            super().__init__()
            self.mode = mode
            self.review = review
            self.failure = failure

    def __init__(self, config: ConfigRow) -> None:
        super().__init__()
        self._config = config
        self._review: Review | None = None
        self._failure = ""
        self._starting = False

    def compose_content(self) -> ComposeResult:
        """Choices, form, command, verdict."""
        for label, words in (("mode", MODES), ("engine", ENGINES)):
            with Horizontal(classes="choice", id=f"{label}-row"):
                yield Static(label, markup=False)
                yield ChoiceField(words, words[0])
        yield Vertical(id="form")
        yield CommandPreview()
        yield Static("", markup=False, id="blocked")

    def _choice(self, name: str) -> str:
        return self.query_one(f"#{name}-row").query_one(ChoiceField).value

    @property
    def mode(self) -> str:
        """``analyze`` or ``compare``."""
        return self._choice("mode")

    @property
    def form(self) -> OptionForm | None:
        """The options of the mode; None while they are built."""
        return next((form for form in self.query(OptionForm) if form.is_mounted), None)

    async def on_mount(self) -> None:
        """Build the form and review the config."""
        await self._build({"output_dir": str(self.magpie.root / "results")})
        self.query_one("#mode-row").query_one(ChoiceField).focus()
        self.reload()

    async def _build(self, values: dict[str, OptionValue]) -> None:
        engine = () if self._choice("engine") == "builtin" else ("--engine", self._choice("engine"))
        known = {spec.name for spec in _SPECS[self.mode]}
        command = ("magpie-tui", *engine, self.mode, "--kernel-config", str(self._config.path))
        kept = {name: value for name, value in values.items() if name in known}
        place = self.query_one("#form", Vertical)
        await place.remove_children()
        await place.mount(OptionForm(_SPECS[self.mode], command, kept))
        self._show()

    def subject(self) -> str:
        """The config."""
        return f"launch {self._config.name}"

    def equivalent_command(self) -> Sequence[str]:
        """The command of the form."""
        return () if self.form is None else self.form.words[1:]

    def reload(self) -> None:
        """Review again, in a thread."""
        self._review, self._failure = None, ""
        self._show()
        mode = self.mode
        path, output_dir = self._config.path, self._output_dir()

        def work() -> None:
            from magpie_tui.configs.review import review_config

            try:
                review = review_config(path, mode="compare" if mode == "compare" else "analyze", output_dir=output_dir)
            except MagpieTuiError as error:
                self.post_message(self.Reviewed(mode, None, str(error)))
            else:
                self.post_message(self.Reviewed(mode, review))

        self.run_worker(work, thread=True, group="review", exit_on_error=False, name="review the config")

    def _values(self) -> dict[str, OptionValue]:
        return {} if self.form is None else self.form.read()[0]

    def _output_dir(self) -> Path:
        return Path(str(self._values().get("output_dir") or "./results"))

    @on(Reviewed)
    def _reviewed(self, message: Reviewed) -> None:
        if message.mode == self.mode:
            self._review, self._failure = message.review, message.failure
            self._show()

    @on(ChoiceField.Changed)
    async def _chosen(self) -> None:
        await self._build(self._values())
        self.reload()

    @on(OptionForm.Changed)
    def _edited(self) -> None:
        self._show()

    def blocked(self) -> str:
        """Say what keeps it from starting; the empty string when nothing does."""
        if self.form is None:
            return "the form is being built"
        wrong = summary(self.form.read()[1])
        if wrong or self._failure:
            return wrong or self._failure
        if self._review is None:
            return "the review of this machine is not done yet"
        errors = [problem for problem in self._review.problems if problem.severity == "error"]
        if errors:
            said = "; ".join(f"line {problem.line}: {problem.message}" for problem in errors[:3])
            return f"{plural(len(errors), 'error')} in the config: {said}"
        if self._review.blockers:
            return "; ".join(f"{item.name}: {item.evidence}" for item in self._review.blockers[:3])
        return "it is starting" if self._starting else ""

    def _show(self) -> None:
        form = self.form
        if form is not None:
            self.query_one(CommandPreview).show(form.command_line)
        reason = self.blocked()
        waiting = self._review is None and not self._failure
        line = self.query_one("#blocked", Static)
        line.set_class(not reason, "-free")
        line.set_class(waiting, "-waiting")
        if waiting:
            line.update(Content("reviewing the config and this machine"))
        else:
            line.update(Content(printable(f"blocked: {reason}" if reason else "nothing blocks it: S starts")))
        self.update_frame()
        self.refresh_bindings()

    def disabled_reason(self, action: str) -> str | None:
        """Nothing starts while something blocks it."""
        return self.blocked() or None if action == "start" else None

    def action_copy_command(self) -> None:
        """Copy the command line."""
        if self.form is not None:
            self.magpie.copy_text(self.form.command_line)

    def action_start(self) -> None:
        """Ask, then start."""
        if self.form is None:
            return
        request = LaunchRequest(
            kind=self.mode,
            label=self._config.path.stem,
            command=(*_program(), *self.form.words[1:]),
            output_dir=self._output_dir(),
            cwd=Path.cwd(),
            env={**os.environ, "COLUMNS": "120", layout.COLOR_VARIABLE: "0"},
            engine=self._choice("engine"),
            detach=True,
        )
        values = {**self._values(), "kernel_config": str(self._config.path)}

        def answered(answer: str | None) -> None:
            if answer == YES:
                self._start(request, values)

        details = f"$ {self.form.command_line}\nresults go to {request.output_dir}; it goes on without this program"
        self.app.push_screen(ConfirmDialog(f"Start {request.kind} of {request.label}?", "start", details), answered)

    def _start(self, request: LaunchRequest, values: dict[str, OptionValue]) -> None:
        app = self.magpie
        self._starting = True
        self._show()

        def done(run: Run) -> None:
            app.background.read_runs()
            if app.screen is self:
                app.pop_screen()
            app.open_in_place("runs", run.id)
            app.say(f"started: {run.id}")

        def failed(error: MagpieTuiError) -> None:
            self._starting = False
            if self.is_mounted:
                self._show()
            app.show_error(f"start {request.kind} of {request.label}", error)

        def work() -> None:
            try:
                (compare_request if request.kind == "compare" else analyze_request)(values)
                run = app.services.run_calls.start(request)
            except MagpieTuiError as error:
                app.call_from_thread(failed, error)
            else:
                app.call_from_thread(done, run)

        app.run_worker(work, thread=True, group="act", exit_on_error=False, name=f"start {request.label}")


def _program() -> tuple[str, ...]:
    """Return the command of this program: the installed script, which does not look for modules where it is started."""
    script = Path(sys.argv[0]) if sys.argv else Path()
    if script.name == "magpie-tui" and script.is_file():
        return sys.executable, str(script.absolute())
    return sys.executable, "-m", "magpie_tui"
