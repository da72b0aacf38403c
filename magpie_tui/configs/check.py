"""Find everything that is wrong with a config file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import nearest
from magpie_tui.configs.benchmark import BenchmarkConfig, read_benchmark_config
from magpie_tui.configs.framework import FrameworkConfig, read_framework_config
from magpie_tui.configs.kernel import KernelConfig, read_kernel_config
from magpie_tui.configs.positions import Document, ListNode, MapNode, Node, Problem, ProblemList, errors_of
from magpie_tui.configs.scalars import describe
from magpie_tui.configs.syntax import load_document

ConfigKind = Literal["kernel", "benchmark", "framework"]
CONFIG_KINDS: tuple[ConfigKind, ...] = ("kernel", "benchmark", "framework")
Mode = Literal["analyze", "compare"]
AnyConfig = KernelConfig | BenchmarkConfig | FrameworkConfig

_FRAMEWORK_ONLY = frozenset({"gpu", "output", "logging", "compiling", "compare"})
_FRAMEWORK_SHARED = frozenset({"scheduler", "performance", "correctness", "latency"})
_FLAT_BENCHMARK = frozenset({"framework", "model", "envs", "precision", "run_mode", "profiler", "gpu_selection"})
_BENCHMARK_SECTION_OF_FRAMEWORK = frozenset({"image_config", "inferencex_path", "timeout_seconds", "profiler"})


@dataclass(frozen=True, slots=True)
class FileCheck:
    """What is wrong with one file.

    Attributes:
        kind: None when it cannot be told.
        config: What was read, with defaults where values are wrong; None when nothing could be read.
    """

    path: Path
    kind: ConfigKind | None
    problems: tuple[Problem, ...]
    config: AnyConfig | None = None

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The errors among the problems."""
        return errors_of(self.problems)

    @property
    def is_usable(self) -> bool:
        """True when there is no error."""
        return not self.errors


def detect_kind(document: Document) -> ConfigKind | None:
    """Tell the kind of a config by its keys; None when they fit none."""
    root = document.root
    if not isinstance(root, MapNode):
        return None
    keys = set(root.keys())
    if keys & {"kernel", "kernels"}:
        return "kernel"
    if keys & _FRAMEWORK_ONLY:
        return "framework"
    if "benchmark" in keys:
        entry = root.get("benchmark")
        below = set(entry.value.keys()) if entry is not None and isinstance(entry.value, MapNode) else set()
        only_framework = below and below <= _BENCHMARK_SECTION_OF_FRAMEWORK
        return "framework" if only_framework or keys & _FRAMEWORK_SHARED else "benchmark"
    if keys & _FLAT_BENCHMARK:
        return "benchmark"
    if keys & _FRAMEWORK_SHARED:
        return "framework"
    if "ray_config" in keys:
        return "kernel"
    for key in root.keys():  # noqa: SIM118 - a MapNode is not a dict
        guess = nearest(key, ("kernel", "kernels", "benchmark"), cutoff=0.7)
        if guess is not None:
            return "benchmark" if guess == "benchmark" else "kernel"
    return None


def check_file(
    path: Path,
    *,
    environment: Mapping[str, str] | None = None,
    mode: Mode | None = None,
    kind: ConfigKind | None = None,
    caller_directory: Path | None = None,
) -> FileCheck:
    """Find all problems of a file; nothing is raised for bad input.

    Args:
        environment: Variables to fill in; None is the process environment.
        mode: What a kernel config is meant for; None: analyze when it holds one kernel.
        kind: None: told by the keys.
        caller_directory: What relative paths belong to; None is the current directory.
    """
    try:
        document = load_document(path)
    except MagpieTuiError as error:
        problem = Problem(path, 1, 1, "error", "unreadable", error.message, hint=error.hint)
        return FileCheck(path, kind, (problem,))
    return check_document(document, environment=environment, mode=mode, kind=kind, caller_directory=caller_directory)


