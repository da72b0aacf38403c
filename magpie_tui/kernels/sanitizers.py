"""Runs a program's own testcase once more under a sanitizer: what a right answer hides, memory errors show.

A program for the CPU is built a second time, beside the first, with the address and undefined-behaviour sanitizers of
its own compiler; a CUDA program runs under ``compute-sanitizer``, where that is installed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.text import printable
from magpie_tui.configs.kernel_model import Command, KernelEntry
from magpie_tui.kernels import checks
from magpie_tui.kernels.commands import CommandStage, run_commands
from magpie_tui.kernels.model import GateCheck
from magpie_tui.machine.toolchain import locate
from magpie_tui.processes.children import run_child
from magpie_tui.processes.tail import read_tail

COMPILERS = ("g++", "gcc", "c++", "cc", "clang++", "clang")
FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g")
ERROR_STATUS = 97
"""Exit status of a program in which a sanitizer found something."""
_FOUND = re.compile(
    r"(?:AddressSanitizer|UndefinedBehaviorSanitizer|runtime error)[^\n]*|========= (?!COMPUTE)[A-Z][^\n]*"
)
_BUILD = CommandStage("sanitized_compile", "Compile command", "invalid")


@dataclass(frozen=True, slots=True)
class _Plan:
    """Commands to run; ``build`` first. ``reason`` says why there are none."""

    build: tuple[Command, ...] = ()
    tests: tuple[Command, ...] = ()
    environment: Mapping[str, str] | None = None
    reason: str | None = None


def sanitized_commands(
    compile_commands: Sequence[Command], testcases: Sequence[Command], place: Path
) -> tuple[tuple[Command, ...], tuple[Command, ...]] | None:
    """Return build and test commands of a second program in ``place``; None when the first one's place is unclear.

    The compile command must be one of a known compiler with ``-o FILE``, and every testcase must start that file.
    """
    if len(compile_commands) != 1 or Path(compile_commands[0][0]).name not in COMPILERS or not testcases:
        return None
    command = list(compile_commands[0])
    if "-o" not in command[:-1]:
        return None
    position = command.index("-o") + 1
    target = Path(command[position])
    made = place / "sanitized"
    if any(Path(test[0]) != target and Path(test[0]).name != target.name for test in testcases):
        return None
    command[position] = str(made)
    return (tuple([*command, *FLAGS]),), tuple((str(made), *test[1:]) for test in testcases)


def _plan(entry: KernelEntry, environment: Mapping[str, str], logs: Path) -> _Plan:
    if entry.type == "cpp":
        commands = sanitized_commands(entry.compile_commands, entry.testcase_commands, logs.absolute())
        if commands is None:
            return _Plan(reason="there is no single compile command whose output the testcase starts")
        options = {
            "ASAN_OPTIONS": f"exitcode={ERROR_STATUS}:detect_leaks=0",
            "UBSAN_OPTIONS": f"exitcode={ERROR_STATUS}:print_stacktrace=0",
        }
        return _Plan(*commands, {**environment, **options})
    if entry.type == "cuda":
        tool = locate("compute-sanitizer", environment)
        if tool.path is None:
            return _Plan(reason=f"compute-sanitizer: {tool.reason}")
        head = (str(tool.path), "--tool", "memcheck", "--error-exitcode", str(ERROR_STATUS))
        return _Plan((), tuple((*head, *test) for test in entry.testcase_commands), environment)
    return _Plan(reason=f"there is no sanitizer for the type {entry.type}")


def sanitized(entry: KernelEntry, environment: Mapping[str, str], logs: Path, timeout_s: float) -> GateCheck:
    """G17 for a program: its testcase once more, under a sanitizer."""
    plan = _plan(entry, environment, logs)
    if plan.reason is not None or plan.environment is None:
        return checks.check("G17", "not_run", plan.reason)
    built = run_commands(
        plan.build, stage=_BUILD, cwd=entry.working_dir, environment=plan.environment, logs=logs, timeout_s=timeout_s
    )
    if built.success is False:
        return checks.check("G17", "not_run", f"it does not build with sanitizers: {built.errors[0].splitlines()[0]}")
    try:
        return _run_tests(plan, entry, logs, timeout_s)
    finally:
        (logs / "sanitized").unlink(missing_ok=True)


def _run_tests(plan: _Plan, entry: KernelEntry, logs: Path, timeout_s: float) -> GateCheck:
    for number, command in enumerate(plan.tests, 1):
        log = logs / f"sanitized_{number}"
        result = run_child(
            command,
            cwd=entry.working_dir,
            env=plan.environment,
            stdout_path=Path(f"{log}.stdout"),
            stderr_path=Path(f"{log}.stderr"),
            timeout_s=timeout_s,
        )
        text = "\n".join(read_tail(path, 65536) for path in (result.stderr_path, result.stdout_path) if path.exists())
        found = _FOUND.search(text)
        if result.exit_code == ERROR_STATUS or (not result.ok and found is not None):
            what = printable(found.group(0)) if found is not None else "see its log"
            return checks.check("G17", "fail", f"the sanitizer found a memory error in testcase {number}: {what}")
        if not result.ok:
            how = "was too slow" if result.timed_out else "failed without a finding"
            return checks.check("G17", "not_run", f"under the sanitizer testcase {number} {how}")
    return checks.check(
        "G17", "pass", f"no finding by {'compute-sanitizer' if entry.type == 'cuda' else 'ASan, UBSan'}"
    )
