"""What a benchmark needs of this machine, each point with its evidence; blockers keep a run from starting.

Extends the review of configs, which knows no engines, by what only the serving room can tell.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from magpie_tui.basics.errors import MachineError
from magpie_tui.basics.files import write_json
from magpie_tui.basics.paths import private_directory, state_directory
from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_bytes, format_clock
from magpie_tui.configs.benchmark import BenchmarkConfig, load_benchmark_config
from magpie_tui.configs.check import ConfigKind, Mode
from magpie_tui.configs.effective import Overrides
from magpie_tui.configs.review import Review, ReviewItem, review_config
from magpie_tui.machine.model import Gpu, Machine
from magpie_tui.machine.probe import run_tool
from magpie_tui.machine.toolchain import locate
from magpie_tui.serving.control import ControlError, listed_models, root_of
from magpie_tui.serving.engines import ENGINE_NAMES, engine_named
from magpie_tui.serving.engines.detect import detect_local
from magpie_tui.serving.estimate import expected_run
from magpie_tui.serving.kept import settings_problem
from magpie_tui.serving.kept_state import KeptServer, is_kept, kept_place, look_for_kept
from magpie_tui.serving.model_fit import access_item, environment_of, fit_items
from magpie_tui.serving.placement import image_of, is_cpu_build
from magpie_tui.serving.script import script_of
from magpie_tui.serving.workload import HOST

FLOOR_NAME = "gpu_memory_floor.json"
_FLOOR_SLACK_BYTES = 1 << 30
_CAP_SLACK = 0.98
"""A cap this close to the default counts as the default: tools round."""
_WHOLE = frozenset({"SPX/NPS1", "SPX", "no MIG", "disabled", "Disabled"})
"""Partition modes in which a GPU is one GPU."""


def review(
    path: Path,
    *,
    kind: ConfigKind | None = None,
    mode: Mode | None = None,
    framework_path: Path | None = None,
    overrides: Overrides | None = None,
    output_dir: Path = Path("results"),
    environment: Mapping[str, str] | None = None,
    machine: Machine | None = None,
    on_item: Callable[[ReviewItem], None] = lambda _item: None,
) -> Review:
    """Review a config of any kind; of a benchmark also what its engine, model and host say.

    Further arguments and errors as for ``configs.review.review_config``.

    Args:
        on_item: Told each point of a benchmark as soon as it is decided.
    """
    base = review_config(
        path,
        kind=kind,
        mode=mode,
        framework_path=framework_path,
        overrides=overrides,
        output_dir=output_dir,
        environment=environment,
        machine=machine,
    )
    if base.kind != "benchmark" or base.has_errors or base.machine is None:
        return base
    environ = environment_of(environment)
    config = load_benchmark_config(path, environment=environ)
    run_mode = (overrides.run_mode if overrides else None) or config.run_mode
    items = []
    for item in _items(base, config, run_mode, base.machine, environ, output_dir):
        items.append(item)
        on_item(item)
    return Review(base.path, base.kind, base.problems, tuple(items), base.machine)


def require_no_blocker(found: Review) -> None:
    """Refuse to start; where nothing blocks, the memory that idle GPUs hold is remembered for the next time.

    Raises:
        MachineError: The review found blockers; the text names all of them.
    """
    if not found.blockers:
        if found.machine is not None:
            remember_memory_floor(found.machine.gpus)
        return
    first = found.blockers[0]
    texts = "; ".join(f"{item.name}: {item.evidence}" for item in found.blockers)
    raise MachineError(
        f"this machine cannot run it: {texts}",
        path=found.path,
        hint="\n".join(filter(None, (first.hint, _where_all_are(found)))) or None,
    )


def _where_all_are(found: Review) -> str:
    """Name the command that shows every point, where the hint of the first blocker does not tell all."""
    if len(found.blockers) == 1 and found.blockers[0].hint:
        return ""
    return f"all points, each with what to do: magpie-tui config review {printable(found.path)}"


def _items(
    base: Review, config: BenchmarkConfig, run_mode: str, machine: Machine, environ: Mapping[str, str], output_dir: Path
) -> Iterator[ReviewItem]:
    client_only = "BENCHMARK_BASE_URL" in config.envs
    served = config.framework in ENGINE_NAMES and run_mode in ("local", "docker") and not client_only
    on_cpu = False
    kept = look_for_kept(config, environ) if is_kept(config) and not client_only else None
    usable = kept is not None and kept.answers and settings_problem(config, kept) is None
    for item in base.items:
        if served and run_mode == "local" and item.name.startswith("framework "):
            item, on_cpu = _framework(config, environ)
        elif served and item.name == "image":
            item = _image(config)
        elif client_only and item.name == "server":
            item = _running_server(config)
        elif client_only and item.name.startswith("model "):
            item = ReviewItem(item.name, "ok", "a name of the running server's; no weights are needed here")
        elif item.name.startswith("port ") and item.status in ("blocker", "warning"):
            item = _port(item, config, kept)
        elif usable and item.name == "idle GPUs":
            item = ReviewItem(item.name, "ok", "those of the kept server are used")
        if on_cpu and item.name.startswith(("GPUs for TP", "idle GPUs", "vendor")):
            if item.name.startswith("GPUs for TP"):
                yield ReviewItem("GPUs", "ok", "none is needed: the framework is built for CPUs")
            continue
        yield item
    access = None if client_only else access_item(config, environ)
    if access is not None:
        yield access
    yield from fit_items(config, machine, environ, on_cpu=on_cpu)
    yield from _host(machine, on_cpu=on_cpu)
    if not on_cpu:
        yield from _gpu_settings(machine)
    if is_kept(config):
        yield _lifecycle(config, kept, environ)
    yield _time(config, output_dir)
    yield _output(output_dir)


def _framework(config: BenchmarkConfig, environ: Mapping[str, str]) -> tuple[ReviewItem, bool]:
    engine = engine_named(config.framework)
    python = config.value("python")
    found = detect_local(engine, python if isinstance(python, str) else None, environment=environ)
    name = f"framework {engine.name}"
    if not found.found:
        hint = "set `python:` to its interpreter or virtual environment, or use run_mode: docker"
        return ReviewItem(name, "blocker", found.reason or "not found", hint), False
    cpu = is_cpu_build(found)
    place = found.script or found.python
    evidence = f"version {found.version or 'unknown'} in {place}" + (", built for CPUs" if cpu else "")
    status = "ok" if found.version else "warning"
    return ReviewItem(name, "ok" if status == "ok" else "warning", evidence, found.reason), cpu


def _image(config: BenchmarkConfig) -> ReviewItem:
    try:
        image = image_of(config)
    except MachineError as error:
        return ReviewItem("image", "blocker", error.message, error.hint)
    client = locate("docker")
    if client.path is None:
        return ReviewItem("image", "unknown", f"{image}: there is no docker client to ask")
    answer = run_tool((str(client.path), "image", "inspect", "--format", "{{.Id}} {{.Size}}", image), timeout_s=10.0)
    if answer.exit_code == 0:
        digest, _, size = answer.stdout.strip().partition(" ")
        return ReviewItem("image", "ok", f"{image} is here: {digest[:19]}, {format_bytes(float(size or 0))}")
    return ReviewItem("image", "warning", f"{image} is not here", "it is pulled at the start, which takes long")


def _running_server(config: BenchmarkConfig) -> ReviewItem:
    url = root_of(config.envs["BENCHMARK_BASE_URL"])
    try:
        models = listed_models(url)
    except ControlError as error:
        return ReviewItem("server", "blocker", str(error), "start it, or correct BENCHMARK_BASE_URL")
    listed = ", ".join(map(printable, models)) or "no model"
    if config.model and config.model not in models:
        return ReviewItem("server", "blocker", f"{url} lists {listed}", f"it does not serve {config.model}")
    return ReviewItem("server", "ok", f"{url} lists {listed}")


def _port(item: ReviewItem, config: BenchmarkConfig, kept: KeptServer | None) -> ReviewItem:
    if kept is not None and kept.answers:
        return ReviewItem(item.name, "ok", f"{item.evidence.partition(';')[0]}: the kept server")
    try:
        models = listed_models(f"http://{HOST}:{config.port}")
    except ControlError:
        return item
    serves = ", ".join(map(printable, models)) or "no model"
    return ReviewItem(item.name, item.status, f"{item.evidence} and serves {serves}", item.hint)


def _lifecycle(config: BenchmarkConfig, kept: KeptServer | None, environ: Mapping[str, str]) -> ReviewItem:
    """Is there a kept server, may it be used, and what that means for the numbers."""
    name = "server_lifecycle"
    if script_of(config) is not None:
        hint = "remove server_lifecycle, or benchmark_script"
        return ReviewItem(name, "blocker", "a script of its own starts and ends its server itself", hint)
    if kept is None:
        end = "is ended with the run" if config.value("server_lifecycle.cleanup") is True else "stays for later runs"
        return ReviewItem(
            name, "ok", f"no kept server in {kept_place(config, environ).directory}: one is started and {end}"
        )
    if not kept.answers:
        return ReviewItem(name, "warning", f"{kept.text} does not answer", "it is ended, and another one started")
    problem = settings_problem(config, kept)
    if problem is not None:
        return ReviewItem(name, "blocker", problem, "stop it, set another PORT, or server_lifecycle.force_reuse: true")
    hint = "a kept server may answer from a warm cache: a verdict wants the same policy for both arms"
    return ReviewItem(name, "warning", f"the kept server is used: {kept.text}, {plural(kept.runs, 'run')} before", hint)


def _host(machine: Machine, *, on_cpu: bool) -> Iterator[ReviewItem]:
    host = machine.host
    if host.numa_balancing is None:
        yield ReviewItem("NUMA balancing", "unknown", host.reasons.get("numa_balancing", "it cannot be read"))
    elif host.numa_balancing:
        switch = "sudo sh -c 'echo 0 > /proc/sys/kernel/numa_balancing'"
        yield ReviewItem("NUMA balancing", "warning", "on: the kernel moves pages while the load runs", switch)
    else:
        yield ReviewItem("NUMA balancing", "ok", "off")
    if host.governor is None:
        yield ReviewItem("CPU governor", "unknown", host.reasons.get("governor", "it cannot be read here"))
    else:
        fast = host.governor == "performance"
        hint = None if fast else "clocks follow the load: sudo cpupower frequency-set -g performance"
        yield ReviewItem("CPU governor", "ok" if fast else "warning", host.governor, hint)
    if host.load_average is not None and host.usable_cores:
        busy = host.load_average / host.usable_cores
        evidence = f"load {host.load_average:.1f} on {host.usable_cores:g} CPUs"
        limit = 0.2 if on_cpu else 0.5
        advice = None if busy <= limit else "something else computes here: numbers will scatter"
        yield ReviewItem("other load", "ok" if busy <= limit else "warning", evidence, advice)


def _gpu_settings(machine: Machine) -> Iterator[ReviewItem]:
    floor = _read_floor()
    for gpu in machine.gpus:
        if gpu.visible is False:
            continue
        name = f"GPU {gpu.index}"
        if gpu.throttled:
            reasons = ", ".join(gpu.throttle_reasons or ())
            yield ReviewItem(f"{name} throttling", "warning", reasons, "let it cool down")
        elif gpu.throttled is None:
            yield _unread(f"{name} throttling", gpu, "throttle_reasons")
        yield _power_cap(gpu, name)
        yield _clock_mode(gpu, name)
        yield _partition(gpu, name)
        yield from _memory_floor(gpu, floor, name)


def _unread(item: str, gpu: Gpu, key: str) -> ReviewItem:
    sources = ", ".join(gpu.sources) or "no source"
    return ReviewItem(item, "unknown", gpu.reasons.get(key) or f"{sources} does not tell it")


def _power_cap(gpu: Gpu, name: str) -> ReviewItem:
    """A cap below the GPU's own limit slows it down under load, and nothing else shows it."""
    if gpu.power_cap_w is None:
        return _unread(f"{name} power cap", gpu, "power_cap_w")
    usual = gpu.power_cap_default_w
    if usual is None:
        why = gpu.reasons.get("power_cap_default_w") or "its default cannot be read"
        return ReviewItem(f"{name} power cap", "unknown", f"{gpu.power_cap_w:,.0f} W; {why}")
    evidence = f"{gpu.power_cap_w:,.0f} W, by default {usual:,.0f} W"
    if gpu.power_cap_w < usual * _CAP_SLACK:
        tool = "nvidia-smi --power-limit" if gpu.vendor == "NVIDIA" else "amd-smi set --power-cap"
        return ReviewItem(f"{name} power cap", "warning", evidence, f"it runs slower than others of its kind: {tool}")
    return ReviewItem(f"{name} power cap", "ok", evidence)


