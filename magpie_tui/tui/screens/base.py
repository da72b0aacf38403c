"""The frame that every screen stands in."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, ClassVar

from textual.screen import Screen

from magpie_tui.tui.actions import Explaining, bindings_for
from magpie_tui.tui.seen import is_seen
from magpie_tui.tui.terminal import MINIMUM_HEIGHT, MINIMUM_WIDTH, WIDE
from magpie_tui.tui.widgets.frame import (
    CommandRow,
    FooterRow,
    HeaderRow,
    PlacesRow,
    Row,
    RuleRow,
    Severity,
    StatusRow,
    TooSmall,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from magpie_tui.tui.app import MagpieApp

SIZE_CLASSES_WIDTH: list[tuple[int, str]] = [
    (0, "-too-narrow"),
    (MINIMUM_WIDTH, "-narrow"),
    (100, "-normal"),
    (WIDE, "-wide"),
]
SIZE_CLASSES_HEIGHT: list[tuple[int, str]] = [(0, "-too-low"), (MINIMUM_HEIGHT, "-low"), (28, "-high")]
"""CSS classes of a screen by its size: ``-narrow`` is less than 100 columns, ``-low`` less than 28 rows."""


class PlaceScreen(Explaining, Screen[None], inherit_bindings=False):
    """A screen of a place: the rows of the frame around what ``compose_content`` yields.

    A subclass sets ``PLACE`` and ``HELP``, yields its widgets, and says what is open (``subject``) and which command
    prints the same (``equivalent_command``).
    """

    PLACE: str = ""
    """Name of the place in ``places.PLACES``."""

    HELP: ClassVar[str] = ""
    """What the screen is about, for help; plain text, paragraphs parted by empty lines."""

    BINDINGS: ClassVar[list[Any]] = bindings_for("PlaceScreen")
    _styled_as: tuple[object, ...] | None = None
    HORIZONTAL_BREAKPOINTS = SIZE_CLASSES_WIDTH
    VERTICAL_BREAKPOINTS = SIZE_CLASSES_HEIGHT

    DEFAULT_CSS = """
    PlaceScreen { layout: vertical; overflow: hidden; }
    PlaceScreen.-too-narrow > *, PlaceScreen.-too-low > * { display: none; }
    PlaceScreen.-too-narrow > TooSmall, PlaceScreen.-too-low > TooSmall { display: block; }
    """

    @property
    def magpie(self) -> MagpieApp:
        """The app, typed."""
        from magpie_tui.tui.app import MagpieApp

        assert isinstance(self.app, MagpieApp)
        return self.app

    def _compositor_refresh(self) -> None:
        # Textual 8.2 draws the whole screen while the app starts, when nothing may be painted yet, and throws it away.
        if not self.app._batch_count:
            super()._compositor_refresh()

    def update_node_styles(self, animate: bool = True) -> None:
        """Textual's hook: style the screen and all in it again.

        Textual 8.2 does that whenever a screen is shown; only after a change of what its rules can ask for is there
        anything to do.
        """
        look = self._style_inputs()
        if look != self._styled_as:
            self._styled_as = look
            super().update_node_styles(animate)

    def _style_inputs(self) -> tuple[object, ...]:
        # Of its pseudo-classes only that of a disabled screen matters to anything in it: our rules ask for no other.
        app = self.app
        return (app.theme, app.classes, frozenset(app.pseudo_classes), self.classes, self.disabled)

    @property
    def is_current(self) -> bool:
        """True while somebody can see this screen.

        For Textual 8.2 a screen hidden by another one is current too, and each change in it paints the whole terminal.
        """
        return is_seen(self)

    def compose(self) -> ComposeResult:
        """Put the frame around the content."""
        self._take_size()
        # What is composed now gets its styles when it is mounted.
        self._styled_as = self._style_inputs()
        yield HeaderRow()
        yield PlacesRow()
        yield RuleRow()
        yield from self.compose_content()
        yield StatusRow()
        yield CommandRow()
        yield FooterRow()
        yield TooSmall()

    def _take_size(self) -> None:
        """Have the classes of the terminal's size from the beginning: taken later, they style everything again."""
        width, height = self.app.size
        for breakpoints, cells in ((self.HORIZONTAL_BREAKPOINTS, width), (self.VERTICAL_BREAKPOINTS, height)):
            for least, name in reversed(breakpoints or ()):
                if cells >= least:
                    self.set_class(True, name, update=False)
                    break

    def compose_content(self) -> ComposeResult:
        """Yield the widgets between row 3 and row 26; together they take ``height: 1fr``."""
        raise NotImplementedError

    def subject(self) -> str:
        """Return what is open, for row 1; by default the name of the root directory."""
        root = self.magpie.root
        return root.name or str(root)

    def equivalent_command(self) -> Sequence[str] | None:
        """Return the words after ``magpie-tui`` that print what this screen shows, or None when no command does."""
        return None

    def command_line(self) -> str:
        """Return the equivalent command as it is typed in a shell, or the empty string."""
        words = self.equivalent_command()
        return "" if words is None else shlex.join(["magpie-tui", *words])

    def say(self, message: str, severity: Severity = "information") -> None:
        """Show one line in row 26 until the next key."""
        for row in self.query(StatusRow):
            row.say(message, severity)

    def stand(self, note: str) -> None:
        """Show ``note`` in row 26 whenever there is no message; the empty string takes it away."""
        for row in self.query(StatusRow):
            row.stand(note)

    def update_frame(self) -> None:
        """Build the rows of the frame again, after the subject, the command or the facts have changed."""
        for row in self.query(Row):
            row.update()

    def action_reload(self) -> None:
        """Read everything again."""
        self.reload()

    def reload(self) -> None:
        """Start reading what the screen shows; the base class reads runs and machine."""
        self.magpie.background.read_now()
        self.say("reading again")

    def show_item(self, item: str) -> None:
        """Put the cursor on a run (its id) or a workspace (its path) that another place asked to open."""

    def action_launch_from_config(self) -> None:
        """Go to the place Configs and choose the config to start a run from."""
        self.magpie.open_in_place("configs", "launch:")

    @property
    def too_small(self) -> bool:
        """True when the terminal cannot show this screen."""
        return self.app.size.width < MINIMUM_WIDTH or self.app.size.height < MINIMUM_HEIGHT
