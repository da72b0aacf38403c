"""Opens a file in the user's editor, on the whole terminal, and comes back."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import MachineError

if TYPE_CHECKING:
    from textual.app import App

    from magpie_tui.tui.app import MagpieApp

FALLBACKS = ("nano", "vim", "vi")


def editor_command(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words of the editor: ``VISUAL``, ``EDITOR``, else the first of nano, vim and vi that there is.

    Raises:
        MachineError: The variable cannot be split into words, its program is missing, or there is no editor at all.
    """
    for name in ("VISUAL", "EDITOR"):
        value = environment.get(name, "").strip()
        if not value:
            continue
        try:
            words = tuple(shlex.split(value))
        except ValueError as error:
            raise MachineError(f"{name} is not a command: {error}", hint=f"export {name}=nano") from error
        if shutil.which(words[0], path=environment.get("PATH")) is None:
            raise MachineError(f"{name} names {words[0]}, which is not installed", hint=f"export {name}=vi")
        return words
    for name in FALLBACKS:
        if shutil.which(name, path=environment.get("PATH")):
            return (name,)
    raise MachineError("no editor was found", hint="export EDITOR=the one you use")


def with_editor(app: App[None], path: Path, *, line: int | None = None) -> int:
    """Suspend the app, open ``path`` in the editor, and come back; returns the editor's exit status.

    Args:
        line: Line to start on, counted from 1; passed as ``+N``, which nano, vi, emacs and most others know.

    Raises:
        MachineError: There is no editor, or it cannot be started.
    """
    words = editor_command(os.environ)
    place = [f"+{line}"] if line is not None else []
    with app.suspend():
        try:
            done = subprocess.run([*words, *place, str(path)], check=False)
        except OSError as error:
            raise MachineError(f"{words[0]} cannot be started: {error.strerror or error}") from error
    return done.returncode


def edit_file(app: MagpieApp, path: Path, *, line: int | None = None, instead: str = "") -> int | None:
    """Open ``path`` in the editor as ``with_editor`` does, and show on the screen why that is not possible.

    Args:
        instead: What can be done in a terminal that no editor can have: ``: E edits here``.

    Returns:
        The editor's exit status; None when there was no editing.
    """
    from textual.app import SuspendNotSupported

    try:
        return with_editor(app, path, line=line)
    except MachineError as error:
        app.show_error(f"edit {path.name}", error)
    except SuspendNotSupported:
        app.say(f"this terminal cannot be handed to an editor{instead}")
    return None