def _clock_mode(gpu: Gpu, name: str) -> ReviewItem:
    """Whether clocks are left to the driver, held at a value, or in a mode that is not for measuring."""
    mode = gpu.clock_mode
    if mode is None:
        return _unread(f"{name} clock mode", gpu, "clock_mode")
    word = mode.lower()
    if word in ("low", "manual low", "power saving"):
        hint = "clocks are held low: amd-smi set --perf-level auto"
        return ReviewItem(f"{name} clock mode", "warning", mode, hint)
    return ReviewItem(f"{name} clock mode", "ok", mode)


def _partition(gpu: Gpu, name: str) -> ReviewItem:
    if gpu.partition is None:
        return _unread(f"{name} partition", gpu, "partition")
    if gpu.partition in _WHOLE:
        return ReviewItem(f"{name} partition", "ok", gpu.partition)
    hint = "a part of a GPU is measured, and its neighbours share its memory"
    return ReviewItem(f"{name} partition", "warning", gpu.partition, hint)


def _memory_floor(gpu: Gpu, floor: Mapping[str, float], name: str) -> Iterator[ReviewItem]:
    lowest = floor.get(gpu.uuid or str(gpu.index))
    used = gpu.memory_used_bytes
    if lowest is None or used is None or gpu.processes:
        return
    evidence = f"{format_bytes(used)} in use without a process, at rest {format_bytes(lowest)}"
    if used > lowest + _FLOOR_SLACK_BYTES:
        hint = "something that ended did not give its memory back: find it with gpu-info, or reset the GPU"
        yield ReviewItem(f"{name} memory", "blocker", evidence, hint)
    else:
        yield ReviewItem(f"{name} memory", "ok", evidence)


