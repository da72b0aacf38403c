"""Console script: the full-screen app starts without paying for the parser of the command line."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn


def _app_options(arguments: Sequence[str]) -> tuple[Path | None, bool] | None:
    """Root and mouse when there are no other options than those of the app; None: the whole parser is needed."""
    from magpie_tui.cli.open_app import NO_MOUSE_FLAG, ROOT_FLAG

    root: Path | None = None
    mouse = True
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word == NO_MOUSE_FLAG:
            mouse = False
        elif word == ROOT_FLAG and words and not words[0].startswith("-"):
            root = Path(words.pop(0))
        elif word.startswith(f"{ROOT_FLAG}="):
            root = Path(word.removeprefix(f"{ROOT_FLAG}="))
        else:
            return None
    return root, mouse


def _open_app_at_once(root: Path | None, mouse: bool) -> int:
    from magpie_tui.basics.errors import ExitCode, MagpieTuiError
    from magpie_tui.cli.errors import show_error, show_refusal, show_unexpected
    from magpie_tui.cli.open_app import open_app

    try:
        return open_app(root, mouse=mouse, help_text="")
    except MagpieTuiError as error:
        show_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except (OSError, MemoryError) as error:
        return show_refusal(error)
    except Exception as error:
        return show_unexpected(error)


def run() -> NoReturn:
    """Open the app when nothing else is asked for and there is a terminal; else run the command line."""
    # Until there is somebody to answer it, ctrl+c just ends the process: no traceback of half an import.
    waiting = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if waiting:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from magpie_tui.cli.standard_streams import open_closed_streams

    open_closed_streams()
    options = _app_options(sys.argv[1:])
    if options is not None and sys.stdin.isatty() and sys.stderr.isatty():
        if waiting:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.exit(_open_app_at_once(*options))
    # Imports and options make thousands of objects and hardly a cycle: looking for some at every 700 takes longer than
    # many a command.
    gc.set_threshold(20_000, 20, 20)
    from magpie_tui.cli.main import main

    if waiting:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
