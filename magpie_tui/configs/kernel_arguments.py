"""Kernel entries made from command-line arguments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.text import nearest, plural
from magpie_tui.configs.commands import check_tokens, split_command
from magpie_tui.configs.kernel_model import KERNEL_TYPES, Command, KernelConfig, KernelEntry, KernelType
from magpie_tui.configs.kernel_paths import absolute, exists
from magpie_tui.configs.positions import Origin

Mode = Literal["analyze", "compare"]


def kernel_entries_from_arguments(
    paths: Sequence[Path],
    *,
    type: str,
    testcase: str | None,
    compile_cmd: str | None = None,
    mode: Mode,
    caller_directory: Path | None = None,
) -> KernelConfig:
    """Make entries from source files named on the command line, as upstream does.

    The id is the file's stem (compare: ``kernel_<i>_<stem>``), the working directory its parent. Command strings are
    split by shell rules.

    Raises:
        UserInputError: A file is missing, the type is unknown, or a command string needs a shell.
    """
    kernel_type = _kernel_type(type)
    caller = (Path.cwd() if caller_directory is None else caller_directory).absolute()
    testcase_commands = _argument_command(testcase, "--testcase")
    compile_commands = _argument_command(compile_cmd, "--compile-cmd")
    missing = [path for path in paths if not exists(absolute(caller, str(path)))]
    if missing:
        names = "".join(f"\n{path}" for path in missing[1:])
        raise UserInputError(
            f"{plural(len(missing), 'source file')} not there{':' if names else ''}{names}",
            path=missing[0],
            hint="paths are relative to where you are",
        )
    kernels = []
    for index, path in enumerate(paths):
        source = absolute(caller, str(path))
        if source.is_dir():
            raise UserInputError("this is a directory, not a source file", path=path)
        origin = Origin("command_line")
        kernels.append(
            KernelEntry(
                id=source.stem if mode == "analyze" else f"kernel_{index}_{source.stem}",
                type=kernel_type,
                source_files=(source,),
                working_dir=source.parent,
                compile_commands=compile_commands,
                testcase_commands=testcase_commands,
                origin={key: origin for key in ("id", "type", "source_files", "working_dir")},
            )
        )
    return KernelConfig(path=None, kernels=tuple(kernels))


def _kernel_type(text: str) -> KernelType:
    folded = {"torch": "pytorch", "py": "pytorch"}.get(text.lower(), text.lower())
    kernel_type = next((known for known in KERNEL_TYPES if known == folded), None)
    if kernel_type is not None:
        return kernel_type
    guess = nearest(folded, KERNEL_TYPES)
    raise UserInputError(
        f"unknown kernel type {text!r}, expected one of {', '.join(KERNEL_TYPES)}",
        hint=f"did you mean {guess}?" if guess else None,
        key="--type",
    )


def _argument_command(text: str | None, option: str) -> tuple[Command, ...]:
    if text is None or not text.strip():
        return ()
    split = split_command(text)
    faults = [fault for fault in (*split.faults, *check_tokens(split.tokens)) if fault.severity == "error"]
    if faults:
        raise UserInputError(
            f"{option}, character {faults[0].offset + 1}: {faults[0].message}", hint=faults[0].hint, key=option
        )
    return (split.tokens,)
