"""Three themes (dark, light, the terminal's own colours) and the choice between them.

Colour only repeats what a word says already. With NO_COLOR no colour at all is sent and the cursor is reverse video.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from textual.theme import Theme

DARK = "magpie-dark"
LIGHT = "magpie-light"
TERMINAL = "magpie-terminal"

TITLES = {
    DARK: "dark",
    LIGHT: "light",
    TERMINAL: "the terminal's own colours",
}

_FLAT = {"footer-background": "transparent", "block-cursor-text-style": "none", "border-blurred": "#3a4150"}

THEMES: tuple[Theme, ...] = (
    Theme(
        name=DARK,
        dark=True,
        primary="#7aa2d6",
        secondary="#8a94a6",
        accent="#c8a15a",
        success="#8ab573",
        warning="#d9a75b",
        error="#e0787a",
        foreground="#d5d9e0",
        background="#14171c",
        surface="#1a1e25",
        panel="#222731",
        variables={
            **_FLAT,
            "quiet": "#8790a0",
            "rule": "#3a4150",
            "block-cursor-background": "#2c3a52",
            "block-cursor-foreground": "#ffffff",
            "block-cursor-blurred-background": "#232c3b",
            "block-cursor-blurred-foreground": "#d5d9e0",
            "input-selection-background": "#7aa2d6 35%",
        },
    ),
    Theme(
        name=LIGHT,
        dark=False,
        primary="#1f5a9c",
        secondary="#5b6472",
        accent="#8a5a00",
        success="#2f6b1f",
        warning="#8a5a00",
        error="#a8262a",
        foreground="#1e2329",
        background="#fbfbf9",
        surface="#f3f3ef",
        panel="#e9e9e3",
        variables={
            **_FLAT,
            "quiet": "#5f6875",
            "rule": "#c4c8ce",
            "border-blurred": "#c4c8ce",
            "block-cursor-background": "#cfe0f5",
            "block-cursor-foreground": "#000000",
            "block-cursor-blurred-background": "#e3eaf3",
            "block-cursor-blurred-foreground": "#1e2329",
            "input-selection-background": "#1f5a9c 25%",
        },
    ),
    Theme(
        name=TERMINAL,
        dark=True,
        ansi=True,
        primary="ansi_blue",
        secondary="ansi_default",
        accent="ansi_cyan",
        success="ansi_green",
        warning="ansi_yellow",
        error="ansi_red",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        variables={
            "ansi-background": "ansi_black",
            "ansi-foreground": "ansi_white",
            "quiet": "ansi_default",
            "rule": "ansi_default",
            "border-blurred": "ansi_default",
            "footer-background": "ansi_default",
            "block-cursor-text-style": "reverse",
            "block-cursor-background": "ansi_default",
            "block-cursor-foreground": "ansi_default",
            "block-cursor-blurred-text-style": "reverse",
            "block-cursor-blurred-background": "ansi_default",
            "block-cursor-blurred-foreground": "ansi_default",
            "input-cursor-background": "ansi_default",
            "input-cursor-foreground": "ansi_default",
            "input-cursor-text-style": "reverse",
            "input-selection-background": "ansi_blue",
            "input-selection-foreground": "ansi_default",
            "screen-selection-background": "ansi_blue",
            "screen-selection-foreground": "ansi_default",
        },
    ),
)

VARIABLE_DEFAULTS = {"quiet": "#8790a0", "rule": "#3a4150"}
"""Our own CSS variables, for themes that do not set them."""

_SETTING = "theme"


def choose_theme(environment: Mapping[str, str], state_directory: Path) -> str:
    """Return the name of the theme to start with.

    In this order: NO_COLOR (the terminal's own, so that nothing but attributes is sent), ``MAGPIE_TUI_THEME`` (dark,
    light, terminal), the choice kept in the state directory, few colours, a light background that ``COLORFGBG`` tells.
    """
    if environment.get("NO_COLOR"):
        return TERMINAL
    for name in (environment.get("MAGPIE_TUI_THEME", ""), _kept(state_directory)):
        if f"magpie-{name}" in TITLES:
            return f"magpie-{name}"
    true_color = environment.get("COLORTERM", "") in ("truecolor", "24bit")
    if not true_color and "256" not in environment.get("TERM", "") and "direct" not in environment.get("TERM", ""):
        return TERMINAL
    return LIGHT if environment.get("COLORFGBG", "").split(";")[-1] in ("7", "15") else DARK


def _kept(state_directory: Path) -> str:
    from magpie_tui.basics.files import read_small

    try:
        return read_small(state_directory / _SETTING).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def keep_theme(name: str, state_directory: Path) -> None:
    """Remember the choice for the next start.

    Raises:
        MachineError: The state directory cannot be written.
    """
    from magpie_tui.basics.files import write_text
    from magpie_tui.basics.paths import private_directory

    write_text(private_directory(state_directory) / _SETTING, name.removeprefix("magpie-") + "\n")
