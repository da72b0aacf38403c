"""Following what a run writes."""

from __future__ import annotations

import io
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.runs.follow import follow, offset_of_last_lines
from magpie_tui.runs.launch import LaunchRequest, launch
from magpie_tui.runs.model import Run, RunState
from magpie_tui.runs.read import read_run
from magpie_tui.runs.store import stop_run
from tests.process_helpers import Family, peak_memory_kb, script, wait_for


def start(tmp_path: Path, *command: str) -> Run:
    return launch(LaunchRequest("test", "", command, tmp_path / "results", tmp_path, detach=True))


def test_both_outputs_come_live_and_complete(tmp_path: Path, family: Family) -> None:
    stdout, stderr = io.BytesIO(), io.BytesIO()
    go = tmp_path / "go"
    run = start(
        tmp_path, "sh", "-c", f"echo one; echo err >&2; until [ -e {go} ]; do sleep 0.01; done; printf 'no end'"
    )
    pauses = 0

    def pause(seconds: float) -> None:
        nonlocal pauses
        pauses += 1
        wait_for(lambda: run.stdout_path.read_bytes().startswith(b"one\n") and run.stderr_path.read_bytes() == b"err\n")
        if stdout.getvalue() == b"one\n" and stderr.getvalue() == b"err\n":
            go.touch()  # seen before the end

    ended = follow(run, stdout=stdout, stderr=stderr, pause=pause)
    assert (ended.state, ended.exit_code) == (RunState.ended, 0)
    assert stdout.getvalue() == b"one\nno end"
    assert pauses > 0
    family.wait_until_gone()


FLOOD = """
import os, sys
block = b''.join(b'%06d \\x00\\xff\\x1b[31m line\\n' % number for number in range(100_000))
for _ in range(10):
    sys.stdout.buffer.write(block)
    sys.stderr.buffer.write(block)
sys.stdout.buffer.write(b'x' * 50_000_000 + b'end')
sys.stdout.flush()
"""

FOLLOWER = """
import resource, sys
from pathlib import Path
from magpie_tui.runs.follow import follow
from magpie_tui.runs.read import read_run
run = read_run(Path(sys.argv[1]))
with open(sys.argv[2], 'wb') as out, open(sys.argv[3], 'wb') as err:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = follow(run, stdout=out, stderr=err)
    print(run.state.value, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_flood_neither_blocks_nor_grows_the_follower(tmp_path: Path, family: Family) -> None:
    run = start(tmp_path, *script(tmp_path, "flood.py", FLOOD))
    done = subprocess.run(
        [sys.executable, "-c", FOLLOWER, str(run.directory), str(tmp_path / "out"), str(tmp_path / "err")],
        capture_output=True,
        text=True,
        check=True,
    )
    state, grown_kb = done.stdout.split()
    assert state == "ended"
    assert int(grown_kb) < 8_000
    for copied, log in (("out", run.stdout_path), ("err", run.stderr_path)):
        assert subprocess.run(["cmp", str(tmp_path / copied), str(log)], check=False).returncode == 0
    family.wait_until_gone()


def test_watching_and_reading_a_run_with_huge_logs_is_cheap(tmp_path: Path, family: Family) -> None:
    run = start(tmp_path, *script(tmp_path, "flood.py", FLOOD + "import time; time.sleep(600)\n"))
    wait_for(lambda: run.stdout_path.stat().st_size == 10 * 100_000 * 20 + 50_000_003)
    assert run.supervisor is not None
    assert peak_memory_kb(run.supervisor.pid) < 40_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    last = read_run(run.directory).last_line
    assert last is not None
    assert (last[-5:], len(last)) == ("xxend", 4096)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8_000
    stop_run(run)


def test_a_lost_run_ends_the_following(tmp_path: Path, family: Family) -> None:
    run = start(tmp_path, "sleep", "600")

    def pause(seconds: float) -> None:
        if run.supervisor is not None:
            os.kill(run.supervisor.pid, 9)
            wait_for(lambda: read_run(run.directory).is_over)

    assert follow(run, stdout=io.BytesIO(), stderr=io.BytesIO(), pause=pause).state is RunState.lost
    family.wait_until_gone()


def test_a_reader_that_goes_away_is_told_to_the_caller(tmp_path: Path, family: Family) -> None:
    class Closed(io.BytesIO):
        def write(self, data: object, /) -> int:
            raise BrokenPipeError

    run = start(tmp_path, "sh", "-c", "echo text; sleep 600")
    wait_for(lambda: run.stdout_path.read_bytes())
    with pytest.raises(BrokenPipeError):
        follow(run, stdout=Closed(), stderr=io.BytesIO())
    stop_run(run)


@given(st.lists(st.sampled_from([b"", b"a", b"bc\r"]), max_size=12), st.booleans(), st.integers(0, 14))
def test_the_last_lines_are_found_from_the_end(lines: list[bytes], closed: bool, wanted: int) -> None:
    data = b"\n".join(lines) + (b"\n" if closed and lines else b"")
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        found = data[offset_of_last_lines(Path(file.name), wanted) :]
    whole = re.findall(rb"[^\n]*\n|[^\n]+", data)
    assert found == b"".join(whole[-wanted:] if wanted else [])


def test_the_last_lines_of_a_file_of_many_blocks(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"%07d\n" % number for number in range(50_000)))
    assert path.read_bytes()[offset_of_last_lines(path, 30_000) :].startswith(b"0020000\n")
    path.write_bytes(b"x" * 300_000 + b"\n" + b"y" * 300_000)
    assert path.read_bytes()[offset_of_last_lines(path, 1) :] == b"y" * 300_000
