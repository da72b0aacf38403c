"""``magpie-tui campaign`` and ``recommend``: the smoke campaign runs for real."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.state import runs_of_steps
from tests.cli.in_process import run_main as magpie
from tests.process_helpers import wait_for

ROOT = Path(__file__).parents[2]


def shown(directory: Path) -> dict[str, Any]:
    done = magpie("campaign", "show", directory, "--json")
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def test_the_smoke_campaign_runs_to_its_end_also_when_it_is_killed(tmp_path: Path) -> None:
    directory = tmp_path / "smoke"
    assert magpie("campaign", "new", directory, "--template", "smoke").returncode == 0
    command = [sys.executable, "-m", "magpie_tui", "campaign", "next", str(directory), "--all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Workspace: "):
                process.send_signal(signal.SIGKILL)
                break
    campaign = load_campaign(directory)
    assert campaign.template == "smoke"  # whole, whatever it was doing
    # The killed walk's run notices the end of its reader; as long as it goes on, its step is not begun again.
    wait_for(lambda: all(run.is_over for run in runs_of_steps(campaign)), "the end of the run")
    done = magpie("campaign", "next", directory, "--all")
    assert done.returncode == 0, done.stdout + done.stderr
    steps = {step["key"]: step for step in shown(directory)["steps"]}
    assert [steps[key]["state"] for key in ("analyze", "candidates", "compare")] == ["done"] * 3
    assert "2 of 2 correct" in steps["compare"]["finding"]
    source = directory / "kernels" / "vector_add.cpp"
    source.write_text(source.read_text() + "\n// changed\n")
    states = {step["key"]: step["state"] for step in shown(directory)["steps"]}
    assert {key for key, state in states.items() if state == "stale"} == {"analyze", "candidates", "compare"}


def test_an_incorrect_kernel_ends_the_walk(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    magpie("campaign", "new", directory, "--template", "smoke")
    source = directory / "kernels" / "vector_add.cpp"
    source.write_text("int main() { return 1; }\n")
    done = magpie("campaign", "next", directory, "--all")
    assert done.returncode == 1
    assert "step 5" in done.stderr
    assert next(step for step in shown(directory)["steps"] if step["key"] == "analyze")["state"] == "failed"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("campaign", "show", "nowhere"), 2, "no campaign is here"),
        (("campaign", "new", "x", "--template", "waltz"), 2, "no template"),
        (("campaign", "new", "x", "--goal", "faster"), 2, "METRIC:PERCENT"),
        (("campaign", "new", "x", "--baseline", "missing.yaml"), 2, "no such config"),
        (("recommend", "nowhere"), 2, "nowhere"),
    ],
)
def test_wrong_input(tmp_path: Path, arguments: tuple[str, ...], status: int, words: str) -> None:
    done = magpie(*arguments, cwd=tmp_path)
    assert done.returncode == status
    assert words in done.stderr + done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_recommendation_from_a_recorded_trace(tmp_path: Path) -> None:
    trace = ROOT / "examples" / "traces" / "h200_eager_rank-0.pt.trace.json.gz"
    output = tmp_path / "pick.md"
    done = magpie("recommend", trace, "--repos", ROOT / "examples" / "traces", "--output", output, "--json")
    value = json.loads(done.stdout)
    assert value["stage"]["name"] in {"prefill", "decode", "prefilldecode"}
    assert value["recommended"] or value["rejected"]
    assert output.read_text().startswith("# Kernel to work on")
    assert done.returncode == (0 if value["recommended"] else 1)
