"""Does the model fit what the config wants of it: parallelism, context, precision, memory, and may it be had."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.paths import expanded
from magpie_tui.basics.units import format_bytes
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.configs.review import ReviewItem
from magpie_tui.machine.model import Machine
from magpie_tui.serving.control import ControlError, call
from magpie_tui.serving.workload import lengths_of, model_facts, model_of, number_of

_HUB = "https://huggingface.co"
_HUB_TIMEOUT_S = 4.0
_WEIGHTS = (".safetensors", ".bin", ".gguf", ".pt")
_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "w8a8": 1.0, "fp4": 0.5, "int4": 0.5}
_ENGINE_SHARE = 0.9
"""Share of a GPU's memory that engines take unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What ``config.json`` says of a model; None where it does not."""

    heads: int | None
    kv_heads: int | None
    head_dim: int | None
    layers: int | None
    context: int | None
    scaled_context: bool
    quantisation: str | None


def shape_of(facts: Mapping[str, object]) -> Shape:
    """Read the shape; multimodal models keep it under ``text_config``."""
    inner = facts.get("text_config")
    source: Mapping[str, object] = inner if isinstance(inner, dict) and "num_attention_heads" in inner else facts

    def number(*names: str) -> int | None:
        for name in names:
            value = source.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        return None

    heads, hidden = number("num_attention_heads", "n_head"), number("hidden_size", "n_embd")
    head_dim = number("head_dim") or (hidden // heads if heads and hidden else None)
    quantisation = facts.get("quantization_config")
    method = quantisation.get("quant_method") if isinstance(quantisation, dict) else None
    return Shape(
        heads,
        number("num_key_value_heads", "num_kv_heads") or heads,
        head_dim,
        number("num_hidden_layers", "n_layer"),
        number("max_position_embeddings", "n_positions", "max_sequence_length"),
        bool(source.get("rope_scaling")),
        str(method) if method else None,
    )


def weights_directory(config: BenchmarkConfig, environ: Mapping[str, str]) -> Path | None:
    """Return the directory of the weights: the path itself, or the newest snapshot in a Hugging Face cache."""
    model = model_of(config)
    path = expanded(Path(model))
    if path.is_dir():
        return path
    given = config.value("hf_cache_path")
    home = environ.get("HF_HOME") or str(Path(environ.get("HOME", "/")) / ".cache" / "huggingface")
    for base in (given if isinstance(given, str) else None, config.envs.get("HF_HOME"), home):
        for hub in () if not base else (expanded(Path(base)) / "hub", expanded(Path(base))):
            snapshots = hub / f"models--{model.replace('/', '--')}" / "snapshots"
            try:
                found = sorted((item for item in snapshots.iterdir() if item.is_dir()), key=lambda p: p.stat().st_mtime)
            except OSError:
                continue
            if found:
                return found[-1]
    return None


def fit_items(
    config: BenchmarkConfig, machine: Machine, environ: Mapping[str, str], *, on_cpu: bool
) -> Iterator[ReviewItem]:
    """Yield what the model's own files say about the config."""
    directory = weights_directory(config, environ)
    facts = None if directory is None else model_facts(directory)
    if facts is None:
        yield ReviewItem(
            "model shape", "unknown", "its config.json is not here yet, so heads and memory are not checked"
        )
    else:
        shape = shape_of(facts)
        yield _parallelism(config, shape)
        yield _context(config, shape)
        yield _checkpoint_precision(config, shape)
        if directory is not None:
            yield _memory(config, shape, directory, machine, on_cpu=on_cpu)
    if not on_cpu:
        yield _architecture(config, machine)


def _parallelism(config: BenchmarkConfig, shape: Shape) -> ReviewItem:
    tensor = config.tensor_parallel
    name = f"TP {tensor} and heads"
    if shape.heads is None:
        return ReviewItem(name, "unknown", "config.json states no number of heads")
    evidence = f"{shape.heads} attention heads, {shape.kv_heads} key-value heads"
    if shape.heads % tensor:
        divisors = ", ".join(str(n) for n in range(1, shape.heads + 1) if shape.heads % n == 0 and n <= 64)
        return ReviewItem(name, "blocker", f"{evidence}: {shape.heads} is no multiple of {tensor}", f"TP of {divisors}")
    kv = shape.kv_heads or shape.heads
    if kv % tensor and tensor % kv:
        return ReviewItem(name, "blocker", f"{evidence}: key-value heads cannot be spread over {tensor}", "lower TP")
    return ReviewItem(name, "ok", evidence)


def _context(config: BenchmarkConfig, shape: Shape) -> ReviewItem:
    needed = max(number_of(config, "MAX_MODEL_LEN", 0), lengths_of(config).longest)
    if shape.context is None:
        return ReviewItem("context of the model", "unknown", "config.json states none")
    evidence = f"{shape.context:,} positions, {needed:,} wanted"
    if needed <= shape.context:
        return ReviewItem("context of the model", "ok", evidence)
    if shape.scaled_context:
        return ReviewItem("context of the model", "warning", f"{evidence}; its positions are scaled")
    return ReviewItem("context of the model", "blocker", evidence, "lower MAX_MODEL_LEN, ISL or OSL")


def _checkpoint_precision(config: BenchmarkConfig, shape: Shape) -> ReviewItem:
    asked, has = config.precision.lower(), shape.quantisation
    evidence = f"precision {asked}, the checkpoint is {has or 'not quantised'}"
    plain = asked in ("bf16", "fp16", "fp32", "auto")
    if plain and has is not None:
        return ReviewItem("precision of the checkpoint", "warning", evidence, "the checkpoint decides what is computed")
    if not plain and has is None:
        hint = "precision only names the run here: give --quantization in the extra arguments, or another checkpoint"
        return ReviewItem("precision of the checkpoint", "warning", evidence, hint)
    return ReviewItem("precision of the checkpoint", "ok", evidence)


def _architecture(config: BenchmarkConfig, machine: Machine) -> ReviewItem:
    asked, given = config.precision.lower(), config.value("gpu_arch")
    architecture = given if isinstance(given, str) else machine.architecture
    name = f"precision {asked} on {architecture or 'this GPU'}"
    if architecture is None:
        return ReviewItem(name, "unknown", "no GPU architecture is known")
    if architecture.startswith("sm_"):
        number = int("".join(filter(str.isdigit, architecture)) or 0)
        least = {"fp8": 89, "bf16": 80, "fp4": 100, "nvfp4": 100, "mxfp4": 80}.get(asked, 0)
        native = number >= least
    else:
        able = {
            "fp8": ("gfx942", "gfx950", "gfx12"),
            "fp4": ("gfx950",),
            "mxfp4": ("gfx950",),
            "bf16": ("gfx90a", "gfx94", "gfx95", "gfx11", "gfx12"),
        }.get(asked)
        native = able is None or architecture.startswith(able)
    if native:
        return ReviewItem(name, "ok", f"{architecture} computes in {asked}")
    return ReviewItem(name, "blocker", f"{architecture} has no {asked} arithmetic", "choose another precision")


def _memory(config: BenchmarkConfig, shape: Shape, directory: Path, machine: Machine, *, on_cpu: bool) -> ReviewItem:
    name = "weights and KV cache"
    try:
        weights = sum(file.stat().st_size for file in directory.iterdir() if file.suffix in _WEIGHTS)
    except OSError as error:
        return ReviewItem(name, "unknown", f"{directory}: {error.strerror}")
    if not weights or None in (shape.layers, shape.kv_heads, shape.head_dim):
        return ReviewItem(name, "unknown", "sizes are not stated by the files of the model")
    element = _BYTES.get(config.precision.lower(), 2.0)
    token = 2 * (shape.layers or 0) * (shape.kv_heads or 0) * (shape.head_dim or 0) * max(2.0, element)
    cache = token * config.concurrency * lengths_of(config).longest
    needed = (weights + cache) / config.tensor_parallel
    evidence = (
        f"{format_bytes(weights)} of weights, {format_bytes(cache)} for {config.concurrency} requests at full length"
    )
    if on_cpu:
        there = machine.host.memory_available_bytes
    else:
        sizes = [gpu.memory_total_bytes for gpu in machine.gpus if gpu.memory_total_bytes is not None]
        there = int(min(sizes) * _ENGINE_SHARE) if sizes else None
    if there is None:
        return ReviewItem(name, "unknown", f"{evidence}; the memory cannot be read")
    evidence += f"; {format_bytes(there)} {'available' if on_cpu else 'a GPU may use'}"
    if weights / config.tensor_parallel > there:
        return ReviewItem(name, "blocker", evidence, "the weights alone do not fit: raise TP")
    if needed > there:
        return ReviewItem(
            name, "warning", evidence, "requests will wait or be preempted: lower CONC, ISL or OSL, or raise TP"
        )
    return ReviewItem(name, "ok", evidence)


def access_item(config: BenchmarkConfig, environ: Mapping[str, str]) -> ReviewItem | None:
    """Ask the hub whether the model may be fetched; None for weights that are here already.

    Values of tokens are never shown.
    """
    model = model_of(config)
    if "BENCHMARK_BASE_URL" in config.envs or weights_directory(config, environ) is not None or model.count("/") != 1:
        return None
    name = f"access to {model}"
    if environ.get("HF_HUB_OFFLINE") == "1" or config.envs.get("HF_HUB_OFFLINE") == "1":
        return ReviewItem(name, "blocker", "not in the cache, and HF_HUB_OFFLINE forbids fetching it", "fetch it first")
    token = next(
        (
            value
            for source in (config.envs, environ)
            for key in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
            if (value := source.get(key))
        ),
        None,
    )
    said = "a token is set" if token else "no token is set"
    revision = config.envs.get("MODEL_REVISION") or "main"
    endpoint = environ.get("HF_ENDPOINT", _HUB).rstrip("/")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = call(
            endpoint,
            f"/{model}/resolve/{revision}/config.json",
            method="HEAD",
            headers=headers,
            timeout_s=_HUB_TIMEOUT_S,
        )
    except ControlError:
        return ReviewItem(
            name, "unknown", f"the hub cannot be asked from here; {said}", "no token is needed for open models"
        )
    if answer.ok:
        return ReviewItem(name, "ok", f"the hub gives it out; {said}")
    if answer.status in (401, 403):
        hint = "the token has no access: ask for it on the model's page" if token else "set HF_TOKEN in the environment"
        return ReviewItem(name, "blocker", f"the hub refuses it (status {answer.status}); {said}", hint)
    if answer.status == 404:
        hint = "correct the name or MODEL_REVISION" + ("" if token else "; a private model needs HF_TOKEN")
        return ReviewItem(name, "blocker", f"the hub does not know it (status 404); {said}", hint)
    return ReviewItem(name, "unknown", f"the hub answers with status {answer.status}; {said}")


def environment_of(environment: Mapping[str, str] | None) -> dict[str, str]:
    """Return the given environment, or that of this process."""
    return dict(os.environ if environment is None else environment)
