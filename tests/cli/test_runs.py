"""``magpie-tui runs`` and the foreground of long commands, as real processes."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from magpie_tui.cli.terminal_output import OutputGivenUpError, PassedOn
from magpie_tui.processes.identity import is_alive
from magpie_tui.runs.model import Run, RunState
from magpie_tui.runs.read import read_run
from magpie_tui.runs.store import list_runs, stop_run
from tests.cli.in_process import run_main
from tests.process_helpers import Family, wait_for

# The real program with one more command, "work", whose work is a Python file.
PROGRAM = """
from magpie_tui.cli.entry import run
from magpie_tui.cli.main import COMMANDS
from magpie_tui.cli.group import LazyCommand
COMMANDS['work'] = LazyCommand('work_command', 'Run a file.', 'Tests')
run()
"""

COMMAND = """
from pathlib import Path
from typing import List
from magpie_tui.cli.group import Command, command_app
from magpie_tui.cli.running import run_in_own_process
app = command_app('Run a file.')
@app.command(cls=Command)
def work(output_dir: Path, file: Path):
    def do():
        space = {'result': 0}
        exec(compile(file.read_text(), str(file), 'exec'), space)
        return space['result']
    return run_in_own_process('test', file.stem, output_dir, do)
"""

# A server that forks an engine, which moves to a new session and forks two workers; they ignore SIGTERM if "stubborn".
SERVER = """
import os, signal, socket, subprocess, sys, time
from magpie_tui.runs.events import EventWriter
phase, port = {phase!r}, {port}
if os.fork() == 0:
    if {stubborn}:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(('127.0.0.1', port))
    listener.listen()
    if os.fork() == 0:
        os.setsid()
        for _ in range(2):
            if os.fork() == 0:
                break
        memory = bytearray(1 << 20)
    with open('ready', 'a') as ready:
        ready.write('here\\n')
    time.sleep(600)
    os._exit(0)
open('ready', 'a').close()
events = EventWriter.from_environment()
for step in ('start-up', 'measure', 'write'):
    while step != 'start-up' and sum(1 for _ in open('ready')) < 4:
        time.sleep(0.01)
    events.progress(step)
    print(step, flush=True)
    if step == phase:
        if {killed}:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(600)
