"""What this program logs: one line an event on stderr, or in a file while the screen is the app's.

Nothing is set up, and ``logging`` not imported, before somebody asks for it.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = "magpie_tui"
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def set_up_logging(level: str, *, file: Path | None = None) -> None:
    """Log records of at least ``level`` (``DEBUG`` ... ``CRITICAL``) to stderr, or to ``file``.

    Raises:
        OSError: The file cannot be opened.
    """
    import logging

    handler = logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger = logging.getLogger(_ROOT)
    for old in logger.handlers[:]:
        logger.removeHandler(old)
        old.close()
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False


def is_set_up() -> bool:
    """True when somebody asked for a log."""
    logging = sys.modules.get("logging")
    return logging is not None and bool(logging.getLogger(_ROOT).handlers)


def log_debug(name: str, message: str, *values: object) -> None:
    """Log a step for whoever follows what the program does: ``message % values``, under the module's ``name``."""
    if is_set_up():
        import logging

        logging.getLogger(name).debug(message, *values)