def check_document(
    document: Document,
    *,
    environment: Mapping[str, str] | None = None,
    mode: Mode | None = None,
    kind: ConfigKind | None = None,
    caller_directory: Path | None = None,
) -> FileCheck:
    """Find all problems of a parsed file; arguments as for :func:`check_file`."""
    found = kind or detect_kind(document)
    config: AnyConfig
    if found == "kernel":
        config = read_kernel_config(document, environment=environment, caller_directory=caller_directory)
        problems = (*config.problems, *_mode_problems(document, config, mode))
    elif found == "benchmark":
        config = read_benchmark_config(document, environment=environment)
        problems = config.problems
    elif found == "framework":
        config = read_framework_config(document, environment=environment)
        problems = config.problems
    else:
        return FileCheck(document.path, None, _unknown_kind(document))
    return FileCheck(document.path, found, _in_order(problems), config)


def _in_order(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))


def _unknown_kind(document: Document) -> tuple[Problem, ...]:
    problems = ProblemList(document.path, list(document.problems))
    root = document.root
    if root is None and not document.problems:
        problems.error((1, 1), "empty-file", "the file is empty", expected="a kernel, benchmark or framework config")
    elif root is not None and not isinstance(root, MapNode):
        problems.error(root, "wrong-type", "the file has the wrong type", expected="a mapping", found=describe(root))
    elif root is not None and not document.recovered:
        problems.error(
            root,
            "unknown-kind",
            "no key tells what this config is for",
            expected="kernels or kernel, benchmark, or sections of a framework config",
            found=", ".join(root.keys()[:8]) if isinstance(root, MapNode) and root.entries else "no keys",
            hint="--kind says what it is meant to be",
        )
    return problems.sorted()


def _mode_problems(document: Document, config: KernelConfig, mode: Mode | None) -> tuple[Problem, ...]:
    """What analyze or compare will miss in an otherwise good config."""
    problems = ProblemList(document.path)
    if document.recovered:
        return ()
    places = _entry_places(document)
    if mode == "compare" and len(config.kernels) == 1:
        problems.error(places[0], "too-few-kernels", "compare needs two kernels or more", found="one kernel")
    analyze = mode == "analyze" or (mode is None and len(config.kernels) == 1)
    for index, kernel in enumerate(config.kernels):
        place = places[min(index, len(places) - 1)]
        if kernel.testcase_commands or kernel.reference is not None or _has_key(document, index, "reference"):
            continue
        if _has_key(document, index, "testcase_command") and config.problems:
            continue  # it is there but wrong, which is reported already
        if analyze:
            problems.error(
                place,
                "missing-check",
                f"nothing tells if the kernel {kernel.id} is correct",
                expected="testcase_command or reference",
                hint="without one of them its correctness stays unknown and analyze ends with exit status 1",
            )
        elif kernel.type in ("hip", "cuda", "cpp"):
            problems.warning(
                place,
                "missing-check",
                f"nothing tells if the kernel {kernel.id} is correct, so that compare cannot rank it",
                expected="testcase_command or reference",
            )
    return problems.sorted()


def _entries(document: Document) -> list[MapNode]:
    root = document.root
    if not isinstance(root, MapNode):
        return []
    found: list[Node] = []
    for key in ("kernel", "kernels"):
        entry = root.get(key)
        if entry is not None:
            found.extend(entry.value.items if isinstance(entry.value, ListNode) else (entry.value,))
    return [item for item in found if isinstance(item, MapNode) and item.entries]


def _entry_places(document: Document) -> list[tuple[int, int]]:
    return [(node.line, node.column) for node in _entries(document)] or [(1, 1)]


def _has_key(document: Document, index: int, key: str) -> bool:
    entries = _entries(document)
    if index >= len(entries):
        return False
    entry = entries[index].get(key)
    value = None if entry is None else getattr(entry.value, "text", "a list")
    return bool(value) and value not in ("null", "~")
