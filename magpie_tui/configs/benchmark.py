"""Load benchmark configs (``benchmark -b``) and the flat snapshots of benchmark workspaces."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from magpie_tui.configs.benchmark_envs import Envs, read_envs
from magpie_tui.configs.benchmark_fields import (
    BENCHMARK_FIELDS,
    EXTRA_ARGUMENTS,
    IGNORED_BESIDE_CONFIG,
    STAGE_ALIASES,
    STAGES,
)
from magpie_tui.configs.benchmark_rules import check_benchmark
from magpie_tui.configs.positions import (
    Document,
    ListNode,
    MapNode,
    Node,
    Origin,
    Problem,
    ProblemList,
    Scalar,
    Setting,
    Value,
    raise_on_errors,
)
from magpie_tui.configs.schema import Field, Kind, Reader, leaves, nested, vocabulary
from magpie_tui.configs.syntax import load_document

_OPTIONAL_SECTIONS = ("server_lifecycle", "ray_config")
_TOP_FIELDS = (Field("benchmark", Kind.NODE, "The benchmark."),)
_VOCABULARY = vocabulary(BENCHMARK_FIELDS)
_SNAPSHOT_MARKS = frozenset({"framework", "model", "envs", "precision", "run_mode", "profiler", "gpu_selection"})


@dataclass(frozen=True, slots=True)
class BenchmarkConfig:
    """An effective benchmark config.

    Attributes:
        envs: Exported variables, upper case, as text.
        arguments: Argument vectors of ``EXTRA_VLLM_ARGS``, ``EXTRA_SGLANG_ARGS``, ``EXTRA_ATOM_ARGS``.
        settings: Every effective value by dotted key (``envs.TP``, ``profiler.torch_profiler.enabled``).
        is_snapshot: The file is flat, without ``benchmark:`` around it.
    """

    path: Path
    framework: str
    model: str
    precision: str
    run_mode: str
    envs: Mapping[str, str]
    arguments: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, Setting] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    is_snapshot: bool = False

    def value(self, key: str) -> Value:
        """Return the effective value of a dotted key, None for unknown ones."""
        setting = self.settings.get(key)
        return None if setting is None else setting.value

    def section(self, prefix: str) -> dict[str, Value]:
        """Return a section as nested mappings, defaults included."""
        return nested(self.settings, prefix)

    def _flag(self, key: str) -> bool:
        return self.value(key) is True

    def _count(self, name: str, default: int) -> int:
        text = self.envs.get(name, "")
        return int(text) if text.isdigit() else default

    @property
    def server_arguments(self) -> tuple[str, ...]:
        """Extra arguments of this framework's server."""
        return self.arguments.get(EXTRA_ARGUMENTS.get(self.framework, ""), ())

    @property
    def tensor_parallel(self) -> int:
        """GPUs that one server is spread over."""
        return self._count("TP", 1)

    @property
    def concurrency(self) -> int:
        """Requests in flight."""
        return self._count("CONC", 32)

    @property
    def port(self) -> int:
        """Port of the server."""
        return self._count("PORT", 8888)

    @property
    def timeout_seconds(self) -> float:
        """Limit of the run."""
        value = self.value("timeout_seconds")
        return float(value) if isinstance(value, (int, float)) else 3600.0

    @property
    def tracelens_enabled(self) -> bool:
        """TraceLens runs after the benchmark."""
        return self._flag("profiler.tracelens.enabled")

    @property
    def torch_profiler_enabled(self) -> bool:
        """The server is traced; TraceLens in inference mode forces that."""
        forced = self.tracelens_enabled and self.value("profiler.tracelens.analysis_mode") == "inference"
        return forced or self._flag("profiler.torch_profiler.enabled")

    @property
    def gap_analysis_enabled(self) -> bool:
        """Kernels are ranked after the benchmark."""
        return self._flag("gap_analysis.enabled")

    @property
    def is_clean(self) -> bool:
        """No profiler is on."""
        return not (self.torch_profiler_enabled or self._flag("profiler.system_profiler.enabled"))


def load_benchmark_config(path: Path, *, environment: Mapping[str, str] | None = None) -> BenchmarkConfig:
    """Load a benchmark config, or the flat snapshot of a workspace.

    Raises:
        UserInputError: The file cannot be read, or has errors; the message lists all of them.
    """
    config = read_benchmark_config(load_document(path), environment=environment)
    raise_on_errors(config.problems)
    return config


def read_benchmark_config(document: Document, *, environment: Mapping[str, str] | None = None) -> BenchmarkConfig:
    """Read a parsed file as a benchmark config; all problems are in the result, none is raised."""
    problems = ProblemList(document.path, list(document.problems))
    reader = Reader(problems, os.environ if environment is None else environment, vocabulary=_VOCABULARY)
    root = document.root
    node, is_snapshot = _benchmark_node(document, reader)
    nodes = reader.read(node, BENCHMARK_FIELDS) if node is not None else {}
    envs = read_envs(reader, nodes.get("envs"))
    _read_stages(reader, node)
    settings = _with_defaults(reader, node)
    config = BenchmarkConfig(
        path=document.path,
        framework=_text(settings, "framework"),
        model=_text(settings, "model"),
        precision=_text(settings, "precision"),
        run_mode=_text(settings, "run_mode"),
        envs=envs.values,
        arguments=envs.arguments,
        settings=settings,
        is_snapshot=is_snapshot,
    )
    if node is not None and root is not None:
        check_benchmark(reader, node, settings, envs, recovered=document.recovered, is_snapshot=is_snapshot)
    return replace(config, problems=problems.sorted())


