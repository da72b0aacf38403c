"""A comparison or an analysis started again: from what its workspace, or the run that made it, wrote down."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from magpie_tui.basics.errors import MagpieTuiError, UserInputError
from magpie_tui.basics.files import is_directory, is_regular_file, open_regular
from magpie_tui.basics.options import OptionSpec, OptionValue, command_words, read_words
from magpie_tui.basics.redact import REDACTED
from magpie_tui.basics.text import printable
from magpie_tui.configs.check import check_file
from magpie_tui.configs.kernel import KernelConfig
from magpie_tui.kernels.options import ANALYZE_OPTIONS, COMPARE_OPTIONS
from magpie_tui.runs.model import Run
from magpie_tui.workspaces.detail import WorkspaceDetail
from magpie_tui.workspaces.values import as_list, as_mapping, as_text, as_texts

Mode = Literal["analyze", "compare"]
PROGRAM = "magpie-tui"

GLOBAL_OPTIONS: tuple[OptionSpec, ...] = (
    OptionSpec("config", ("--config", "-c"), "path", "Framework config."),
    OptionSpec("environment", ("--environment", "-e"), "text", "Where the work runs."),
    OptionSpec("engine", ("--engine",), "text", "Who does the work."),
    OptionSpec("workers", ("--workers", "-w"), "integer", "Scheduler workers."),
    OptionSpec("docker_image", ("--docker-image",), "text", "Image for the container environment."),
    OptionSpec("json", ("--json",), "flag", "JSON on stdout."),
    OptionSpec("verbose", ("--verbose", "-v"), "flag", "More in the log."),
    OptionSpec("detach", ("--detach",), "flag", "Leave it to its supervisor."),
    OptionSpec("no_color", ("--no-color",), "flag", "No colours."),
)
"""Options of every command. How a run shows itself is no part of doing it again."""
_KEPT = frozenset({"config", "environment", "engine", "workers", "docker_image"})
_OTHER_DATA = frozenset({"seed", "fail_on", "only", "baseline"})
"""Options that a confirmation has of its own: fresh seeds, other kernels."""


@dataclass(frozen=True, slots=True)
class Again:
    """How a workspace came about, so that it can be done once more.

    Attributes:
        general: Options of every command that matter to it, by name.
        values: Options of the command, by name.
        directory: Where it was started; relative paths belong to it.
        config: The kernel config, absolute; None when source files were given instead.
        sha256: Of the config's bytes then; None when nobody wrote it down.
        output_dir: Where the results go: beside those that there are.
    """

    mode: Mode
    general: Mapping[str, OptionValue]
    values: Mapping[str, OptionValue]
    directory: Path
    config: Path | None
    sha256: str | None
    output_dir: Path

    @property
    def engine(self) -> str:
        """Who does the work."""
        return str(self.general.get("engine") or "builtin")

    @property
    def label(self) -> str:
        """Name of the run."""
        sources = self.values.get("kernels")
        first = Path(sources[0]).stem if isinstance(sources, tuple) and sources else ""
        return self.config.stem if self.config is not None else first

    @property
    def words(self) -> tuple[str, ...]:
        """The words after the program's name."""
        general = command_words([spec for spec in GLOBAL_OPTIONS if spec.name in _KEPT], self.general, ())
        return command_words(
            _specs(self.mode), {**self.values, "output_dir": self._shown_output()}, (*general, self.mode)
        )

    def _shown_output(self) -> str:
        try:
            return str(self.output_dir.relative_to(self.directory))
        except ValueError:
            return str(self.output_dir)

    def changed(self) -> bool:
        """Say whether the config has other bytes now than then."""
        if self.config is None or self.sha256 is None:
            return False
        try:
            with open_regular(self.config) as file:
                return hashlib.sha256(file.read()).hexdigest() != self.sha256
        except OSError:
            return True


def how_again(detail: WorkspaceDetail, run: Run | None = None) -> Again:
    """Return how a workspace was made.

    Args:
        run: The run that made it, where it is known: upstream's workspaces have no record of ours.

    Raises:
        UserInputError: Nobody wrote it down, another command did it, or what it needs is gone.
    """
    record = detail.record or {}
    line, place = as_texts(record.get("command_line")), as_text(record.get("working_directory"))
    if len(line) > 1 and place is not None:
        words, directory = line[1:], Path(place)
    elif run is not None and len(run.command) > 2:
        words, directory = run.command[3 if run.command[1] == "-m" else 2 :], run.cwd
    else:
        raise UserInputError("nothing here says how it was started: no command line in its record, and no run of ours")
    if any(REDACTED in word for word in words):
        raise UserInputError("its command line held a secret, which was not kept")
    mode, general, values = _understood(words)
    again = Again(mode, general, values, directory, None, None, detail.path.parent)
    given = values.get("kernel_config")
    if given is not None:
        again = replace(again, config=directory / str(given), sha256=_sha256(record))
    require(again)
    return again


