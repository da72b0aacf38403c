"""What a kernel config needs of this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.configs.effective import EffectiveConfig
from magpie_tui.configs.kernel import Command, KernelConfig, KernelEntry
from magpie_tui.configs.kernel_paths import absolute, exists
from magpie_tui.configs.review import ReviewItem, gpu_text

if TYPE_CHECKING:
    from magpie_tui.machine.model import Machine

_VENDORS = {"hip": "AMD", "cuda": "NVIDIA"}
_PACKAGES = {"pytorch": "torch", "triton": "triton"}


def review_kernels(
    config: KernelConfig, effective: EffectiveConfig, machine: Machine, environ: Mapping[str, str]
) -> tuple[ReviewItem, ...]:
    """Look for sources, programs, interpreters, GPUs and profilers; equal items are said once."""
    items: list[ReviewItem] = []
    for kernel in config.kernels:
        items.extend(_sources(kernel))
        items.extend(_programs(kernel, environ))
        items.extend(_interpreter(kernel, environ))
        items.extend(_gpu(kernel, machine, environ))
    items.extend(_profiler(config, machine))
    environment = effective.settings.get("scheduler.environment")
    if environment is not None and environment.value == "container":
        items.append(docker_item(machine))
    return tuple(dict.fromkeys(items))


def docker_item(machine: Machine) -> ReviewItem:
    """Look whether containers can be started."""
    containers = machine.containers
    if containers is None:
        return ReviewItem("docker", "unknown", "docker was not asked")
    if not containers.client.found:
        reason = containers.client.reason or "docker is not installed"
        return ReviewItem("docker", "blocker", reason, "install docker, or run locally")
    if not containers.daemon_answers:
        reason = containers.reason or "the docker daemon does not answer"
        return ReviewItem("docker", "blocker", reason, "start the daemon, or ask for access to it")
    return ReviewItem("docker", "ok", f"{containers.client.path}, daemon {containers.daemon_version or 'answers'}")


def _sources(kernel: KernelEntry) -> Iterator[ReviewItem]:
    for path in kernel.source_files:
        name = f"source {path.name}"
        if os.access(path, os.R_OK):
            yield ReviewItem(name, "ok", str(path))
        else:
            yield ReviewItem(name, "blocker", f"{path} cannot be read", "check its permissions")


def _programs(kernel: KernelEntry, environ: Mapping[str, str]) -> Iterator[ReviewItem]:
    variables = {**environ, **kernel.env}
    built = {token for command in kernel.compile_commands for token in command}
    steps: tuple[tuple[str, tuple[Command, ...]], ...] = (
        ("compiler", kernel.compile_commands),
        ("testcase", kernel.testcase_commands),
        ("profiler command", kernel.prof_commands),
    )
    for step, commands in steps:
        for command in commands:
            yield _program(step, command[0], kernel, variables, built)


def _program(step: str, program: str, kernel: KernelEntry, variables: Mapping[str, str], built: set[str]) -> ReviewItem:
    from magpie_tui.machine.toolchain import locate

    name = f"{step} {program}"
    if "/" not in program:
        tool = locate(program, variables)
        if tool.path is None:
            return ReviewItem(name, "blocker", tool.reason or "not found", f"install {program}, or put it on PATH")
        if tool.on_path:
            return ReviewItem(name, "ok", str(tool.path))
        return ReviewItem(name, "blocker", f"{tool.path} is not on PATH", f"add {tool.path.parent} to PATH")
    path = absolute(kernel.working_dir or Path.cwd(), program)
    if os.access(path, os.X_OK) and path.is_file():
        return ReviewItem(name, "ok", str(path))
    if step != "compiler" and (built & {program, path.name, f"./{path.name}", str(path)} or _builds_all(kernel)):
        return ReviewItem(name, "ok", f"{path} is built by compile_command")
    state = "cannot be run" if exists(path) else "is not there"
    return ReviewItem(name, "blocker", f"{path} {state}", "build it, or correct the command")


def _builds_all(kernel: KernelEntry) -> bool:
    """True when a build system (or a script) decides what is built."""
    tools = {"make", "cmake", "ninja", "bash", "sh", "python", "python3", "bazel"}
    return any(Path(command[0]).name in tools for command in kernel.compile_commands)


def _interpreter(kernel: KernelEntry, environ: Mapping[str, str]) -> Iterator[ReviewItem]:
    from magpie_tui.machine.toolchain import find_package, locate

    package = _PACKAGES.get(kernel.type)
    if kernel.python is None:
        if package is None or kernel.testcase_commands:
            return
        found = find_package(package)
        name = f"package {package}"
        if found.importable:
            yield ReviewItem(name, "ok", f"{found.version or 'version unknown'} in {sys.executable}")
        else:
            hint = f"install {package}, or name an interpreter that has it under python:"
            yield ReviewItem(name, "blocker", found.reason or f"no {package} in {sys.executable}", hint)
        return
    name = f"interpreter {kernel.python}"
    tool = locate(kernel.python, {**environ, **kernel.env})
    if tool.path is None:
        yield ReviewItem(name, "blocker", f"{kernel.python} is not an interpreter that can be run", "correct python:")
        return
    yield ReviewItem(name, "ok", str(tool.path))
    if package is not None and not _same(tool.path, Path(sys.executable)):
        yield ReviewItem(f"package {package}", "unknown", f"{tool.path} is not started for a review")


def _same(first: Path, second: Path) -> bool:
    # Links are not followed: the interpreter of a virtual environment is a link, and differs from its target.
    return first.absolute() == second.absolute()


def _gpu(kernel: KernelEntry, machine: Machine, environ: Mapping[str, str]) -> Iterator[ReviewItem]:
    vendor = _VENDORS.get(kernel.type)
    seen = gpu_text(machine)
    if vendor is not None:
        usable = [gpu for gpu in machine.gpus if gpu.vendor == vendor and gpu.visible is not False]
        name = f"{vendor} GPU for {kernel.type}"
        if usable:
            yield ReviewItem(name, "ok", seen)
        else:
            yield ReviewItem(name, "blocker", seen, f"run it on a machine with an {vendor} GPU that is visible")
    elif kernel.type == "triton":
        if machine.gpus:
            yield ReviewItem("GPU for triton", "ok", seen)
        elif {**environ, **kernel.env}.get("TRITON_INTERPRET") == "1":
            yield ReviewItem("GPU for triton", "warning", f"{seen}; TRITON_INTERPRET=1 runs it slowly on the CPU")
        else:
            yield ReviewItem(
                "GPU for triton", "blocker", seen, 'run it where there is a GPU, or set TRITON_INTERPRET: "1" under env'
            )
    elif kernel.type == "pytorch":
        evidence = seen if machine.gpus else f"{seen}; it runs on the CPU"
        yield ReviewItem("GPU for pytorch", "ok" if machine.gpus else "warning", evidence)


def _profiler(config: KernelConfig, machine: Machine) -> Iterator[ReviewItem]:
    wanted = {"hip": "rocprof-compute", "cuda": "ncu"}
    for name in dict.fromkeys(wanted[kernel.type] for kernel in config.kernels if kernel.type in wanted):
        tool = machine.tool(name)
        if tool is None:
            yield ReviewItem(f"profiler {name}", "unknown", "it was not looked for")
        elif tool.found:
            yield ReviewItem(f"profiler {name}", "ok", f"{tool.path} {tool.version or ''}".rstrip())
        else:
            yield ReviewItem(
                f"profiler {name}", "warning", tool.reason or "not found", "without it there are no counters"
            )
