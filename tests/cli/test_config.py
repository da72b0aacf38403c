"""``magpie-tui config``: exit codes, bytes on stdout, JSON by its schemas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from tests.cli.in_process import run_main
from tests.conftest import PROJECT_ROOT

SCHEMAS = PROJECT_ROOT / "docs" / "schemas"
GOLDEN = PROJECT_ROOT / "tests" / "configs" / "golden"
BENCHMARKS = PROJECT_ROOT / "configs" / "benchmarks"


def config(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_main("config", *arguments, cwd=cwd, env={"MODEL_DIR": None, "HF_TOKEN": None, **environment})


def json_of(done: subprocess.CompletedProcess[str], schema: str) -> dict[str, object]:
    """Parse stdout and check it against a schema of the documentation."""
    value = json.loads(done.stdout)
    jsonschema.validate(value, json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))
    assert isinstance(value, dict)
    return value


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    (tmp_path / "a.cpp").write_text("int main() { return 0; }\n")
    path = tmp_path / "k.yaml"
    path.write_text(
        "kernel:\n  id: a\n  type: cpp\n  source_files: [a.cpp]\n  compile_command: sh -c 'exit 0'\n"
        "  testcase_command: sh -c 'exit 0'\n  env: {N: 1}\n"
    )
    return path


def test_check_prints_every_problem_and_exits_2(tmp_path: Path) -> None:
    done = config("check", "wrong_benchmark.yaml", cwd=GOLDEN)
    assert done.returncode == 2
    expected = (GOLDEN / "wrong_benchmark.txt").read_text()
    assert done.stdout == expected + "wrong_benchmark.yaml: 8 errors, 5 warnings (benchmark config)\n"
    assert done.stderr == ""


def test_check_of_good_files(kernel: Path) -> None:
    done = config("check", BENCHMARKS / "vllm_h200_clean.yaml", kernel, cwd=kernel.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == f"{BENCHMARKS}/vllm_h200_clean.yaml: ok (benchmark config, clean)"
    assert done.stdout.splitlines()[-1] == f"{kernel}: ok, 1 warning (kernel config, 1 kernel)"
    assert config("check", "--strict", kernel, cwd=kernel.parent).returncode == 2


def test_check_json(kernel: Path) -> None:
    done = config("check", kernel, "none.yaml", "--json", cwd=kernel.parent)
    assert (done.returncode, done.stderr) == (2, "")
    value = json_of(done, "config_check")
    files = value["files"]
    assert isinstance(files, list)
    assert [item["path"] for item in files] == [str(kernel), "none.yaml"]
    assert [item["problems"][0]["code"] for item in files] == ["env-not-text", "unreadable"]
    assert (files[0]["problems"][0]["line"], files[0]["problems"][0]["column"]) == (7, 12)


def test_check_kind_and_mode(kernel: Path) -> None:
    as_benchmark = config("check", "--kind", "benchmark", kernel, cwd=kernel.parent)
    assert as_benchmark.returncode == 2
    assert "unknown key kernel" in as_benchmark.stdout
    compare = config("check", "--mode", "compare", kernel, cwd=kernel.parent)
    assert "compare needs two kernels" in compare.stdout
    assert config("check", cwd=kernel.parent).returncode == 2
    assert config("check", "--kind", "nothing", kernel, cwd=kernel.parent).returncode == 2


def test_damaged_files_never_give_a_traceback(tmp_path: Path) -> None:
    contents = [b"", b"\x00\x01\x02", b"a: [", b"\xff\xfe", b"[" * 5000, b"- \t- x", b"&a [*a]"]
    for index, data in enumerate(contents):
        (tmp_path / f"{index}.yaml").write_bytes(data)
    done = config("check", *(f"{index}.yaml" for index in range(len(contents))), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "")
    for index in range(len(contents)):
        assert f"{index}.yaml:1:" in done.stdout
        assert f"{index}.yaml: " in done.stdout
    for command in ("show", "twin", "review"):
        done = config(command, "4.yaml", cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert "4.yaml:1:41" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_show_prints_values_and_origins(kernel: Path) -> None:
    done = config("show", "k.yaml", "--workers", "3", cwd=kernel.parent)
    assert done.returncode == 0, done.stderr
    rows = [line.split("  ") for line in done.stdout.splitlines()]
    text = done.stdout
    assert rows[0][0] == "key"
    assert '[["sh", "-c", "exit 0"]]' in text
    assert "k.yaml:5" in text
    assert "command line (--workers)" in text
    assert "warning" in done.stderr
    changed = config("show", "k.yaml", "--changed", cwd=kernel.parent).stdout
    assert "default" not in changed


def test_show_json(kernel: Path) -> None:
    value = json_of(config("show", kernel, "--json", "-e", "ray", cwd=kernel.parent), "config_show")
    settings = value["settings"]
    assert isinstance(settings, list)
    by_key = {item["key"]: item for item in settings}
    assert by_key["kernels[0].compile_command"]["value"] == [["sh", "-c", "exit 0"]]
    assert by_key["kernels[0].compile_command"]["origin"]["line"] == 5
    assert by_key["scheduler.environment"]["value"] == "ray"
    assert by_key["scheduler.environment"]["origin"]["kind"] == "command_line"
    changed = json_of(config("show", kernel, "--json", "--changed", cwd=kernel.parent), "config_show")
    assert isinstance(changed["settings"], list)
    assert {item["origin"]["kind"] for item in changed["settings"]} <= {"file", "derived"}


def test_show_takes_the_framework_config(kernel: Path) -> None:
    framework = kernel.with_name("f.yaml")
    framework.write_text("scheduler: {max_workers: 5}\n")
    done = config("show", "k.yaml", "-c", "f.yaml", cwd=kernel.parent)
    assert "framework config f.yaml:1" in done.stdout
    framework.write_text("scheduler: {maxworkers: 5}\n")
    wrong = config("show", "k.yaml", "-c", "f.yaml", cwd=kernel.parent)
    assert wrong.returncode == 2
    assert "did you mean max_workers?" in wrong.stderr


def test_diff(tmp_path: Path) -> None:
    pair = (BENCHMARKS / "vllm_h200_clean.yaml", BENCHMARKS / "vllm_h200_profiled.yaml")
    done = config("diff", *pair, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "profiler                         A      B",
        "profiler.torch_profiler.enabled  false  true",
        "profiler.tracelens.enabled       false  true",
    ]
    value = json_of(config("diff", *pair, "--json", cwd=tmp_path), "config_diff")
    assert value["equal"] is False
    assert config("diff", pair[0], pair[0], cwd=tmp_path).stdout == "no effective difference\n"


def test_twin(tmp_path: Path) -> None:
    path = tmp_path / "b.yaml"
    path.write_text("benchmark:\n  model: a/b  # mine\n")
    done = config("twin", "b.yaml", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["clean     out/b_clean.yaml", "profiled  out/b_profiled.yaml"]
    assert done.stdout.splitlines()[-1] == "nothing else differs"
    (tmp_path / "out" / "b_clean.yaml").write_text("mine")
    again = config("twin", "b.yaml", "-o", "out", cwd=tmp_path)
    assert again.returncode == 2
    assert (tmp_path / "out" / "b_clean.yaml").read_text() == "mine"
    forced = config("twin", "b.yaml", "-o", "out", "--force", "--json", cwd=tmp_path)
    assert json_of(forced, "config_twin")["keeps_comments"] is True


def test_new_lists_and_copies(tmp_path: Path) -> None:
    listing = config("new", "--json", cwd=tmp_path)
    names = [item["name"] for item in json.loads(listing.stdout)["configs"]]
    assert "kernels/hip_analyze" in names and "framework" in names
    copied = config("new", "hip_analyze", "-o", "mine/k.yaml", cwd=tmp_path)
    assert (copied.returncode, copied.stdout) == (0, "mine/k.yaml\nmine/vector_add.hip\n")
    assert config("check", "mine/k.yaml", cwd=tmp_path).returncode == 0
    again = config("new", "hip_analyze", "-o", "mine/k.yaml", cwd=tmp_path)
    assert again.returncode == 2
    assert "--force" in again.stderr
    assert config("new", "hip_analyze", "-o", "mine/k.yaml", "--force", cwd=tmp_path).returncode == 0
    unknown = config("new", "hip_analyse", cwd=tmp_path)
    assert unknown.returncode == 2
    assert "did you mean kernels/hip_analyze?" in unknown.stderr


def test_review_exit_codes(kernel: Path) -> None:
    good = config("review", kernel, "--json", cwd=kernel.parent)
    assert good.returncode == 0, good.stdout
    assert json_of(good, "config_review")["blockers"] == 0
    kernel.write_text(kernel.read_text().replace("compile_command: sh", "compile_command: no-such-compiler"))
    blocked = config("review", kernel, cwd=kernel.parent)
    assert blocked.returncode == 3
    assert "compiler no-such-compiler" in blocked.stdout
    assert blocked.stdout.splitlines()[-1] == "1 blocker"
    kernel.write_text("kernel: {source_files: [none]}\n")
    wrong = config("review", kernel, cwd=kernel.parent)
    assert wrong.returncode == 2
    assert "missing-source" in wrong.stdout


def test_light_modules_only(kernel: Path) -> None:
    code = (
        "import sys\n"
        "from magpie_tui.cli.main import main\n"
        f"status = main(['config', 'check', {str(kernel)!r}])\n"
        "print('loaded:', *sorted(sys.modules), file=sys.stderr)\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=kernel.parent,
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT)},
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.split("loaded:")[1].split())
    assert not loaded & {"numpy", "pandas", "pyarrow", "torch", "textual", "rich", "asyncio"}


def test_add(kernel: Path) -> None:
    place = kernel.parent
    done = config("add", "k.yaml", "--id", "b", "--kind", "flag", "--value", "-O3", cwd=place)
    assert done.returncode == 2 and "runs sh, whose line has to be changed by hand" in done.stderr
    done = config("add", "k.yaml", "--id", "b", "--from", "a", "--change", "one loop", cwd=place)
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[0], lines[1]) == (0, "k.yaml:10  b: one loop", f"to be changed: {place / 'a_b.cpp'}")
    assert "warning: compile_command does not name a.cpp" in done.stderr
    again = config("add", "k.yaml", "--id", "b", cwd=place)
    assert (again.returncode, again.stdout) == (2, "") and "there is a kernel b already" in again.stderr
    more = config("add", "k.yaml", "--id", "c", "--kind", "environment", "--value", "N=2", "--json", cwd=place)
    assert json_of(more, "config_add")["copy"] is None
    assert config("check", "k.yaml", cwd=place).returncode == 0
