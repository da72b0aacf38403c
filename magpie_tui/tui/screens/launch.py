"""Launch: from a config to a run, by a form whose options are declared once with the command line."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import set_cell_size
from textual import on
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.options import OptionValue
from magpie_tui.basics.tables import shorten_middle
from magpie_tui.basics.text import plural, printable
from magpie_tui.runs import layout
from magpie_tui.runs.launch import LaunchRequest
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.configs_base import shown_path
from magpie_tui.tui.screens.launch_checks import (
    ENGINES,
    MODES_OF_KIND,
    SERVED,
    LaunchMode,
    Obstacle,
    Point,
    Readiness,
    duration_text,
    find_obstacles,
    form_specs,
    last_duration,
)
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.option_form import ChoiceField, CommandPreview, OptionForm

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from magpie_tui.configs.review import Review
    from magpie_tui.runs.model import Run
    from magpie_tui.tui.screens.configs_reading import ConfigRow

CHECK_AFTER_S = 0.3
MOST_LINES = 6


class LaunchScreen(PlaceScreen):
    """Mode, engine, options, the command line, and what keeps it from starting.

    Args:
        config: A kernel or benchmark config.
    """

    PLACE = "configs"
    CSS_PATH = "launch.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("LaunchScreen")
    HELP = (
        "Starts a run from a config. The run is a process of its own: it goes on when this program is closed, and is "
        "found again in the place Runs.\n\n"
        "up and down (or tab) go from field to field; left and right change a choice. The line with $ is the command "
        "that the form stands for: typed in a shell it does the same. In a text field letters are text: there ctrl+s "
        "starts and ctrl+y copies.\n\n"
        "What the command itself would find out before it starts is looked at now: errors in the config, the engine, "
        "compilers, GPUs, disk. What blocks the run is said at the bottom, with what to do, and nothing can be started "
        "until it is gone; r looks again. What does not block has a ? in front. A benchmark and an experiment show "
        "each point of their review as it is decided: ok, warning, blocker or unknown, with what was seen.\n\n"
        "An experiment compares this config (A) with another one (optimized, B) in interleaved pairs.\n\n"
        "How long it takes is what the last run of the same mode from this config took, where there is one; of an "
        "experiment, what earlier runs of the same models took, times its runs."
    )

    class Looked(Message):
        """A thread has looked for obstacles."""

        def __init__(self, turn: int, readiness: Readiness) -> None:
            super().__init__()
            self.turn = turn
            self.readiness = readiness

    class PointLooked(Message):
        """A point of a served run's review is decided."""

        def __init__(self, turn: int, point: Point) -> None:
            super().__init__()
            self.turn = turn
            self.point = point

    def __init__(self, config: ConfigRow) -> None:
        super().__init__()
        self._points: list[Point] = []
        self._config = config
        self._modes = MODES_OF_KIND[config.kind or "kernel"]
        self._readiness: Readiness | None = None
        self._review: Review | None = None
        self._turn = 0
        self._timer: Timer | None = None
        self._starting = False

    def compose_content(self) -> ComposeResult:
        """Choices, form, command, what blocks it."""
        start = "compare" if "compare" in self._modes and len(self._config.kernels) > 1 else self._modes[0]
        engines = ENGINES[:1] if start in SERVED else ENGINES
        for label, words, word in (("mode", self._modes, start), ("engine", engines, ENGINES[0])):
            with Horizontal(classes="choice", id=f"{label}-row"):
                yield Static(label, markup=False)
                yield ChoiceField(words, word)
        yield RuleRow("options", id="options-rule")
        yield Vertical(id="form")
        yield RuleRow("command", id="command-rule")
        yield CommandPreview()
        yield RuleRow("", id="ready-rule")
        yield Static("", markup=False, id="obstacles")

    # What is chosen

    def _choice(self, name: str) -> ChoiceField:
        return self.query_one(f"#{name}-row").query_one(ChoiceField)

    @property
    def mode(self) -> LaunchMode:
        """What will be done."""
        word = self._choice("mode").value
        return next(mode for mode in self._modes if mode == word)

    @property
    def engine(self) -> str:
        """Who does it."""
        return self._choice("engine").value

    @property
    def form(self) -> OptionForm | None:
        """The options of the mode; None while they are built."""
        return next((form for form in self.query(OptionForm) if form.is_mounted), None)

    @property
    def readiness(self) -> Readiness | None:
        """What was found; None while it is looked for."""
        return self._readiness

    def subject(self) -> str:
        """The config."""
        return f"launch {self._config.name}"

    def equivalent_command(self) -> Sequence[str]:
        """What says whether it can run here."""
        return ("config", "review", shown_path(self._config.path))

    def _command(self) -> tuple[str, ...]:
        engine = () if self.engine == ENGINES[0] else ("--engine", self.engine)
        flag = {"benchmark": "--benchmark-config", "experiment": "--baseline"}.get(self.mode, "--kernel-config")
        return ("magpie-tui", *engine, self.mode, flag, shown_path(self._config.path))

    def _values(self) -> dict[str, OptionValue]:
        return {} if self.form is None else self.form.read()[0]

    def _output_dir(self) -> Path:
        return Path(str(self._values().get("output_dir") or "./results"))

    # Building

    async def on_mount(self) -> None:
        """Build the form and look for obstacles."""
        await self._build({"output_dir": self._default_output()})
        self._choice("mode").focus()
        self._look()

    def _default_output(self) -> str:
        shown = shown_path(self.magpie.root / "results")
        return "./results" if shown == "results" else shown

    async def _build(self, values: dict[str, OptionValue]) -> None:
        specs = form_specs(self.mode, self.engine, self._config.kernels)
        known = {spec.name for spec in specs}
        kept = {name: value for name, value in values.items() if name in known}
        place = self.query_one("#form", Vertical)
        await place.remove_children()
        await place.mount(OptionForm(specs, self._command(), kept))
        self._show()

    @on(ChoiceField.Changed)
    async def _chosen(self) -> None:
        values = self._values()
        values.pop("baseline", None)
        self._review = None
        await self._build({"output_dir": self._default_output(), **values})
        self._look()

    @on(OptionForm.Changed)
    def _edited(self) -> None:
        self._readiness = None
        self._turn += 1
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(CHECK_AFTER_S, self._look)
        self._show()

    # Looking

    def reload(self) -> None:
        """Look for obstacles again, this machine included."""
        self._review = None
        self._look()
        self.say("looking again")

    def _look(self) -> None:
        self._readiness = None
        self._turn += 1
        self._points = []
        turn, path, mode, engine = self._turn, self._config.path, self.mode, self.engine
        values, output_dir = self._values(), self._output_dir()

        def told(point: Point) -> None:
            self.post_message(self.PointLooked(turn, point))

        def work() -> None:
            readiness = find_obstacles(
                path,
                mode,
                engine,
                values,
                output_dir=output_dir,
                review=self._review,
                on_point=told,
            )
            self.post_message(self.Looked(turn, readiness))

        self.run_worker(work, thread=True, exclusive=True, group="look", exit_on_error=False, name="check the run")
        self._show()

    @on(Looked)
    def _take(self, message: Looked) -> None:
        if message.turn == self._turn:
            self._readiness = message.readiness
            self._show()

    @on(PointLooked)
    def _take_point(self, message: PointLooked) -> None:
        if message.turn == self._turn:
            self._points.append(message.point)
            self._show()

    def blocked(self) -> str:
        """Say why it cannot start now; the empty string when it can."""
        if self.form is None:
            return "the form is being built"
        wrong = list(self.form.read()[1].values())
        if wrong:
            return wrong[0]
        if self._readiness is None:
            return "it is not known yet whether it can run here"
        if self._readiness.blockers:
            return self._readiness.blockers[0].text
        return "it is starting" if self._starting else ""

    # Showing

    def duration(self) -> str:
        """How long it may take, as far as that is known."""
        last = last_duration(self.magpie.runs or (), self.mode, self._config.path)
        if last is not None and self.mode != "experiment":
            run, seconds = last
            return f"about {duration_text(seconds)}, as the last time ({run.id})"
        return "" if self._readiness is None else self._readiness.budget

    def _show(self) -> None:
        form = self.form
        if form is not None:
            self.query_one(CommandPreview).show(form.command_line)
        self.query_one("#command-rule", RuleRow).show(note=self.duration())
        title, lines = self._verdict()
        self.query_one("#ready-rule", RuleRow).show(title)
        self.query_one("#obstacles", Static).update(Content("\n").join(lines))
        self.update_frame()
        self.refresh_bindings()

    def _verdict(self) -> tuple[str, list[Content]]:
        wrong = [] if self.form is None else list(self.form.read()[1].values())
        if wrong:
            return "blocked", self._cut(self._lines([Obstacle("form", text) for text in wrong]))
        if self._starting:
            return "starting", []
        if self._readiness is None:
            if self._points:
                return f"checking, {counts_text(self._points)}", self._cut(self._point_lines(self._points[::-1]))
            return "checking", [Content.assemble(("the config, the engine and this machine", "$quiet"))]
        readiness = self._readiness
        counts = f", {counts_text(readiness.points)}" if readiness.points else ""
        calm = self._point_lines([point for point in readiness.points if point.item.status in ("unknown", "ok")])
        if readiness.blockers:
            title = f"blocked by {plural(len(readiness.blockers), 'thing')}{counts}"
            return title, self._cut([*self._lines(readiness.obstacles), *calm])
        free = Content.assemble(("nothing is in the way: S starts it", "$success"))
        return f"ready{counts}", [free, *self._cut([*self._lines(readiness.obstacles), *calm])]

    def _point_lines(self, points: Sequence[Point]) -> list[Content]:
        """One line a point, its status in front."""
        width = max(30, self.app.size.width - 12)
        return [
            Content.assemble(
                (f"{point.item.status:<9}", _STYLES[point.item.status]),
                set_cell_size(shorten_middle(printable(point.text), width), width).rstrip(),
            )
            for point in sorted(points, key=lambda point: point.item.status == "ok")
        ]

    def _lines(self, obstacles: Sequence[Obstacle]) -> list[Content]:
        width = max(30, self.app.size.width - 3)
        lines: list[Content] = []
        for item in sorted(obstacles, key=lambda item: not item.blocks):
            mark = ("! ", "$error bold") if item.blocks else ("? ", "$warning bold")
            first, *rest = textwrap.wrap(printable(item.text), width) or [""]
            lines.append(Content.assemble(mark, first))
            lines += [Content(f"  {line}") for line in rest]
            if item.hint:
                lines += [
                    Content.assemble((f"  {line}", "$quiet")) for line in textwrap.wrap(printable(item.hint), width)
                ]
        return lines

    def _cut(self, lines: list[Content]) -> list[Content]:
        """Leave out what there is no room for, and say so."""
        limit = MOST_LINES if self.app.size.height >= 28 else MOST_LINES - 2
        limit += MOST_LINES - 2 if self.mode in SERVED else 0  # the form scrolls, and there is much to see
        if len(lines) > limit:
            more = len(lines) - limit + 1
            lines = [
                *lines[: limit - 1],
                Content.assemble((f"  and {plural(more, 'more line')}: i shows all", "$quiet")),
            ]
        return lines

    def on_resize(self) -> None:
        """Lay the sentences out again."""
        self.call_after_refresh(self._show)

    # What can be done

    def disabled_reason(self, action: str) -> str | None:
        """Nothing starts while something blocks it."""
        if not self.is_mounted:
            return None
        if action == "start":
            return self.blocked() or None
        if action == "show_obstacles" and (
            self._readiness is None or not (self._readiness.obstacles or self._readiness.points)
        ):
            return "nothing is in the way" if self._readiness is not None else "it is being checked"
        return None

    def action_move_field(self, step: int) -> None:
        """Go to another field."""
        if step > 0:
            self.focus_next()
        else:
            self.focus_previous()

    def action_copy_command(self) -> None:
        """Copy the command line."""
        if self.form is not None:
            self.magpie.copy_text(self.form.command_line)

    def action_show_obstacles(self) -> None:
        """Show everything that was found, whole."""
        from magpie_tui.tui.dialogs.viewer import TextDialog

        if self._readiness is None:
            return
        lines: list[str] = []
        width = max(40, min(110, round(self.app.size.width * 0.9) - 8))
        for item in self._readiness.obstacles:
            word = "blocks" if item.blocks else "doubtful"
            lines += textwrap.wrap(f"{word:<8}  {printable(item.text)}", width, subsequent_indent=" " * 10)
            lines += textwrap.wrap(printable(item.hint), width, initial_indent=" " * 10, subsequent_indent=" " * 10)
            lines.append("")
        for point in self._readiness.points:
            if point.item.status in ("ok", "unknown"):
                words = f"{point.item.status:<8}  {printable(point.text)}"
                lines += textwrap.wrap(words, width, subsequent_indent=" " * 10)
                hint = printable(point.item.hint or "")
                lines += textwrap.wrap(hint, width, initial_indent=" " * 10, subsequent_indent=" " * 10)
        lines.append("")
        self.app.push_screen(TextDialog("Before it starts", lines[:-1]))

    def action_start(self) -> None:
        """Say exactly what will happen, ask, then start."""
        from magpie_tui.tui.dialogs.confirm import YES, ConfirmDialog

        if self.form is None:
            return
        request = LaunchRequest(
            kind=self.mode,
            label=self._config.path.stem,
            command=(*own_program(), *self.form.words[1:]),
            output_dir=self._output_dir(),
            cwd=Path.cwd(),
            env={**os.environ, "COLUMNS": "120", layout.COLOR_VARIABLE: "0"},
            engine=self.engine,
            detach=True,
        )

        def answered(answer: str | None) -> None:
            if answer == YES:
                self._start(request)

        takes = self.duration() or "nobody knows yet: it is the first run of this config"
        details = (
            f"$ {self.form.command_line}\n\n"
            f"takes    {takes}\n"
            f"results  {request.output_dir}\n"
            "It goes on when this program is closed."
        )
        config = "/".join(self._config.path.parts[-2:])
        self.app.push_screen(ConfirmDialog(f"Start {request.kind} with {config}?", "start", details), answered)

    def _start(self, request: LaunchRequest) -> None:
        app = self.magpie
        self._starting = True
        self._show()

        def started(run: Run) -> None:
            self._starting = False
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
                run = app.services.run_calls.start(request)
            except MagpieTuiError as error:
                app.call_from_thread(failed, error)
            else:
                app.call_from_thread(started, run)

        app.run_worker(work, thread=True, group="act", exit_on_error=False, name=f"start {request.label}")


_STYLES = {"ok": "$success", "warning": "$warning", "blocker": "$error", "unknown": "$quiet"}


def counts_text(points: Sequence[Point]) -> str:
    """``14 ok, 2 warnings, 3 unknown``."""
    words = []
    for status in ("ok", "warning", "blocker", "unknown"):
        count = sum(point.item.status == status for point in points)
        if count:
            words.append(plural(count, status) if status in ("warning", "blocker") else f"{count} {status}")
    return ", ".join(words)


def own_program() -> tuple[str, ...]:
    """Return the command of this program: the installed script, which does not look for modules where it is started."""
    script = Path(sys.argv[0]) if sys.argv else Path()
    if script.name == "magpie-tui" and script.is_file():
        return sys.executable, str(script.absolute())
    return sys.executable, "-m", "magpie_tui"
