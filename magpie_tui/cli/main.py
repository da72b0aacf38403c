"""Entry point: builds the app, runs it, turns errors into messages and exit codes."""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import click
import typer

from magpie_tui import __version__
from magpie_tui.basics.errors import ExitCode, MagpieTuiError
from magpie_tui.cli.context import GlobalOptions
from magpie_tui.cli.group import LazyCommand, LazyGroup, add_global_options
from magpie_tui.cli.open_app import NO_MOUSE_FLAG, ROOT_FLAG
from magpie_tui.cli.standard_streams import discard_stdout, open_closed_streams

_KERNELS = "Kernels and benchmarks"
_CONFIGS = "Configs and machine"
_RESULTS = "Runs and results"

COMMANDS: dict[str, LazyCommand] = {
    "analyze": LazyCommand("magpie_tui.cli.analyze", "Prove kernels correct and time them.", _KERNELS),
    "compare": LazyCommand("magpie_tui.cli.compare", "Rank correct kernels against a baseline.", _KERNELS),
    "benchmark": LazyCommand("magpie_tui.cli.benchmark", "Benchmark a served model, or analyze its traces.", _KERNELS),
    "experiment": LazyCommand("magpie_tui.cli.experiment", "Run two configs in turns and judge the gain.", _KERNELS),
    "verdict": LazyCommand("magpie_tui.cli.verdict", "Judge serving runs that are there already.", _KERNELS),
    "campaign": LazyCommand("magpie_tui.cli.campaign", "Walk the nine steps to a judged gain.", _KERNELS),
    "config": LazyCommand("magpie_tui.cli.config", "Check, show, compare and copy configs.", _CONFIGS),
    "gpu-info": LazyCommand("magpie_tui.cli.gpu_info", "Show GPUs, compilers and profilers.", _CONFIGS),
    "trace": LazyCommand("magpie_tui.cli.trace", "Kernels, stages, gaps and rooflines of traces.", _RESULTS),
    "recommend": LazyCommand("magpie_tui.cli.recommend", "Name one kernel to work on, with evidence.", _RESULTS),
    "source": LazyCommand("magpie_tui.cli.source", "Find the source behind a kernel's name.", _RESULTS),
    "runs": LazyCommand("magpie_tui.cli.runs", "List, follow and stop runs.", _RESULTS),
    "workspaces": LazyCommand("magpie_tui.cli.workspaces", "Browse timestamped result directories.", _RESULTS),
    "verify": LazyCommand("magpie_tui.cli.verify", "Recompute every stated number from raw data.", _RESULTS),
    "mcp": LazyCommand("magpie_tui.cli.mcp", "Serve the commands as tools for agents.", _RESULTS),
    "paths": LazyCommand("magpie_tui.cli.paths", "Say where settings, state and caches lie.", _RESULTS),
}


class _Signalled(BaseException):
    """A termination signal arrived; unwinds the stack so that everything started is stopped."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


LazyGroup.lazy_commands = COMMANDS

app = typer.Typer(
    cls=LazyGroup,
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _top(
    context: typer.Context,
    root: Annotated[
        Path | None,
        typer.Option(ROOT_FLAG, metavar="DIR", help="Directory whose configs and results the app opens on."),
    ] = None,
    no_mouse: Annotated[
        bool, typer.Option(NO_MOUSE_FLAG, help="Leave the mouse to the terminal in the full-screen app.")
    ] = False,
    gpu_info: Annotated[bool, typer.Option("--gpu-info", help="Show GPU facts and exit (as upstream does).")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Terminal workbench for making GPU kernels of LLM serving faster, and proving it.

    Without a command the full-screen app opens.
    """
    options = context.ensure_object(GlobalOptions)
    options.root = root
    if version:
        typer.echo(f"magpie-tui {__version__}")
        raise typer.Exit(ExitCode.OK)
    if gpu_info:
        from magpie_tui.cli.gpu_info import show_gpu_info

        show_gpu_info()
        raise typer.Exit(ExitCode.OK)
    if context.invoked_subcommand is None:
        from magpie_tui.cli.open_app import open_app

        if options.verbose:
            _log_beside_the_screen()
        raise typer.Exit(open_app(root, mouse=not no_mouse, help_text=context.get_help()))


def _log_beside_the_screen() -> None:
    from magpie_tui.basics.logging_setup import set_up_logging
    from magpie_tui.basics.paths import private_directory, state_directory

    set_up_logging("DEBUG", file=private_directory(state_directory()) / "app.log")


def build() -> click.Command:
    """Return the click command of the whole program."""
    command = typer.main.get_command(app)
    # A group's own children are lazy and get the options when they are imported.
    add_global_options(command)
    return command


def _raise_signalled(number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)
    raise _Signalled(number)


def _invoke(arguments: list[str]) -> int:
    # Not click's own main(): it turns a closed pipe into exit 1.
    command = build()
    try:
        with command.make_context("magpie-tui", list(arguments)) as context:
            context.ensure_object(GlobalOptions).arguments = tuple(arguments)
            result = command.invoke(context)
        status = int(result) if isinstance(result, int) else ExitCode.OK
    except click.exceptions.Exit as finished:
        status = finished.exit_code
    sys.stdout.flush()
    return status


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    from magpie_tui.cli.errors import show_error, show_refusal, show_unexpected, show_usage_error

    open_closed_streams()
    for number in (signal.SIGTERM, signal.SIGHUP):
        # An ignored SIGHUP (nohup) stays ignored.
        with contextlib.suppress(ValueError):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _raise_signalled)
    try:
        return _invoke(list(sys.argv[1:] if arguments is None else arguments))
    except MagpieTuiError as error:
        show_error(error)
        return error.exit_code
    except click.exceptions.Abort:
        return ExitCode.INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return ExitCode.USER_INPUT
    except click.ClickException as error:
        show_usage_error(error)
        return ExitCode.USER_INPUT
    except BrokenPipeError:
        # The reader went away (head, less): nothing to say, and the interpreter must not complain at exit either.
        discard_stdout()
        return ExitCode.OK
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except _Signalled as signalled:
        return 128 + signalled.number
    except (OSError, MemoryError) as error:
        return show_refusal(error)
    except Exception as error:
        return show_unexpected(error)