"""


class Cli:
    """The program, started in a directory of its own."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.output_dir = tmp_path / "results"
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "magpie-tui").write_text(PROGRAM)
        (tmp_path / "bin" / "work_command.py").write_text(COMMAND)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(self.tmp_path / "bin" / "magpie-tui"), *arguments]

    def work(self, text: str, *options: str) -> list[str]:
        file = self.tmp_path / "the work.py"
        file.write_text(text)
        return self.command("work", *options, str(self.output_dir), str(file))

    def run(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Do work in processes of its own; without ``text`` run a command that starts none, here."""
        if text is None:
            return run_main(*arguments, cwd=self.tmp_path)
        return subprocess.run(
            self.work(text, *arguments), capture_output=True, text=True, cwd=self.tmp_path, check=False
        )

    def start(self, text: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.work(text), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.tmp_path, start_new_session=True
        )

    def the_run(self) -> Run:
        (run,) = list_runs([self.output_dir])
        return run

    def wait_for_output(self, text: bytes) -> None:
        wait_for(lambda: any(text in run.stdout_path.read_bytes() for run in list_runs([self.output_dir])), str(text))


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def assert_port_is_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        probe.listen()


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_output_and_exit_status_are_the_workers(cli: Cli, family: Family, code: int) -> None:
    done = cli.run(text=f"import sys\nprint('answer')\nprint('log', file=sys.stderr)\nresult = {code}\n")
    assert (done.returncode, done.stdout, done.stderr) == (code, "answer\n", "log\n")
    assert family.describe() == []
    run = cli.the_run()
    assert (run.kind, run.label, run.detached) == ("test", "the work", False)
    assert run.state is (RunState.ended if code < 2 else RunState.failed)


def test_errors_of_the_worker_are_shown_once(cli: Cli, family: Family) -> None:
    done = cli.run(text="from magpie_tui.basics.errors import *\nraise UserInputError('bad', path='f.yaml', line=3)\n")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "magpie-tui: error: f.yaml:3: bad\n")


def test_with_json_nothing_else_reaches_stdout(cli: Cli, family: Family) -> None:
    text = "from magpie_tui.cli.output import write_json, wants_json\nwrite_json({'asked': wants_json()})\n"
    done = cli.run("--json", text=text)
    assert json.loads(done.stdout) == {"asked": True}
    detached = cli.run("--json", "--detach", text=text)
    assert detached.returncode == 0
    assert json.loads(detached.stdout)["state"] in ("running", "ended")
    family.wait_until_gone()


def test_bytes_pass_unchanged_and_the_worker_knows_the_width(cli: Cli, family: Family) -> None:
    text = (
        "import sys\nfrom magpie_tui.cli.output import color_wanted, terminal_width\n"
        "print(color_wanted(), terminal_width())\nsys.stdout.flush()\n"
        "sys.stdout.buffer.write(bytes(range(256)) * 4)\n"
    )
    done = subprocess.run(cli.work(text), capture_output=True, env={**os.environ, "COLUMNS": "77"}, check=False)
    assert done.stdout == b"False 77\n" + bytes(range(256)) * 4


@pytest.mark.parametrize(
    ("number", "status", "by"),
    [
        (signal.SIGINT, 130, "Ctrl-C"),
        (signal.SIGTERM, 143, "SIGTERM to its starter"),
        (signal.SIGHUP, 129, "a hang-up"),
    ],
)
def test_a_signal_stops_everything(cli: Cli, family: Family, number: int, status: int, by: str) -> None:
    port = free_port()
    with cli.start(SERVER.format(phase="measure", port=port, killed=False, stubborn=False)) as starter:
        cli.wait_for_output(b"measure")
        starter.send_signal(number)
        _, stderr = starter.communicate()
    assert family.describe() == []
    assert_port_is_free(port)
    assert starter.returncode == status
    assert stderr.decode().startswith(f"stopped by {by}: ")
    assert "processes ended" in stderr.decode()
    run = cli.the_run()
    assert (run.state, run.reason) == (RunState.stopped, f"stopped by {by}")


@pytest.mark.parametrize("phase", ["start-up", "measure", "write"])
def test_ctrl_c_twice_leaves_nothing(cli: Cli, family: Family, phase: str) -> None:
    port = free_port()
    with cli.start(SERVER.format(phase=phase, port=port, killed=False, stubborn=True)) as starter:
        cli.wait_for_output(phase.encode())
        starter.send_signal(signal.SIGINT)
        wait_for(lambda: cli.the_run().state in (RunState.stopping, RunState.stopped))
        starter.send_signal(signal.SIGINT)
        starter.communicate()
    assert family.describe() == []
    assert_port_is_free(port)
    assert starter.returncode == 130
    assert cli.the_run().state is RunState.stopped


def test_workers_do_not_outlive_a_server_that_is_killed(cli: Cli, family: Family) -> None:
    port = free_port()
    done = cli.run(text=SERVER.format(phase="measure", port=port, killed=True, stubborn=False))
    assert family.describe() == []
    assert_port_is_free(port)
    assert done.returncode == 128 + signal.SIGKILL
    assert "4 processes that the command left running were ended" in done.stderr
    assert "ended by SIGKILL, which we did not send" in done.stderr


def test_nothing_outlives_a_starter_that_is_killed(cli: Cli, family: Family) -> None:
    port = free_port()
    with cli.start(SERVER.format(phase="measure", port=port, killed=False, stubborn=False)) as starter:
        cli.wait_for_output(b"measure")
        starter.kill()
        starter.communicate()
    family.wait_until_gone()
    assert_port_is_free(port)
    assert cli.the_run().reason == "stopped by the end of its starter"


def test_ctrl_c_before_the_run_has_begun(cli: Cli, family: Family) -> None:
    with cli.start("import time\nprint('begun', flush=True)\ntime.sleep(600)\n") as starter:
        wait_for(lambda: list_runs([cli.output_dir]))
        starter.send_signal(signal.SIGINT)
        starter.communicate()
    assert starter.returncode == 130
    assert family.describe() == []
    assert cli.the_run().state is RunState.stopped


def test_nohup_keeps_a_run_through_a_hang_up(cli: Cli, family: Family) -> None:
    text = "import time, pathlib\nprint('begun', flush=True)\nwhile not pathlib.Path('go').exists(): time.sleep(0.01)\n"
    with subprocess.Popen(
        ["nohup", *cli.work(text)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cli.tmp_path
    ) as starter:
        cli.wait_for_output(b"begun")
        starter.send_signal(signal.SIGHUP)
        (cli.tmp_path / "go").touch()
        starter.communicate()
    assert starter.returncode == 0


def test_a_reader_that_goes_away_ends_the_run_quietly(cli: Cli, family: Family) -> None:
    text = "import itertools\nfor number in itertools.count():\n    print('line', number, flush=True)\n"
    with cli.start(text) as starter:
        assert starter.stdout is not None
        starter.stdout.readline()
        starter.stdout.close()
        assert starter.stderr is not None
        assert starter.stderr.read() == b""
    assert starter.returncode == 0
    assert family.describe() == []
    assert cli.the_run().reason == "stopped by the end of its reader"


def test_a_reader_that_does_not_read_cannot_hold_up_ctrl_c_twice(cli: Cli, family: Family) -> None:
    text = "import time\nprint('x' * 1_000_000, flush=True)\nprint('all', flush=True)\ntime.sleep(600)\n"
    with cli.start(text) as starter:
        cli.wait_for_output(b"all")
        starter.send_signal(signal.SIGINT)
        wait_for(lambda: cli.the_run().state is RunState.stopped)
        starter.send_signal(signal.SIGINT)
        assert starter.wait(60) == 130
        starter.communicate()
    assert family.describe() == []


def test_output_that_cannot_be_written_is_the_machines_fault(cli: Cli, family: Family) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            cli.work("print('text', flush=True)\nimport time; time.sleep(600)\n"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert "the output of the run can't be passed on: No space left on device" in done.stderr
    assert family.describe() == []


def test_an_output_directory_that_cannot_be_used(cli: Cli, family: Family) -> None:
    cli.output_dir.write_text("in the way")
    done = cli.run(text="")
    assert done.returncode == 2
    assert f"{cli.output_dir}" in done.stderr
    assert done.stderr.startswith("magpie-tui: error: ")


TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def start_in_terminal(cli: Cli, text: str) -> tuple[subprocess.Popen[bytes], int]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, b"\x20\x00\x50\x00\x00\x00\x00\x00")
    process = subprocess.Popen(
        [sys.executable, "-c", TERMINAL, *cli.work(text)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cli.tmp_path,
        env={**os.environ, "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(theirs)
    return process, ours


def read_terminal(descriptor: int) -> bytes:
    seen = b""
    try:
        while data := os.read(descriptor, 4096):
            seen += data
    except OSError:
        pass  # the last writer has closed it
    os.close(descriptor)
    return seen


def test_ctrl_c_in_a_terminal(cli: Cli, family: Family) -> None:
    text = (
        "from magpie_tui.cli.output import color_wanted, terminal_width\n"
        "print('\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07\\x1b[2J', color_wanted(), terminal_width(), flush=True)\n"
        "import time; time.sleep(600)\n"
    )
    process, terminal = start_in_terminal(cli, text)
    cli.wait_for_output(b"80")
    os.write(terminal, b"\x03")
    seen = read_terminal(terminal)
    assert process.wait() == 130
    assert family.describe() == []
    assert b"\x1b[31mred\x1b[0m  True 80\r\n" in seen
    assert b"stopped by Ctrl-C: 1 process ended" in seen


def test_a_terminal_that_hangs_up(cli: Cli, family: Family) -> None:
    process, terminal = start_in_terminal(cli, "print('begun', flush=True)\nimport time; time.sleep(600)\n")
    cli.wait_for_output(b"begun")
    os.close(terminal)
    assert process.wait() == 129
    assert family.describe() == []
    assert cli.the_run().state is RunState.stopped


def start_detached(cli: Cli, text: str) -> Run:
    done = cli.run("--detach", text=text)
    assert done.returncode == 0, done.stderr
    run = cli.the_run()
    assert done.stdout == f"Run: {run.id}\n"
    assert f"magpie-tui runs attach {run.id}" in done.stderr
    assert "--detach" not in run.command
    return run


def test_a_detached_run_from_start_to_removal(cli: Cli, family: Family) -> None:
    text = "import time\nfor number in range(5): print('line', number, flush=True)\ntime.sleep(600)\n"
    run = start_detached(cli, text)
    cli.wait_for_output(b"line 4")

    listing = cli.run("runs", "list")
    header, row = listing.stdout.splitlines()
    assert header.split() == ["id", "state", "kind", "name", "started", "took", "progress", "says"]
    assert row.startswith(f"{run.id}  running  test  the work ")
    assert row.endswith("line 4")
    (listed,) = json.loads(cli.run("runs", "list", "--json").stdout)["runs"]
    shown = json.loads(cli.run("runs", "show", run.id[-4:], "--json").stdout)
    assert (listed["state"], shown["pid"], shown["surviving_pids"]) == ("running", listed["pid"], [])
    assert cli.run("runs", "list", "--state", "ended", "lost").stdout == "no runs\n"
    assert cli.run("runs", "list", "--format", "csv").stdout.startswith("id,state,kind,name,")

    with subprocess.Popen(
        cli.command("runs", "attach", run.id, "--tail", "2"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as attached:
        assert attached.stdout is not None
        assert (attached.stdout.readline(), attached.stdout.readline()) == (b"line 3\n", b"line 4\n")
        attached.send_signal(signal.SIGINT)
        rest, stderr = attached.communicate()
    assert (attached.returncode, rest) == (130, b"")
    assert stderr.decode().startswith(f"detached; {run.id} goes on.")
    assert cli.the_run().state is RunState.running

    assert cli.run("runs", "remove", run.id).returncode == 2
    stopped = cli.run("runs", "stop", run.id, "--grace", "20")
    assert stopped.stdout == f"{run.id}: stopped, 1 process ended\n"
    assert family.describe() == []
    followed = cli.run("runs", "attach", run.id)
    assert (followed.returncode, followed.stdout) == (143, "".join(f"line {number}\n" for number in range(5)))
    assert cli.run("runs", "stop", run.id).stdout.startswith(f"{run.id}: nothing to stop, it is stopped")
    assert cli.run("runs", "remove", run.id).stdout == f"{run.id}: removed\n"
    assert cli.run("runs", "list").stdout == "no runs\n"


def test_attaching_returns_the_exit_status_of_the_run(cli: Cli, family: Family) -> None:
    run = start_detached(cli, "print('done')\nresult = 3\n")
    done = cli.run("runs", "attach", run.id)
    assert (done.returncode, done.stdout) == (3, "done\n")
    wait_for(lambda: run.supervisor is not None and not is_alive(run.supervisor))


def test_unknown_runs_and_places_are_input_errors(cli: Cli) -> None:
    for arguments in (
        ("runs", "show", "nothing"),
        ("runs", "attach", "nothing"),
        ("runs", "stop", "nothing"),
        ("runs", "list", "-o", "no-such-directory"),
        ("runs", "list", "--state", "runing"),
        ("runs", "stop"),
    ):
        done = cli.run(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert "magpie-tui: error: " in done.stderr


def test_a_closed_reader_of_attach_leaves_the_run_alone(cli: Cli, family: Family) -> None:
    run = start_detached(cli, "import itertools\nfor number in itertools.count(): print(number, flush=True)\n")
    with subprocess.Popen(
        cli.command("runs", "attach", run.id), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as attached:
        assert attached.stdout is not None
        attached.stdout.readline()
        attached.stdout.close()
        assert attached.stderr is not None
        assert attached.stderr.read() == b""
    assert attached.returncode == 0
    assert read_run(run.directory).state is RunState.running
    stop_run(run)


def test_an_impatient_output_never_waits_for_its_reader() -> None:
    reader, writer = os.pipe()
    try:
        output = PassedOn(writer)
        output.is_impatient = True
        assert output.write(b"x" * 4096) == 4096
        with pytest.raises(OutputGivenUpError):
            output.write(b"x" * 1_000_000)
        assert not output.is_writing
    finally:
        os.close(reader)
        os.close(writer)
