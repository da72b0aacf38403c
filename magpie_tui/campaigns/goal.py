"""The goal of a campaign: how it is given in words, and whether the experiment of the last step reached it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.text import nearest
from magpie_tui.campaigns.inputs import counting_links
from magpie_tui.campaigns.model import Campaign, Goal
from magpie_tui.serving.experiment_options import METRICS
from magpie_tui.serving.verdict_model import RULES
from magpie_tui.workspaces.damage import Damaged, read_json_file
from magpie_tui.workspaces.values import as_mapping, as_number, as_text

FORM = "METRIC:PERCENT"
EXAMPLE = f"{FORM}, for example output_throughput:3"


def goal_from_text(text: str, guards: Sequence[str] = ()) -> Goal:
    """Read a goal as ``--goal`` takes it.

    Args:
        guards: Metrics that may not get worse.

    Raises:
        UserInputError: It has another form, or a metric is none of an experiment.
    """
    metric, _, percent = text.strip().partition(":")
    try:
        gain = float(percent)
    except ValueError:
        raise UserInputError(f"no goal: {text}", hint=EXAMPLE) from None
    if not math.isfinite(gain) or gain <= 0:
        raise UserInputError(f"no goal: {percent} %", hint="a gain in percent above 0")
    if metric not in METRICS:
        raise UserInputError(f"no experiment decides by {metric!r}", hint=f"one of {', '.join(METRICS)}")
    for guard in guards:
        if guard not in RULES:
            guess = nearest(guard, list(RULES))
            raise UserInputError(f"no experiment measures {guard!r}", hint=f"did you mean {guess}?" if guess else None)
    return Goal(metric, gain, tuple(guards))


def goal_judged(campaign: Campaign) -> str:
    """Say whether the goal was reached, apart from whether there is an effect; empty without goal or experiment.

    A goal is reached where the whole interval of the gain lies above it; an estimate above it proves nothing.
    """
    goal, links = campaign.goal, counting_links(campaign.step("judge").links)
    if goal is None or not links:
        return ""
    value = read_json_file(links[-1].path / "verdict.json")
    if isinstance(value, Damaged):
        return ""
    primary = as_mapping(as_mapping(value).get("primary"))
    metric, interval = as_text(primary.get("metric")), as_mapping(primary.get("interval"))
    if metric != goal.metric:
        return f"not judged: the experiment decided by {metric or 'no metric'}"
    point, low, high = (as_number(interval.get(name)) for name in ("point", "low", "high"))
    wanted = 1 + goal.gain_pct / 100
    if point is None:
        return "not judged: the experiment has no gain"
    if low is not None and low >= wanted:
        return "reached"
    if point >= wanted:
        return "reached, not proven"
    return "not reached" if high is not None and high < wanted else "not reached, and not ruled out"
