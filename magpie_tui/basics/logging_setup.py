"""Logs go to stderr, one line an event; the program's own log file lies in the state directory."""

from __future__ import annotations

import logging
import sys


def set_up_logging(*, verbose: bool = False, level: str = "WARNING") -> None:
    """Send records of this program to stderr at ``level``, or DEBUG when ``verbose``."""
    logger = logging.getLogger("magpie_tui")
    logger.handlers.clear()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbose else level)
    logger.propagate = False
