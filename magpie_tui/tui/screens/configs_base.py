"""What the screens of configs share: the config that is meant, editing it, launching from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.editor import edit_file
from magpie_tui.tui.screens.base import PlaceScreen

if TYPE_CHECKING:
    from magpie_tui.tui.screens.configs_reading import ConfigRow


def shown_path(path: Path) -> str:
    """Return a path as one types it: relative where it lies below the working directory."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


class ConfigScreen(PlaceScreen):
    """A screen that knows one config."""

    PLACE = "configs"
    CSS_PATH = "configs.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("ConfigScreen")

    @property
    def config(self) -> ConfigRow | None:
        """The config that is meant."""
        raise NotImplementedError

    def line_to_edit(self) -> int | None:
        """Return the line on which an editor shall start."""
        return None

    def file_changed(self) -> None:
        """Read the config again, after an editor had it."""
        raise NotImplementedError

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if action not in ("edit_config", "edit_here", "launch_config", "copy_path"):
            return None
        config = self.config
        if config is None:
            return "there is no config"
        if action in ("edit_config", "edit_here") and config.shipped:
            return "it comes with the program: N makes a copy to edit"
        if action == "launch_config" and config.kind == "framework":
            return "a framework config starts nothing: it is given with --config"
        if action == "launch_config" and config.kind is None:
            return "it is no config that can be started" if config.checked else "it is not checked yet"
        return None

    def action_edit_config(self) -> None:
        """Open it in the editor; it is checked again afterwards."""
        config = self.config
        if config is None:
            return
        code = edit_file(self.magpie, config.path, line=self.line_to_edit(), instead=": E edits here")
        if code is None:
            return
        self.file_changed()
        self.say("checking it again" if code == 0 else f"the editor ended with {code}; checking the file again")

    def action_edit_here(self) -> None:
        """Edit it on a screen of this program."""
        from magpie_tui.tui.screens.config_edit import ConfigEditScreen

        config = self.config
        if config is not None:
            screen = ConfigEditScreen(config.path, config.name, line=self.line_to_edit())
            self.app.push_screen(screen, lambda _none: self.file_changed())

    def action_launch_config(self) -> None:
        """Open the form that starts a run."""
        from magpie_tui.tui.screens.launch import LaunchScreen

        if self.config is not None:
            self.app.push_screen(LaunchScreen(self.config))

    def action_copy_path(self) -> None:
        """Copy its path."""
        if self.config is not None:
            self.magpie.copy_text(str(self.config.path))
