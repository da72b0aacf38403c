"""The terminal driver, made to live through bytes that are not UTF-8 and through a terminal that goes away."""

from __future__ import annotations

import codecs
import errno
import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from magpie_tui.basics.errors import ExitCode

if TYPE_CHECKING:
    from textual.app import App


def _dropping_decoder(encoding: str) -> Callable[[], codecs.IncrementalDecoder]:
    return functools.partial(codecs.getincrementaldecoder(encoding), errors="ignore")


# Textual's input thread makes its decoder by this name and ends the app at the first byte that is not UTF-8; catching
# that error would lose the keys that came in the same read, or after the first byte of a torn character.
linux_driver.getincrementaldecoder = _dropping_decoder  # type: ignore[assignment, attr-defined]


class InputEnd(threading.Event):
    """Tells the input thread to end: when it is set, and in any case when the main thread is over.

    The thread is none that the interpreter ends by itself: one that nobody told would keep the process for ever.
    """

    def is_set(self) -> bool:
        """Whether to end."""
        return super().is_set() or not threading.main_thread().is_alive()


class TolerantDriver(LinuxDriver):
    """Textual's driver; what cannot be decoded is dropped, and a terminal that is gone ends the app as a hang-up."""

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self.exit_event = InputEnd()

    def run_input_thread(self) -> None:
        """Read keys until the app ends."""
        try:
            super().run_input_thread()
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self._app.call_later(self._app.exit, return_code=int(ExitCode.HUNG_UP))
