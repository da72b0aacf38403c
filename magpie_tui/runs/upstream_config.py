"""Write a kernel config for upstream: the effective one, every path absolute, every command split."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import write_text
from magpie_tui.basics.json_strict import to_plain
from magpie_tui.configs.kernel import Command, KernelConfig, KernelEntry

_OWN_KEYS = (
    "python",
    "reference",
    "tolerance",
    "shapes",
    "arguments",
    "kernel_name",
    "grid",
    "block",
    "shared_memory",
    "compile_options",
    "flops",
    "bytes_moved",
    "config_files",
    "change",
    "in_place",
    "deterministic",
    "budget_seconds",
    "timeout_seconds",
)
_SECTIONS = ("performance", "correctness", "latency", "scheduler")
_VARIABLE = re.compile(r"\$(\w+|\{[^}]*\})")


@dataclass(frozen=True, slots=True)
class WrittenConfig:
    """A config that was written for upstream.

    Attributes:
        path: The file, absolute.
        notes: What upstream will not do although the config asks for it, for people.
    """

    path: Path
    notes: tuple[str, ...] = ()


def write_upstream_config(
    config: KernelConfig, path: Path, *, environment: Mapping[str, str] | None = None
) -> WrittenConfig:
    """Write ``config`` in upstream's form.

    Variables are expanded already. Our own keys are left out and named in the notes.

    Args:
        path: File to write; its directory must exist.
        environment: Variables that upstream will see; the process's own when ``None``.

    Raises:
        UserInputError: A kernel is of a type that upstream does not know.
        MachineError: The file cannot be written.
    """
    import yaml

    environ = os.environ if environment is None else environment
    notes: list[str] = []
    value: dict[str, object] = {"kernels": [_entry(entry, notes, config.path) for entry in config.kernels]}
    for name in _SECTIONS:
        section: Mapping[str, object] = getattr(config, name)
        if section:
            value[name] = to_plain(dict(section))
    if config.ray_config is not None:
        value["ray_config"] = to_plain(dict(config.ray_config))
    notes += [
        f"upstream will replace {name} in {text!r} by its value"
        for text in _texts(value)
        for name in dict.fromkeys(match.group() for match in _VARIABLE.finditer(text))
        if name.strip("${}") in environ
    ]
    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=False, width=1000)
    write_text(path, f"# Written by magpie-tui for the engine magpie.\n{text}")
    return WrittenConfig(path.absolute(), tuple(dict.fromkeys(notes)))


def _entry(entry: KernelEntry, notes: list[str], config_path: Path | None) -> dict[str, object]:
    if entry.type == "cpp":
        raise UserInputError(
            f"kernel {entry.id!r} is of type cpp, which upstream does not know",
            path=config_path,
            hint="leave --engine magpie away for it",
        )
    plain = KernelEntry(entry.id, entry.type)
    own = [key for key in _OWN_KEYS if getattr(entry, key) != getattr(plain, key)]
    if own:
        notes.append(f"kernel {entry.id!r}: upstream does not read {', '.join(own)}")
    if not entry.testcase_commands:
        notes.append(f"kernel {entry.id!r} has no testcase command: upstream cannot prove it correct")
    value: dict[str, object] = {
        "id": entry.id,
        "type": entry.type,
        "source_files": [str(path.absolute()) for path in entry.source_files],
    }
    if entry.working_dir is not None:
        value["working_dir"] = str(entry.working_dir.absolute())
    if entry.env:
        value["env"] = {name: str(text) for name, text in entry.env.items()}
    for key, commands in (
        ("compile_command", entry.compile_commands),
        ("testcase_command", entry.testcase_commands),
        ("prof_command", entry.prof_commands),
    ):
        if commands:
            value[key] = _command_value(commands)
    value["get_inputs_func"] = entry.get_inputs_func
    value["get_init_inputs_func"] = entry.get_init_inputs_func
    if entry.bench_target is not None:
        value["bench_target"] = to_plain(dict(entry.bench_target))
    return value


def _command_value(commands: Sequence[Command]) -> object:
    """One command as a list of tokens, several as a list of such lists."""
    return list(commands[0]) if len(commands) == 1 else [list(command) for command in commands]


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return []
