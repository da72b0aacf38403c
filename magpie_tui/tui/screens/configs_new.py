"""Copying a config that comes with the program: which one, where to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import MagpieTuiError, UserInputError

if TYPE_CHECKING:
    from magpie_tui.configs.shipped import ShippedConfig
    from magpie_tui.tui.app import MagpieApp


def check_new_path(text: str) -> Path:
    """Return the file that was typed.

    Raises:
        UserInputError: It is there already, or has another ending than ``.yaml`` or ``.yml``.
    """
    path = Path(text.strip()).expanduser()
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise UserInputError("a config ends with .yaml or .yml", path=path)
    if path.exists():
        raise UserInputError("there is such a file already", path=path, hint="choose another name")
    return path.absolute()


def ask_new_config(app: MagpieApp, done: Callable[[tuple[Path, ...]], None], *, selected: str | None = None) -> None:
    """Ask which shipped config, then where to; copy it in a thread.

    Args:
        done: Gets the files written, the config first.
        selected: Name of the one under the cursor at first.
    """

    def read() -> None:
        from magpie_tui.configs.shipped import list_shipped

        try:
            configs = list_shipped()
        except MagpieTuiError as error:
            app.call_from_thread(app.show_error, "list the shipped configs", error)
        else:
            app.call_from_thread(_choose, app, configs, selected, done)

    app.run_worker(read, thread=True, group="act", exit_on_error=False, name="list the shipped configs")


def _choose(
    app: MagpieApp,
    configs: tuple[ShippedConfig, ...],
    selected: str | None,
    done: Callable[[tuple[Path, ...]], None],
) -> None:
    from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog

    by_name = {config.name: config for config in configs}

    def chosen(name: str | None) -> None:
        if name is not None:
            _ask_path(app, by_name[name], done)

    choices = [Choice(config.name, config.name, config.description) for config in configs]
    app.push_screen(ChoiceDialog("Copy which config?", choices, selected=selected), chosen)


def _ask_path(app: MagpieApp, config: ShippedConfig, done: Callable[[tuple[Path, ...]], None]) -> None:
    from magpie_tui.tui.dialogs.ask import AskDialog

    def answered(text: str | None) -> None:
        if text is not None:
            _copy(app, config, check_new_path(text), done)

    names = ", ".join(path.name for path in config.sources)
    note = f"also copied beside it: {names}" if names else "only this file is written"
    suggestion = str(app.root / config.path.name)
    app.push_screen(AskDialog(f"Copy {config.name} to", suggestion, note=note, check=check_new_path), answered)


def _copy(app: MagpieApp, config: ShippedConfig, target: Path, done: Callable[[tuple[Path, ...]], None]) -> None:
    def work() -> None:
        from magpie_tui.configs.shipped import copy_shipped

        try:
            written = copy_shipped(config, target)
        except MagpieTuiError as error:
            app.call_from_thread(app.show_error, f"copy {config.name}", error)
        else:
            app.call_from_thread(done, written)

    app.run_worker(work, thread=True, group="act", exit_on_error=False, name="copy the config")
