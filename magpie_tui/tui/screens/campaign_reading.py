"""What the screen of a campaign reads, in a thread: the file, the derived steps, what each of them rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import printable
from magpie_tui.campaigns.advance import next_of
from magpie_tui.campaigns.detail import StepDetail, step_detail
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.inputs import sources_of_config
from magpie_tui.campaigns.model import Campaign, StepView
from magpie_tui.campaigns.since import since_text
from magpie_tui.campaigns.state import view_campaign

if TYPE_CHECKING:
    from magpie_tui.runs.model import Run

Signature = tuple[int, int, int] | None
"""Time of change in ns, size and number of a file; None where it is not there."""


@dataclass(frozen=True, slots=True)
class CampaignReading:
    """A campaign at one moment.

    Attributes:
        campaign: None with a failure.
        next: The step that ``campaign next`` would do; None when there is none or one runs.
        details: By the step's key.
        since: What happened since a person last looked; None where nobody has.
        watched: Files that it depends on, as they were.
    """

    directory: Path
    campaign: Campaign | None = None
    views: tuple[StepView, ...] = ()
    next: StepView | None = None
    details: Mapping[str, StepDetail] = field(default_factory=dict)
    since: str | None = None
    watched: Mapping[Path, Signature] = field(default_factory=dict)
    failure: str = ""

    def view(self, key: str | None) -> StepView | None:
        """Return one step."""
        return next((view for view in self.views if view.key == key), None)


def signature(path: Path) -> Signature:
    """Return what tells whether a file was changed or replaced."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def has_changed(reading: CampaignReading) -> bool:
    """Whether one of the files that a reading depends on is not what it was."""
    return any(signature(path) != before for path, before in reading.watched.items())


def read_campaign(
    directory: Path, runs: Sequence[Run], now: datetime, *, seen: str | None = None, keep_seen: bool = False
) -> CampaignReading:
    """Read a campaign; what is wrong with it is in the answer.

    Args:
        runs: All that are known, live and over.
        seen: With ``keep_seen``: since when news are told, instead of what the file says by now.
    """
    from dataclasses import replace

    try:
        campaign = load_campaign(directory)
        watched = {path: signature(path) for path in _files(campaign)}
        views = view_campaign(campaign, runs)
        details = {view.key: step_detail(campaign, view) for view in views}
    except (MagpieTuiError, OSError) as error:
        file = directory / "campaign.yaml"
        return CampaignReading(directory, failure=printable(error), watched={file: signature(file)})
    told = replace(campaign, seen=seen) if keep_seen else campaign
    return CampaignReading(
        directory,
        campaign,
        views,
        next_of(views),
        details,
        since_text(told, views, runs, now),
        watched,
    )


def _files(campaign: Campaign) -> list[Path]:
    configs = [*campaign.files.values(), *campaign.candidates.values()]
    sources = [source for path in configs for source in sources_of_config(path)]
    return list(dict.fromkeys([campaign.path, *configs, *sources]))
