"""Kernel configs as the rest of the program sees them: what to build, check and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from magpie_tui.configs.positions import Origin, Problem, Setting, Value

KernelType = Literal["hip", "cuda", "pytorch", "triton", "cpp"]
KERNEL_TYPES: tuple[KernelType, ...] = ("hip", "cuda", "pytorch", "triton", "cpp")
"""Upstream's four, and ``cpp``: a program for the CPU, an extension of ours."""

Command = tuple[str, ...]
"""An argument vector: program and arguments, already split."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Allowed deviation; None leaves the choice to the correctness gate."""

    atol: float | None = None
    rtol: float | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """What a kernel's output is compared with.

    Attributes:
        kind: ``entry`` (another entry of this config), ``callable`` (a function of a Python file) or ``saved`` (a
            file with an output).
        text: As written.
        entry_id: Id of the other entry.
        path: The Python file or the saved output, absolute.
        function: Name of the function, dots allowed.
    """

    kind: Literal["entry", "callable", "saved"]
    text: str
    entry_id: str | None = None
    path: Path | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """One kernel: an entry of ``kernels:``, of a snapshot, or made from the command line.

    Attributes:
        id: Name in reports; need not be unique.
        source_files: Absolute paths; the first one is the kernel.
        working_dir: Directory of every command, absolute; None is the caller's directory.
        env: Added to the inherited environment of every command and child.
        compile_commands, testcase_commands, prof_commands: Run in order; empty when there is none.
        get_inputs_func, get_init_inputs_func: Names looked up in a PyTorch source.
        python: Interpreter of the child that runs the kernel; None is ours.
        reference: What the output is compared with; None when nothing was given.
        tolerance: By dtype name (``float16``); the key ``"*"`` holds for all others. Empty: the gate's own.
        shapes: Points of the shape grid: a mapping of names to numbers or text, or a tuple of dimensions (one tensor)
            or of tuples (several tensors).
        arguments: Launch arguments of a kernel without a host program, in order.
        kernel_name: Function to launch.
        grid, block: Launch geometry, one to three items; text is an expression in the names of ``shapes``.
        shared_memory: Dynamic shared memory of a block in bytes; text is an expression.
        compile_options: Added to the compiler's command line of a kernel without a host program.
        flops, bytes_moved: Operations and bytes of one call (``flops:``, ``bytes:``), numbers or expressions; None when
            the config does not say.
        config_files: Absolute paths of files besides the sources that tune the kernel (a table of tile sizes, say).
        change: What this candidate changes against the baseline; None when the config does not say.
        in_place: The kernel may write to its inputs.
        deterministic: Equal inputs must give equal bits; None when it was not declared.
        budget_seconds: Time for measuring one arm and shape.
        timeout_seconds: Limit of each command and child.
        bench_target: Latency harness of upstream's latency line: module, callable, get_inputs.
        origin: Where each key comes from.
    """

    id: str
    type: KernelType
    source_files: tuple[Path, ...] = ()
    working_dir: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    compile_commands: tuple[Command, ...] = ()
    testcase_commands: tuple[Command, ...] = ()
    prof_commands: tuple[Command, ...] = ()
    get_inputs_func: str = "get_inputs"
    get_init_inputs_func: str = "get_init_inputs"
    python: str | None = None
    reference: Reference | None = None
    tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    shapes: tuple[Value, ...] = ()
    arguments: tuple[Value, ...] = ()
    kernel_name: str | None = None
    grid: tuple[int | str, ...] = ()
    block: tuple[int | str, ...] = ()
    shared_memory: int | str | None = None
    compile_options: tuple[str, ...] = ()
    flops: int | str | None = None
    bytes_moved: int | str | None = None
    config_files: tuple[Path, ...] = ()
    change: str | None = None
    in_place: bool = False
    deterministic: bool | None = None
    budget_seconds: float | None = None
    timeout_seconds: float | None = None
    bench_target: Mapping[str, Value] | None = None
    origin: Mapping[str, Origin] = field(default_factory=dict)

    @property
    def source_file(self) -> Path | None:
        """The first source, or None."""
        return self.source_files[0] if self.source_files else None


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """A whole kernel config.

    Attributes:
        path: The file; None when it was made from command-line arguments.
        kernels: In file order; ``kernel`` comes before ``kernels``.
        performance, correctness, latency, scheduler, ray_config: The override sections as written (variables filled
            in), without defaults.
        settings: Every effective value under its dotted key, ``kernels[0].compile_command`` for instance.
        problems: Warnings, and errors when the caller asked not to raise.
        is_snapshot: The file is a workspace's ``config.yaml``.
    """

    path: Path | None
    kernels: tuple[KernelEntry, ...]
    performance: Mapping[str, Value] = field(default_factory=dict)
    correctness: Mapping[str, Value] = field(default_factory=dict)
    latency: Mapping[str, Value] = field(default_factory=dict)
    scheduler: Mapping[str, Value] = field(default_factory=dict)
    ray_config: Mapping[str, Value] | None = None
    settings: tuple[Setting, ...] = ()
    problems: tuple[Problem, ...] = ()
    is_snapshot: bool = False
