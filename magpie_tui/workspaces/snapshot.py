"""``config.yaml`` in a workspace: the effective config in upstream's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.basics.files import write_text
from magpie_tui.basics.json_strict import to_plain

SNAPSHOT_NAME = "config.yaml"

_FLAT_KEYS = (
    "benchmark_script",
    "docker_image",
    "envs",
    "framework",
    "gap_analysis",
    "gpu_arch",
    "gpu_selection",
    "hf_cache_path",
    "inferencex_path",
    "model",
    "precision",
    "profiler",
    "run_mode",
    "runner_type",
    "timeout_seconds",
)
_ONLY_WHEN_SET = ("ray_config", "server_lifecycle", "agentx", "run_kind", "lm_eval_runtime", "targeted_trace")


@dataclass(frozen=True, slots=True)
class KernelSnapshot:
    """One kernel of a run, with every variable expanded.

    Attributes:
        kernel_id: As in the config.
        kernel_type: ``hip``, ``cuda``, ``pytorch`` or ``triton``; written in upper case.
        source_file_path: Absolute paths.
        compiling_command, testcase_command, prof_command: Token lists, or a list of them where there are several
            commands; None where there is none.
        own: Our own keys of the entry; written under ``magpie_tui`` when there are any.
    """

    kernel_id: str
    kernel_type: str
    source_file_path: Sequence[Path | str]
    working_dir: Path | str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    compiling_command: Sequence[str] | Sequence[Sequence[str]] | None = None
    testcase_command: Sequence[str] | Sequence[Sequence[str]] | None = None
    prof_command: Sequence[str] | Sequence[Sequence[str]] | None = None
    get_inputs_func: str | None = None
    get_init_inputs_func: str | None = None
    input_shapes: Sequence[object] = ()
    dtype: str = "float32"
    extra: Mapping[str, object] = field(default_factory=dict)
    own: Mapping[str, object] = field(default_factory=dict)

    def to_plain(self) -> dict[str, object]:
        """Return upstream's mapping."""
        values: dict[str, object] = {
            "kernel_id": self.kernel_id,
            "kernel_type": self.kernel_type.upper(),
            "source_file_path": [str(path) for path in self.source_file_path],
            "working_dir": None if self.working_dir is None else str(self.working_dir),
            "env": dict(self.env),
            "compiling_command": to_plain(self.compiling_command) or None,
            "testcase_command": to_plain(self.testcase_command) or None,
            "prof_command": to_plain(self.prof_command) or None,
            "get_inputs_func": self.get_inputs_func,
            "get_init_inputs_func": self.get_init_inputs_func,
            "input_shapes": to_plain(list(self.input_shapes)),
            "dtype": self.dtype,
            "extra": to_plain(dict(self.extra)),
        }
        if self.own:
            values["magpie_tui"] = to_plain(dict(self.own))
        return values


def _yaml(value: Mapping[str, object]) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes repeated values out instead of referring to the first one."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    text: str = yaml.dump(
        dict(value), Dumper=Dumper, default_flow_style=False, sort_keys=True, allow_unicode=True, width=4096
    )
    return text


def kernel_snapshot_text(kernels: Sequence[KernelSnapshot], *, own: Mapping[str, object] | None = None) -> str:
    """Return the YAML text of a kernel run's snapshot.

    Args:
        own: What upstream's snapshot does not record (override sections, baseline, profiler settings); written under
            ``magpie_tui``.
    """
    values: dict[str, object] = {"kernels": [kernel.to_plain() for kernel in kernels]}
    if own:
        values["magpie_tui"] = to_plain(dict(own))
    return _yaml(values)


def write_kernel_snapshot(
    workspace: Path, kernels: Sequence[KernelSnapshot], *, own: Mapping[str, object] | None = None
) -> Path:
    """Write ``config.yaml`` of a kernel run durably and return its path."""
    path = workspace / SNAPSHOT_NAME
    write_text(path, kernel_snapshot_text(kernels, own=own), durable=True)
    return path


def benchmark_snapshot_text(config: Mapping[str, object]) -> str:
    """Return the YAML text of a benchmark's snapshot: flat, sorted, without the ``benchmark:`` wrapper.

    Args:
        config: The effective config, every sub-mapping complete. A missing key is written as null; ``ray_config``,
            ``server_lifecycle``, ``agentx`` and the like are left out unless set.
    """
    plain = to_plain(dict(config))
    values: dict[str, object] = {key: plain.get(key) for key in _FLAT_KEYS}
    for key, value in plain.items():
        if key in _FLAT_KEYS or (key in _ONLY_WHEN_SET and not value):
            continue
        values[key] = value
    return _yaml(values)


def write_benchmark_snapshot(workspace: Path, config: Mapping[str, object]) -> Path:
    """Write ``config.yaml`` of a benchmark durably and return its path."""
    path = workspace / SNAPSHOT_NAME
    write_text(path, benchmark_snapshot_text(config), durable=True)
    return path