def _floor_path() -> Path:
    return state_directory() / FLOOR_NAME


def _read_floor() -> dict[str, float]:
    try:
        value = json.loads(_floor_path().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): float(item) for key, item in value.items()} if isinstance(value, dict) else {}


def remember_memory_floor(gpus: tuple[Gpu, ...]) -> None:
    """Keep the lowest memory in use that an idle GPU was seen with; a place that cannot be written costs the check."""
    floor = _read_floor()
    for gpu in gpus:
        if gpu.processes == () and gpu.memory_used_bytes is not None:
            key = gpu.uuid or str(gpu.index)
            floor[key] = min(floor.get(key, float(gpu.memory_used_bytes)), float(gpu.memory_used_bytes))
    if floor:
        try:
            private_directory(state_directory())
            write_json(_floor_path(), floor)
        except (OSError, MachineError):
            return


def _time(config: BenchmarkConfig, output_dir: Path) -> ReviewItem:
    limit = config.timeout_seconds
    price = expected_run(config, output_dir)
    if price is None:
        return ReviewItem(
            "time", "unknown", f"limit {format_clock(limit)}; no earlier run of this model is there to estimate from"
        )
    parts = (
        f"about {format_clock(price.total_s)} (start {format_clock(price.start_s)}, measure "
        f"{format_clock(price.measure_s)}) after {price.source.name}; limit {format_clock(limit)}"
    )
    if price.total_s > limit:
        return ReviewItem("time", "blocker", parts, "raise timeout_seconds, or lower NUM_PROMPTS")
    if price.total_s > 0.7 * limit:
        return ReviewItem("time", "warning", parts, "raise timeout_seconds")
    return ReviewItem("time", "ok", parts)


def _output(output_dir: Path) -> ReviewItem:
    place = output_dir.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    name = f"output {output_dir}"
    if not place.is_dir():
        return ReviewItem(name, "blocker", f"{place} is a file", "choose another --output-dir")
    if not os.access(place, os.W_OK | os.X_OK):
        return ReviewItem(name, "blocker", f"{place} cannot be written", "choose another --output-dir")
    return ReviewItem(name, "ok", f"{place} can be written")
