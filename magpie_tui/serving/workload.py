"""From a config to what the server is to serve and what the client is to send."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.paths import expanded
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.serving.engines.model import ProfilePlan, ServePlan, is_given, option_of
from magpie_tui.serving.load.model import (
    Arrival,
    ClosedLoop,
    ConstantRate,
    Endpoint,
    GammaRate,
    LoadPlan,
    PromptFile,
    Prompts,
    RandomPrompts,
    Replay,
    ShareGptFile,
)
from magpie_tui.serving.server_log import Expectation

HOST = "127.0.0.1"
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
"""Precisions that an engine is told; quantised ones are a matter of the checkpoint."""
_REQUESTS_A_SLOT = 10
_LEAST_STEPS = 32
"""Steps that hold a prefill and some decodes, enough for a split by stage."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of requests, both ends included."""

    input_min: int
    input_max: int
    output_min: int
    output_max: int

    @property
    def longest(self) -> int:
        """Context that the longest request needs."""
        return self.input_max + self.output_max


def number_of(config: BenchmarkConfig, name: str, default: int) -> int:
    """Return a whole number of ``envs``."""
    text = config.envs.get(name, "")
    return int(text) if text.isdigit() else default


def _fraction(config: BenchmarkConfig, *names: str) -> float | None:
    for name in names:
        try:
            return float(config.envs[name])
        except (KeyError, ValueError):
            continue
    return None


def lengths_of(config: BenchmarkConfig) -> Lengths:
    """Return the range of lengths: ``RANDOM_RANGE_RATIO`` r means r·L … L, so that 1 is exact.

    Other clients read (1 - r)·L … (1 + r)·L from the same number; reports therefore state the ends.
    """
    isl, osl = number_of(config, "ISL", 1024), number_of(config, "OSL", 512)
    ratio = _fraction(config, "RANDOM_RANGE_RATIO")
    ratio = 1.0 if ratio is None else min(1.0, max(0.0, ratio))
    return Lengths(max(1, int(isl * ratio)), isl, max(1, int(osl * ratio)), osl)


def requests_of(config: BenchmarkConfig) -> int:
    """Return the number of measured requests: ``NUM_PROMPTS``, or ten a slot as upstream's scripts take."""
    return number_of(config, "NUM_PROMPTS", config.concurrency * _REQUESTS_A_SLOT)


def model_of(config: BenchmarkConfig) -> str:
    """Return the path or hub id of the weights."""
    return config.envs.get("MODEL_PATH") or config.model


def profile_steps(config: BenchmarkConfig) -> int:
    """Return how many steps a capture takes."""
    steps = [_LEAST_STEPS]
    for key in ("profiler.torch_profiler.num_steps", "profiler.tracelens.num_steps"):
        value = config.value(key)
        if isinstance(value, int):
            steps.append(value)
    return max(steps)


def serve_plan(config: BenchmarkConfig, *, host: str = HOST, trace_directory: Path | None = None) -> ServePlan:
    """Return what is to be served.

    Args:
        trace_directory: Where traces go, as the server sees it; None for a clean run.
    """
    profile = None
    if trace_directory is not None:
        detailed = config.value("profiler.torch_profiler.detailed_annotations") is True
        profile = ProfilePlan(str(trace_directory), profile_steps(config), detailed)
    limit = number_of(config, "MAX_MODEL_LEN", 0)
    return ServePlan(
        model=model_of(config),
        host=host,
        port=config.port,
        tensor_parallel=config.tensor_parallel,
        revision=config.envs.get("MODEL_REVISION") or None,
        max_model_len=limit or None,
        memory_fraction=_fraction(config, "GPU_MEMORY_UTILIZATION", "GPU_MEM_UTIL"),
        dtype=_DTYPES.get(config.precision.lower()),
        extra=config.server_arguments,
        profile=profile,
    )


def expectation(config: BenchmarkConfig, plan: ServePlan) -> Expectation:
    """Return what the server's log must not contradict."""
    backend = option_of(plan.extra, "--attention-backend") or config.envs.get("VLLM_ATTENTION_BACKEND")
    return Expectation(
        dtype=option_of(plan.extra, "--dtype") or plan.dtype,
        kv_cache_dtype=option_of(plan.extra, "--kv-cache-dtype"),
        attention_backend=backend,
        eager=is_given(plan.extra, "--enforce-eager", "--disable-cuda-graph"),
        kv_tokens=config.concurrency * lengths_of(config).longest,
    )


