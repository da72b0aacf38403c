"""What is written before the first kernel runs: the snapshot of the config and the reproducibility record."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.json_strict import to_plain
from magpie_tui.configs.kernel_model import Command, KernelConfig, KernelEntry
from magpie_tui.kernels.evaluation import Evaluation
from magpie_tui.workspaces.record import (
    RECORD_NAME,
    RecordInputs,
    ReproducibilityRecord,
    complete_record,
    start_record,
)
from magpie_tui.workspaces.snapshot import KernelSnapshot, write_kernel_snapshot


@dataclass(frozen=True, slots=True)
class Recording:
    """A record that has been started."""

    workspace: Path
    record: ReproducibilityRecord

    def complete(self, *, status: str, samples: Sequence[Path], schedule: dict[str, object]) -> None:
        """Write what is known at the end, the report included."""
        names = (f"{self.record.mode}_report.json", "config.yaml")
        results = [Path(name) for name in names if (self.workspace / name).is_file()]
        complete_record(self.workspace, self.record, status=status, samples=samples, results=results, schedule=schedule)


def _commands(commands: Sequence[Command]) -> list[str] | list[list[str]] | None:
    if len(commands) == 1:
        return list(commands[0])
    return [list(command) for command in commands] or None


def _snapshot(entry: KernelEntry) -> KernelSnapshot:
    own: dict[str, object] = {}
    for name in (
        *("python", "tolerance", "shapes", "arguments", "kernel_name", "grid", "block", "deterministic"),
        *("shared_memory", "compile_options", "flops", "config_files", "change"),
    ):
        value = getattr(entry, name)
        if value not in (None, (), {}):
            own[name] = to_plain(value)
    if entry.bytes_moved is not None:
        own["bytes"] = entry.bytes_moved
    for name in ("in_place", "budget_seconds", "timeout_seconds"):
        if getattr(entry, name):
            own[name] = getattr(entry, name)
    if entry.reference is not None:
        own["reference"] = reference_text(entry)
    return KernelSnapshot(
        kernel_id=entry.id,
        kernel_type=entry.type,
        source_file_path=entry.source_files,
        working_dir=entry.working_dir,
        env=entry.env,
        compiling_command=_commands(entry.compile_commands),
        testcase_command=_commands(entry.testcase_commands),
        prof_command=_commands(entry.prof_commands),
        get_inputs_func=entry.get_inputs_func,
        get_init_inputs_func=entry.get_init_inputs_func,
        own=own,
    )


def reference_text(entry: KernelEntry) -> str:
    """Return an entry's reference as a config holds it, with absolute paths."""
    reference = entry.reference
    if reference is None:
        return ""
    if reference.path is None:
        return reference.entry_id or reference.text
    return f"{reference.path}:{reference.function}" if reference.function else str(reference.path)


def write_snapshot(workspace: Path, config: KernelConfig, *, baseline: int | None = None) -> None:
    """Write ``config.yaml``."""
    own: dict[str, object] = {
        name: dict(section)
        for name in ("performance", "correctness", "scheduler")
        if (section := getattr(config, name))
    }
    if baseline is not None:
        own["baseline"] = baseline
    write_kernel_snapshot(workspace, [_snapshot(entry) for entry in config.kernels], own=own or None)


def start(evaluation: Evaluation, *, mode: str) -> Recording:
    """Write the snapshot and the record; nothing has run yet."""
    config = evaluation.config
    write_snapshot(evaluation.workspace, config, baseline=evaluation.baseline)
    gpus = evaluation.preflight.gpus or ()
    inputs = RecordInputs(
        mode=mode,
        effective_config={
            "kernels": [_snapshot(entry).to_plain() for entry in config.kernels],
            "baseline": evaluation.baseline,
            "settings": to_plain(evaluation.settings),
        },
        config_files=[config.path] if config.path is not None else [],
        seeds={"run": evaluation.seed, "model": evaluation.model_seed}
        | {f"gate_{number}": seed for number, seed in enumerate(evaluation.gate_seeds)},
        devices=[to_plain(dataclasses.asdict(gpu)) for gpu in gpus],
        files=[
            (f"kernel {index} source", path)
            for index, entry in enumerate(config.kernels)
            for path in entry.source_files
        ],
        schedule={"threads": evaluation.threads},
    )
    return Recording(evaluation.workspace, start_record(evaluation.workspace, inputs))


def report_stamp() -> str:
    """Return the local time as reports bear it."""
    return time.strftime("%Y%m%d_%H%M%S")


__all__ = ["RECORD_NAME", "Recording", "reference_text", "report_stamp", "start", "write_snapshot"]
