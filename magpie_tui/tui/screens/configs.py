"""The place Configs: config files, checked as they are written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.message import Message

from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.screens.configs_base import ConfigScreen
from magpie_tui.tui.screens.configs_reading import ConfigReader, ConfigRow, Listing
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn, Tone
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from textual.app import ComposeResult

LOOK_EVERY_S = 2.0
EMPTY = "no config here\n\nmagpie-tui config new  lists the shipped ones and copies one\nr looks again"


def _tone(row: ConfigRow) -> Tone:
    if row.errors or row.gone:
        return "error"
    return "warning" if row.warnings else "ok"


COLUMNS: tuple[RowColumn[ConfigRow], ...] = (
    RowColumn[ConfigRow](id="path", title="path", max_width=200, fill=True, value=lambda row: row.name),
    RowColumn[ConfigRow](id="kind", title="kind", value=lambda row: row.kind),
    RowColumn[ConfigRow](id="state", title="state", value=lambda row: row.state, tone=_tone),
    RowColumn[ConfigRow](
        id="modified",
        title="modified",
        value=lambda row: datetime.fromtimestamp(row.modified).astimezone().strftime("%Y-%m-%d %H:%M"),
    ),
)


class ConfigsScreen(ConfigScreen):
    """All configs under the root, then the shipped ones."""

    BINDINGS: ClassVar[list[Any]] = bindings_for("ConfigsScreen")
    HELP = (
        "The kernel, benchmark and framework configs under the root directory, then those that come with the program. "
        "Each is checked, and again as soon as its file changes; r checks all of them again.\n\n"
        "enter shows the text with its problems, the effective values, a review of this machine and the twins of a "
        "benchmark config. o opens the file in $EDITOR. Mark two (space) and press d to see what differs. L launches "
        "analyze or compare from a kernel config.\n\n"
        "Hidden directories, node_modules and results are not searched. Filter words: kind:kernel state:error"
    )

    class Read(Message):
        """A thread has looked."""

        def __init__(self, listing: Listing) -> None:
            super().__init__()
            self.listing = listing

    def __init__(self) -> None:
        super().__init__()
        self._source = ListSource(COLUMNS, lambda row: str(row.path))
        self._pane = TablePane(self._source, name="configs", empty_text=EMPTY)
        self._rows: dict[str, ConfigRow] = {}
        self._listing: Listing | None = None
        self._reader: ConfigReader | None = None
        self._reading = False
        self._thorough = False

    def compose_content(self) -> ComposeResult:
        """The list."""
        yield self._pane

    @property
    def table(self) -> VirtualTable:
        """The list."""
        return self._pane.table

    @property
    def config(self) -> ConfigRow | None:
        """The config under the cursor."""
        return self._rows.get(self.table.cursor_key or "")

    def on_mount(self) -> None:
        """Look now, and then every two seconds."""
        self.table.show_loading("looking for configs")
        self._reader = ConfigReader(self.magpie.root)
        self._look()
        self.set_interval(LOOK_EVERY_S, self._look_if_seen)

    def equivalent_command(self) -> Sequence[str]:
        """Checking the config under the cursor."""
        return ("config", "new") if self.config is None else ("config", "check", str(self.config.path))

    def reload(self) -> None:
        """Check everything again."""
        self._thorough = True
        self._look()
        self.say("checking again")

    def _look_if_seen(self) -> None:
        if self.is_current:
            self._look()

    def _look(self) -> None:
        if self._reading or self._reader is None:
            return
        reader, thorough = self._reader, self._thorough
        self._reading, self._thorough = True, False
        self.run_worker(
            lambda: self.post_message(self.Read(reader.read(thorough=thorough))),
            thread=True,
            group="configs",
            exit_on_error=False,
            name="check the configs",
        )

    @on(Read)
    def _show(self, message: Read) -> None:
        self._reading = False
        if self._thorough:
            self._look()
        if message.listing == self._listing:
            return
        self._listing = message.listing
        self._rows = {str(row.path): row for row in message.listing.rows}
        self._source.replace(list(message.listing.rows))
        self.table.refresh_rows()
        self.stand(message.listing.note)
        self.update_frame()
        self.refresh_bindings()

    @on(VirtualTable.RowHighlighted)
    @on(VirtualTable.MarksChanged)
    def _moved(self) -> None:
        self.update_frame()
        self.refresh_bindings()

    @on(VirtualTable.RowOpened)
    def _opened(self) -> None:
        from magpie_tui.tui.screens.config_detail import ConfigDetailScreen

        if self.config is not None and self.app.screen is self:
            self.app.push_screen(ConfigDetailScreen(self.config))

    def _marked(self) -> list[Path]:
        return [row.path for key, row in self._rows.items() if key in self.table.marked_keys]

    def disabled_reason(self, action: str) -> str | None:
        """A difference needs two."""
        if action == "diff_configs" and len(self._marked()) != 2:
            return "mark two configs with space first"
        return super().disabled_reason(action)

    def action_diff_configs(self) -> None:
        """Show what differs between the two marked ones."""
        from magpie_tui.tui.screens.config_detail import ConfigDifferenceScreen

        first, second = self._marked()
        self.app.push_screen(ConfigDifferenceScreen(first, second))
