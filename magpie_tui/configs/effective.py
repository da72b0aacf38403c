"""The effective config: every value that holds, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.configs.check import ConfigKind, FileCheck, check_file
from magpie_tui.configs.framework import FrameworkConfig, load_framework_config
from magpie_tui.configs.kernel import KernelConfig
from magpie_tui.configs.kernel_fields import (
    CORRECTNESS_FIELDS,
    ENTRY_FIELDS,
    LATENCY_FIELDS,
    PERFORMANCE_FIELDS,
    RAY_FIELDS,
)
from magpie_tui.configs.positions import Origin, Problem, Setting, Value, raise_on_errors
from magpie_tui.configs.schema import Field, Kind, leaves


@dataclass(frozen=True, slots=True)
class Overrides:
    """Command-line options that win over files; None was not given."""

    environment: str | None = None
    workers: int | None = None
    docker_image: str | None = None
    run_mode: str | None = None


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    """All values that hold for one config.

    Attributes:
        settings: By dotted key, in the order of the documentation.
        kernel_ids: Kernel configs only: ids in order.
    """

    path: Path
    kind: ConfigKind
    settings: Mapping[str, Setting]
    problems: tuple[Problem, ...] = ()
    kernel_ids: tuple[str, ...] = field(default=())


def effective_config(
    path: Path,
    *,
    framework_path: Path | None = None,
    kind: ConfigKind | None = None,
    overrides: Overrides | None = None,
    environment: Mapping[str, str] | None = None,
    caller_directory: Path | None = None,
) -> EffectiveConfig:
    """Work out the effective config of a file.

    Args:
        framework_path: Framework config (``--config``); None: upstream's shipped values.

    Raises:
        UserInputError: The file, or the framework config, has errors; the message lists all of them.
    """
    check = check_file(path, kind=kind, environment=environment, caller_directory=caller_directory)
    # Whether analyze could judge its kernels is not a matter of what the config says.
    raise_on_errors(problem for problem in check.problems if problem.code != "missing-check")
    return effective_of(check, framework_path=framework_path, overrides=overrides, environment=environment)


def effective_of(
    check: FileCheck,
    *,
    framework_path: Path | None = None,
    overrides: Overrides | None = None,
    environment: Mapping[str, str] | None = None,
) -> EffectiveConfig:
    """Work out the effective config of a checked file; arguments as for :func:`effective_config`."""
    config = check.config
    if config is None or check.kind is None:
        raise UserInputError("this is not a config", path=check.path)
    options = overrides or Overrides()
    if isinstance(config, FrameworkConfig):
        return EffectiveConfig(check.path, "framework", config.settings, check.problems)
    framework = load_framework_config(framework_path, environment=environment)
    if isinstance(config, BenchmarkConfig):
        settings = _benchmark(config, framework, options)
        return EffectiveConfig(check.path, "benchmark", settings, check.problems)
    ids = tuple(kernel.id for kernel in config.kernels)
    return EffectiveConfig(check.path, "kernel", _kernels(config, framework, options), check.problems, ids)


def _option(key: str, value: Value, name: str) -> Setting:
    return Setting(key, value, Origin("command_line", detail=name))


def _benchmark(config: BenchmarkConfig, framework: FrameworkConfig, options: Overrides) -> dict[str, Setting]:
    settings = dict(config.settings)
    if options.run_mode is not None:
        settings["run_mode"] = _option("run_mode", options.run_mode, "--run-mode")
    if not settings["inferencex_path"].value and framework.value("benchmark.inferencex_path"):
        inherited = framework.settings["benchmark.inferencex_path"]
        settings["inferencex_path"] = Setting("inferencex_path", inherited.value, inherited.origin)
    return settings


def _kernels(config: KernelConfig, framework: FrameworkConfig, options: Overrides) -> dict[str, Setting]:
    given = {setting.key: setting for setting in config.settings}
    settings: dict[str, Setting] = {}
    by_entry = _by_entry(given)
    for index, _kernel in enumerate(config.kernels):
        prefix = f"kernels[{index}]."
        settings.update(_entry(prefix, by_entry.get(prefix, {})))
    settings.update(_section("performance", PERFORMANCE_FIELDS, given, framework))
    _metrix(given, settings)
    settings.update(_section("correctness", CORRECTNESS_FIELDS, given, framework))
    settings.update(_section("latency", LATENCY_FIELDS, given, framework))
    settings.update(_scheduler(config, given, framework, options))
    if config.ray_config is not None:
        for key, item in leaves(RAY_FIELDS, "ray_config."):
            if not item.ignored:
                settings[key] = given.get(key) or Setting(key, item.default, Origin("default"))
    for key, setting in framework.settings.items():
        if key.startswith(("compiling.", "compare.")):
            settings[key] = setting
    return settings


def _by_entry(given: Mapping[str, Setting]) -> dict[str, dict[str, Setting]]:
    """Part the settings of kernels by their prefix, ``kernels[0].``: to look for those of each among all takes long."""
    parts: dict[str, dict[str, Setting]] = {}
    for key, setting in given.items():
        if key.startswith("kernels["):
            head, dot, _rest = key.partition("].")
            parts.setdefault(f"{head}{dot}", {})[key] = setting
    return parts


def _entry(prefix: str, given: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return what holds for one kernel; ``given`` is what its entry says."""
    settings: dict[str, Setting] = {}
    for key, item in leaves(ENTRY_FIELDS, prefix):
        if item.hidden:
            continue
        below = [setting for name, setting in given.items() if name.startswith(f"{key}.")]
        if key in given:
            settings[key] = given[key]
        elif below:
            settings.update({setting.key: setting for setting in below})
        elif not key.startswith(f"{prefix}bench_target."):
            settings[key] = Setting(key, item.default, Origin("default"))
    for key, setting in given.items():
        if key.startswith(f"{prefix}bench_target."):
            settings[key] = setting
    return settings


