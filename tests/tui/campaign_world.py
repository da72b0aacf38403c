"""A campaign on a real disk, at a fixed time, in every state a step can have."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from magpie_tui.campaigns import edit
from magpie_tui.campaigns.file import load_campaign, save_campaign
from magpie_tui.campaigns.model import Campaign, Goal
from magpie_tui.campaigns.steps import BY_KEY
from magpie_tui.tui.app import MagpieApp
from magpie_tui.tui.screens.campaign import CampaignScreen
from tests.campaigns.workspaces import analyzed, benchmarked
from tests.tui.support import World, wait_until

LINKED = "2026-12-02T09:12:00Z"
SEEN = "2026-12-02T00:10:01Z"


def write_campaign(root: Path) -> Campaign:
    """Write a whole loop of which the first five steps are there: done, adopted, skipped, decided, done."""
    directory = root / "campaigns" / "qwen3-8b-decode"
    campaign = edit.new_campaign(root / "parts", template="smoke")
    kernels = root / "kernels"
    shutil.move(campaign.directory / "kernels", kernels)
    shutil.rmtree(campaign.directory)
    (root / "baseline.yaml").write_text("benchmark: {}\n")
    campaign = edit.new_campaign(
        directory,
        template="full",
        goal=Goal("output_throughput", 3.0, ("ttft_p99",)),
        files={
            "baseline": root / "baseline.yaml",
            "analyze": kernels / "analyze.yaml",
            "compare": kernels / "compare_o2_o3.yaml",
        },
    )
    campaign = edit.link(campaign, BY_KEY["baseline"], benchmarked(root / "results", 1))
    campaign = edit.link(campaign, BY_KEY["twin"], benchmarked(root / "results", 2), adopted=True)
    campaign = edit.skip(campaign, BY_KEY["stages"], "gemm[m=16] x[/b] is known")
    decision = {
        "kernel": "vector_add",
        "share_pct": 21.8,
        "assumptions": ["1,029 tokens of context a request"],
        "worth": "+12.3 % at most",
    }
    campaign = edit.decide(campaign, BY_KEY["kernels"], decision)
    campaign = edit.link(campaign, BY_KEY["analyze"], analyzed(root / "results", "base"))
    campaign = edit.set_candidate(campaign, "o3", kernels / "candidate_o3.yaml")
    campaign = edit.add_note(campaign, BY_KEY["candidates"], "B: fewer waves, spills 12 VGPR, drop it")
    return at_fixed_times(campaign)


def at_fixed_times(campaign: Campaign) -> Campaign:
    """Give everything that was written the same time."""
    steps = {}
    for key, record in campaign.steps.items():
        links = tuple(replace(link, time=LINKED) for link in record.links)
        notes = tuple(replace(note, time=LINKED) for note in record.notes)
        steps[key] = replace(record, links=links, notes=notes)
    return save_campaign(replace(campaign, created=LINKED, seen=SEEN, steps=steps))


def campaign_app(world: World, root: Path) -> MagpieApp:
    """Return an app that opens on a directory, in which it is."""
    return MagpieApp(root, world.services())


async def campaign_screen(pilot: Pilot[None]) -> CampaignScreen:
    """Wait until the campaign is read and shown."""
    await wait_until(pilot, lambda: isinstance(pilot.app.screen, CampaignScreen), "the campaign")
    screen = pilot.app.screen
    assert isinstance(screen, CampaignScreen)
    await wait_until(pilot, lambda: screen.reading is not None and screen.table.cursor_key is not None, "its steps")
    await pilot.pause()
    return screen


def reread(campaign: Campaign) -> Campaign:
    """Return the campaign as it is on disk."""
    return load_campaign(campaign.directory)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own, which is the working directory."""
    place = tmp_path / "project"
    place.mkdir()
    monkeypatch.chdir(place)
    return place
