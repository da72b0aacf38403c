"""``magpie-tui analyze``: states, exit codes, reports, logs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.kernel_helpers import EXAMPLES, Finished, magpie, magpie_process, skip_without_torch, write_config


def program(command: list[str], **more: object) -> dict[str, object]:
    """Return the entry of a program without a source."""
    return {"id": "k", "type": "cpp", "testcase_command": command} | more


def test_a_program_that_its_testcase_proves(tmp_path: Path) -> None:
    done = magpie_process("analyze", "-k", EXAMPLES / "cpp_vector_add" / "analyze.yaml", "-o", "out", cwd=tmp_path)
    assert done.status == 0, done
    for line in (
        "Kernel: vector_add",
        "Type: CPP",
        "Compiling: SUCCESS",
        "Correctness: SUCCESS",
        "Performance: SKIPPED",
    ):
        assert line in done.stdout.splitlines()
    assert "State: correct (proved by testcase)" in done.stdout
    assert done.workspace.parent == tmp_path / "out"
    (state,) = done.report("analyze")["results"]
    gate = state["magpie_tui"]["gate"]
    assert (state["score"], gate["proof"]) == (1.0, "testcase")
    checks = {check["id"]: check for check in gate["checks"]}
    assert checks["testcase"]["status"] == "pass"
    assert all(checks[f"G{n}"]["status"] == "not_run" and checks[f"G{n}"]["reason"] for n in range(2, 16))
    assert "PASSED: All 1024 elements correct." in (done.workspace / "logs/vector_add/testcase_1.stdout").read_text()
    assert {"config.yaml", "record.json", "performance"} <= {path.name for path in done.workspace.iterdir()}
    assert json.loads((done.workspace / "record.json").read_text())["status"] == "ended"


ENDS = {
    "wrong": (["sh", "-c", "echo PASSED; echo it is wrong >&2; exit 3"], "incorrect", "it is wrong"),
    "crashing": (["sh", "-c", "kill -SEGV $$"], "crashed", "SIGSEGV"),
    "hanging": (["sleep", "600"], "timeout", "stopped after 1 s"),
    "absent": (["./not_there"], "invalid", "could not be started"),
    "lacking": (["no-such-compiler-here", "x"], "skipped", "no-such-compiler-here is not installed"),
    "right": (["true"], "correct", ""),
}
"""Testcase commands, the state they lead to, and what the first error says."""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """All of ``ENDS`` in one run, with a build that fails and a kernel that nothing proves."""
    place = tmp_path_factory.mktemp("ended")
    (place / "kernel.py").write_text("class Model: pass\n")
    entries = [
        program(command, id=name, timeout_seconds=1 if word == "timeout" else 60)
        for name, (command, word, _text) in ENDS.items()
    ]
    failing = ["sh", "-c", "echo error: no such thing >&2; exit 1"]
    entries.append(program(["true"], id="unbuilt", compile_command=failing))
    entries.append({"id": "unproved", "type": "pytorch", "source_files": ["kernel.py"]})
    done = magpie("analyze", "-k", write_config(place, *entries), "--quick", "-o", "out", cwd=place)
    assert done.status == 1, done
    return done


@pytest.fixture(scope="module")
def states(ended: Finished) -> dict[str, Any]:
    """The state of each kernel of ``ended``, by its id."""
    return {state["extra"]["kernel_id"]: state for state in ended.report("analyze")["results"]}


@pytest.mark.parametrize("name", ENDS)
def test_testcases_have_states_of_their_own_and_hide_no_other(
    ended: Finished, states: dict[str, Any], name: str
) -> None:
    _command, word, text = ENDS[name]
    state = states[name]
    assert state["magpie_tui"]["state"] == word
    assert text in "".join(state["errors"][:1])
    failed = "SUCCESS" if word == "correct" else "SKIPPED" if word in ("invalid", "skipped") else "FAILED"
    assert state["correctness_state"] == failed
    assert state["performance_state"] == "SKIPPED"
    assert state["score"] == (1.0 if word == "correct" else 0.0)
    assert text in ended.stdout


def test_a_compile_failure_is_no_correctness(ended: Finished, states: dict[str, Any]) -> None:
    state = states["unbuilt"]
    assert (state["compiling_state"], state["correctness_state"]) == ("FAILED", "SKIPPED")
    assert (state["compiling_result"]["success"], state["correctness_result"]) == (False, None)
    assert "error: no such thing" in ended.stdout


def test_without_testcase_and_reference_nothing_is_proved(ended: Finished, states: dict[str, Any]) -> None:
    state = states["unproved"]
    assert (state["correctness_state"], state["magpie_tui"]["state"]) == ("SKIPPED", "skipped")
    assert "nothing establishes" in ended.stdout


def test_a_missing_compiler_is_named_before_anything_is_created(tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    config = EXAMPLES / "simple_hip_test" / "analyze_default.yaml"
    environment = {"PATH": str(empty), "ROCM_PATH": str(empty)}
    done = magpie("analyze", "--kernel-config", config, "--no-perf", "-o", "out", cwd=tmp_path, env=environment)
    assert (done.status, done.stdout) == (3, "")
    assert "hipcc is not installed" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["kernel.hip"], "--testcase is required for analyze mode"),
        ([], "there is nothing to judge"),
        (["-k", "missing.yaml"], "missing.yaml"),
        (["missing.hip"], "not there"),
        (["-k", "kernels.yaml", "-e", "container"], "this machine only"),
        (["-k", "kernels.yaml", "--type", "fortran"], "fortran"),
    ],
)
def test_wrong_arguments_are_bad_input(tmp_path: Path, arguments: list[str], text: str) -> None:
    write_config(tmp_path, program(["true"]))
    (tmp_path / "kernel.hip").write_text("")
    done = magpie("analyze", *arguments, cwd=tmp_path)
    assert (done.status, done.stdout) == (2, "")
    assert text in done.stderr
    assert not (tmp_path / "results").exists()


def test_kernels_from_the_command_line_and_json_is_the_report_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "one.cpp").write_text("int main() { return 0; }\n")
    arguments = ["one.cpp", "--type", "cpp", "-t", "./one", "--compile-cmd", "g++ -o one one.cpp", "--no-perf"]
    done = magpie("analyze", *arguments, "--no-latency", "--json", "-o", "out", cwd=tmp_path)
    assert done.status == 0, done
    assert json.loads(done.stdout)["mode"] == "analyze"
    assert [path.name[:12] for path in (tmp_path / "out").glob("analyze*")] == ["analyze_one_"]


def test_programs_run_without_the_scientific_packages(tmp_path: Path) -> None:
    hiding = tmp_path / "hiding"
    hiding.mkdir()
    (hiding / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('pandas', 'pyarrow', 'textual', 'watchfiles', 'torch', 'scipy'):\n"
        "            raise ModuleNotFoundError(f'hidden: {name}', name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    from tests.conftest import PROJECT_ROOT

    environment = {"PYTHONPATH": f"{hiding}:{PROJECT_ROOT}"}
    config = write_config(tmp_path, program(["true"]), program(["true"], id="k2"))
    for mode in ("analyze", "compare"):
        done = magpie_process(mode, "-k", config, "-o", "out", cwd=tmp_path, env=environment)
        assert done.status == 0, done
    entry = {"id": "k", "type": "pytorch", "source_files": ["k.py"], "reference": "k.py:Model"}
    (tmp_path / "k.py").write_text("class Model: pass\n")
    done = magpie_process("analyze", "-k", write_config(tmp_path, entry), "-o", "out", cwd=tmp_path, env=environment)
    assert done.status == 3
    assert "has no torch" in done.stderr


@pytest.mark.torch
def test_a_callable_against_its_reference_is_timed(tmp_path: Path) -> None:
    skip_without_torch()
    shutil.copytree(EXAMPLES / "pytorch_softmax", tmp_path / "example")
    steps = tmp_path / "example" / "softmax_steps.py"
    steps.write_text(steps.read_text().replace("ROWS, WIDTH = 64, 4096", "ROWS, WIDTH = 8, 512"))
    config = tmp_path / "example" / "analyze.yaml"
    done = magpie("analyze", "-k", config, "--quick", "--budget", "0.5", "-o", "out", "--seed", "3", cwd=tmp_path)
    assert done.status == 0, done
    (state,) = done.report("analyze")["results"]
    timing = state["magpie_tui"]["timing"]
    assert (timing["quantity"], timing["cache"] in ("warm", "cold")) == ("call_time", True)
    assert timing["replicates"] >= 5
    assert 0 < timing["spread_us"]["min"] <= timing["median_us"] <= timing["spread_us"]["max"]
    rows = [json.loads(line) for line in (done.workspace / "samples.jsonl").read_text().splitlines()]
    timed = [row for row in rows if row["part"] == "timed"]
    assert len(timed) == timing["windows"]
    assert all(row["seen_ended_ns"] >= row["ended_ns"] > row["started_ns"] for row in timed)
    record = json.loads((done.workspace / "record.json").read_text())
    assert record["seeds"]["run"] == 3
    assert [item["path"] for item in record["samples"]] == ["samples.jsonl"]
