"""Will this config run on this machine? Each item with its evidence, nothing is started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from magpie_tui.basics.text import plural
from magpie_tui.basics.units import format_bytes
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.configs.benchmark_fields import VISIBLE_DEVICES
from magpie_tui.configs.check import ConfigKind, FileCheck, Mode, check_file
from magpie_tui.configs.effective import EffectiveConfig, Overrides, effective_of
from magpie_tui.configs.kernel import KernelConfig
from magpie_tui.configs.positions import Problem

if TYPE_CHECKING:
    from magpie_tui.machine.model import Disk, Machine

Status = Literal["ok", "warning", "blocker", "unknown"]

_DISK_BLOCKER_BYTES = 100_000_000
_DISK_WARNING_BYTES = {"kernel": 1_000_000_000, "clean": 2_000_000_000, "profiled": 30_000_000_000}


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One thing that was looked at.

    Attributes:
        name: ``port 8888``, ``compiler hipcc``.
        evidence: What was seen.
        hint: What to do when it is not ok.
    """

    name: str
    status: Status
    evidence: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """A checked config beside the machine.

    Attributes:
        items: In the order in which a run would need them; empty when the config has errors.
        machine: What was read of the machine.
    """

    path: Path
    kind: ConfigKind | None
    problems: tuple[Problem, ...]
    items: tuple[ReviewItem, ...]
    machine: Machine | None = None

    @property
    def blockers(self) -> tuple[ReviewItem, ...]:
        """Items that keep the config from running here."""
        return tuple(item for item in self.items if item.status == "blocker")

    @property
    def has_errors(self) -> bool:
        """True when the config itself is wrong."""
        return any(problem.severity == "error" for problem in self.problems)


def review_config(
    path: Path,
    *,
    kind: ConfigKind | None = None,
    mode: Mode | None = None,
    framework_path: Path | None = None,
    overrides: Overrides | None = None,
    output_dir: Path = Path("results"),
    environment: Mapping[str, str] | None = None,
    machine: Machine | None = None,
) -> Review:
    """Check a config and look whether this machine has what it needs.

    Args:
        output_dir: Where the results will go.
        machine: None: this machine is read, which takes some seconds.

    Raises:
        UserInputError: The framework config has errors.
    """
    environ = dict(os.environ if environment is None else environment)
    check = check_file(path, kind=kind, mode=mode, environment=environ)
    if check.errors or check.config is None:
        return Review(path, check.kind, check.problems, ())
    effective = effective_of(check, framework_path=framework_path, overrides=overrides, environment=environ)
    read = machine or _read_machine(check, output_dir, environ)
    if isinstance(check.config, KernelConfig):
        from magpie_tui.configs.review_kernel import review_kernels

        items = review_kernels(check.config, effective, read, environ)
        need = "kernel"
    elif isinstance(check.config, BenchmarkConfig):
        from magpie_tui.configs.review_benchmark import review_benchmark

        items = review_benchmark(check.config, effective, read, environ)
        need = "clean" if check.config.is_clean else "profiled"
    else:
        return Review(path, check.kind, check.problems, (_config_item(check),), read)
    items = (_config_item(check), *items, review_disk(read.disk, output_dir, need))
    return Review(path, check.kind, check.problems, items, read)


def _read_machine(check: FileCheck, output_dir: Path, environ: Mapping[str, str]) -> Machine:
    from magpie_tui.machine.read import read_machine

    config = check.config
    variables = dict(environ)
    ports: tuple[int, ...] = ()
    if isinstance(config, BenchmarkConfig):
        variables.update({name: config.envs[name] for name in VISIBLE_DEVICES if name in config.envs})
        ports = (config.port,)
    return read_machine(environment=variables, directory=output_dir, ports=ports, tools=("rocprof-compute", "ncu"))


def _config_item(check: FileCheck) -> ReviewItem:
    warnings = plural(len(check.problems), "warning")
    if check.problems:
        return ReviewItem("config", "warning", f"no errors, {warnings}", "config check lists them")
    return ReviewItem("config", "ok", "no errors, no warnings")


def review_disk(disk: Disk, output_dir: Path, need: str) -> ReviewItem:
    """Look at the space where results go; ``need`` is ``kernel``, ``clean`` or ``profiled``."""
    name = f"disk under {output_dir}"
    if disk.free_bytes is None:
        return ReviewItem(name, "unknown", disk.reason or "the free space cannot be read")
    evidence = f"{format_bytes(disk.free_bytes)} free at {disk.path}"
    if disk.free_bytes < _DISK_BLOCKER_BYTES:
        return ReviewItem(name, "blocker", evidence, "free some space, or choose another --output-dir")
    if disk.free_bytes < _DISK_WARNING_BYTES[need]:
        wanted = format_bytes(_DISK_WARNING_BYTES[need])
        return ReviewItem(name, "warning", evidence, f"a {need} run may need {wanted}")
    return ReviewItem(name, "ok", evidence)


def gpu_text(machine: Machine) -> str:
    """Say which GPUs were found: ``2 x NVIDIA H200 (sm_90)``."""
    if not machine.gpus:
        return "no GPU was found" + _because(machine.reasons.get("gpus"))
    names = [f"{gpu.name or gpu.vendor} ({gpu.architecture or 'unknown architecture'})" for gpu in machine.gpus]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))


def _because(reason: str | None) -> str:
    return f": {reason}" if reason else ""


__all__ = ["EffectiveConfig", "Review", "ReviewItem", "gpu_text", "review_config", "review_disk"]
