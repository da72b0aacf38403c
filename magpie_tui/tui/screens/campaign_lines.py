"""A campaign as lines: goal, number and gap, what happened, and all about one step; no widget in here."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from textual.content import Content

from magpie_tui.basics.tables import shorten_middle
from magpie_tui.basics.text import printable
from magpie_tui.campaigns.detail import StepDetail
from magpie_tui.campaigns.model import Campaign, StepState, StepView
from magpie_tui.campaigns.since import moment_of
from magpie_tui.tui.format import when_text
from magpie_tui.tui.screens.campaign_reading import CampaignReading
from magpie_tui.tui.screens.configs_base import shown_path
from magpie_tui.tui.widgets.table_source import RowColumn, Tone
from magpie_tui.tui.widgets.table_view import SavedView

LABEL = 8
DETAIL_LABEL = 12
_STATE_STYLES = {
    StepState.RUNNING: "$primary",
    StepState.DONE: "$success",
    StepState.ADOPTED: "$success",
    StepState.FAILED: "$error",
    StepState.STALE: "$warning",
    StepState.BLOCKED: "$quiet",
    StepState.SKIPPED: "$quiet",
}

_TONES: dict[StepState, Tone] = {
    StepState.RUNNING: "accent",
    StepState.DONE: "ok",
    StepState.ADOPTED: "ok",
    StepState.FAILED: "error",
    StepState.STALE: "warning",
    StepState.BLOCKED: "muted",
    StepState.SKIPPED: "muted",
}


def columns(now: Callable[[], datetime]) -> tuple[RowColumn[StepView], ...]:
    """Columns of the nine steps, those of the command."""
    return (
        RowColumn[StepView](id="number", title="#", kind="number", digits=0, value=lambda view: view.number),
        RowColumn[StepView](id="step", title="step", width=20, value=lambda view: view.title),
        RowColumn[StepView](
            id="state",
            title="state",
            width=14,
            max_width=60,
            shrink=False,
            value=state_text,
            tone=lambda view: _TONES.get(view.state),
        ),
        RowColumn[StepView](
            id="when", title="when", width=10, value=lambda view: view.when, text=lambda view: when(view, now())
        ),
        RowColumn[StepView](
            id="finding", title="finding", max_width=300, shrink=False, fill=True, value=lambda view: view.finding
        ),
    )


def step_view(width: int) -> SavedView:
    """Widths of the columns for a table of so many cells; in a narrow one the finding is cut first."""
    state = 14 if width < 100 else 22
    return SavedView(("number", "step", "state", "when", "finding"), (("step", 20), ("state", state), ("when", 10)))


def state_text(view: StepView) -> str:
    """State and, behind it, what blocks it, failed or changed."""
    return f"{view.state.value} {view.because}".strip()


def when(view: StepView, now: datetime) -> str | None:
    """When its newest result is from, as short as it is clear; ``now`` while it runs."""
    if view.state is StepState.RUNNING:
        return "now"
    moment = moment_of(view.when)
    return None if moment is None else when_text(moment, now)


def head_lines(reading: CampaignReading, width: int) -> list[Content]:
    """Goal, number and gap, what happened since; a row that nothing is known of is left out."""
    campaign = reading.campaign
    if campaign is None:
        lines = textwrap.wrap(f"the campaign cannot be read: {printable(reading.failure)}", max(20, width)) or [""]
        return [Content.assemble((line, "bold $error")) for line in lines]
    rows = [("goal", _goal(campaign, reading)), ("now", _now(reading)), ("since", reading.since)]
    room = max(10, width - LABEL)
    return [
        # The number comes first: what does not fit is cut from its end, of the other rows from the middle.
        Content.assemble(
            (f"{label:<{LABEL}}", "$quiet"), (_cut if label == "now" else shorten_middle)(printable(text), room)
        )
        for label, text in rows
        if text
    ]


def _cut(text: str, width: int) -> str:
    """Cut the end of a text that is too wide; ``..`` marks it."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, width - 2).rstrip() + ".."


def _goal(campaign: Campaign, reading: CampaignReading) -> str:
    goal = campaign.goal
    if goal is None:
        return f"none was given   {campaign.name}, template {campaign.template}"
    guards = f"; {', '.join(goal.guards)} not worse" if goal.guards else ""
    last = reading.details.get("judge")
    judged = f": {last.goal}" if last is not None and last.goal else ""
    return f"{goal.metric} +{goal.gain_pct:g} %{guards}{judged}   {campaign.name}, template {campaign.template}"


