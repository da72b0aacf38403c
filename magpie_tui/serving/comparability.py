"""Facts of a run on which both arms of an experiment must agree, by dotted name."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from magpie_tui.basics.redact import redact_command, redact_environment
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.machine.host import read_host
from magpie_tui.machine.model import Gpu
from magpie_tui.serving.load.model import ClosedLoop, LoadPlan
from magpie_tui.serving.metrics import ServingMetrics
from magpie_tui.serving.model import ServerFacts
from magpie_tui.serving.workload import model_of

Fact = str | float | int | bool | None
_INDEX_FILES = ("model.safetensors.index.json", "pytorch_model.bin.index.json", "config.json", "tokenizer.json")
_LARGEST_INDEX_BYTES = 256 << 20


def planned_facts(
    config: BenchmarkConfig,
    server: ServerFacts,
    plan: LoadPlan,
    gpus: Sequence[Gpu],
    *,
    image: str | None,
    profiled: bool,
) -> dict[str, Fact]:
    """Return what is known before the first request."""
    host = read_host()
    return {
        "model.name": model_of(config),
        "model.revision": config.envs.get("MODEL_REVISION"),
        "model.weights": weights_identity(Path(model_of(config))),
        "engine.name": server.engine,
        "engine.version": server.version,
        "engine.image": image,
        "engine.precision": config.precision,
        "engine.tensor_parallel": config.tensor_parallel,
        "server.arguments": shlex.join(redact_command(config.server_arguments)),
        "server.max_model_len": config.envs.get("MAX_MODEL_LEN"),
        "server.environment": shlex.join(
            f"{name}={value}" for name, value in sorted(redact_environment(server.environment).items())
        ),
        "devices": "; ".join(f"{gpu.name or gpu.vendor} {gpu.uuid or gpu.index}" for gpu in gpus) or "CPU",
        "devices.power_cap_w": ", ".join(str(gpu.power_cap_w) for gpu in gpus) or None,
        "devices.partition": ", ".join(str(gpu.partition) for gpu in gpus) or None,
        "host.name": host.hostname,
        "host.kernel": host.kernel,
        "host.numa_balancing": host.numa_balancing,
        "host.governor": host.governor,
        **_load_facts(plan),
        "profiler.on": profiled,
        "profiler.ready": config.value("profiler.torch_profiler.on_demand") is True,
    }


def _load_facts(plan: LoadPlan) -> dict[str, Fact]:
    """Return what is to be sent."""
    arrival, prompts = plan.arrival, plan.prompts
    return {
        "load.endpoint": plan.endpoint,
        "load.arrival": arrival.kind,
        "load.concurrency": arrival.concurrency,
        "load.rate": getattr(arrival, "requests_per_s", None),
        "load.burstiness": getattr(arrival, "burstiness", None),
        "load.closed": isinstance(arrival, ClosedLoop),
        "load.requests": plan.requests,
        "load.prompts": prompts.kind,
        "load.input_min": getattr(prompts, "input_min", None),
        "load.input_max": getattr(prompts, "input_max", None),
        "load.output_min": plan.output_min,
        "load.output_max": plan.output_max,
        "load.ignore_eos": plan.ignore_eos,
        "load.sampling": shlex.join(f"{name}={value}" for name, value in sorted(plan.sampling.items())),
        "load.warmup_requests": plan.warmup_requests,
        "load.seed": plan.seed,
    }


def measured_facts(metrics: ServingMetrics, cache_hit_rate: float | None) -> dict[str, Fact]:
    """Return what came out, as far as both arms must agree on it."""
    return {
        "measured.input_mean": metrics.input_mean,
        "measured.output_mean": metrics.output_mean,
        "measured.cache_hit_rate": cache_hit_rate,
    }


def weights_identity(path: Path) -> str | None:
    """Return a hash over the index of the weights and their sizes; None for a hub id.

    Weights themselves may be hundreds of gigabytes: names and sizes tell versions apart, not single bits.
    """
    if not path.is_dir():
        return None
    digest = hashlib.sha256()
    try:
        for name in _INDEX_FILES:
            file = path / name
            if file.is_file() and file.stat().st_size <= _LARGEST_INDEX_BYTES:
                digest.update(name.encode() + b"\0" + file.read_bytes())
        for file in sorted(path.iterdir()):
            if file.suffix in (".safetensors", ".bin", ".gguf", ".pt"):
                digest.update(os.fsencode(f"{file.name}\0{file.stat().st_size}\n"))
    except OSError:
        return None
    return digest.hexdigest()[:16]


def plain(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """Return facts sorted by name, for files."""
    return {name: facts[name] for name in sorted(facts)}
