"""The rows of the frame: what is open and where, the places, rules, the status line, the command, the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from magpie_tui.basics.tables import shorten_middle
from magpie_tui.basics.text import printable
from magpie_tui.basics.units import format_bytes
from magpie_tui.tui.actions import ActiveAction, OfferedActions, key_text
from magpie_tui.tui.facts import FrameFacts
from magpie_tui.tui.places import PLACES, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

Severity = Literal["information", "warning", "error"]
RULE = "─"


class Row(Widget):
    """One row that shows text built by ``text()``; repainted only when that text changes."""

    DEFAULT_CSS = """
    Row { height: 1; width: 1fr; padding: 0; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._content = Content("")

    def text(self, width: int) -> Content:
        """Return what the row shows at that width, in cells."""
        raise NotImplementedError

    def update(self) -> None:
        """Build the text again; equal text repaints nothing."""
        new = self.text(self.size.width or self.app.size.width)
        if not new.is_same(self._content):
            self._content = new
            self.refresh()

    def on_mount(self) -> None:
        """Show the first text."""
        self.update()

    def on_resize(self) -> None:
        """Lay the text out for the new width."""
        self.update()

    def render(self) -> Content:
        """Return the text built last."""
        return self._content


def header_text(subject: str, facts: FrameFacts, width: int) -> str:
    """Lay row 1 out: the program and what is open on the left, the machine on the right.

    Where it gets narrow the subject is cut in its middle, then the host goes, then the devices.
    """
    disk = f"disk {format_bytes(facts.disk_free_bytes)}" if facts.disk_free_bytes is not None else "disk ?"
    gpus = f"GPU {facts.letters}" if facts.letters else ""
    subject = printable(subject)
    for parts in (
        (printable(facts.host), printable(facts.devices), gpus, disk),
        (printable(facts.devices), gpus, disk),
        (gpus, disk),
    ):
        right = "  ".join(part for part in parts if part)
        room = width - cell_len(right) - 2 - len("magpie  ")
        if room >= min(cell_len(subject), 20):
            break
    left = f"magpie  {shorten_middle(subject, max(room, 8))}"
    return f"{left}{' ' * max(2, width - cell_len(left) - cell_len(right))}{right}"


class HeaderRow(Row):
    """Row 1."""

    def text(self, width: int) -> Content:
        """What is open, host, devices, a letter per GPU, free disk."""
        app: Any = self.app
        screen: Any = self.screen
        line = header_text(screen.subject(), app.facts, width)
        return Content.assemble(("magpie", "$primary bold"), line[len("magpie") :])


def places_text(current: str, live_runs: int, width: int) -> list[tuple[str, Place]]:
    """Return row 2 in pieces, one a place: the current one in brackets, ``*2`` behind Runs for two live runs."""

    def pieces(titles: Sequence[str], gap: str) -> list[tuple[str, Place]]:
        built = []
        for place, title in zip(PLACES, titles, strict=True):
            live = f"*{live_runs}" if place.name == "runs" and live_runs else ""
            name = f"{place.digit} {title}{live}" if title else place.digit + live
            built.append((f"[{name}]{gap[1:]}" if place.name == current else f" {name}{gap}", place))
        return built

    for titles, gap in (
        ([place.title for place in PLACES], " "),
        ([place.title if place.name == current else place.short for place in PLACES], " "),
        ([place.title if place.name == current else "" for place in PLACES], " "),
    ):
        built = pieces(titles, gap)
        if sum(len(text) for text, _place in built) <= width:
            break
    return built


class PlacesRow(Row):
    """Row 2."""

    DEFAULT_CSS = """
    PlacesRow { color: $quiet; }
    """

    def text(self, width: int) -> Content:
        """The places; the current one stands out."""
        app: Any = self.app
        screen: Any = self.screen
        parts: list[str | tuple[str, str]] = []
        for text, place in places_text(screen.PLACE, app.live_run_count, width):
            parts.append((text, "$foreground bold") if place.name == screen.PLACE else text)
        return Content.assemble(*parts)

    def on_click(self, event: Any) -> None:
        """Go to the place under the pointer."""
        app: Any = self.app
        screen: Any = self.screen
        position = 0
        for text, place in places_text(screen.PLACE, app.live_run_count, self.size.width):
            position += len(text)
            if event.x < position:
                app.action_go_place(place.name)
                return


class RuleRow(Row):
    """A rule: a title on its left, panes (the current one in brackets) and a note on its right.

    Args:
        title: Text on the left.
        note: Text on the right.
        panes: Names of panes between them.
        current: Index of the current pane.
    """

    DEFAULT_CSS = """
    RuleRow { color: $rule; }
    """

    def __init__(
        self, title: str = "", note: str = "", *, panes: Sequence[str] = (), current: int = 0, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self._title = title
        self._note = note
        self._panes = tuple(panes)
        self._current = current

    def show(
        self,
        title: str | None = None,
        note: str | None = None,
        *,
        panes: Sequence[str] | None = None,
        current: int | None = None,
    ) -> None:
        """Change what is given and keep the rest."""
        self._title = self._title if title is None else title
        self._note = self._note if note is None else note
        self._panes = self._panes if panes is None else tuple(panes)
        self._current = self._current if current is None else current
        self.update()

    def text(self, width: int) -> Content:
        """Lay the rule out over the whole width."""
        title, note = printable(self._title), printable(self._note)
        panes: list[tuple[str, str]] = []
        for index, name in enumerate(self._panes):
            chosen = index == self._current
            panes.append((f"[{name}]", "$foreground bold") if chosen else (f" {name} ", "$quiet"))
        panes_width = sum(len(text) for text, _style in panes)
        room = max(0, width - panes_width - 12)
        # Parts of a note, which mostly counts, would say something else than the whole.
        note = note if cell_len(note) <= max(0, room // 2, room - cell_len(title)) else ""
        title = shorten_middle(title, max(0, room - cell_len(note))) if title else ""
        parts: list[str | tuple[str, str]] = []
        if title:
            parts += [RULE * 2 + " ", (title, "$foreground"), " "]
        if panes:
            parts += [RULE * 2 + " ", *panes, " "]
        right: list[str | tuple[str, str]] = [" ", (note, "$quiet"), " " + RULE * 2] if note else []
        used = Content.assemble(*parts, *right).cell_length
        return Content.assemble(*parts, RULE * max(0, width - used), *right)


class StatusRow(RuleRow):
    """Row 26: a rule, replaced by one line when there is something to say."""

    DEFAULT_CSS = """
    StatusRow.-information { color: $foreground; }
    StatusRow.-warning { color: $warning; }
    StatusRow.-error { color: $error; }
    """

    SEVERITIES: ClassVar[tuple[Severity, ...]] = ("information", "warning", "error")

    def __init__(self) -> None:
        super().__init__()
        self._message = ""
        self._standing = ""

    def say(self, message: str, severity: Severity = "information") -> None:
        """Show one line until the next key is pressed; an empty message brings the standing note or the rule back."""
        self._message = message
        self._show(severity)

    def stand(self, note: str) -> None:
        """Show ``note`` whenever there is no message (how old the data are, what a filter hides)."""
        self._standing = note
        self._show("information")

    @property
    def message(self) -> str:
        """The message shown now, or the empty string."""
        return self._message

    def _show(self, severity: Severity) -> None:
        shown = self._message or self._standing
        for name in self.SEVERITIES:
            self.set_class(bool(shown) and name == severity, f"-{name}")
        self.update()

    def text(self, width: int) -> Content:
        """The message, else the standing note, else the rule."""
        shown = self._message or self._standing
        if not shown:
            return Content(RULE * width)
        return Content(shorten_middle(printable(shown), width))


class CommandRow(Row):
    """Row 27: the command that prints what the screen shows."""

    DEFAULT_CSS = """
    CommandRow { color: $quiet; }
    """

    def text(self, width: int) -> Content:
        """The command line after a dollar sign; nothing when there is no such command."""
        screen: Any = self.screen
        command = screen.command_line()
        return Content(shorten_middle(f"$ {printable(command)}", width) if command else "")


def footer_parts(actions: Sequence[ActiveAction], width: int) -> list[tuple[str, str, bool]]:
    """Return (key, label, possible) for the actions that fit; ``? help`` is kept at the end.

    Where it gets narrow, going deeper and what only this screen can do are worth more than what every table can.

    Args:
        actions: What can be done now, innermost first.
        width: Cells of the row.
    """
    shown: list[tuple[str, str, bool]] = []
    last: list[tuple[str, str, bool]] = []
    for active in _in_footer_order(actions):
        if not active.action.footer or not active.keys:
            continue
        part = (key_text(active.keys[0]), active.action.label, active.reason is None)
        (last if active.action.id == "app.show_help" else shown).append(part)

    def used(parts: list[tuple[str, str, bool]]) -> int:
        words = sum(len(key) + len(label) + (1 if possible else 3) for key, label, possible in parts)
        return words + 2 * max(0, len(parts) - 1)

    while shown and used(shown + last) > width:
        shown.pop()
    return shown + last


_BUSY_WIDGETS = frozenset({"VirtualTable", "LogView"})
"""Widgets with more keys than the row has room for."""


def _in_footer_order(actions: Sequence[ActiveAction]) -> Sequence[ActiveAction]:
    if not any(active.action.target in _BUSY_WIDGETS for active in actions):
        return actions

    def rank(active: ActiveAction) -> int:
        if active.action.target in _BUSY_WIDGETS:
            return 0 if "enter" in active.action.keys else 2
        return 2 if active.action.target == "PlaceScreen" else 1

    return sorted(actions, key=rank)


class FooterRow(Row):
    """Row 28: the keys that work now, for the focused widget."""

    DEFAULT_CSS = """
    FooterRow { color: $quiet; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._offered: OfferedActions | None = None

    def on_mount(self) -> None:
        """Follow the focus."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _screen: self.update())
        super().on_mount()

    def text(self, width: int) -> Content:
        """Key and word pairs; what is impossible now stands in brackets."""
        if self._offered is None:
            self._offered = OfferedActions(self.screen)
        parts: list[str | tuple[str, str]] = []
        for key, label, possible in footer_parts(self._offered.now(footer_only=True), width):
            if parts:
                parts.append("  ")
            parts += [(key, "$foreground bold"), f" {label}"] if possible else [(f"({key} {label})", "$rule")]
        return Content.assemble(*parts)


class TooSmall(Widget):
    """Takes the place of everything in a terminal that is too small."""

    DEFAULT_CSS = """
    TooSmall { display: none; width: 1fr; height: 1fr; content-align: center middle; text-align: center; }
    """

    def render(self) -> Content:
        """What is needed, and what there is."""
        from magpie_tui.tui.terminal import MINIMUM_HEIGHT, MINIMUM_WIDTH

        size = self.app.size
        return Content(f"too small, needs {MINIMUM_WIDTH}x{MINIMUM_HEIGHT}\n(is {size.width}x{size.height})")
