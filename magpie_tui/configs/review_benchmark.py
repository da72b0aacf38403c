"""What a benchmark config needs of this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.paths import expanded
from magpie_tui.basics.text import plural
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.configs.effective import EffectiveConfig
from magpie_tui.configs.kernel_paths import exists
from magpie_tui.configs.review import ReviewItem, gpu_text
from magpie_tui.configs.review_kernel import docker_item

if TYPE_CHECKING:
    from magpie_tui.machine.model import Gpu, Machine

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+\Z")
_IMAGE_ARCHITECTURES = {
    "vllm": ("gfx942", "gfx950", "sm_80", "sm_90", "sm_100"),
    "sglang": ("gfx942", "gfx950", "sm_80", "sm_90", "sm_100"),
    "atom": ("gfx942", "gfx950"),
}
"""Architectures for which upstream names an image."""
_REQUESTS_FOR_P99 = 368
"""Below this number of requests the 95 % interval of the 99th percentile has no upper bound."""


def review_benchmark(
    config: BenchmarkConfig, effective: EffectiveConfig, machine: Machine, environ: Mapping[str, str]
) -> tuple[ReviewItem, ...]:
    """Look for the framework, GPUs, the port, the model, and numbers that do not fit each other."""
    setting = effective.settings.get("run_mode")
    run_mode = setting.value if setting is not None else config.run_mode
    client_only = "BENCHMARK_BASE_URL" in config.envs
    items: list[ReviewItem] = []
    if client_only:
        items.append(ReviewItem("server", "unknown", f"{config.envs['BENCHMARK_BASE_URL']} is not asked in a review"))
    else:
        items.extend(_framework(config, str(run_mode), machine, environ))
        items.extend(_gpus(config, str(run_mode), machine))
        items.extend(_port(config, machine))
    items.extend(_model(config, environ))
    items.extend(_numbers(config))
    return tuple(items)


def _framework(
    config: BenchmarkConfig, run_mode: str, machine: Machine, environ: Mapping[str, str]
) -> Iterator[ReviewItem]:
    from magpie_tui.machine.toolchain import find_package, locate

    name = f"framework {config.framework}"
    if run_mode == "docker":
        yield docker_item(machine)
        yield _image(config, machine)
    elif run_mode == "ray":
        yield ReviewItem(name, "unknown", "it is looked for on the Ray workers only")
    else:
        package, command = find_package(config.framework), locate(config.framework, environ)
        if package.importable:
            yield ReviewItem(name, "ok", f"importable, version {package.version or 'unknown'}")
        elif command.path is not None:
            yield ReviewItem(name, "ok", f"command {command.path}")
        else:
            hint = f"install {config.framework}, activate its environment, or use run_mode: docker"
            yield ReviewItem(name, "blocker", package.reason or "not importable", hint)
        if config.framework == "atom" and machine.vendor == "NVIDIA":
            yield ReviewItem("vendor", "blocker", f"atom needs AMD GPUs; here: {gpu_text(machine)}")


def _image(config: BenchmarkConfig, machine: Machine) -> ReviewItem:
    given = config.value("docker_image")
    if given:
        return ReviewItem("image", "unknown", f"{given}: not looked up, it may have to be pulled")
    setting = config.value("gpu_arch")
    architecture = setting if isinstance(setting, str) else machine.architecture
    known = _IMAGE_ARCHITECTURES.get(config.framework, ())
    if architecture is None:
        return ReviewItem(
            "image", "blocker", "no GPU architecture to choose an image for", "give docker_image or gpu_arch"
        )
    base = architecture.removesuffix("a") if architecture.startswith("sm_") else architecture
    if base not in known:
        evidence = f"upstream names no {config.framework} image for {architecture}"
        return ReviewItem("image", "blocker", evidence, "give docker_image")
    return ReviewItem("image", "unknown", f"chosen for {architecture}: not looked up, it may have to be pulled")


def _gpus(config: BenchmarkConfig, run_mode: str, machine: Machine) -> Iterator[ReviewItem]:
    name = f"GPUs for TP {config.tensor_parallel}"
    if run_mode == "ray":
        yield ReviewItem(name, "unknown", "they are on the Ray workers")
        return
    visible = [gpu for gpu in machine.gpus if gpu.visible is not False]
    candidates = config.value("gpu_selection.candidates")
    if isinstance(candidates, tuple) and config.value("gpu_selection.auto") is True:
        visible = [gpu for gpu in visible if gpu.index in candidates]
    needed = config.tensor_parallel
    count = config.value("gpu_selection.count")
    needed = max(needed, count) if isinstance(count, int) else needed
    evidence = f"{gpu_text(machine)}, {len(visible)} visible and allowed"
    if not machine.gpus:
        yield ReviewItem(name, "blocker", gpu_text(machine), "run it on a machine with GPUs")
        return
    if len(visible) < needed:
        yield ReviewItem(name, "blocker", evidence, f"lower TP, or make {needed} GPUs visible")
        return
    yield ReviewItem(name, "ok", evidence)
    yield _idle(config, visible, needed)


def _idle(config: BenchmarkConfig, gpus: list[Gpu], needed: int) -> ReviewItem:
    limit = config.value("gpu_selection.min_free_memory_gb")
    minimum = float(limit) * 1e9 if isinstance(limit, (int, float)) else 0.0
    idle = [gpu for gpu in gpus if gpu.processes == () and (gpu.memory_free_bytes or 0) >= minimum]
    unread = [gpu for gpu in gpus if gpu.processes is None or gpu.memory_free_bytes is None]
    busy = [f"GPU {gpu.index}: {plural(len(gpu.processes), 'process', 'processes')}" for gpu in gpus if gpu.processes]
    if len(idle) >= needed:
        return ReviewItem("idle GPUs", "ok", f"{len(idle)} of {len(gpus)} idle")
    if unread:
        return ReviewItem("idle GPUs", "unknown", f"processes or free memory of {len(unread)} GPUs cannot be read")
    automatic = config.value("gpu_selection.auto") is True
    evidence = f"{len(idle)} of {len(gpus)} idle; " + ("; ".join(busy) or f"less than {limit} GB free")
    return ReviewItem("idle GPUs", "blocker" if automatic else "warning", evidence, "wait, or stop what uses them")


def _port(config: BenchmarkConfig, machine: Machine) -> Iterator[ReviewItem]:
    port = next((item for item in machine.ports if item.number == config.port), None)
    name = f"port {config.port}"
    if port is None or port.free is None:
        yield ReviewItem(name, "unknown", (port.reason if port else None) or "it cannot be read who listens")
    elif port.free:
        yield ReviewItem(name, "ok", "nobody listens")
    else:
        who = f"pid {port.pid} ({port.process or 'unknown'})" if port.pid is not None else "another process"
        if config.value("server_lifecycle.enabled") is True:
            yield ReviewItem(name, "warning", f"{who} listens; it may be the kept server")
        else:
            yield ReviewItem(name, "blocker", f"{who} listens", "stop it, or set PORT under envs to a free port")


def _model(config: BenchmarkConfig, environ: Mapping[str, str]) -> Iterator[ReviewItem]:
    model = config.envs.get("MODEL_PATH") or config.model
    name = f"model {model}"
    path = expanded(Path(model))
    if exists(path):
        has_config = (path / "config.json").is_file() or path.is_file()
        evidence = str(path.absolute())
        if has_config:
            yield ReviewItem(name, "ok", evidence)
        else:
            yield ReviewItem(name, "warning", f"{evidence} holds no config.json", "is this the model's directory?")
        return
    if not _HUB_ID.match(model) or "MODEL_PATH" in config.envs:
        yield ReviewItem(name, "blocker", "there is no such directory, and it is no Hugging Face id", "correct model")
        return
    cached = _cached(config, model, environ)
    token = bool(config.envs.get("HF_TOKEN") or environ.get("HF_TOKEN") or environ.get("HUGGING_FACE_HUB_TOKEN"))
    said = "a Hugging Face token is set" if token else "no Hugging Face token is set"
    if cached is not None:
        yield ReviewItem(name, "ok", f"in the cache {cached}; {said}")
        return
    hint = None if token else "gated models need HF_TOKEN; open ones do not"
    yield ReviewItem(
        name, "unknown", f"not in the cache, so it is downloaded; {said}; whether it is gated is not asked", hint
    )


def _cached(config: BenchmarkConfig, model: str, environ: Mapping[str, str]) -> Path | None:
    given = config.value("hf_cache_path")
    home = environ.get("HF_HOME") or str(Path(environ.get("HOME", "/")) / ".cache" / "huggingface")
    for base in (given if isinstance(given, str) else None, config.envs.get("HF_HOME"), home):
        if base is None:
            continue
        for hub in (Path(base) / "hub", Path(base)):
            snapshots = hub / f"models--{model.replace('/', '--')}" / "snapshots"
            if _has_children(snapshots):
                return snapshots.parent
    return None


def _has_children(directory: Path) -> bool:
    try:
        return any(directory.iterdir())
    except OSError:
        return False


def _number(config: BenchmarkConfig, name: str, default: int | None) -> int | None:
    text = config.envs.get(name, "")
    return int(text) if text.isdigit() else default


def _numbers(config: BenchmarkConfig) -> Iterator[ReviewItem]:
    isl, osl = _number(config, "ISL", None), _number(config, "OSL", None)
    limit = _number(config, "MAX_MODEL_LEN", None)
    if isl is not None and osl is not None and limit is not None:
        evidence = f"ISL {isl} + OSL {osl} = {isl + osl}, MAX_MODEL_LEN {limit}"
        fits = isl + osl <= limit
        yield ReviewItem("context", "ok" if fits else "blocker", evidence, None if fits else "raise MAX_MODEL_LEN")
    requests = _number(config, "NUM_PROMPTS", config.concurrency * 10)
    if requests is not None:
        evidence = f"{requests} requests"
        enough = requests >= _REQUESTS_FOR_P99
        hint = f"below {_REQUESTS_FOR_P99} the 99th percentile has no upper bound; raise NUM_PROMPTS"
        yield ReviewItem("requests", "ok" if enough else "warning", evidence, None if enough else hint)