def _understood(words: Sequence[str]) -> tuple[Mode, dict[str, OptionValue], dict[str, OptionValue]]:
    """Part a command line into the command, the options of every command, and its own."""
    modes = get_args(Mode)
    for mode in modes:
        if mode not in words:
            continue
        try:
            values = read_words((*GLOBAL_OPTIONS, *_specs(mode)), words)
        except UserInputError as error:
            raise UserInputError(f"its command line is not understood: {error.message}") from error
        sources = values.get("kernels")
        if not isinstance(sources, tuple) or sources[0] != mode:
            continue
        names = {spec.name for spec in GLOBAL_OPTIONS}
        general = {name: value for name, value in values.items() if name in _KEPT}
        own = {name: value for name, value in values.items() if name not in names and name != "kernels"}
        return mode, general, {**own, **({"kernels": sources[1:]} if sources[1:] else {})}
    command = next((word for word in words if not word.startswith("-")), "another command")
    raise UserInputError(f"it was started by {PROGRAM} {printable(command)}, which does more than compare")


def _specs(mode: Mode) -> tuple[OptionSpec, ...]:
    return COMPARE_OPTIONS if mode == "compare" else ANALYZE_OPTIONS


def _sha256(record: Mapping[str, object]) -> str | None:
    files = [as_mapping(item) for item in as_list(record.get("config_files"))]
    return as_text(files[0].get("sha256")) if files else None


def require(again: Again) -> None:
    """Look whether what was given is still there.

    Raises:
        UserInputError: The directory, the config or a source is gone.
    """
    if not is_directory(again.directory):
        raise UserInputError("the directory it was started in is gone", path=again.directory)
    if again.config is not None:
        if not is_regular_file(again.config):
            raise UserInputError("its config is gone", path=again.config)
        return
    sources = again.values.get("kernels")
    for source in sources if isinstance(sources, tuple) else ():
        if not is_regular_file(again.directory / source):
            raise UserInputError("its source is gone", path=again.directory / source)


def check_again(again: Again) -> KernelConfig | None:
    """Look at what the command looks at first; returns its config, None when source files are given.

    Raises:
        UserInputError: Something it needs is gone, or the config has errors by now.
    """
    require(again)
    if again.config is None:
        return None
    check = check_file(again.config, mode=again.mode, kind="kernel", caller_directory=again.directory)
    if check.errors:
        first = check.errors[0]
        raise UserInputError(
            f"its config has errors now: {first.message}",
            path=again.config,
            line=first.line,
            column=first.column,
            hint=first.hint or f"{PROGRAM} config check {printable(again.config)} lists all",
        )
    return check.config if isinstance(check.config, KernelConfig) else None


def confirming(again: Again, baseline: str, candidates: Sequence[str]) -> Again:
    """Return the comparison of a baseline and some candidates alone, on fresh seeds, otherwise done alike.

    Args:
        baseline, candidates: Ids in the config.

    Raises:
        UserInputError: The config lacks one of them by now, or has its id twice.
    """
    if again.mode != "compare":
        raise UserInputError("an analysis compares nothing: there is nothing to confirm")
    values = {name: value for name, value in again.values.items() if name not in _OTHER_DATA}
    config = check_again(again)
    ids = [] if config is None else [entry.id for entry in config.kernels]
    for name in (baseline, *candidates):
        if config is not None and ids.count(name) != 1:
            what = "has no kernel" if name not in ids else "has several kernels"
            raise UserInputError(f"its config {what} of the id {printable(name)}", path=config.path)
    # What begins with a dash would be read as an option.
    base, *others = (str(ids.index(name)) if name.startswith("-") and ids else name for name in (baseline, *candidates))
    return replace(again, values={**values, "baseline": base, "only": tuple(others)})


def started_alike(again: Again, runs: Sequence[Run]) -> Run | None:
    """Return the run among ``runs`` that does the same at this moment, if there is one."""
    words = again.words
    return next((run for run in runs if not run.is_over and run.command[-len(words) :] == words), None)


def why_not(error: MagpieTuiError) -> str:
    """Return an error as one phrase: what, and the path that it is about."""
    return f"{error.message}: {printable(error.path)}" if error.path is not None else error.message