def _section(
    name: str, fields: tuple[Field, ...], given: Mapping[str, Setting], framework: FrameworkConfig
) -> dict[str, Setting]:
    """Merge a section key by key: this file, then the framework config, then defaults."""
    settings: dict[str, Setting] = {}
    for key, item in leaves(fields, f"{name}."):
        if item.ignored:
            continue
        if key in given:
            settings[key] = given[key]
        elif key in framework.settings:
            settings[key] = framework.settings[key]
        elif item.kind is not Kind.ANY and item.default is not None:
            settings[key] = Setting(key, item.default, Origin("default"))
    return settings


def _metrix(given: Mapping[str, Setting], settings: dict[str, Setting]) -> None:
    """A ``metrix`` section replaces the framework config's as a whole, and selects Metrix."""
    prefix = "performance.metrix."
    if not any(key.startswith(prefix) for key in given):
        return
    limit = settings["performance.timeout_seconds"]
    for key in [key for key in settings if key.startswith(prefix) and key not in given]:
        origin = Origin("default", detail="this file's metrix section replaces the framework config's")
        if key == f"{prefix}timeout_seconds":
            settings[key] = Setting(key, limit.value, replace(limit.origin, detail="performance.timeout_seconds"))
        else:
            item = next(item for name, item in leaves(PERFORMANCE_FIELDS, "performance.") if name == key)
            settings[key] = Setting(key, item.default, origin)
    backend = "performance.backend"
    if settings[backend].value is None:
        settings[backend] = Setting(backend, "metrix", Origin("derived", detail="a metrix section selects it"))


def _scheduler(
    config: KernelConfig, given: Mapping[str, Setting], framework: FrameworkConfig, options: Overrides
) -> dict[str, Setting]:
    settings = {key: setting for key, setting in framework.settings.items() if key.startswith("scheduler.")}
    key = "scheduler.environment"
    if options.environment is not None:
        settings[key] = _option(key, options.environment, "--environment")
    elif key in given:
        settings[key] = given[key]
    elif config.ray_config is not None:
        settings[key] = Setting(key, "ray", Origin("derived", detail="ray_config is present"))
    if options.workers is not None:
        settings["scheduler.max_workers"] = _option("scheduler.max_workers", options.workers, "--workers")
    if options.docker_image is not None:
        settings["scheduler.docker_image"] = _option("scheduler.docker_image", options.docker_image, "--docker-image")
    return settings
