"""Driving upstream: finding it, its config, its command line, its output. A stand-in plays upstream."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml

from magpie_tui.basics.errors import AnswerIsNoError, ExitCode, MachineError, UserInputError
from magpie_tui.configs.kernel import KernelConfig, load_kernel_config
from magpie_tui.processes.children import ChildResult
from magpie_tui.runs.upstream import (
    INSTALL_HINT,
    VARIABLE,
    UpstreamMode,
    UpstreamOptions,
    UpstreamTool,
    find_upstream,
    upstream_command,
)
from magpie_tui.runs.upstream_config import write_upstream_config
from magpie_tui.runs.upstream_run import (
    UpstreamOutcome,
    evaluate_with_upstream,
    existing_workspaces,
    find_workspace,
    how_it_ended,
    run_upstream,
)
from tests.runs.upstream_stand_in import install

CONFIG = """\
kernels:
  - id: good
    type: hip
    source_files: [good.hip]
    working_dir: .
    env: {LEVEL: "3"}
    compile_command: hipcc -O3 "good.hip" -o good
    testcase_command: [["./good", "a b"], ["./good", "--check"]]
  - id: {second}
    type: pytorch
    source_files: [second.py]
    testcase_command: [python3, second.py]
    tolerance: {{float32: {{atol: 0.001}}}}
performance:
  timeout_seconds: 60
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    for name in ("good.hip", "second.py"):
        (directory / name).write_text("// x\n", encoding="utf-8")
    monkeypatch.chdir(directory)
    return directory


def config_of(project: Path, second: str = "second") -> KernelConfig:
    path = project / "kernels.yaml"
    path.write_text(CONFIG.replace("{second}", second).replace("{{", "{").replace("}}", "}"), encoding="utf-8")
    return load_kernel_config(path)


@pytest.fixture
def tool(tmp_path: Path) -> UpstreamTool:
    return UpstreamTool((str(install(tmp_path / "upstream")),))


def test_upstream_on_the_path_is_found(tmp_path: Path) -> None:
    script = install(tmp_path / "upstream")
    found = find_upstream({"PATH": f"{script.parent}:{os.environ['PATH']}"})
    assert found.command == (str(script),)
    # The package is found through the script alone: its interpreter knows nothing of it, and that is said.
    assert found.version is None and found.reason and found.text == "magpie of unknown version"


def test_upstream_of_an_interpreter_is_found_with_version_and_commit(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    install(checkout)
    git = ["git", "-C", str(checkout), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", str(checkout)], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    found = find_upstream(environment, python=Path(sys.executable))
    assert found.command == (sys.executable, "-m", "Magpie")
    assert (found.version, found.commit, found.package_directory) == ("9.8.7", head, checkout / "Magpie")
    assert found.text == f"magpie 9.8.7 (commit {head[:12]})"
    assert find_upstream({**environment, "PATH": "/usr/bin:/bin"}, with_version=False).command == found.command


def test_upstream_named_by_the_variable(tmp_path: Path) -> None:
    script = install(tmp_path / "elsewhere")
    found = find_upstream({"PATH": "/usr/bin:/bin", VARIABLE: str(script)}, with_version=False)
    assert found.command == (str(script),)
    named = {"PATH": "/usr/bin:/bin", VARIABLE: sys.executable, "PYTHONPATH": str(script.parent)}
    assert find_upstream(named, with_version=False).command == (sys.executable, "-m", "Magpie")


def test_no_upstream_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="the engine magpie is not installed") as caught:
        find_upstream({"PATH": str(tmp_path)})
    assert caught.value.hint == INSTALL_HINT and "github.com/AMD-AGI/Magpie" in INSTALL_HINT


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo 'magpie: markdown and git'", "another program of that name"),
        ("echo analyze compare benchmark --gpu-info --config magpie-tui", "magpie-tui itself"),
        ("echo broken >&2; exit 3", "exit status 3: broken"),
    ],
)
def test_another_program_of_that_name_is_not_believed(tmp_path: Path, body: str, said: str) -> None:
    script = tmp_path / "magpie"
    script.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    script.chmod(0o755)
    with pytest.raises(MachineError, match="cannot be used") as caught:
        find_upstream({"PATH": str(tmp_path)})
    assert said in caught.value.message


