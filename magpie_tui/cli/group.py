"""Click classes behind the Typer app.

Three things that Typer does not do by itself: modules of commands are imported only when their command is used, so
that ``--help`` stays cheap; global options are accepted before and after the sub-command; and a repeated option takes
several values at once (``--categories a b``), as upstream's command line does.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from magpie_tui.cli.context import GlobalOptions

GLOBAL_PANEL = "Global options"
_LARGEST_NUMBER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command, or group of commands, that lives in a module of its own.

    Attributes:
        module: Dotted name of the module that holds ``app``, a ``typer.Typer``, or the function.
        help: One line for the top-level help.
        panel: Heading under which the top-level help lists it.
        hidden: Left out of the help.
        function: Name of the command's function; None where the module has an ``app``.
    """

    module: str
    help: str
    panel: str
    hidden: bool = False
    function: str | None = None

    def load(self, name: str) -> click.Command:
        """Import the module and return its command under ``name``."""
        module = importlib.import_module(self.module)
        app: typer.Typer
        if self.function is None:
            app = module.app
        else:
            app = command_app(self.help)
            app.command(name, cls=Command)(getattr(module, self.function))
        command = typer.main.get_command(app)
        command.name = name
        return command


def _global_parameters() -> list[TyperOption]:
    def option(*names: str, **settings: Any) -> TyperOption:
        settings.setdefault("default", None)
        created = TyperOption(
            param_decls=list(names), rich_help_panel=GLOBAL_PANEL, expose_value=False, callback=_store, **settings
        )
        return created

    path = click.Path(path_type=Path)
    return [
        option("--json", is_flag=True, help="Print strict JSON on stdout, nothing else."),
        option("--verbose", "-v", is_flag=True, help="Log at DEBUG level to stderr; the app: to app.log."),
        option("--config", "-c", type=path, metavar="FILE", help="Framework config with defaults for every command."),
        option(
            "--environment",
            "-e",
            type=click.Choice(["local", "container", "ray"]),
            help="Where the work runs.",
        ),
        option(
            "--engine",
            type=click.Choice(["builtin", "magpie", "tracelens"]),
            help="builtin (default), or drive an installed upstream tool.",
        ),
        option("--workers", "-w", type=click.IntRange(min=1), metavar="N", help="Scheduler workers (upstream engine)."),
        option("--docker-image", metavar="IMAGE", help="Image for the container environment."),
        option("--detach", is_flag=True, help="Start the run, print its id and leave it to its supervisor."),
        option("--no-color", is_flag=True, help="No colours (also the variable NO_COLOR)."),
    ]


def _store(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    name = parameter.name
    if name is None or value is None or value is False:
        return
    options = context.find_root().ensure_object(GlobalOptions)
    setattr(options, name, value)
    options.given.add(name)
    if name == "verbose":
        from magpie_tui.basics.logging_setup import set_up_logging

        set_up_logging("DEBUG")


def add_global_options(command: click.Command) -> None:
    """Give ``command`` those global options whose names it does not use itself, and do so for its sub-commands."""
    taken = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    for option in _global_parameters():
        free = [name for name in option.opts if name not in taken]
        if not any(name.startswith("--") for name in free):
            continue
        option.opts = free
        command.params.append(option)
    if isinstance(command, click.Group):
        for child in command.commands.values():
            add_global_options(child)


def expand_multiple(command: click.Command, arguments: Sequence[str]) -> list[str]:
    """Rewrite ``--option a b`` as ``--option a --option b`` for every repeatable option of ``command``.

    Values end at the next token that starts with ``-``, or at ``--``. An option without values stands for the empty
    list and is passed on with one empty string.
    """
    repeatable = {
        name
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.multiple and not parameter.is_flag
        for name in parameter.opts
    }
    expanded: list[str] = []
    position = 0
    while position < len(arguments):
        token = arguments[position]
        position += 1
        if token == "--":
            expanded.append(token)
            expanded.extend(arguments[position:])
            break
        if token not in repeatable:
            expanded.append(token)
            continue
        values = []
        while position < len(arguments) and not arguments[position].startswith("-"):
            values.append(arguments[position])
            position += 1
        for value in values or [""]:
            expanded += [token, value]
    return expanded


def _require_usable_numbers(context: click.Context, parameter: click.Parameter) -> None:
    """Refuse what no option can mean and no range of an option keeps out: NaN, infinities, numbers beyond 64 bits."""
    value = context.params.get(parameter.name or "")
    for number in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(number, float) and not math.isfinite(number):
            raise click.BadParameter(f"{number} is no number that can be used here.", context, parameter)
        if isinstance(number, int) and abs(number) > _LARGEST_NUMBER:
            raise click.BadParameter(f"a number of {len(str(number))} digits is too large.", context, parameter)


class Command(TyperCommand):
    """A command whose repeatable options take several values."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse ``args`` after expanding the repeatable options."""
        rest = super().parse_args(ctx, expand_multiple(self, args))
        for parameter in self.params:
            _require_usable_numbers(ctx, parameter)
        return rest


class CommandGroup(TyperGroup):
    """A group of commands."""


class LazyGroup(TyperGroup):
    """A group whose commands are imported when they are used."""

    lazy_commands: dict[str, LazyCommand] = {}  # noqa: RUF012 - filled once, by the module that makes the group

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._listing_only = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(self.lazy_commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and return its click command; a light stand-in while help is printed."""
        lazy = self.lazy_commands.get(cmd_name)
        if lazy is None:
            return None
        if self._listing_only:
            stand_in = TyperCommand(cmd_name, help=lazy.help, hidden=lazy.hidden, rich_help_panel=lazy.panel)
            return stand_in
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        command = lazy.load(cmd_name)
        add_global_options(command)
        self.commands[cmd_name] = command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and name the nearest one when there is none of that name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from magpie_tui.basics.text import nearest

            guess = nearest(args[0], self.lazy_commands) if args else None
            if guess and guess not in error.message:
                raise click.UsageError(f"{error.message} Did you mean {guess!r}?", ctx) from None
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an option that prints facts and ends the program comes before any command is looked up."""
        if ctx.params.get("gpu_info") or ctx.params.get("version"):
            return click.Command.invoke(self, ctx)
        return super().invoke(ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the help without importing any command."""
        self._listing_only = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing_only = False


def command_app(help_text: str) -> typer.Typer:
    """Return a Typer for a module that holds exactly one command."""
    return typer.Typer(help=help_text, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def group_app(help_text: str, cls: type[TyperGroup] = CommandGroup) -> typer.Typer:
    """Return a Typer for a module that holds a group of commands."""
    return typer.Typer(
        help=help_text,
        cls=cls,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


CommandFunction = Callable[..., Any]
