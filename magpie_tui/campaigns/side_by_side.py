"""Whether the two sides of the last step can be installed at the same time, as far as their configs tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.campaigns.model import Campaign
from magpie_tui.configs.benchmark import BenchmarkConfig, load_benchmark_config

_OF_THE_LOAD = ("load.", "profiler.", "gap_analysis.", "timeout_seconds")
_INSTALLED_BY = {
    "environment": ("envs.",),
    "patch": ("python", "docker_image", "envs."),
    "wheel": ("python", "docker_image", "envs."),
    "image": ("docker_image",),
    "config": ("",),
}
"""Way of integration → which of B's values can select it; an empty beginning stands for every value."""
_ARTICLES = {"environment": "an", "image": "an"}
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class SideBySide:
    """An answer; ``holds`` is None where the configs cannot tell."""

    holds: bool | None
    text: str


def side_by_side(campaign: Campaign) -> SideBySide:
    """Tell whether A and B differ in what selects the integrated kernel."""
    decision: Mapping[str, object] = campaign.step("integrate").decision or {}
    kind = str(decision.get("kind", ""))
    if not kind:
        return SideBySide(None, "how the winner is integrated was not said yet")
    if kind == "none":
        return SideBySide(True, "nothing is installed: A and B are the same")
    configs = _configs(campaign)
    if isinstance(configs, str):
        return SideBySide(None, configs)
    changed = _changed(*configs)
    fitting = [key for key in changed if key.startswith(_INSTALLED_BY.get(kind, ("",)))]
    if not changed:
        return SideBySide(False, "the two configs are the same: nothing selects the winner in B")
    if not fitting:
        wanted = " or ".join(name.rstrip(".") for name in _INSTALLED_BY[kind])
        same = f"has to be selected by {wanted}, and A and B have the same there: one replaces the other"
        return SideBySide(False, f"{_ARTICLES.get(kind, 'a')} {kind} {same}")
    named = ", ".join(fitting[:_MOST_NAMED]) + (
        f" and {len(fitting) - _MOST_NAMED} more" if fitting[_MOST_NAMED:] else ""
    )
    return SideBySide(True, f"B is selected by {named}: both stay installed")


def _configs(campaign: Campaign) -> tuple[BenchmarkConfig, BenchmarkConfig] | str:
    found = []
    for name in ("baseline", "optimized"):
        path = campaign.files.get(name)
        if path is None:
            return f"the {name} config is not named yet"
        try:
            found.append(load_benchmark_config(path))
        except MagpieTuiError as error:
            return f"the {name} config cannot be read: {error.message}"
    return found[0], found[1]


def _changed(a: BenchmarkConfig, b: BenchmarkConfig) -> list[str]:
    """Keys that the two set to different values; a default on one side and nothing on the other is no difference."""
    keys = sorted({*a.settings, *b.settings})
    return [
        key
        for key in keys
        if a.value(key) != b.value(key) and not key.startswith(_OF_THE_LOAD) and (_is_set(a, key) or _is_set(b, key))
    ]


def _is_set(config: BenchmarkConfig, key: str) -> bool:
    setting = config.settings.get(key)
    return setting is not None and setting.origin.kind not in ("default", "derived")
