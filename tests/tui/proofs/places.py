"""Proofs of the actions of Home and Machine."""

from __future__ import annotations

from magpie_tui.basics.paths import state_directory
from tests.tui.support import Stage, proves, status


@proves("home.open")
async def enter_opens_the_place_of_the_line(stage: Stage) -> None:
    await stage.press()
    await stage.wait(lambda: stage.app.current_mode == "runs", "the place of the first line, a run")
    await stage.pilot.press("1", "G")
    await stage.press()
    await stage.wait(lambda: stage.app.current_mode == "machine", "the place of the last line")


@proves("machine.copy")
async def machine_report_is_copied(stage: Stage) -> None:
    stage.world.environment["STY"] = "screen"  # no way but the file
    await stage.pilot.press("8")
    await stage.press()
    await stage.wait(lambda: "written to" in status(stage.app), "the report")
    copied = (state_directory() / "copied.txt").read_text(encoding="utf-8")
    assert "MI300X" in copied and "train.py" in copied and "hipcc" in copied
