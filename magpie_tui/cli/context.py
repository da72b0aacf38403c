"""The global options, which may stand before or after the sub-command."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import click


@dataclass(slots=True)
class GlobalOptions:
    """Values of the global options of one invocation; ``None`` means that the user did not give the option."""

    json: bool = False
    verbose: bool = False
    config: Path | None = None
    """Framework config (upstream's ``--config``)."""
    environment: str | None = None
    engine: str | None = None
    workers: int | None = None
    docker_image: str | None = None
    detach: bool = False
    no_color: bool = False
    root: Path | None = None
    given: set[str] = field(default_factory=set)
    """Names of the options that the user typed."""
    arguments: tuple[str, ...] = ()
    """The whole command line after the name of the program, as typed."""


def global_options() -> GlobalOptions:
    """Return the global options of the command that runs now."""
    context = click.get_current_context(silent=True)
    if context is None:
        return GlobalOptions()
    options = context.find_root().obj
    return options if isinstance(options, GlobalOptions) else GlobalOptions()
