"""``magpie-tui paths``."""

from __future__ import annotations

from magpie_tui.basics.paths import cache_directory, config_directory, data_directory, state_directory
from magpie_tui.cli.group import Command, command_app
from magpie_tui.cli.output import Column, ListFormat, print_listing

app = command_app("Say where settings, state and caches lie.")


@app.command(cls=Command)
def paths() -> None:
    """Say where settings, state and caches lie.

    Example: magpie-tui paths --json
    """
    places = {
        "config": (config_directory(), "MAGPIE_TUI_CONFIG_DIR", "keymap, saved column views"),
        "state": (state_directory(), "MAGPIE_TUI_STATE_DIR", "output directories used, crash reports, copied text"),
        "cache": (cache_directory(), "MAGPIE_TUI_CACHE_DIR", "trace columns and indices; may be deleted"),
        "data": (data_directory(), "MAGPIE_TUI_DATA_DIR", "ceilings measured on this machine"),
    }
    print_listing(
        [Column("what"), Column("path"), Column("variable"), Column("holds")],
        [(name, path, variable, holds) for name, (path, variable, holds) in places.items()],
        list_format=ListFormat.table,
        json_value={
            name: {"path": path, "variable": variable, "exists": path.is_dir()}
            for name, (path, variable, _holds) in places.items()
        },
        empty="",
    )
