"""``magpie-tui compare``: who is judged, who is timed, who wins, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.campaigns.verify import verify
from magpie_tui.cli.compare import exit_code
from magpie_tui.kernels.verifying import recompute
from magpie_tui.workspaces.reports import CompareReport
from tests.cli.kernel_helpers import EXAMPLES, magpie, skip_without_torch, write_config

BASE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        y = x
        for _ in range(6):
            y = y + x
        return y
def get_inputs(): return [torch.randn(64, 64)]
"""
FAST = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x * 7\n"
WRONG = FAST.replace("x * 7", "x * 8")
LATE = """
import torch
class Model(torch.nn.Module):
    calls = 0
    def forward(self, x):
        self.calls += 1
        return x * (7 if self.calls < 60 else 8)
"""


def callables(directory: Path, **sources: str) -> Path:
    """Write kernels and their config."""
    entries = []
    for name, source in sources.items():
        (directory / f"{name}.py").write_text(source)
        entries.append({"id": name, "type": "pytorch", "source_files": [f"{name}.py"]})
    return write_config(directory, *entries)


def words(report: Any) -> dict[str, str]:
    """Return kernel id to state."""
    states = report["results"]["kernel_results"]
    return {state["extra"]["kernel_id"]: state["magpie_tui"]["state"] for state in states}


@pytest.mark.torch
def test_only_correct_kernels_are_timed_and_ranked(tmp_path: Path) -> None:
    skip_without_torch()
    config = callables(tmp_path, base=BASE, fast=FAST, wrong=WRONG, late=LATE)
    arguments = ["--baseline", "base", "--quick", "--budget", "0.5", "-o", "out"]
    done = magpie("compare", "-k", config, *arguments, cwd=tmp_path)
    assert done.status == 0, done
    report = done.report("compare")
    assert words(report) == {"base": "correct", "fast": "correct", "wrong": "incorrect", "late": "incorrect"}
    results = report["results"]
    scores = results["comparison_metrics"]["perf_scores"]
    assert results["comparison_metrics"]["correctness"] == [True, True, False, False]
    assert scores[2:] == [None, None]
    verdict = results["kernel_results"][1]["magpie_tui"]["verdict"]
    ranked = {index for index, _ratio in results["rankings"]}
    if verdict["word"] in ("invalid", "suspect"):  # on a machine too busy to time anything
        assert (ranked, scores[:2]) == (set(), [None, None])
    else:
        assert scores[0] == 1.0 and scores[1] > 0
        assert ranked == {0, 1}
    assert results["winner"] in (None, 1)
    if results["winner"] == 1:
        assert verdict["word"] == "faster"
        assert verdict["confirmed_low"] > 1.0
    late = results["kernel_results"][3]
    assert "wrong when timed" in late["errors"][0] or "wrong later" in late["errors"][0]
    rows = [json.loads(line) for line in (done.workspace / "samples.jsonl").read_text().splitlines()]
    assert {row["kernel"] for row in rows} <= {"base", "fast", "late"}
    assert any(row["control"] for row in rows)
    assert report["magpie_tui"]["baseline"] == 0
    assert all(row["kernel"] == "base" for row in rows if row["control"])
    computed = recompute(done.workspace)
    assert {item.name for item in computed} >= {"winner", "fast: verdict", "fast: ratio_low", "base: median_us"}
    assert all(item.agrees for item in computed), [item for item in computed if not item.agrees]
    verified = verify(done.workspace)
    assert verified.differing == ()
    report_path, path = done.workspace / "compare_report.json", done.workspace / "samples.jsonl"
    stated = report_path.read_text()
    median = next(item.stated for item in computed if item.name == "fast: median_us")
    assert isinstance(median, float)
    report_path.write_text(stated.replace(str(median), str(median * 1.5)))
    named = {check.key for check in verify(done.workspace).differing}
    assert "fast: median_us" in named and any(key.startswith("sha256") for key in named), named
    report_path.write_text(stated)
    path.write_text(path.read_text().replace('"repeats": ', '"repeats": 1'))
    assert any(check.file == "samples.jsonl" for check in verify(done.workspace).differing)
    assert not all(item.agrees for item in recompute(done.workspace)), "rows that were changed are noticed"


