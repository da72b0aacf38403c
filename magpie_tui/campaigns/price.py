"""What a step will take, told from runs that are there; nothing is guessed without one."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import plural
from magpie_tui.campaigns.actions import pairs_of
from magpie_tui.campaigns.inputs import counting_links
from magpie_tui.campaigns.model import Campaign, StepView
from magpie_tui.configs.benchmark import load_benchmark_config
from magpie_tui.serving.estimate import expected_experiment, expected_run, minutes_text
from magpie_tui.serving.experiment_options import DEFAULT_PAIRS
from magpie_tui.workspaces.damage import Damaged
from magpie_tui.workspaces.record import RECORD_NAME, read_record
from magpie_tui.workspaces.values import as_text

_SERVED = {"baseline": "baseline", "twin": "profiled"}
"""Step → the config that its run serves."""


def price_of(campaign: Campaign, view: StepView) -> str:
    """Say what the next run of a step will take; empty where no earlier run tells."""
    try:
        if view.key in _SERVED:
            return _of_a_run(campaign, _SERVED[view.key])
        if view.key == "judge":
            return _of_the_experiment(campaign)
    except MagpieTuiError:  # a config that cannot be read has no price; what is wrong with it is said elsewhere
        return ""
    if view.key in ("analyze", "candidates", "compare"):
        return _of_kernels(campaign, view.key)
    return ""


def _of_a_run(campaign: Campaign, name: str) -> str:
    path = campaign.files.get(name)
    price = None if path is None else expected_run(load_benchmark_config(path), campaign.output_dir)
    return "" if price is None else f"about {minutes_text(price.total_s)}, as {price.source.name} took"


def _of_the_experiment(campaign: Campaign) -> str:
    a, b = campaign.files.get("baseline"), campaign.files.get("optimized")
    if a is None:
        return ""
    # Before the optimized config is named, both sides are taken to be as long as the baseline.
    configs = load_benchmark_config(a), load_benchmark_config(b or a)
    price = expected_experiment(*configs, pairs_of(campaign) or DEFAULT_PAIRS, campaign.output_dir)
    return "" if price is None else f"about {price.text}"


def _of_kernels(campaign: Campaign, key: str) -> str:
    """A comparison judges and times each kernel as an analysis does."""
    links = counting_links(campaign.step("analyze").links)
    one = _duration(links[-1].path) if links else None
    if one is None:
        return ""
    count = 1 + len(campaign.candidates) if key == "compare" else 1
    many = f": {plural(count, 'kernel')}, each as 5 took" if count > 1 else ", as 5 took"
    return f"about {minutes_text(count * one)}{many}"


def _duration(workspace: Path) -> float | None:
    """Seconds of a run by its record; None where it has none."""
    record = read_record(workspace / RECORD_NAME)
    if isinstance(record, Damaged):
        return None
    began, ended = _moment(record.get("started_at")), _moment(record.get("ended_at"))
    return None if began is None or ended is None or ended < began else (ended - began).total_seconds()


def _moment(value: object) -> datetime | None:
    text = as_text(value)
    if not text:
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
