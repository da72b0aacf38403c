"""What a log view tells its screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from magpie_tui.processes.log_index import Growth, LogIndex
    from magpie_tui.tui.widgets.log_core import LogCore


class LogMessage(Message):
    """A message of one log view, which ``@on`` selectors may name."""

    def __init__(self, view: LogCore) -> None:
        super().__init__()
        self.view = view
        # As the messages of tables: a pane that acts on the view is not their sender.
        self.set_sender(view)

    @property
    def control(self) -> LogCore:
        """The view that sent it."""
        return self.view


class LogMessages:
    """The messages as attributes of the view: ``LogView.Advanced``."""

    class Advanced(LogMessage, namespace="log_view"):
        """Lines were added, following began or ended, or updates were paused; the view's properties tell which."""

        def can_replace(self, message: Message) -> bool:
            """Only the last of several counts."""
            return isinstance(message, type(self)) and message.view is self.view

    class Noted(LogMessage, namespace="log_view"):
        """Something to say in the status row."""

        def __init__(self, view: LogCore, text: str) -> None:
            super().__init__(view)
            self.text = text

    class LineOpened(LogMessage, namespace="log_view"):
        """The user wants to read a whole line; ``text`` is harmless for a terminal."""

        def __init__(self, view: LogCore, number: int, text: str) -> None:
            super().__init__(view)
            self.number = number
            self.text = text

    class CopyRequested(LogMessage, namespace="log_view"):
        """Text for the clipboard, and what it is."""

        def __init__(self, view: LogCore, text: str, what: str) -> None:
            super().__init__(view)
            self.text = text
            self.what = what

    class SearchRequested(LogMessage, namespace="log_view"):
        """The user wants to type what to search for; the view's ``search`` takes it."""

    class TimeRequested(LogMessage, namespace="log_view"):
        """The user wants to type a time; the view's ``jump_to_time`` takes it."""

    class Indexed(LogMessage, namespace="log_view"):
        """A thread has looked at the file; when not ``finished`` it goes on."""

        def __init__(self, view: LogCore, index: LogIndex, growth: Growth, finished: bool) -> None:
            super().__init__(view)
            self.finished = finished
            self.index = index
            self.growth = growth

    class MatchesFound(LogMessage, namespace="log_view"):
        """A thread has found matching lines; ``searched_to`` is set when it is through."""

        def __init__(self, view: LogCore, generation: int, lines: list[int], searched_to: int | None) -> None:
            super().__init__(view)
            self.generation = generation
            self.lines = lines
            self.searched_to = searched_to

    class LineFound(LogMessage, namespace="log_view"):
        """A thread has found the line of a flag or a time, or None."""

        def __init__(self, view: LogCore, index: LogIndex, line: int | None, what: str) -> None:
            super().__init__(view)
            self.index = index
            self.line = line
            self.what = what
