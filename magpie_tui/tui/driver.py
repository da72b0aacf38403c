"""The terminal driver, made to live through bytes that are not UTF-8 and through a terminal that goes away."""

from __future__ import annotations

import errno

from textual.drivers.linux_driver import LinuxDriver

from magpie_tui.basics.errors import ExitCode


class TolerantDriver(LinuxDriver):
    """Textual's driver; its input thread would end the app at the first byte that is not UTF-8."""

    def run_input_thread(self) -> None:
        """Read keys; what cannot be decoded is dropped, and a terminal that is gone ends the app as a hang-up does."""
        while not self.exit_event.is_set():
            try:
                super().run_input_thread()
            except UnicodeDecodeError:
                continue
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                self._app.call_later(self._app.exit, return_code=int(ExitCode.HUNG_UP))
            return
