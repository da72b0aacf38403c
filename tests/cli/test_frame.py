"""The frame of the command line: help, global options, errors, exit codes, and what it costs to start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from magpie_tui.cli.group import expand_multiple
from magpie_tui.cli.main import COMMANDS
from tests.cli.in_process import run_main

HEAVY_MODULES = ("textual", "pandas", "pyarrow", "numpy", "torch", "pydantic", "rich", "yaml", "watchfiles", "asyncio")


def magpie(*arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "magpie_tui", *arguments],
        **{"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, **settings},
    )


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from magpie_tui.cli.main import main\n"
        "status = main(['--help'])\n"
        "print('loaded:', *sorted(sys.modules), file=sys.stderr)\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split("loaded:")[1].split())
    assert not loaded.intersection(HEAVY_MODULES)
    assert not any(name.startswith("magpie_tui.tui") for name in loaded)
    for command, lazy in COMMANDS.items():
        assert lazy.hidden or command in done.stdout


def test_a_benchmark_imports_the_trace_engine_when_there_are_traces_only() -> None:
    code = "import sys, magpie_tui.serving.benchmark; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded.intersection({"numpy", "magpie_tui.traces.analysis", "magpie_tui.traces.tracelens.workspace"})


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help_with_the_global_options(command: str) -> None:
    done = run_main(command, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: magpie-tui" in done.stdout
    assert done.stderr == ""


def test_version() -> None:
    done = magpie("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("magpie-tui ")


def test_global_options_stand_before_and_after_the_command() -> None:
    before = run_main("--json", "paths")
    after = run_main("paths", "--json")
    assert before.stdout == after.stdout
    assert set(json.loads(before.stdout)) == {"config", "state", "cache", "data"}


def test_unknown_command_and_option_name_the_nearest() -> None:
    command = run_main("pathz")
    assert command.returncode == 2
    assert "Did you mean 'paths'" in command.stderr
    option = run_main("paths", "--jsn")
    assert option.returncode == 2
    assert "--json" in option.stderr
    assert command.stdout == option.stdout == ""


def test_without_a_terminal_the_help_is_printed_and_the_status_is_2() -> None:
    done = magpie()
    assert done.returncode == 2
    assert "Usage: magpie-tui" in done.stdout
    assert "needs a terminal" in done.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = magpie("paths", capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert done.returncode == 0
    assert done.stderr == ""


def test_a_bug_of_ours_is_saved_and_exits_4(private_directories: Path) -> None:
    code = (
        "import sys\n"
        "import magpie_tui.cli.paths as paths\n"
        "def broken(*_a, **_k): raise ZeroDivisionError('on \\x1b[31mpurpose')\n"
        "paths.print_listing = broken\n"
        "from magpie_tui.cli.main import main\n"
        "sys.exit(main(['paths']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr
    saved = list((private_directories / "state" / "crashes").iterdir())
    assert len(saved) == 1
    assert str(saved[0]) in done.stderr
    assert "ZeroDivisionError" in saved[0].read_text()


def test_repeatable_options_take_several_values() -> None:
    import click

    command = click.Command(
        "c", params=[click.Option(["--categories"], multiple=True), click.Option(["--top-k"], type=int)]
    )
    assert expand_multiple(command, ["--categories", "a", "b", "--top-k", "5", "x"]) == [
        "--categories", "a", "--categories", "b", "--top-k", "5", "x",
    ]  # fmt: skip
    assert expand_multiple(command, ["--categories", "--top-k", "5"]) == ["--categories", "", "--top-k", "5"]
    assert expand_multiple(command, ["--", "--categories", "a", "b"]) == ["--", "--categories", "a", "b"]


def test_what_is_done_is_logged_on_request(tmp_path: Path) -> None:
    config = tmp_path / "kernels.yaml"
    config.write_text("kernels:\n  - {id: a, type: hip, source_files: [a.hip], testcase_command: ./a}\n")
    (tmp_path / "a.hip").write_text("int main() {}\n")
    quiet, told = (run_main("config", "check", config, *more) for more in ((), ("-v",)))
    line = f" DEBUG magpie_tui.configs.syntax: {config.stat().st_size} bytes read from {config}"
    assert line not in quiet.stderr
    assert line in told.stderr
    assert told.stdout == quiet.stdout


def test_the_level_of_the_framework_config_holds_unless_more_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "true.cpp").write_text("int main() {}\n")
    config, framework = tmp_path / "kernel.yaml", tmp_path / "framework.yaml"
    config.write_text("kernel: {id: a, type: cpp, source_files: [true.cpp], testcase_command: 'true'}\n")
    framework.write_text("logging: {level: DEBUG}\n")
    arguments = ("analyze", "-k", config, "--no-perf", "-o", tmp_path / "results")
    quiet, told = (run_main(*arguments, *more, cwd=tmp_path) for more in ((), ("-c", framework)))
    assert "DEBUG" not in quiet.stderr
    assert " DEBUG magpie_tui.runs.launch: run " in told.stderr
