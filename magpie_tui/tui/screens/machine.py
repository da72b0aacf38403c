"""The place Machine: GPUs, who uses them, clocks and temperatures, the computer, tools, disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.machine_lines import machine_lines
from magpie_tui.tui.widgets.text_lines import TextLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from magpie_tui.tui.background import MachineReading


class MachineScreen(PlaceScreen):
    """Everything that was read about this machine, with a reason for everything that was not."""

    PLACE = "machine"
    CSS_PATH = "machine.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("MachineScreen")
    HELP = (
        "What this machine is and who else uses it. Row 1 of every screen has one letter per GPU: . idle, r our run, "
        "x somebody else's work, ! throttled by heat or power, ? unreadable.\n\n"
        "A value that could not be read is a dash; the reason stands at the end. The machine is read again every "
        "30 seconds (every minute over SSH), and at once with r."
    )

    def compose_content(self) -> ComposeResult:
        """One long text."""
        yield TextLines()

    def on_mount(self) -> None:
        """Follow the readings."""
        self.magpie.machine_changed.subscribe(self, self._show)
        self._show(self.magpie.machine_reading)

    def on_resize(self) -> None:
        """Lay the tables out for the new width."""
        self.call_after_refresh(lambda: self._show(self.magpie.machine_reading))

    def equivalent_command(self) -> Sequence[str] | None:
        """The same facts, printed."""
        return ("gpu-info",)

    def _show(self, reading: MachineReading | None) -> None:
        lines = ["", "  reading the machine"] if reading is None else machine_lines(reading, self.app.size.width - 2)
        if reading is None and self.magpie.failures.get("the machine"):
            lines = ["", f"  {self.magpie.failures['the machine']}", "  r reads again"]
        for text in self.query(TextLines):
            text.set_lines(lines)
        self.refresh_bindings()

    def disabled_reason(self, action: str) -> str | None:
        """Nothing can be copied before something was read."""
        if action == "copy_report" and self.magpie.machine_reading is None:
            return "the machine was not read yet"
        return None

    def action_copy_report(self) -> None:
        """Copy the whole text."""
        self.magpie.copy_text(self.query_one(TextLines).plain + "\n")