def _text(config: BenchmarkConfig, key: str) -> str | None:
    value = config.value(f"load.{key}")
    return value if isinstance(value, str) and value else None


def _float(config: BenchmarkConfig, key: str) -> float | None:
    value = config.value(f"load.{key}")
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _file(config: BenchmarkConfig, key: str) -> Path | None:
    text = _text(config, key)
    if text is None:
        return None
    path = expanded(Path(text))
    # As for kernels: the caller's directory first, then the config's own.
    return path if path.is_absolute() or path.exists() else config.path.parent / path


def _arrival(config: BenchmarkConfig) -> Arrival:
    kind = _text(config, "arrival") or "closed"
    rate = _float(config, "request_rate") or _fraction(config, "REQUEST_RATE")
    if rate is not None and not 0 < rate < float("inf"):
        rate = None
    if kind == "closed" and rate is None:
        return ClosedLoop(config.concurrency)
    if kind == "replay":
        schedule = _file(config, "schedule")
        if schedule is None:
            raise UserInputError(
                "load.arrival replay needs the times to replay",
                path=config.path,
                key="load.schedule",
                hint="schedule: FILE",
            )
        return Replay(schedule, concurrency=None)
    if rate is None:
        raise UserInputError(
            f"load.arrival {kind} needs a rate",
            path=config.path,
            key="load.request_rate",
            hint="request_rate: requests a second",
        )
    if kind == "constant":
        return ConstantRate(rate, config.concurrency)
    burstiness = _float(config, "burstiness") or 1.0
    return GammaRate(rate, burstiness if kind == "gamma" else 1.0, config.concurrency)


def _prompts(config: BenchmarkConfig, lengths: Lengths) -> Prompts:
    path = _file(config, "prompts")
    if path is not None:
        return ShareGptFile(path) if path.suffix.lower() == ".json" else PromptFile(path)
    low, high = _token_range(model_of(config))
    prefix = config.value("load.shared_prefix")
    return RandomPrompts(
        lengths.input_min,
        lengths.input_max,
        token_low=low,
        token_high=high,
        shared_prefix=prefix if isinstance(prefix, int) else 0,
    )


def _token_range(model: str) -> tuple[int, int]:
    """Token ids that the model has, far from its special ones; a guess that fits all usual vocabularies otherwise."""
    facts = model_facts(Path(model))
    size = facts.get("vocab_size") if facts else None
    if not isinstance(size, int) or size < 64:
        return 1000, 4000
    return (1000, min(size, 30_000) - 8) if size > 2000 else (size // 4, size - 8)


def model_facts(path: Path) -> Mapping[str, object] | None:
    """Return ``config.json`` of a model's directory; None when there is none that can be read."""
    import json

    try:
        value = json.loads((path / "config.json").read_text("utf-8", errors="replace"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def load_plan(
    config: BenchmarkConfig,
    base_url: str,
    model: str,
    *,
    seed: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> LoadPlan:
    """Return what the client is to send.

    Raises:
        UserInputError: The load contradicts itself.
    """
    environ = os.environ if environment is None else environment
    lengths = lengths_of(config)
    own_seed, warmup = config.value("load.seed"), config.value("load.warmup_requests")
    endpoint: Endpoint = "chat" if _text(config, "endpoint") == "chat" else "completions"
    path = config.envs.get("MAGPIE_BENCHMARK_ENDPOINT")
    if path and path.endswith("/chat/completions"):
        endpoint = "chat"
    key = config.envs.get("OPENAI_API_KEY") or environ.get("OPENAI_API_KEY")
    return LoadPlan(
        base_url=base_url,
        endpoint=endpoint,
        model=model,
        requests=requests_of(config),
        arrival=_arrival(config),
        prompts=_prompts(config, lengths),
        output_min=lengths.output_min,
        output_max=lengths.output_max,
        ignore_eos=config.value("load.ignore_eos") is not False,
        seed=seed if seed is not None else (own_seed if isinstance(own_seed, int) else 0),
        warmup_requests=warmup if isinstance(warmup, int) and not isinstance(warmup, bool) else config.concurrency,
        timeout_s=_float(config, "request_timeout_s") or 600.0,
        headers={"Authorization": f"Bearer {key}"} if key else {},
        extra_path=path or None,
    )
