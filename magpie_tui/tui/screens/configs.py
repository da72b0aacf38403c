"""The place Configs: config files, checked as they are written."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.content import Content
from textual.message import Message

from magpie_tui.basics.tables import shorten_middle
from magpie_tui.basics.text import plural, printable
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.screens.config_panes import problem_text
from magpie_tui.tui.screens.configs_base import ConfigScreen, shown_path
from magpie_tui.tui.screens.configs_reading import ConfigReader, ConfigRow, Listing
from magpie_tui.tui.screens.configs_watch import ConfigFeed
from magpie_tui.tui.seen import is_seen
from magpie_tui.tui.terminal import WIDE
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.one_line import OneLine
from magpie_tui.tui.widgets.side_by_side import SideBySide
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn, Tone
from magpie_tui.tui.widgets.table_view import SavedView
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from textual.app import ComposeResult

EMPTY = (
    "no config here\n\n"
    "N  copies one that comes with the program, to be changed\n"
    "r  looks again\n"
    "Configs elsewhere: open the program there, or with  magpie-tui --root DIR"
)
AT_ONCE_ROWS = 1_000
"""Longer lists are made ready in the thread, and painted as a whole."""

LAUNCH = "launch:"
"""Item by which another place asks for the choice of a config to start."""


def _tone(row: ConfigRow) -> Tone | None:
    if not row.checked:
        return "muted"
    return "error" if row.errors else "warning" if row.warnings else None


def _modified(row: ConfigRow) -> str | None:
    if row.modified is None:
        return None
    return datetime.fromtimestamp(row.modified).astimezone().strftime("%Y-%m-%d %H:%M")


COLUMNS: tuple[RowColumn[ConfigRow], ...] = (
    RowColumn[ConfigRow](
        id="path",
        title="path",
        max_width=60,
        grow=True,
        path=True,
        value=lambda row: f"shipped: {row.name}" if row.shipped else row.name,
        tone=lambda row: "muted" if row.shipped else None,
    ),
    RowColumn[ConfigRow](id="kind", title="kind", value=lambda row: row.kind),
    RowColumn[ConfigRow](id="state", title="state", value=lambda row: row.state, tone=_tone),
    RowColumn[ConfigRow](id="modified", title="modified", value=_modified),
    RowColumn[ConfigRow](
        id="about", title="about", max_width=120, shrink=False, fill=True, value=lambda row: row.about or None
    ),
    RowColumn[ConfigRow](id="kernels", title="kernels", hidden=True, value=lambda row: " ".join(row.kernels) or None),
    RowColumn[ConfigRow](
        id="where", title="where", hidden=True, value=lambda row: "shipped" if row.shipped else "root"
    ),
)


def view_for(width: int) -> SavedView:
    """Return the columns there is room for."""
    if width < 100:
        return SavedView(("path", "kind", "state"))
    if width < 130 or width >= WIDE:
        return SavedView(("path", "kind", "state", "modified"))
    return SavedView(("path", "kind", "state", "modified", "about"))


class SideDetail(SideBySide):
    """What is known of the config under the cursor; always from top to bottom."""

    DEFAULT_CSS = """
    Screen.-wide SideBySide > SideDetail { layout: vertical; }
    SideDetail > RuleRow { height: 1; }
    """


class ConfigsScreen(ConfigScreen):
    """All configs under the root, then the shipped ones."""

    BINDINGS: ClassVar[list[Any]] = bindings_for("ConfigsScreen")
    HELP = (
        "The kernel, benchmark and framework configs under the root directory, then those that come with the program. "
        "Each is checked as soon as its file changes, whoever changes it; r checks all of them again.\n\n"
        "State: ok; errors, nothing can be started from it; warnings, it runs but something is doubtful. The lower "
        "half says what is wrong; enter shows the text with its problems, the effective values, a review of this "
        "machine and the twins of a benchmark config.\n\n"
        "Mark two configs of one kind with space and press d to see in what they differ. N copies a config that comes "
        "with the program, with the sources that it names.\n\n"
        "Hidden directories, results, node_modules, build directories and virtual environments are not searched. "
        "Filter words: kind:kernel state:error where:shipped"
    )

    class Read(Message):
        """A thread has looked; it has made ready what would keep the loop of the app."""

        def __init__(self, listing: Listing) -> None:
            super().__init__()
            self.listing = listing
            self.rows = {row.key: row for row in listing.rows}
            is_long = len(listing.rows) > AT_ONCE_ROWS
            self.source = ListSource(COLUMNS, lambda row: row.key, listing.rows) if is_long else None
            self.counts = Counts.of(listing)

        def can_replace(self, message: Message) -> bool:
            """Only the newest list counts."""
            return isinstance(message, type(self))

    def __init__(self) -> None:
        super().__init__()
        self._source = ListSource(COLUMNS, lambda row: row.key)
        self._rows: dict[str, ConfigRow] = {}
        self._listing: Listing | None = None
        self._feed: ConfigFeed | None = None
        self._wanted: str | None = None

    def compose_content(self) -> ComposeResult:
        """Counts, the list, more about the row under the cursor."""
        yield OneLine(id="config-counts")
        with SideBySide():
            yield TablePane(self._source, name="configs", view=view_for(self.app.size.width), empty_text=EMPTY)
            with SideDetail():
                yield RuleRow(id="config-rule")
                yield TextLines(id="config-about")

    @property
    def table(self) -> VirtualTable:
        """The list."""
        return self.query_one(TablePane).table

    @property
    def config(self) -> ConfigRow | None:
        """The config under the cursor."""
        return self._rows.get(self.table.cursor_key or "") if self.is_mounted else None

    @property
    def listing(self) -> Listing | None:
        """What was read last."""
        return self._listing

    def on_mount(self) -> None:
        """Begin to read."""
        self.query_one("#config-about").can_focus = False
        self.table.show_loading("looking for configs")
        self.table.focus()
        feed_wanted = self._feed_is_wanted
        reader = ConfigReader(self.magpie.root, is_wanted=feed_wanted)
        self._feed = ConfigFeed(reader, lambda listing: void(self.post_message(self.Read(listing))), is_seen=self._seen)
        self._feed.start()

    def _feed_is_wanted(self) -> bool:
        return self._feed is not None and self._feed.is_wanted

    def _seen(self) -> bool:
        return is_seen(self)

    def on_unmount(self) -> None:
        """End the reading."""
        if self._feed is not None:
            self._feed.stop()

    def on_resize(self) -> None:
        """Choose the columns there is room for, and lay the detail out."""
        table = self.table
        fitting = view_for(self.app.size.width)
        if table.view != fitting and table.view in [view_for(each) for each in (80, 100, 140)]:
            table.set_view(fitting)
        self.call_after_refresh(self._show_detail)

    def equivalent_command(self) -> Sequence[str]:
        """Checking the config under the cursor."""
        config = self.config
        return ("config", "new") if config is None else ("config", "check", shown_path(config.path))

    def reload(self) -> None:
        """Check everything again."""
        if self._feed is not None:
            self._feed.read_again(forget=True)
        self.say("checking again")

    def file_changed(self) -> None:
        """Look again."""
        if self._feed is not None:
            self._feed.read_again()

    # What was read

    @on(Read)
    def _show(self, message: Read) -> None:
        listing = self._listing = message.listing
        self._rows = message.rows
        if message.source is None:
            if self.table.source is not self._source:
                self.table.set_source(self._source)
            self._source.replace(listing.rows)
            self.table.refresh_rows()
        else:
            self.table.set_source(message.source)
        self._show_detail()
        if self._wanted is not None:
            self.show_item(self._wanted)
        self.query_one("#config-counts", OneLine).update(counts_line(message.counts, self.app.size.width))
        self.update_frame()
        self.refresh_bindings()

    def show_item(self, item: str) -> None:
        """Put the cursor on the config at a path; ``launch:`` asks which kernel config to start."""
        self._wanted = item
        if self._listing is None:
            return
        if item == LAUNCH:
            if self._listing.complete:
                self._wanted = None
                self._choose_to_launch(self._listing)
        elif self.table.move_cursor_to_key(item):
            self._wanted = None

    def _choose_to_launch(self, listing: Listing) -> None:
        from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog

        rows = [row for row in listing.rows if row.kind in ("kernel", "benchmark") and not row.shipped]
        if not rows:
            self.say("there is no config to start from: N copies one that comes with the program")
            return
        choices = [Choice(row.key, row.name, row.summary) for row in rows]

        def chosen(key: str | None) -> None:
            if key is not None and self.table.move_cursor_to_key(key):
                self.action_launch_config()

        self.app.push_screen(ChoiceDialog("Start a run from which config?", choices), chosen)

    # The row under the cursor

    @on(VirtualTable.RowHighlighted)
    def _cursor_moved(self) -> None:
        self._show_detail()
        self.refresh_bindings()

    @on(VirtualTable.MarksChanged)
    def _marks_changed(self) -> None:
        self.refresh_bindings()

    def _show_detail(self) -> None:
        for rule in self.query("#config-rule").results(RuleRow):
            config = self.config
            rule.show("" if config is None else config.name, "" if config is None else config.summary)
            detail = self.query_one("#config-about", TextLines)
            detail.set_lines([] if config is None else detail_lines(config, detail.size.width or 80))
        self.update_frame()

    @on(VirtualTable.RowOpened)
    def _opened(self) -> None:
        from magpie_tui.tui.screens.config_detail import ConfigDetailScreen

        if self.config is not None and self.app.screen is self:
            self.app.push_screen(ConfigDetailScreen(self.config))

    # What can be done

    def _marked(self) -> list[ConfigRow]:
        marked = [self._rows[key] for key in self.table.marked_keys if key in self._rows]
        return sorted(marked, key=lambda row: (row.shipped, row.path.parts))

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if not self.is_mounted:
            return None
        if action == "diff_configs":
            return self._why_no_difference()
        return super().disabled_reason(action)

    def _why_no_difference(self) -> str | None:
        marked = self._marked()
        if len(marked) != 2:
            return "mark two configs with space first" + (f", {len(marked)} marked" if marked else "")
        if marked[0].kind != marked[1].kind:
            return f"a {marked[0].kind} config and a {marked[1].kind} config cannot be compared"
        return None

    def action_diff_configs(self) -> None:
        """Show in what the two marked ones differ."""
        from magpie_tui.tui.screens.configs_difference import ConfigDifferenceScreen

        first, second = self._marked()
        self.app.push_screen(ConfigDifferenceScreen(first.path, second.path))

    def action_new_config(self) -> None:
        """Ask which shipped config to copy and where to."""
        from magpie_tui.tui.screens.configs_new import ask_new_config

        config = self.config
        ask_new_config(
            self.magpie, self._copied, selected=config.name if config is not None and config.shipped else None
        )

    def _copied(self, written: tuple[Path, ...]) -> None:
        sources = f", with {plural(len(written) - 1, 'source')}" if len(written) > 1 else ""
        self.say(f"written: {printable(shown_path(written[0]))}{sources}")
        self.file_changed()
        self.show_item(str(written[0]))


def void(_value: object) -> None:
    """Drop a value."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What the line above the list says.

    Attributes:
        own: Configs of the root; of them ``checked``, ``wrong`` (errors) and ``doubtful`` (only warnings).
        shipped: Those that come with the program.
    """

    listing: Listing
    own: int
    checked: int
    wrong: int
    doubtful: int
    shipped: int

    @classmethod
    def of(cls, listing: Listing) -> Counts:
        """Count."""
        own = [row for row in listing.rows if not row.shipped]
        return cls(
            listing,
            own=len(own),
            checked=sum(row.checked for row in own),
            wrong=sum(row.errors > 0 for row in own),
            doubtful=sum(row.warnings > 0 and not row.errors for row in own),
            shipped=len(listing.rows) - len(own),
        )


def counts_line(counts: Counts, width: int) -> Content:
    """Say how many there are and what is wrong, and on the right how changes are found."""
    listing = counts.listing
    parts: list[str | tuple[str, str]] = [plural(counts.own, "config") if counts.own else "no config"]
    if counts.wrong:
        parts += [", ", (f"{counts.wrong:,} with errors", "$error")]
    if counts.doubtful:
        parts += [", ", (f"{counts.doubtful:,} with warnings", "$warning")]
    if counts.own and not counts.wrong and not counts.doubtful and counts.checked == counts.own:
        parts.append(", all ok")
    note = listing.mode
    if not listing.complete:
        note = f"checked {counts.checked:,} of {counts.own:,}"
    if listing.note:
        note = f"{listing.note}; {note}" if note else listing.note
    note = printable(note)
    extras = [f"; {counts.shipped:,} shipped"] if counts.shipped else []
    if listing.others:
        extras.append(f"; {plural(listing.others, 'other YAML file')}")
    left = Content.assemble(*parts)
    for extra in extras:
        if left.cell_length + len(extra) + len(note) + 2 <= width:
            left = Content.assemble(left, (extra, "$quiet"))
    note = shorten_middle(note, max(0, width - left.cell_length - 2))
    return Content.assemble(left, " " * max(2, width - left.cell_length - len(note)), (note, "$quiet"))


def detail_lines(row: ConfigRow, width: int) -> list[Content]:
    """Return what is known of a config without opening it: what it is for, and what is wrong with it."""
    lines: list[Content] = []

    def fact(name: str, text: str, style: str = "") -> None:
        first, *rest = textwrap.wrap(printable(text), max(20, width - 10)) or [""]
        lines.append(Content.assemble((f"{name:<9}", "$quiet"), (first, style)))
        lines.extend(Content.assemble(" " * 9, (more, style)) for more in rest)

    for problem in row.problems:
        style = "$error" if problem.severity == "error" else "$warning"
        place = f"{problem.line}:{problem.column}"
        fact(problem.severity, f"{place}  {problem_text(problem)}", style)
    more = row.errors + row.warnings - len(row.problems)
    if more:
        fact("", f"and {more:,} more")
    if row.about:
        fact("about", row.about)
    if row.kernels:
        fact("kernels", ", ".join(row.kernels))
    if row.shipped:
        fact("shipped", f"N copies it; it lies in {row.path.parent}")
    return lines
