"""Console script: the full-screen app starts without paying for the parser of the command line."""

from __future__ import annotations

import sys
from typing import NoReturn


def _open_app_at_once() -> int:
    from magpie_tui.basics.errors import ExitCode, MagpieTuiError
    from magpie_tui.cli.errors import show_error, show_unexpected
    from magpie_tui.cli.open_app import open_app

    try:
        return open_app(None, help_text="")
    except MagpieTuiError as error:
        show_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Exception as error:
        return show_unexpected(error)


def run() -> NoReturn:
    """Open the app when there are no arguments and a terminal; else run the command line."""
    if len(sys.argv) == 1 and sys.stdin.isatty() and sys.stderr.isatty():
        sys.exit(_open_app_at_once())
    from magpie_tui.cli.main import main

    sys.exit(main())
