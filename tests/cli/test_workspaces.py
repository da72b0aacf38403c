"""``magpie-tui workspaces`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from magpie_tui.cli.main import main
from tests.cli.in_process import run_main as magpie
from tests.conftest import PROJECT_ROOT
from tests.workspaces.samples import compile_failed_state, our_compare, put, upstream_benchmark

COMPARE = "compare_20260901_101500"
BENCHMARK = "benchmark_vllm_20260901_110000"
BROKEN = "analyze_x_20260902_000000"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "results"
    (root / COMPARE).mkdir(parents=True)
    our_compare().write(root / COMPARE)
    put(root / BENCHMARK / "benchmark_report.json", upstream_benchmark())
    (root / BROKEN).mkdir()
    (root / BROKEN / "analyze_report.json").write_text('{"mode": "ana', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return root


def test_the_list_is_newest_first(results: Path) -> None:
    done = magpie("workspaces", "list", cwd=results.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "time                 kind       name                                    status   headline\n"
        f"2026-09-02 00:00:00  analyze    results/{BROKEN}       damaged  "
        "damaged: analyze_report.json:1:14: the JSON text is truncated\n"
        f"2026-09-01 11:00:00  benchmark  results/{BENCHMARK}  ok       790 tok/s, TTFT p50 80.1 ms\n"
        f"2026-09-01 10:15:00  compare    results/{COMPARE}         ok       "
        "2 of 3 correct, winner fast +12.3 %\n"
    )


def test_a_cut_list_says_so(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["workspaces", "list", str(results), "--limit", "1", "--format", "csv"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("time,kind,name,status,headline\n2026-09-02")
    assert len(out.splitlines()) == 2
    assert err == "magpie-tui: 1 workspace of 3 shown (--limit 1)\n"


def test_the_list_as_json_fits_its_schema(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["workspaces", "list", str(results), "--kind", "compare", "--json"]) == 0
    value = json.loads(capfd.readouterr().out)
    schema = json.loads((PROJECT_ROOT / "docs/schemas/workspace_list.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(value, schema)
    assert [item["name"] for item in value["workspaces"]] == [COMPARE]


def test_nothing_to_list_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["workspaces", "list"]) == 0
    assert capfd.readouterr().out == "No workspaces below results.\n"
    assert main(["workspaces", "list", "nowhere"]) == 2
    assert "nowhere: there is no such directory" in capfd.readouterr().err


def test_a_comparison_is_shown(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["workspaces", "show", str(results / COMPARE)]) == 0
    out = capfd.readouterr().out
    lines = out.splitlines()
    assert "Result:     2 of 3 correct, winner fast +12.3 %" in lines
    assert lines[7:11] == [
        "#  kernel  state      median  rank  ratio (95 % interval)  verdict",
        "0  naive   correct    123 µs     2  1                      baseline",
        "1  fast    correct    123 µs     1  1.12 (1.11 … 1.13)     faster",
        "2  wrong   incorrect       -     -  -                      -",
    ]
    assert "  - wrong: element 7 differs by 0.5" in lines
    assert lines[-1] == f"Workspace: {results / COMPARE}"


def test_upstreams_untruth_is_named(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    workspace = results / "analyze_broken_20260903_000000"
    put(workspace / "analyze_report.json", {"mode": "analyze", "timestamp": "t", "results": [compile_failed_state()]})
    assert main(["workspaces", "show", str(workspace)]) == 0
    out = capfd.readouterr().out
    assert "broken: correctness: the report says SUCCESS, but the build failed, so this stage never ran" in out
    assert "Status:     failed" in out


def test_a_damaged_report_is_bad_input_and_still_shown(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["workspaces", "show", str(results / BROKEN)]) == 2
    out, err = capfd.readouterr()
    assert "analyze_report.json  13 B" in out
    assert err.strip().endswith("analyze_report.json:1:14: the JSON text is truncated")


def test_show_prints_json_and_other_forms(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["workspaces", "show", str(results / BENCHMARK), "--json"]) == 0
    value = json.loads(capfd.readouterr().out)
    assert value["report"]["throughput"]["output_throughput"] == 790.0
    assert value["damaged"] == []
    assert main(["workspaces", "show", str(results / COMPARE), "--format", "md"]) == 0
    assert capfd.readouterr().out.startswith("| index | kernel |")


def test_what_is_no_workspace_gets_names_nearby(results: Path) -> None:
    done = magpie("workspaces", "show", "results/compare_20260901_101501", cwd=results.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no such workspace" in done.stderr
    assert f"hint: workspaces in {results}: {COMPARE}" in done.stderr


def test_names_from_outside_cannot_steer_the_terminal(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    evil = upstream_benchmark(framework="\x1b[31mred", errors=["\x1b]0;title\x07[bold]x[/bold]"], success=False)
    put(results / BENCHMARK / "benchmark_report.json", evil)
    (results / BENCHMARK / "\x1b[2J").write_text("", encoding="utf-8")
    for arguments in (["list", str(results)], ["show", str(results / BENCHMARK)]):
        assert main(["workspaces", *arguments]) == 0
        out = capfd.readouterr().out
        assert "\x1b" not in out and "\x07" not in out
        assert "[bold]x[/bold]" in out


def test_two_workspaces_side_by_side_prove_nothing(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    later = results / "compare_20260903_000000"
    later.mkdir()
    our_compare().write(later)
    assert main(["workspaces", "diff", str(results / COMPARE), str(later)]) == 0
    out = capfd.readouterr().out
    assert "fast: median" in out and "+0.0 %" in out
    assert out.splitlines()[-1].startswith("indicative:")
    assert main(["workspaces", "diff", str(results / COMPARE), str(later), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["claim"] == "indicative"
    assert main(["workspaces", "diff", str(results / COMPARE), str(results / BENCHMARK)]) == 2
    assert "cannot be put side by side" in capfd.readouterr().err
