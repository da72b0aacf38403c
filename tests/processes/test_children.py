"""Children: how they end, and that nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from magpie_tui.basics.errors import MachineError
from magpie_tui.processes.children import ChildResult, run_child, start_child
from magpie_tui.processes.identity import descendants, identify
from magpie_tui.processes.procfs import read_bytes
from tests.process_helpers import Family, has_zombie_child, peak_memory_kb, script, wait_for

ROOT = Path(__file__).parent.parent.parent


def run(tmp_path: Path, *command: str, **options: float | Path) -> ChildResult:
    return run_child(
        command,
        stdout_path=tmp_path / "out",
        stderr_path=tmp_path / "err",
        **options,  # type: ignore[arg-type]
    )


def test_exit_code_and_both_outputs(tmp_path: Path) -> None:
    result = run(tmp_path, "sh", "-c", "echo seen; echo heard >&2; exit 3")
    assert (result.exit_code, result.signal, result.timed_out, result.not_started) == (3, None, False, None)
    assert (tmp_path / "out").read_text() == "seen\n"
    assert (tmp_path / "err").read_text() == "heard\n"
    assert result.wall_s > 0
    assert not result.ok
    assert not has_zombie_child()


def test_a_signal_is_not_an_exit_code(tmp_path: Path) -> None:
    result = run(tmp_path, "sh", "-c", "kill -SEGV $$")
    assert (result.exit_code, result.signal, result.stopped) == (None, signal.SIGSEGV, False)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (None, "command not found: no-such-program"),
        ("", "not executable: {path}"),
        ("#!/no/such/interpreter\n", "its first line names does not exist"),
        ("plain text", "not a program: {path}"),
    ],
)
def test_what_cannot_be_started_says_why(tmp_path: Path, make: str | None, reason: str) -> None:
    path = tmp_path / "program"
    if make is not None:
        path.write_text(make)
        path.chmod(0o755 if make else 0o644)
    result = run(tmp_path, "no-such-program" if make is None else str(path))
    assert result.not_started is not None
    assert reason.format(path=path) in result.not_started
    assert (result.exit_code, result.signal, result.wall_s) == (None, None, 0.0)
    assert not has_zombie_child()


def test_a_missing_working_directory_is_named(tmp_path: Path) -> None:
    result = run(tmp_path, "true", cwd=tmp_path / "gone")
    assert result.not_started == f"the working directory does not exist: {tmp_path / 'gone'}"


def test_an_output_file_that_cannot_be_written_is_the_machines_fault(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="cannot write"):
        run_child(["true"], stdout_path=tmp_path / "no" / "out", stderr_path=tmp_path / "err")


def test_surroundings_of_a_child(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    program = (
        "import os, sys, signal\n"
        "print(os.getcwd(), os.getsid(0) == os.getpid(), sys.stdin.read() == '', os.environb[b'ODD'],\n"
        "      signal.getsignal(signal.SIGHUP) == signal.SIG_DFL, signal.pthread_sigmask(signal.SIG_BLOCK, ()))\n"
        f"os.write({writer}, b'through the descriptor')\n"
    )
    try:
        result = run_child(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={**os.environ, "ODD": os.fsdecode(b"\xff\xfe b")},
            stdout_path=tmp_path / "out",
            stderr_path=tmp_path / "out",
            pass_fds=(writer,),
        )
        os.close(writer)
        assert result.ok, (tmp_path / "out").read_text()
        assert os.read(reader, 100) == b"through the descriptor"
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)
    assert (tmp_path / "out").read_text() == f"{tmp_path} True True b'\\xff\\xfe b' True set()\n"


TREE = """
import os, signal, sys, time
def fork(work):
    if os.fork() == 0:
        try:
            work()
        finally:
            os._exit(0)
def sleep():
    time.sleep(600)
def stubborn():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleep()
def away():
    os.setsid()
    fork(sleep)
    stubborn()
def twice():
    os.setsid()
    fork(lambda: (os.setsid(), sleep()))
