"""The benchmark config's words about TraceLens → what is asked of a workspace."""

from __future__ import annotations

import math

from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.traces.stage_names import INFERENCE_STAGES, stages_named
from magpie_tui.traces.steady import DEFAULT_NUM_STEPS
from magpie_tui.traces.tracelens.workspace import WorkspaceRequest

_PREFIX = "profiler.tracelens."


def workspace_request(config: BenchmarkConfig) -> WorkspaceRequest:
    """Read ``profiler.tracelens`` and the load of a config.

    Raises:
        UserInputError: A stage is unknown.
    """
    stages = config.value(f"{_PREFIX}analysis_stages")
    wanted = stages_named(",".join(map(str, stages))) if isinstance(stages, (list, tuple)) and stages else None
    steps = config.value(f"{_PREFIX}num_steps")
    arch = config.value(f"{_PREFIX}gpu_arch_config")
    return WorkspaceRequest(
        framework=config.framework,
        inference=config.value(f"{_PREFIX}analysis_mode") != "pytorch",
        stages=wanted or INFERENCE_STAGES,
        num_steps=steps if isinstance(steps, int) else DEFAULT_NUM_STEPS,
        excel=config.value(f"{_PREFIX}export_format") == "excel",
        perf_report=config.value(f"{_PREFIX}perf_report_enabled") is not False,
        multi_rank=config.value(f"{_PREFIX}multi_rank_report_enabled") is not False,
        ranks=config.tensor_parallel,
        isl=_number(config, "ISL"),
        osl=_number(config, "OSL"),
        concurrency=_number(config, "CONC"),
        ratio=_number(config, "RANDOM_RANGE_RATIO"),
        arch=str(arch) if arch else None,
    )


def _number(config: BenchmarkConfig, name: str) -> float | None:
    """A number of the environment; None where it is absent or no number."""
    try:
        value = float(config.envs[name])
    except (KeyError, ValueError):
        return None
    return value if math.isfinite(value) else None
