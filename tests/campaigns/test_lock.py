"""Two terminals change one campaign: no edit is lost, and a killed process leaves no lock behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from magpie_tui.basics.errors import MachineError
from magpie_tui.campaigns import edit
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.lock import campaign_lock, walk_lock
from magpie_tui.campaigns.steps import BY_KEY

NOTES = """
import sys
from pathlib import Path
from magpie_tui.campaigns import edit
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.steps import BY_KEY
directory, writer = Path(sys.argv[1]), sys.argv[2]
campaign = load_campaign(directory)  # read once: what is on disk when it writes is another one
print("ready", flush=True)
sys.stdin.readline()
for number in range(12):
    edit.add_note(campaign, BY_KEY["compare"], f"{writer} {number}")
"""
HOLD = """
import sys
from pathlib import Path
from magpie_tui.campaigns.lock import campaign_lock
with campaign_lock(Path(sys.argv[1])):
    print("ready", flush=True)
    sys.stdin.readline()
"""


def started(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_edits_of_several_processes_are_all_there(tmp_path: Path) -> None:
    campaign = edit.new_campaign(tmp_path / "c", template="kernels")
    writers = [started(NOTES, campaign.directory, name) for name in "abc"]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    said = [note.text for note in load_campaign(campaign.directory).step("compare").notes]
    assert sorted(said) == sorted(f"{name} {number}" for name in "abc" for number in range(12))


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    campaign = edit.new_campaign(tmp_path / "c", template="kernels")
    with started(HOLD, campaign.directory) as holder:
        with pytest.raises(MachineError, match="another process"), campaign_lock(campaign.directory, wait_s=0.05):
            pass
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        assert edit.add_note(campaign, BY_KEY["analyze"], "goes on").step("analyze").notes[0].text == "goes on"


def test_one_process_at_a_time_does_the_next_step(tmp_path: Path) -> None:
    campaign = edit.new_campaign(tmp_path / "c", template="kernels")
    with started(HOLD.replace("campaign_lock", "walk_lock"), campaign.directory) as walker:
        with pytest.raises(MachineError, match="does the next step"), walk_lock(campaign.directory):
            pass
        assert edit.add_note(campaign, BY_KEY["analyze"], "meanwhile").step("analyze").notes, "edits go on"
        walker.kill()
        walker.wait()
        with walk_lock(campaign.directory):
            pass


def test_a_directory_begins_one_campaign_only(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from magpie_tui.basics.errors import UserInputError
from magpie_tui.campaigns import edit
print("ready", flush=True)
sys.stdin.readline()
try:
    edit.new_campaign(Path(sys.argv[1]), template="kernels", name=sys.argv[2])
except UserInputError:
    sys.exit(2)
"""
    beginners = [started(program, tmp_path / "c", name) for name in "ab"]
    for beginner in beginners:
        assert beginner.stdin is not None
        beginner.stdin.write("go\n")
        beginner.stdin.flush()
    for beginner in beginners:
        beginner.communicate()
    assert sorted(beginner.returncode for beginner in beginners) == [0, 2]
