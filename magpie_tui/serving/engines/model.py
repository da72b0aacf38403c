"""The parts of which an engine's description is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True, slots=True)
class Installed:
    """A framework as it was found, without importing it.

    Attributes:
        python: Interpreter of its environment; None inside an image.
        script: Console script beside that interpreter (``bin/vllm``); None where there is none.
        version: None with a reason.
        source: ``environment``, ``image`` (its tag) or ``nowhere``.
        files: Files of the package that were asked for and are there, relative to it.
        reason: Why it cannot be used, or why the version is not known.
    """

    python: Path | None = None
    script: Path | None = None
    version: str | None = None
    source: Literal["environment", "image", "nowhere"] = "nowhere"
    files: frozenset[str] = frozenset()
    reason: str | None = None

    @property
    def found(self) -> bool:
        """Whether a server can be started with it, as far as that can be told without starting one."""
        return self.source != "nowhere"

    def release(self) -> tuple[int, int, int] | None:
        """Version as numbers; None when it has none."""
        match = _VERSION.match(self.version or "")
        return None if match is None else (int(match[1]), int(match[2]), int(match[3] or 0))


@dataclass(frozen=True, slots=True)
class ProfilePlan:
    """A bounded capture.

    Attributes:
        directory: Where the server writes traces, as the server sees it.
        steps: Scheduler steps to record.
        detailed: Annotate the steps in detail.
    """

    directory: str
    steps: int
    detailed: bool = False


@dataclass(frozen=True, slots=True)
class ServePlan:
    """What is to be served, whatever the engine.

    Attributes:
        model: Hub id or path, as the server sees it.
        revision: Commit of the model on the hub; None for the newest.
        max_model_len, memory_fraction, dtype: None leaves the engine's own default.
        extra: Further arguments of the user; a flag given there is not given again by us.
        profile: None for a clean run.
    """

    model: str
    host: str
    port: int
    tensor_parallel: int = 1
    revision: str | None = None
    max_model_len: int | None = None
    memory_fraction: float | None = None
    dtype: str | None = None
    extra: tuple[str, ...] = ()
    profile: ProfilePlan | None = None


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How a server is started.

    Attributes:
        argv: Program and arguments.
        environment: Variables added for it.
        assumptions: What had to be taken for granted.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfilerControl:
    """How a running server's profiler is switched.

    Attributes:
        start_body: JSON object sent with the start; None for none.
        ends_itself: The server stops by itself after the planned steps; it is told to stop all the same.
        bounded: The number of steps is bounded by the server; else by time.
    """

    start_path: str = "/start_profile"
    stop_path: str = "/stop_profile"
    start_body: Mapping[str, object] | None = None
    ends_itself: bool = False
    bounded: bool = True


@dataclass(frozen=True, slots=True)
class Engine:
    """One framework.

    Attributes:
        name: As configs write it.
        module: Its Python package.
        distributions: Names under which it is distributed, the first that is installed counts.
        script: Its console script; None where it has none.
        asked_files: Files inside the package whose presence tells how it wants to be called.
        command: Builds the server's command.
        profiler: How its profiler is switched, for what is installed.
        reset_cache_path: Path that empties the prefix cache; None where there is none.
        served_name: Name under which the model of a plan is listed.
    """

    name: str
    module: str
    distributions: tuple[str, ...]
    script: str | None
    asked_files: tuple[str, ...]
    command: Callable[[ServePlan, Installed], ServerCommand]
    profiler: Callable[[ServePlan, Installed], ProfilerControl]
    served_name: Callable[[ServePlan], str]
    reset_cache_path: str | None = None
    health_path: str = "/health"
    models_path: str = "/v1/models"
    metrics_path: str = "/metrics"


def option_of(arguments: Sequence[str], *names: str) -> str | None:
    """Return the value that an argument vector gives an option, by any of its names; the last one counts.

    Dashes and underscores inside a name are the same to these engines.
    """
    value: str | None = None
    wanted = {name.replace("_", "-") for name in names}
    for index, word in enumerate(arguments):
        name, separator, attached = word.partition("=")
        if name.replace("_", "-") not in wanted:
            continue
        if separator:
            value = attached
        elif index + 1 < len(arguments):
            value = arguments[index + 1]
    return value


def is_given(arguments: Sequence[str], *names: str) -> bool:
    """Whether an argument vector holds an option or flag by any of its names."""
    wanted = {name.replace("_", "-") for name in names}
    return any(word.partition("=")[0].replace("_", "-") in wanted for word in arguments)


def with_options(extra: Sequence[str], options: Sequence[tuple[tuple[str, ...], str | None]]) -> tuple[str, ...]:
    """Return our options followed by the user's; one that the user gives is left to the user.

    Args:
        options: Names of an option (the first is written, the others are recognised) and its value; None: left out.
    """
    words: list[str] = []
    for names, value in options:
        if value is not None and not is_given(extra, *names):
            words += [names[0], value]
    return (*words, *extra)
