"""Programs are asked in bounded time and leave nothing behind."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from magpie_tui.machine.probe import MOST_OUTPUT_BYTES, run_parallel, run_tool
from tests.machine.tools import fake_tool


def gone(pid: int) -> bool:
    """True when the process has ended (a zombie of somebody else's counts as ended)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def test_output_status_and_time(tmp_path: Path) -> None:
    output = run_tool([str(fake_tool(tmp_path, "t", "echo out; echo err >&2; exit 4"))])
    assert (output.stdout, output.stderr, output.exit_code) == ("out\n", "err\n", 4)
    assert output.reason == "exit status 4: err" and output.seconds > 0
    assert run_tool([str(fake_tool(tmp_path, "u", "echo fine"))]).reason is None


def test_a_hanging_program_and_its_children_are_ended(tmp_path: Path) -> None:
    script = f"/bin/sleep 60 &\necho $! > {tmp_path}/child\necho $$ > {tmp_path}/self\nwait"
    output = run_tool([str(fake_tool(tmp_path, "t", script))], timeout_s=0.5)
    assert output.exit_code is None and output.reason == "no answer within 0.5 s"
    pids = [int((tmp_path / name).read_text(encoding="utf-8")) for name in ("child", "self")]
    deadline = time.monotonic() + 10
    while not all(map(gone, pids)):
        assert time.monotonic() < deadline, "the tree is still there"
        time.sleep(0.01)


def test_a_child_that_keeps_the_output_open_does_not_hold_us_up(tmp_path: Path) -> None:
    output = run_tool([str(fake_tool(tmp_path, "t", "/bin/sleep 60 &\necho done"))], timeout_s=30)
    assert output.stdout == "done\n" and output.reason is None


def test_output_is_bounded_and_any_bytes_are_text(tmp_path: Path) -> None:
    flood = run_tool([str(fake_tool(tmp_path, "t", "exec /bin/cat /dev/zero"))], timeout_s=30)
    assert len(flood.stdout) <= MOST_OUTPUT_BYTES and flood.reason is not None
    assert run_tool([str(fake_tool(tmp_path, "u", r"printf '\377x'"))]).stdout == "\ufffdx"


def test_escape_sequences_do_not_reach_the_reason(tmp_path: Path) -> None:
    output = run_tool([str(fake_tool(tmp_path, "t", r"printf '\033[2Jgone' >&2; exit 1"))])
    assert output.reason == r"exit status 1: \x1b[2Jgone"


def test_what_cannot_start_has_a_reason(tmp_path: Path) -> None:
    assert "No such file" in (run_tool([str(tmp_path / "missing")]).reason or "")
    (tmp_path / "plain").write_text("x", encoding="utf-8")
    assert "Permission denied" in (run_tool([str(tmp_path / "plain")]).reason or "")
    assert "cannot be started" in (run_tool(["a\0b"]).reason or "")


def test_jobs_that_do_not_come_back_are_left_behind() -> None:
    release = threading.Event()

    def stuck() -> str:
        release.wait(60)
        return "late"

    try:
        assert run_parallel({"stuck": stuck, "fast": lambda: "now"}, limit_s=0.2) == {"stuck": None, "fast": "now"}
    finally:
        release.set()


def test_an_error_of_a_job_is_raised_here() -> None:
    def fails() -> str:
        raise ZeroDivisionError("bug")

    with pytest.raises(ZeroDivisionError, match="bug"):
        run_parallel({"fails": fails}, limit_s=10)