def test_the_written_config_has_absolute_paths_and_split_commands(project: Path, tmp_path: Path) -> None:
    written = write_upstream_config(config_of(project), tmp_path / "generated.yaml")
    value = yaml.safe_load(written.path.read_text(encoding="utf-8"))
    good, second = value["kernels"]
    assert good == {
        "id": "good",
        "type": "hip",
        "source_files": [str(project / "good.hip")],
        "working_dir": str(project),
        "env": {"LEVEL": "3"},
        "compile_command": ["hipcc", "-O3", "good.hip", "-o", "good"],
        "testcase_command": [["./good", "a b"], ["./good", "--check"]],
        "get_inputs_func": "get_inputs",
        "get_init_inputs_func": "get_init_inputs",
    }
    assert second["type"] == "pytorch" and "tolerance" not in second and "working_dir" not in second
    assert value["performance"] == {"timeout_seconds": 60}
    assert written.notes == ("kernel 'second': upstream does not read tolerance",)


def test_what_upstream_would_do_otherwise_is_noted(project: Path, tmp_path: Path) -> None:
    path = project / "k.yaml"
    path.write_text(
        "kernels:\n  - id: k\n    type: pytorch\n    source_files: [second.py]\n    reference: second.py:f\n"
        "    compile_command: [bash, -lc, 'echo $HOME_OF_K ${UNKNOWN_THING}']\n",
        encoding="utf-8",
    )
    try:
        config = load_kernel_config(path, environment={"HOME_OF_K": "$SHELL_OF_K", "UNKNOWN_THING": "u"})
    except UserInputError as error:
        pytest.fail(str(error))
    notes = write_upstream_config(config, tmp_path / "g.yaml", environment={"SHELL_OF_K": "x"}).notes
    assert any("does not read reference" in note for note in notes)
    assert any("no testcase command" in note for note in notes)
    assert any("replace $SHELL_OF_K" in note for note in notes)


def test_a_type_that_upstream_does_not_know_is_refused(project: Path, tmp_path: Path) -> None:
    path = project / "k.yaml"
    path.write_text(
        "kernels:\n  - id: smoke\n    type: cpp\n    source_files: [good.hip]\n    testcase_command: [./a]\n",
        encoding="utf-8",
    )
    with pytest.raises(UserInputError, match="of type cpp, which upstream does not know"):
        write_upstream_config(load_kernel_config(path), tmp_path / "g.yaml")


def test_global_options_stand_before_the_sub_command(tmp_path: Path) -> None:
    options = UpstreamOptions(
        framework_config=tmp_path / "f.yaml",
        environment="local",
        workers=2,
        docker_image="img",
        verbose=True,
        no_perf=True,
        baseline=1,
        more=("--latency-method", "none"),
    )
    config, output_dir = tmp_path / "k.yaml", tmp_path / "out"
    command = upstream_command(
        UpstreamTool(("magpie",)), "compare", kernel_config=config, output_dir=output_dir, options=options
    )
    before, after = command[: command.index("compare")], command[command.index("compare") :]
    assert before == (
        *("magpie", "--config", str(tmp_path / "f.yaml"), "--verbose", "--environment", "local"),
        *("--workers", "2", "--docker-image", "img"),
    )
    assert after == (
        *("compare", "--kernel-config", str(config), "--output-dir", str(output_dir)),
        *("--baseline", "1", "--no-perf", "--latency-method", "none"),
    )
    plain = upstream_command(UpstreamTool(("magpie",)), "analyze", kernel_config=config, output_dir=output_dir)
    assert plain == ("magpie", "analyze", "--kernel-config", str(config), "--output-dir", str(output_dir))
    with pytest.raises(UserInputError, match="absolute"):
        upstream_command(UpstreamTool(("m",)), "analyze", kernel_config=Path("k"), output_dir=output_dir)


