"""What differs between two effective configs, in groups that matter to a measurement."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from magpie_tui.basics.errors import UserInputError
from magpie_tui.configs.benchmark_fields import VISIBLE_DEVICES
from magpie_tui.configs.check import ConfigKind
from magpie_tui.configs.effective import EffectiveConfig
from magpie_tui.configs.positions import Setting

_WORKLOAD = ("framework", "model", "precision", "agentx", "sweep_matrix", "run_cmd", "lm_eval_runtime", "load")
_MACHINE_ENVS = frozenset({*VISIBLE_DEVICES, "PORT", "HF_HOME", "HF_TOKEN", "CUDA_DEVICE_ORDER"})
_INDEXED = re.compile(r"kernels\[(\d+)\]\.(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Change:
    """A value that differs; None on the side that does not have it."""

    key: str
    first: Setting | None
    second: Setting | None


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    """Changes of one kind: ``workload``, ``profiler``, ``environment``, or a kernel."""

    name: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """All differences; groups without any are left out."""

    kind: ConfigKind
    groups: tuple[ChangeGroup, ...]

    @property
    def is_empty(self) -> bool:
        """True when both configs have the same effect."""
        return not self.groups


def group_of(key: str) -> str:
    """Return the group of a benchmark's dotted key."""
    top, _, rest = key.partition(".")
    if top in ("profiler", "gap_analysis", "run_kind"):
        return "profiler"
    if top == "envs":
        return "environment" if rest in _MACHINE_ENVS else "workload"
    return "workload" if top in _WORKLOAD else "environment"


def compare_configs(first: EffectiveConfig, second: EffectiveConfig) -> ConfigDifference:
    """Return what differs between two effective configs of one kind.

    Raises:
        UserInputError: They are of different kinds.
    """
    if first.kind != second.kind:
        raise UserInputError(f"a {first.kind} config cannot be compared with a {second.kind} config", path=second.path)
    if first.kind == "kernel":
        return ConfigDifference("kernel", _kernel_groups(first, second))
    changes = _changes(dict(first.settings), dict(second.settings))
    names: tuple[str, ...] = ("workload", "profiler", "environment")
    if first.kind == "framework":
        names = tuple(dict.fromkeys(change.key.partition(".")[0] for change in changes))
        return ConfigDifference("framework", _grouped(changes, names, lambda key: key.partition(".")[0]))
    return ConfigDifference("benchmark", _grouped(changes, names, group_of))


def _grouped(
    changes: tuple[Change, ...], names: tuple[str, ...], group: Callable[[str], str]
) -> tuple[ChangeGroup, ...]:
    found = (ChangeGroup(name, tuple(change for change in changes if group(change.key) == name)) for name in names)
    return tuple(item for item in found if item.changes)


def _changes(first: dict[str, Setting], second: dict[str, Setting]) -> tuple[Change, ...]:
    changes = []
    for key in dict.fromkeys((*first, *second)):
        left, right = first.get(key), second.get(key)
        if left is None or right is None or left.value != right.value or type(left.value) is not type(right.value):
            changes.append(Change(key, left, right))
    return tuple(changes)


def _kernel_groups(first: EffectiveConfig, second: EffectiveConfig) -> tuple[ChangeGroup, ...]:
    groups = []
    for name, left, right in _pairs(first, second):
        changes = _changes(_of_kernel(first, left), _of_kernel(second, right))
        if changes:
            groups.append(ChangeGroup(name, changes))
    rest = _changes(
        {key: setting for key, setting in first.settings.items() if not _INDEXED.match(key)},
        {key: setting for key, setting in second.settings.items() if not _INDEXED.match(key)},
    )
    names = tuple(dict.fromkeys(change.key.partition(".")[0] for change in rest))
    return (*groups, *_grouped(rest, names, lambda key: key.partition(".")[0]))


def _pairs(first: EffectiveConfig, second: EffectiveConfig) -> list[tuple[str, int | None, int | None]]:
    """Match kernels by id where ids are unique, else by position."""
    left, right = first.kernel_ids, second.kernel_ids
    if len(set(left)) == len(left) and len(set(right)) == len(right):
        return [
            (f"kernel {name}", left.index(name) if name in left else None, right.index(name) if name in right else None)
            for name in dict.fromkeys((*left, *right))
        ]
    count = max(len(left), len(right))
    return [
        (f"kernel {index}", index if index < len(left) else None, index if index < len(right) else None)
        for index in range(count)
    ]


def _of_kernel(config: EffectiveConfig, index: int | None) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for key, setting in config.settings.items():
        match = _INDEXED.match(key)
        if match is not None and index is not None and int(match[1]) == index:
            found[match[2]] = setting
    return found