def test_no_correct_candidate_is_a_no(tmp_path: Path) -> None:
    entries = [{"id": name, "type": "cpp", "testcase_command": [name]} for name in ("true", "false")]
    done = magpie("compare", "-k", write_config(tmp_path, *entries), "--quick", "-o", "out", cwd=tmp_path)
    assert done.status == 1
    results = done.report("compare")["results"]
    assert (results["winner"], results["rankings"]) == (None, [])
    assert "No winner: no correct candidate" in done.stdout
    assert not (done.workspace / "samples.jsonl").exists()


def test_the_smoke_pair_is_correct_and_has_no_winner(tmp_path: Path) -> None:
    config = EXAMPLES / "cpp_vector_add" / "compare_o2_o3.yaml"
    arguments = ["--baseline", "0", "--quick", "--fail-on", "no_winner", "-o", "out"]
    done = magpie("compare", "-k", config, *arguments, cwd=tmp_path)
    assert done.status == 1, done
    report = done.report("compare")
    assert report["results"]["comparison_metrics"] == {
        "correctness": [True, True],
        "all_correct": True,
        "perf_scores": [None, None],
    }
    assert (report["results"]["winner"], report["results"]["rankings"]) == (None, [])
    assert report["magpie_tui"]["reason"] == "no_performance_data"
    assert "COMPARISON RESULTS" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--baseline", "7"], "0 = a, 1 = b"),
        (["--baseline", "c"], "there is no such kernel"),
        (["--fail-on", "slowr"], "did you mean slower?"),
    ],
)
def test_wrong_arguments_are_bad_input(tmp_path: Path, arguments: list[str], text: str) -> None:
    entry = {"type": "cpp", "testcase_command": ["true"]}
    config = write_config(tmp_path, {"id": "a", **entry}, {"id": "b", **entry})
    done = magpie("compare", "-k", config, *arguments, cwd=tmp_path)
    assert (done.status, done.stdout) == (2, "")
    assert text in done.stderr


def test_one_kernel_is_no_comparison(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"id": "a", "type": "cpp", "testcase_command": ["true"]})
    done = magpie("compare", "-k", config, cwd=tmp_path)
    assert done.status == 2
    assert "at least two kernels" in done.stderr


def state(word: str, verdict: str | None = None) -> dict[str, Any]:
    """Return a kernel's state as a report holds it."""
    correct = word == "correct"
    return {
        "correctness_state": "SUCCESS" if correct else "FAILED",
        "correctness_result": {"success": correct, "errors": []},
        "magpie_tui": {"state": word, "verdict": None if verdict is None else {"word": verdict}},
    }


@pytest.mark.parametrize(
    ("states", "fail_on", "status", "winner"),
    [
        ([state("correct"), state("correct", "faster")], (), 0, 1),
        ([state("correct"), state("correct", "inconclusive")], (), 0, 1),
        ([state("correct"), state("correct", "inconclusive")], ("inconclusive",), 1, 1),
        ([state("correct"), state("correct", "inconclusive")], ("no_winner",), 1, None),
        ([state("correct"), state("correct", "inconclusive")], (), 0, None),
        ([state("correct"), state("correct", "slower")], ("inconclusive",), 0, 1),
        ([state("correct"), state("correct", "faster"), state("incorrect")], (), 0, 1),
        ([state("correct"), state("correct", "faster"), state("incorrect")], ("incorrect",), 1, 1),
        ([state("incorrect"), state("correct")], (), 1, 1),
        ([state("correct"), state("incorrect")], (), 1, 1),
    ],
)
def test_exit_status(states: list[dict[str, Any]], fail_on: tuple[str, ...], status: int, winner: int | None) -> None:
    report = CompareReport.from_json({"mode": "compare", "results": {"kernel_results": states, "winner": winner}})
    assert exit_code(report, 0, fail_on) == status
