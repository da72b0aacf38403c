"""Compile and testcase commands: run in order, in the kernel's environment, with a time limit, output kept in files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.text import printable
from magpie_tui.configs.kernel_model import Command, KernelEntry
from magpie_tui.kernels.model import KernelWord, StageOutcome
from magpie_tui.kernels.sessions import describe_end
from magpie_tui.processes.children import ChildResult, run_child
from magpie_tui.processes.tail import read_tail

QUOTED_LINES = 12
"""Last lines of a failed command's output that its error quotes."""
_QUOTED_BYTES = 8192


def child_environment(entry: KernelEntry, extra_path: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment of everything that runs for ``entry``: the caller's, the entry's, unbuffered output.

    Args:
        extra_path: Directories of compilers that are installed but not on PATH.
    """
    environment = dict(os.environ)
    environment["PYTHONUNBUFFERED"] = "1"
    environment.update(entry.env)
    if extra_path:
        environment["PATH"] = os.pathsep.join([environment.get("PATH", os.defpath), *extra_path])
    return environment


@dataclass(frozen=True, slots=True)
class CommandStage:
    """A stage made of commands.

    Attributes:
        name: Of its log files.
        title: How errors call one of its commands.
        failed: State of the kernel when a command exits with another status than 0.
    """

    name: str
    title: str
    failed: KernelWord


def run_commands(
    commands: Sequence[Command],
    *,
    stage: CommandStage,
    cwd: Path | None,
    environment: Mapping[str, str],
    logs: Path,
    timeout_s: float,
) -> StageOutcome:
    """Run ``commands`` until one fails; output goes to ``<stage>_<number>.stdout`` and ``.stderr`` in ``logs``."""
    if not commands:
        return StageOutcome(ran=False)
    for number, command in enumerate(commands, 1):
        log = logs / f"{stage.name}_{number}"
        result = run_child(
            command,
            cwd=cwd,
            env=environment,
            stdout_path=Path(f"{log}.stdout"),
            stderr_path=Path(f"{log}.stderr"),
            timeout_s=timeout_s,
        )
        if not result.ok:
            word, what = _what_happened(result, timeout_s, stage.failed)
            head = f"{stage.title} {number}/{len(commands)} failed: {printable(shlex.join(command))}: {what}"
            return StageOutcome(True, False, (head + _quoted(result),), word)
    return StageOutcome(ran=True, success=True)


def _what_happened(result: ChildResult, timeout_s: float, failed: KernelWord) -> tuple[KernelWord, str]:
    if result.not_started is not None:
        return "invalid", f"it could not be started: {result.not_started}"
    if result.timed_out:
        return "timeout", f"it was stopped after {timeout_s:g} s"
    if result.signal is not None:
        end = describe_end(None, result.signal)
        return end.word, end.reason
    return failed, f"exit status {result.exit_code}"


def _quoted(result: ChildResult) -> str:
    """Return the last lines of stderr, or of stdout when stderr is empty."""
    for path in (result.stderr_path, result.stdout_path):
        try:
            text = read_tail(path, _QUOTED_BYTES)
        except OSError:
            continue
        lines = [printable(line, keep="\t") for line in text.splitlines() if line.strip()]
        if lines:
            return "\n" + "\n".join(lines[-QUOTED_LINES:])
    return ""
