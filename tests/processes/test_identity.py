"""Identity of processes: pid, start time and boot."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magpie_tui.processes import procfs
from magpie_tui.processes.frames import FrameReader, encode
from magpie_tui.processes.identity import descendants, identify, is_alive, marked, signal_process
from magpie_tui.processes.syscalls import send_signal
from tests.process_helpers import Family, wait_for

TAIL = b" S 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 4242 1 2 3"


@given(st.binary(max_size=15).filter(lambda name: b"\0" not in name))
def test_the_name_of_a_process_cannot_confuse_the_parser(name: bytes) -> None:
    stat = procfs.parse_stat(5, b"5 (" + name + b")" + TAIL)
    assert stat is not None
    assert (stat.pid, stat.state, stat.parent, stat.group, stat.session) == (5, "S", 7, 8, 9)
    assert (stat.threads, stat.start_ticks) == (3, 4242)


@given(st.integers(0, 40))
def test_a_torn_stat_is_no_process(size: int) -> None:
    assert procfs.parse_stat(5, (b"5 (sh)" + TAIL)[:size]) is None


def test_this_process_and_its_children() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert is_alive(me)
    with subprocess.Popen(["sh", "-c", "sleep 600 & wait"], start_new_session=True) as shell:
        wait_for(lambda: len([item for item in descendants(os.getpid())]) >= 2)
        found = [item.pid for item in descendants(os.getpid())]
        assert shell.pid in found
        shell_identity = identify(shell.pid)
        assert shell_identity is not None
        os.killpg(shell.pid, signal.SIGKILL)
        os.waitid(os.P_PID, shell.pid, os.WEXITED | os.WNOWAIT)
        # Still in the process table, as a zombie.
        assert procfs.read_stat(shell.pid) is not None
        assert not is_alive(shell_identity)
        assert identify(shell.pid) is None


def test_a_pid_that_became_somebody_elses_is_never_signalled() -> None:
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        identity = identify(sleeper.pid)
        assert identity is not None
        assert not send_signal(sleeper.pid, identity.start_ticks - 1, signal.SIGKILL)
        assert not signal_process(replace(identity, boot_id="another"), signal.SIGKILL)
        assert is_alive(identity)
        assert signal_process(identity, signal.SIGKILL)
        assert sleeper.wait() == -signal.SIGKILL
        assert not signal_process(identity, signal.SIGKILL)


def test_without_pidfds_the_start_time_is_checked_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        identity = identify(sleeper.pid)
        assert identity is not None
        assert not send_signal(sleeper.pid, identity.start_ticks - 1, signal.SIGKILL)
        assert send_signal(sleeper.pid, identity.start_ticks, signal.SIGKILL)
        assert sleeper.wait() == -signal.SIGKILL


def test_marked_processes_are_those_with_all_the_variables(family: Family) -> None:
    with subprocess.Popen(["sleep", "600"], env={**os.environ, "COLOUR": "red"}) as red:
        wait_for(lambda: procfs.read_environment(red.pid) and b"COLOUR" in (procfs.read_environment(red.pid) or {}))
        assert [item.pid for item in marked({"COLOUR": "red", "MAGPIE_TUI_TEST_TOKEN": family.token})] == [red.pid]
        assert marked({"COLOUR": "red", "MAGPIE_TUI_TEST_TOKEN": "other"}) == []
        red.kill()


MESSAGES = st.dictionaries(
    st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.text(max_size=9), max_size=4
)


@settings(max_examples=50)
@given(st.lists(MESSAGES, max_size=4), st.integers(1, 50))
def test_messages_arrive_whole_in_whatever_pieces(
    messages: list[dict[str, bool | int | str | None]], piece: int
) -> None:
    data = b"".join(encode(dict(message)) for message in messages)
    reader, writer = os.pipe()
    frames = FrameReader()
    found = []
    try:
        for start in range(0, len(data), piece):
            os.write(writer, data[start : start + piece])
            frames.read_from(reader)
            while (message := frames.next()) is not None:
                found.append(message)
    finally:
        os.close(reader)
        os.close(writer)
    assert found == messages
