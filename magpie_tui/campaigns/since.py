"""What happened to a campaign since a person last looked at it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from magpie_tui.basics.text import plural
from magpie_tui.campaigns.file import TIME_FORMAT
from magpie_tui.campaigns.model import Campaign, StepState, StepView
from magpie_tui.runs.model import Run, RunState


def moment_of(text: str | None) -> datetime | None:
    """Return a time as ``campaign.yaml`` has it; None where there is none or a person wrote something else."""
    if text is None:
        return None
    try:
        return datetime.strptime(text, TIME_FORMAT).replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def runs_of(campaign: Campaign, runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs below the campaign's output directory, in the order given."""
    return tuple(run for run in runs if run.output_dir.is_relative_to(campaign.output_dir))


def since_text(campaign: Campaign, views: Sequence[StepView], runs: Sequence[Run], now: datetime) -> str | None:
    """Say in one line what was linked, what ended and what failed since the campaign was last looked at.

    Args:
        runs: All runs that are known; those of other places are left out here.

    Returns:
        None where nobody has looked before.
    """
    seen = moment_of(campaign.seen)
    if seen is None:
        return None
    parts = []
    for view in views:
        new = [link for link in view.workspaces if (moment := moment_of(link.time)) is not None and moment > seen]
        if new:
            labels = ", ".join(link.label for link in new if link.label)
            parts.append(f"{view.number} {view.title}{f' {labels}' if labels else ''} {view.state.value}")
    ended = [run for run in runs_of(campaign, runs) if run.is_over and run.ended_at is not None and run.ended_at > seen]
    bad = [run for run in ended if run.state in (RunState.failed, RunState.lost)]
    live = [run for run in runs_of(campaign, runs) if not run.is_over]
    if ended:
        parts.append(f"{plural(len(ended), 'run')} ended")
    parts.append(f"{plural(len(bad), 'run')} failed or lost: {bad[0].reason or bad[0].id}" if bad else "nothing failed")
    if live:
        parts.append(f"{plural(len(live), 'run')} going")
    stale = [str(view.number) for view in views if view.state is StepState.STALE]
    if stale:
        parts.append(f"stale: {', '.join(stale)}")
    news = len(parts) > 1 or bool(bad)
    return f"you left {ago(now - seen)} ago: {'; '.join(parts) if news else 'nothing happened'}"


def ago(span: timedelta) -> str:
    """Return a span of time in its largest unit: ``14 h``, ``3 days``."""
    minutes = max(0, round(span.total_seconds() / 60))
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"