def nameless():
    os.setsid()
    os.execve(sys.executable, [sys.executable, '-I', '-S', '-c', 'import time; time.sleep(600)'], {})
for work in (sleep, stubborn, away, twice, nameless):
    fork(work)
open(sys.argv[1], 'w').close()
if sys.argv[2] == 'stay':
    sleep()
"""


@pytest.mark.parametrize("stay", ["stay", "leave"])
def test_the_whole_tree_is_gone_whatever_its_members_did(tmp_path: Path, family: Family, stay: str) -> None:
    command = script(tmp_path, "tree.py", TREE)
    child = start_child(
        [*command, str(tmp_path / "ready"), stay],
        stdout_path=tmp_path / "out",
        stderr_path=tmp_path / "err",
        grace_s=0.3,
    )
    assert child.pid is not None
    guard = next(member for member in family.members() if b"guard.py" in (cmdline(member.pid)))
    wait_for((tmp_path / "ready").exists)
    if stay == "stay":
        wait_for(lambda: len(descendants(guard.pid)) == 7, "seven members")
        members = descendants(guard.pid)
        result = child.stop(0.3)
        assert (result.signal, result.stopped) == (signal.SIGTERM, True)
        assert result.processes_ended == 7
        assert [member for member in members if identify(member.pid) == member] == []
    else:
        found = child.wait()
        assert found is not None
        assert (found.exit_code, found.stopped) == (0, False)
        assert found.processes_ended >= 5
    assert family.describe() == []
    assert not has_zombie_child()


def cmdline(pid: int) -> bytes:
    return read_bytes(f"/proc/{pid}/cmdline") or b""


def test_a_child_that_takes_too_long_is_stopped(tmp_path: Path, family: Family) -> None:
    result = run(tmp_path, "sleep", "600", timeout_s=0.05)
    assert (result.timed_out, result.signal, result.exit_code) == (True, signal.SIGTERM, None)


def start_and_stop(tmp_path: Path, *command: str) -> ChildResult:
    """Start ``command``, wait until it has written something, stop it with a short grace."""
    with start_child(command, stdout_path=tmp_path / "out", stderr_path=tmp_path / "err") as child:
        wait_for(lambda: (tmp_path / "out").read_bytes())
        return child.stop(0.1)


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path, family: Family) -> None:
    result = start_and_stop(tmp_path, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 600; done")
    assert (result.stopped, result.signal) == (True, signal.SIGKILL)


def test_a_child_that_waits_stopped_is_ended_too(tmp_path: Path, family: Family) -> None:
    result = run(tmp_path, "sh", "-c", "kill -STOP $$", timeout_s=0.1)
    assert result.signal == signal.SIGTERM


def test_many_sleeping_children(tmp_path: Path, family: Family) -> None:
    command = script(
        tmp_path,
        "many.py",
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for number in range(7):\n"
        "    os.fork()\n"
        "time.sleep(600)\n",
    )
    others = len(descendants(os.getpid()))  # helpers that earlier tests left to this process
    with start_child(command, stdout_path=tmp_path / "out", stderr_path=tmp_path / "err") as child:
        wait_for(lambda: len(descendants(os.getpid())) == others + 129, "128 processes and their guard")
        result = child.stop(0.0)
    assert (result.processes_ended, result.signal) == (128, signal.SIGKILL)
    assert family.describe() == []


def test_members_that_die_and_come_again(tmp_path: Path, family: Family) -> None:
    command = script(
        tmp_path,
        "again.py",
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for number in range(8):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        while True:\n"
        "            if os.fork():\n"
        "                os._exit(0)\n"
        "            time.sleep(0.0005)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n",
    )
    result = start_and_stop(tmp_path, *command)
    assert (result.signal, result.remaining) == (signal.SIGKILL, ())
    assert family.describe() == []


CALLER = """
import sys
from pathlib import Path
from magpie_tui.processes.children import run_child
place = Path(sys.argv[1])
run_child(sys.argv[2:], stdout_path=place / 'out', stderr_path=place / 'err', grace_s=0.2)
"""


def start_caller(tmp_path: Path, family: Family, *command: str) -> subprocess.Popen[bytes]:
    (tmp_path / "caller.py").write_text(CALLER)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, str(tmp_path / "caller.py"), str(tmp_path), *command],
        env=environment,
        stderr=subprocess.PIPE,
    )


def test_nothing_survives_a_caller_that_is_killed(tmp_path: Path, family: Family) -> None:
    tree = script(tmp_path, "tree.py", TREE)
    with start_caller(tmp_path, family, *tree, str(tmp_path / "ready"), "stay") as caller:
        wait_for((tmp_path / "ready").exists)
        caller.kill()
        caller.communicate()
    family.wait_until_gone()


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupted_caller_returns_when_nothing_is_left(tmp_path: Path, family: Family, times: int) -> None:
    tree = script(tmp_path, "tree.py", TREE)
    with start_caller(tmp_path, family, *tree, str(tmp_path / "ready"), "stay") as caller:
        wait_for((tmp_path / "ready").exists)
        for _ in range(times):
            caller.send_signal(signal.SIGINT)
        _, stderr = caller.communicate()
        assert caller.returncode == -signal.SIGINT, stderr.decode()
        assert family.describe() == []


def test_nothing_survives_a_guard_that_is_killed(tmp_path: Path, family: Family) -> None:
    child = start_child(
        ["sh", "-c", "setsid sleep 600 & sleep 601"],
        stdout_path=tmp_path / "out",
        stderr_path=tmp_path / "err",
    )
    wait_for(lambda: len(family.members()) == 4)
    guard = next(member for member in family.members() if b"guard.py" in cmdline(member.pid))
    os.kill(guard.pid, signal.SIGKILL)
    result = child.wait()
    assert result is not None
    assert (result.signal, result.exit_code, result.stopped) == (signal.SIGKILL, None, True)
    assert family.describe() == []


def test_command_and_environment_do_not_show_in_the_list_of_processes(tmp_path: Path, family: Family) -> None:
    with start_child(
        ["sleep", "600"],
        env={**os.environ, "SECRET": "hf_0123456789"},
        stdout_path=tmp_path / "out",
        stderr_path=tmp_path / "err",
    ):
        lines = [cmdline(member.pid) for member in family.members()]
    assert len(lines) == 2
    assert not any(b"hf_0123456789" in line for line in lines)


def test_a_flood_costs_the_guard_no_memory(tmp_path: Path, family: Family) -> None:
    flood = script(
        tmp_path,
        "flood.py",
        "import os, sys\n"
        "lines = b'0123456789 \\x00\\xff\\n' * 10_000\n"
        "for _ in range(30):\n"
        "    sys.stdout.buffer.write(lines)\n"
        "sys.stdout.buffer.write(b'x' * 50_000_000)\n"
        "sys.stdout.flush()\n"
        "sys.stdin.read()\n"
        "open(sys.argv[1], 'w').close()\n"
        "import time; time.sleep(600)\n",
    )
    with start_child(
        [*flood, str(tmp_path / "written")],
        stdout_path=tmp_path / "out",
        stderr_path=tmp_path / "err",
    ) as child:
        guard = next(member for member in family.members() if b"guard.py" in cmdline(member.pid))
        wait_for((tmp_path / "written").exists)
        peak_kb = peak_memory_kb(guard.pid)
        child.stop()
    assert (tmp_path / "out").stat().st_size == 30 * 10_000 * 14 + 50_000_000
    assert peak_kb < 30_000


def test_waiting_has_a_limit(tmp_path: Path, family: Family) -> None:
    with start_child(["sleep", "600"], stdout_path=tmp_path / "out", stderr_path=tmp_path / "err") as child:
        before = time.monotonic()
        assert child.wait(0.05) is None
        assert time.monotonic() - before >= 0.05
        assert child.stop(1.0) == child.stop() == child.wait()