def _now(reading: CampaignReading) -> str | None:
    """The number that the campaign is about, and the gap: the baseline, else the kernel's; and the last verdict."""
    base = next((view.finding for view in reading.views if view.key in ("baseline", "analyze") and view.finding), None)
    verdicts = [view for view in reading.views if view.key in ("judge", "compare") and view.finding]
    if base is None and not verdicts:
        return None
    if not verdicts:
        return f"{base}   gain: none yet"
    last = verdicts[-1]
    stale = "" if last.state in (StepState.DONE, StepState.ADOPTED) else f" ({last.state.value})"
    return f"{base or 'no baseline'}   gain{stale}: {last.finding}"


def rule_texts(view: StepView, now: datetime) -> tuple[str, str]:
    """Title and note of the rule above the step."""
    moment = when(view, now)
    return f"{view.number} {view.title}", f"{view.state.value}{f' {moment}' if moment else ''}"


def detail_lines(view: StepView, detail: StepDetail, width: int, now: datetime, *, low: bool = False) -> list[Content]:
    """Everything about a step: state, measured and assumed apart, worth, source, test, what is next, notes.

    Args:
        low: The terminal has few rows: what is next comes first.
    """
    state = _named("state", [view.because], width, _STATE_STYLES.get(view.state, "")) if view.because else []
    following = list(_next(detail, width))
    facts = [
        *_named("measured", detail.measured, width),
        *_named("decided", detail.decided, width),
        *_named("assumed", detail.assumed, width, "$warning"),
        *_named("installed", detail.installed, width),
        *_named("worth", [detail.worth] if detail.worth else [], width),
    ]
    files = [
        *_named("source", [shown_path(Path(path)) for path in detail.source], width),
        *_named("test", detail.test, width),
    ]
    more = [line for word, command in detail.more for line in _named(word, [f"$ {command_line(command)}"], width)]
    notes = [
        line for note in reversed(view.notes) for line in _named("note", [_note(note.time, note.text, now)], width)
    ]
    if low:
        return [*state, *following, *facts, *notes, *files, *more]
    return [*state, *facts, *following, *notes, *files, *more]


def _note(time: str, text: str, now: datetime) -> str:
    moment = moment_of(time)
    return f"{when_text(moment, now) if moment is not None else time}  {text}"


def _next(detail: StepDetail, width: int) -> Iterator[Content]:
    if detail.price:
        yield from _named("takes", [detail.price], width)
    if not detail.next:
        return
    who = f"{detail.who}: " if detail.who else ""
    yield from _named("next", [f"{who}{detail.next}"], width, "bold" if detail.command else "")
    if detail.command:
        yield from _named("", [f"$ {command_line(detail.command)}"], width)


def cache_lines(campaign: Campaign) -> tuple[str, ...]:
    """What happens to compile caches before the experiment, and what speaks against starting it.

    Raises:
        UserInputError: The record of caches that were moved is damaged.
    """
    from magpie_tui.campaigns.caches import list_caches
    from magpie_tui.campaigns.caches_aside import is_due
    from magpie_tui.campaigns.side_by_side import side_by_side

    both = side_by_side(campaign)
    lines = [f"installed: {both.text}"]
    if not is_due(campaign):
        return (*lines, "compile caches were moved aside for this integration already")
    found = list_caches(campaign)
    for cache in found.there:
        lines.append(
            f"{'stays' if cache.against else 'is moved aside'}: {shown_path(cache.path)} {cache.against}".rstrip()
        )
    lines += found.notes
    put_back = "campaign caches --restore puts them back" if found.to_move else "no compile cache is in the way"
    return (*lines, put_back)


def command_line(words: Sequence[str]) -> str:
    """Return a command as it is typed in the directory where this program was started: paths below it are short."""
    return shlex.join(shown_path(Path(word)) if word.startswith("/") else word for word in words)


def _named(name: str, texts: list[str] | tuple[str, ...], width: int, style: str = "") -> list[Content]:
    lines: list[Content] = []
    for text in texts:
        pieces = textwrap.wrap(printable(text), max(20, width - DETAIL_LABEL - 1), break_on_hyphens=False) or [""]
        for piece in pieces:
            label = f"  {name:<{DETAIL_LABEL - 2}}" if not lines else " " * DETAIL_LABEL
            lines.append(Content.assemble((label, "$quiet"), (piece, style) if style else piece))
    return lines
