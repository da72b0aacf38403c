"""What the screens of configs share: the config that is meant, editing it, launching from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.editor import with_editor
from magpie_tui.tui.screens.base import PlaceScreen

if TYPE_CHECKING:
    from magpie_tui.tui.screens.configs_reading import ConfigRow


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
        """Return the line on which the editor shall start."""
        return None

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if action not in ("edit_config", "launch_config"):
            return None
        config = self.config
        if config is None:
            return "there is no config"
        if action == "edit_config" and config.shipped:
            name = config.name.removeprefix("shipped: ")
            return f"it is shipped: magpie-tui config new {name} makes a copy to edit"
        if action == "launch_config" and config.kind != "kernel":
            return f"a {config.kind} config is not launched here: analyze and compare need a kernel config"
        return None

    def action_edit_config(self) -> None:
        """Open it in the editor; it is checked again afterwards."""
        if self.config is None:
            return
        from textual.app import SuspendNotSupported

        try:
            code = with_editor(self.app, self.config.path, line=self.line_to_edit())
        except MagpieTuiError as error:
            self.magpie.show_error(f"edit {self.config.name}", error)
            return
        except SuspendNotSupported:
            self.say("this terminal cannot be handed to an editor")
            return
        self.reload()
        self.say("checking again" if code == 0 else f"the editor ended with {code}; checking again")

    def action_launch_config(self) -> None:
        """Open the form."""
        from magpie_tui.tui.screens.launch import LaunchScreen

        if self.config is not None:
            self.app.push_screen(LaunchScreen(self.config))