class Drive:
    """One call of the stand-in."""

    def __init__(self, tool: UpstreamTool, project: Path, tmp_path: Path, second: str = "second") -> None:
        self.tool, self.project, self.output_dir = tool, project, tmp_path / "out"
        self.directory = tmp_path / "run"
        self.directory.mkdir()
        self.config = write_upstream_config(config_of(project, second), self.directory / "kernels.yaml")
        self.stdout, self.stderr = io.BytesIO(), io.BytesIO()
        self.told: list[Path] = []

    def __call__(
        self, mode: UpstreamMode, what: str = "ok", *, timeout_s: float | None = 60.0, **environment: str
    ) -> UpstreamOutcome:
        command = upstream_command(
            self.tool, mode, kernel_config=self.config.path, output_dir=self.output_dir, options=UpstreamOptions()
        )
        return run_upstream(
            command,
            mode,
            directory=self.directory,
            output_dir=self.output_dir,
            cwd=self.project,
            stdout=self.stdout,
            stderr=self.stderr,
            env={**os.environ, "STAND_IN": what, **environment},
            on_workspace=self.told.append,
            timeout_s=timeout_s,
        )


@pytest.fixture
def drive(tool: UpstreamTool, project: Path, tmp_path: Path) -> Drive:
    return Drive(tool, project, tmp_path)


def test_analyze(drive: Drive) -> None:
    outcome = drive("analyze")
    assert outcome.workspace is not None and outcome.workspace.parent == drive.output_dir
    assert outcome.report is not None and [state.kernel_id for state in outcome.report.kernels] == ["good", "second"]
    assert outcome.exit_status() == ExitCode.OK and outcome.problems == () and outcome.result.exit_code == 0
    assert drive.told == [outcome.workspace]
    assert drive.stdout.getvalue().decode().endswith(f"Workspace: {outcome.workspace}\n")
    assert b"Created analyze workspace" in drive.stderr.getvalue()
    given = json.loads((outcome.workspace / "given.json").read_text(encoding="utf-8"))
    assert given["kernels"][0]["source_files"] == [str(drive.project / "good.hip")]


def test_a_loaded_config_is_evaluated_in_one_call(drive: Drive) -> None:
    notes: list[str] = []
    outcome = evaluate_with_upstream(
        config_of(drive.project),
        "analyze",
        drive.tool,
        directory=drive.directory / "inner",
        output_dir=Path("results"),
        options=UpstreamOptions(no_perf=True),
        stdout=drive.stdout,
        stderr=drive.stderr,
        on_note=notes.append,
        on_workspace=drive.told.append,
    )
    assert outcome.exit_status() == ExitCode.OK
    assert outcome.workspace is not None and outcome.workspace.parent == drive.project / "results"
    given = json.loads((outcome.workspace / "given.json").read_text(encoding="utf-8"))["arguments"]
    assert given["no_perf"] is True and given["kernel_config"] == str(drive.directory / "inner/upstream_kernels.yaml")
    assert notes == ["kernel 'second': upstream does not read tolerance"]


def test_compare(drive: Drive) -> None:
    outcome = drive("compare")
    assert outcome.report is not None and outcome.exit_status(baseline=0) == ExitCode.OK
    assert outcome.exit_status(baseline=7) == ExitCode.ANSWER_IS_NO


def test_a_compile_failure_that_upstream_calls_a_success_is_a_no(
    tool: UpstreamTool, project: Path, tmp_path: Path
) -> None:
    drive = Drive(tool, project, tmp_path, second="bad_one")
    outcome = drive("analyze")
    assert outcome.result.exit_code == 0, "upstream exits 0 here"
    assert outcome.exit_status() == ExitCode.ANSWER_IS_NO
    compared = drive("compare")
    assert compared.exit_status(baseline=0) == ExitCode.ANSWER_IS_NO, "no candidate was proved correct"


def test_no_gpu_is_said_as_upstream_says_it(drive: Drive) -> None:
    outcome = drive("analyze", "no_gpu")
    assert outcome.report is None and outcome.no_gpu and outcome.result.exit_code == 1
    with pytest.raises(MachineError, match="GPU check failed: No GPU detected"):
        outcome.exit_status()


