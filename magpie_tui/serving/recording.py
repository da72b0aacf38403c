"""Snapshot and reproducibility record of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from magpie_tui.basics.redact import redact_command, redact_tree
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.configs.positions import Value
from magpie_tui.serving.load.model import LOAD_NAME, REQUESTS_NAME
from magpie_tui.serving.model import RunRequest
from magpie_tui.serving.outcome import RESULT_NAME, Findings
from magpie_tui.serving.placement import Placement
from magpie_tui.serving.workload import lengths_of, requests_of
from magpie_tui.workspaces.record import RecordInputs, ReproducibilityRecord, complete_record, start_record
from magpie_tui.workspaces.snapshot import write_benchmark_snapshot

_RESULTS = ("benchmark_report.json", RESULT_NAME, "summary.txt", "config.yaml")


def snapshot_of(config: BenchmarkConfig, variables: Mapping[str, str] | None) -> dict[str, object]:
    """Return the effective config in upstream's flat form, secrets taken out.

    Args:
        variables: Visible devices that were chosen; put under ``envs`` as upstream does.
    """
    flat: dict[str, object] = {}
    for key, setting in config.settings.items():
        if key.startswith("envs."):
            continue
        place, (*parents, last) = flat, key.split(".")
        for parent in parents:
            below = place.setdefault(parent, {})
            if not isinstance(below, dict):
                break
            place = below
        else:
            place[last] = setting.value
    flat["envs"] = {**_typed(config), **(variables or {})}
    redacted = redact_tree(flat)
    return dict(redacted) if isinstance(redacted, dict) else flat


def _typed(config: BenchmarkConfig) -> dict[str, Value]:
    """Values of ``envs`` as they are exported; whole numbers as numbers, as a user writes them."""
    return {name: int(text) if text.isdigit() and len(text) < 16 else text for name, text in config.envs.items()}


class RunRecord:
    """``config.yaml`` and ``record.json`` of one run."""

    def __init__(self, workspace: Path, record: ReproducibilityRecord) -> None:
        self._workspace = workspace
        self._record = record

    @classmethod
    def start(
        cls,
        config: BenchmarkConfig,
        request: RunRequest,
        workspace: Path,
        placement: Placement | None,
        *,
        profiled: bool,
    ) -> RunRecord:
        """Write both before anything runs.

        Raises:
            MachineError: The workspace cannot be written.
        """
        variables = None if placement is None else placement.devices.variables
        snapshot = snapshot_of(config, variables)
        write_benchmark_snapshot(workspace, snapshot)
        own_seed = config.value("load.seed")
        seed = request.seed if request.seed is not None else own_seed
        serving: dict[str, object] = {"profiled": profiled, "base_url": config.envs.get("BENCHMARK_BASE_URL")}
        devices: list[Mapping[str, object]] = []
        if placement is not None:
            serving |= {
                "engine": placement.engine.name,
                "version": placement.installed.version,
                "version_source": placement.installed.source,
                "image": placement.image,
                "command": list(redact_command(placement.order.command.argv)),
                "assumptions": list(placement.order.command.assumptions),
                "devices": placement.devices.note,
            }
            devices = [asdict(gpu) for gpu in placement.devices.gpus]
        record = start_record(
            workspace,
            RecordInputs(
                mode="benchmark",
                effective_config=snapshot,
                config_files=(config.path,),
                seeds={"load": seed if isinstance(seed, int) else 0},
                devices=devices,
                schedule={"requests": requests_of(config), "lengths": asdict(lengths_of(config))},
                serving=serving,
            ),
        )
        return cls(workspace, record)

    def complete(self, status: str, found: Findings) -> None:
        """Write what became of the run.

        Raises:
            MachineError: The workspace cannot be written.
        """
        samples = [Path(name) for name in (REQUESTS_NAME, LOAD_NAME) if (self._workspace / name).is_file()]
        results = [Path(name) for name in _RESULTS if (self._workspace / name).is_file()]
        complete_record(
            self._workspace,
            self._record,
            status=status,
            samples=samples,
            results=results,
            telemetry=found.telemetry.to_json(),
            schedule={"phases_s": dict(found.phases), "warmup_rounds": found.warmup_rounds},
        )