def _benchmark_node(document: Document, reader: Reader) -> tuple[MapNode | None, bool]:
    """Return the mapping under ``benchmark:``, or the whole file when it is flat."""
    root = document.root
    problems = reader.problems
    if root is None:
        if not document.problems:
            problems.error((1, 1), "empty-file", "the file is empty", expected="benchmark")
        return None, False
    if not isinstance(root, MapNode):
        reader.wrong_type(root, "the file", "a mapping with the key benchmark")
        return None, False
    if root.get("benchmark") is None and _SNAPSHOT_MARKS.intersection(root.keys()):
        problems.warning(
            root,
            "flat-benchmark",
            "the keys are not under benchmark:, as in a workspace's snapshot; upstream's own command needs them there",
        )
        return root, True
    nodes = reader.read(root, _TOP_FIELDS)
    node = nodes.get("benchmark")
    if node is None:
        if not document.recovered:
            problems.error(root, "missing-key", "there is no benchmark in this file", expected="benchmark")
        return None, False
    if not isinstance(node, MapNode) or not node.entries:
        reader.wrong_type(node, "benchmark", "a mapping that is not empty")
        return None, False
    return node, False


def _text(settings: Mapping[str, Setting], key: str) -> str:
    value = settings[key].value
    return value if isinstance(value, str) else ""


def _with_defaults(reader: Reader, node: MapNode | None) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    given = reader.settings
    wants_ray = given.get("run_mode") is not None and given["run_mode"].value == "ray"
    for key, item in leaves(BENCHMARK_FIELDS):
        if key == "envs":
            settings.update({name: setting for name, setting in given.items() if name.startswith("envs.")})
            continue
        if item.hidden or item.ignored:
            continue
        section = key.split(".")[0]
        absent = section in _OPTIONAL_SECTIONS and (node is None or node.get(section) is None)
        if absent and not (section == "ray_config" and wants_ray):
            continue
        settings[key] = given.get(key) or Setting(key, item.default, Origin("default"))
    _legacy_export(given, settings)
    _forced_profiler(settings)
    return settings


def _legacy_export(given: Mapping[str, Setting], settings: dict[str, Setting]) -> None:
    """``export_csv`` and ``export_excel`` choose the format where ``export_format`` is not given."""
    key = "profiler.tracelens.export_format"
    if key in given:
        return
    for name, text in (("csv", "csv"), ("excel", "excel")):
        legacy = given.get(f"profiler.tracelens.export_{name}")
        if legacy is not None and legacy.value is True:
            settings[key] = Setting(key, text, legacy.origin)


def _forced_profiler(settings: dict[str, Setting]) -> None:
    """TraceLens in inference mode switches the torch profiler on."""
    key = "profiler.torch_profiler.enabled"
    tracelens = settings["profiler.tracelens.enabled"]
    inference = settings["profiler.tracelens.analysis_mode"].value == "inference"
    if tracelens.value is True and inference and settings[key].value is not True:
        settings[key] = Setting(key, True, Origin("derived", detail="TraceLens in inference mode needs traces"))


def _read_stages(reader: Reader, node: MapNode | None) -> None:
    place: Node | None = node
    for key in ("profiler", "tracelens", "analysis_stages"):
        entry = place.get(key) if isinstance(place, MapNode) else None
        if entry is None:
            return
        place = entry.value
    if place is None:
        return
    key = "profiler.tracelens.analysis_stages"
    items: list[tuple[Node, str]] = []
    if isinstance(place, Scalar) and isinstance(place.value, str):
        items = [(place, part.strip()) for part in place.text.split(",")]
    elif isinstance(place, ListNode):
        for item in place.items:
            if isinstance(item, Scalar) and isinstance(item.value, str):
                items.append((item, item.text.strip()))
            else:
                reader.wrong_type(item, key, "one of all, " + ", ".join(STAGES))
                return
    elif isinstance(place, Scalar) and place.value is None:
        return
    else:
        reader.wrong_type(place, key, "all, a comma-separated text, or a list of stages")
        return
    stages: list[str] = []
    for item, text in items:
        folded = STAGE_ALIASES.get(text.lower(), text.lower())
        if folded == "all":
            stages.extend(STAGES)
        elif folded in STAGES:
            stages.append(folded)
        else:
            reader.problems.error(
                item,
                "bad-choice",
                f"{key} has no such stage",
                expected="all, " + ", ".join(STAGES),
                found=f"text {text!r}",
            )
    reader.put(key, tuple(dict.fromkeys(stages)), place)


def warn_ignored_options(config: BenchmarkConfig, options: Mapping[str, str]) -> tuple[Problem, ...]:
    """Return warnings for options given beside ``-b`` that upstream silently ignores.

    Args:
        options: Option names without dashes (``tp``), as typed by the user, with their values.
    """
    problems = ProblemList(config.path)
    for name, value in options.items():
        if name in IGNORED_BESIDE_CONFIG:
            problems.warning(
                (1, 1),
                "ignored-option",
                f"--{name} {value} has no effect beside --benchmark-config: the file decides",
                hint="change the file, or leave --benchmark-config out",
            )
    return problems.sorted()


__all__ = ["BenchmarkConfig", "Envs", "load_benchmark_config", "read_benchmark_config", "warn_ignored_options"]