def test_no_workspace(drive: Drive) -> None:
    outcome = drive("analyze", "early")
    assert outcome.workspace is None and drive.told == []
    with pytest.raises(AnswerIsNoError, match="it exited with status 1 and made no workspace"):
        outcome.exit_status()


def test_a_torn_report(drive: Drive) -> None:
    outcome = drive("analyze", "torn")
    assert outcome.workspace is not None and outcome.report is None
    with pytest.raises(AnswerIsNoError, match="no usable report"):
        outcome.exit_status()


def test_a_workspace_line_that_names_none_is_not_believed(drive: Drive) -> None:
    outcome = drive("analyze", "lies")
    assert outcome.workspace is not None and outcome.workspace.parent == drive.output_dir


def test_options_that_the_installed_upstream_lacks(drive: Drive) -> None:
    drive.tool = UpstreamTool((*drive.tool.command, "--no-such-option"))
    with pytest.raises(MachineError, match=r"does not take this command line.*unrecognized arguments"):
        drive("analyze").exit_status()


def test_an_upstream_that_is_gone(drive: Drive) -> None:
    drive.tool = UpstreamTool((str(drive.directory / "gone"),))
    with pytest.raises(MachineError, match="could not be started"):
        drive("analyze").exit_status()


def test_a_hanging_upstream_is_stopped_with_its_tree(drive: Drive) -> None:
    outcome = drive("analyze", "hang", timeout_s=1.5)
    assert outcome.result.stopped and outcome.report is None
    with pytest.raises(AnswerIsNoError, match="it was stopped"):
        outcome.exit_status()


def test_its_workspace_is_told_and_its_output_passed_on_while_it_runs(drive: Drive, tmp_path: Path) -> None:
    outcomes: list[UpstreamOutcome] = []
    go = tmp_path / "go"
    thread = threading.Thread(target=lambda: outcomes.append(drive("analyze", "wait", STAND_IN_GO=str(go))))
    thread.start()
    deadline = time.monotonic() + 30
    while not (drive.told and b"Created" in drive.stderr.getvalue()):
        assert time.monotonic() < deadline and not outcomes
        time.sleep(0.01)
    go.touch()
    thread.join(60)
    assert outcomes[0].exit_status() == ExitCode.OK and drive.told == [outcomes[0].workspace]


def test_the_newest_new_workspace_is_taken_where_no_line_names_one(tmp_path: Path) -> None:
    output = tmp_path / "stdout.log"
    output.write_text("Workspace: \n", encoding="utf-8")
    for name in ("analyze_a_20260101_000000", "compare_20260103_000000", "analyze_b_20260102_000000", "other"):
        (tmp_path / "out" / name).mkdir(parents=True)
    before = existing_workspaces(tmp_path / "out", "analyze")
    assert find_workspace(output, tmp_path / "out", "analyze", before=before) is None
    for name in ("analyze_z_20260104_000000", "analyze_a_20260105_000000"):
        (tmp_path / "out" / name).mkdir()
    found = find_workspace(output, tmp_path / "out", "analyze", before=before)
    assert found is not None and found.name == "analyze_a_20260105_000000"
    assert existing_workspaces(tmp_path / "nowhere", "analyze") == frozenset()


def test_how_a_process_ended() -> None:
    def result(**changes: object) -> ChildResult:
        values: dict[str, object] = {"exit_code": None, "signal": None, "not_started": None, "stopped": False}
        values.update(changes)
        return ChildResult(
            command=("m",),
            timed_out=False,
            wall_s=0.0,
            stdout_path=Path("o"),
            stderr_path=Path("e"),
            **values,  # type: ignore[arg-type]
        )

    assert how_it_ended(result(exit_code=4)) == "it exited with status 4"
    assert how_it_ended(result(signal=9)) == "it was ended by signal 9"
    assert how_it_ended(result(not_started="no such file")) == "it did not start: no such file"
