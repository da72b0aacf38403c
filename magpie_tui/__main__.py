"""``python -m magpie_tui`` is the same program as ``magpie-tui``."""

from __future__ import annotations

from magpie_tui.cli.entry import run

if __name__ == "__main__":
    run()
