"""The walkthrough's command lines, with ``magpie`` replaced by ``magpie-tui``, run to the letter and in its order.

What needs a GPU or Docker is named: the smoke line compiles HIP, and the server of the benchmarks is a stand-in here
(with the arguments, the protocol and the traces of vLLM); ``make test-serving`` runs a real one.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from magpie_tui.campaigns import edit
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.steps import BY_KEY
from tests.campaigns.test_configure import checkout
from tests.cli.kernel_helpers import EXAMPLES, Finished, magpie, write_config
from tests.conftest import PROJECT_ROOT
from tests.serving import fake_engine

RESULTS = "--output-dir ./results/walkthrough"
LINES = {
    "gpus": "magpie --gpu-info",
    "clean": f"magpie benchmark --benchmark-config <clean-benchmark-config> {RESULTS}-benchmark-baseline",
    "profiled": f"magpie benchmark --benchmark-config <profiled-benchmark-config> {RESULTS}-benchmark-profiled",
    "tables": "find <profiled-workspace>/tracelens -name '*_kernel_roofline_simple.csv' -print",
    "sources": "magpie benchmark --trace-dir <profiled-workspace>/torch_trace --start-pct 20 --end-pct 80 --top-k 20 "
    "--find-kernel-sources --kernel-source-repos <framework-repo> <rocm-library-repo>",
    "baseline": f"magpie analyze --kernel-config <baseline-kernel-config> {RESULTS}-kernel-baseline",
    "a": f"magpie analyze --kernel-config <candidate-a-config> {RESULTS}-candidate-a",
    "b": f"magpie analyze --kernel-config <candidate-b-config> {RESULTS}-candidate-b",
    "compare": f"magpie compare --kernel-config <compare-config> --baseline 0 {RESULTS}-kernel-compare",
    "optimized": f"magpie benchmark --benchmark-config <optimized-clean-config> {RESULTS}-benchmark-optimized",
    "smoke": "magpie analyze --kernel-config examples/simple_hip_test/analyze_default.yaml --no-perf "
    f"{RESULTS}-smoke-test",
}
"""All lines of the walkthrough that are about us, in its order."""


def test_no_line_of_the_walkthrough_is_missing() -> None:
    data = os.environ.get("MAGPIE_TUI_DATA")
    texts = sorted(Path(data).parent.glob("seed/*.md")) if data else []
    if not texts:
        pytest.skip("the walkthrough is not here")
    found = set()
    for text in texts:
        for block in re.findall(r"^```bash\n(.*?)^```", text.read_text(), re.M | re.S):
            lines = block.replace("\\\n", " ").splitlines()
            found |= {" ".join(shlex.split(line)) for line in lines if line.startswith(("magpie ", "find "))}
    assert found == {" ".join(shlex.split(line)) for line in LINES.values()}


class Walk:
    """A directory with the files that the walkthrough's placeholders stand for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        entry = {"type": "cpp", "testcase_command": "true"}
        kernel = write_config(root, {"id": "baseline", **entry}).rename(root / "kernel.yaml")
        both = write_config(root, {"id": "baseline", **entry}, {"id": "candidate_a", **entry})
        environment = fake_engine.make_environment(root / "environment")
        clean = fake_engine.write_config(root, environment).rename(root / "clean.yaml")
        profiled = yaml.safe_load(clean.read_text())
        profiled["benchmark"]["profiler"] = {
            "torch_profiler": {"enabled": True},
            "tracelens": {
                "enabled": True, "analysis_mode": "inference", "analysis_stages": "all", "export_format": "csv"
            },
        }  # fmt: skip
        (root / "profiled.yaml").write_text(yaml.safe_dump(profiled))
        self.stands_for = {
            "<clean-benchmark-config>": "clean.yaml",
            "<profiled-benchmark-config>": "profiled.yaml",
            "<optimized-clean-config>": "clean.yaml",
            "<framework-repo>": str(PROJECT_ROOT / "examples" / "pytorch_rmsnorm"),
            "<rocm-library-repo>": str(PROJECT_ROOT / "examples" / "cpp_vector_add"),
            "<compare-config>": both.name,
            **dict.fromkeys(("<baseline-kernel-config>", "<candidate-a-config>", "<candidate-b-config>"), kernel.name),
        }

    def words(self, name: str) -> list[str]:
        """The words of a line, its placeholders filled in."""
        line = LINES[name]
        for placeholder, value in self.stands_for.items():
            line = line.replace(placeholder, shlex.quote(value))
        assert "<" not in line, line
        return shlex.split(line)

    def run(self, name: str) -> Finished:
        """Run one line as ``magpie-tui``."""
        program, *words = self.words(name)
        assert program == "magpie"
        return magpie(*words, cwd=self.root)

    def workspace(self, name: str, kind: str) -> Path:
        """Run a line; its workspace is where the walkthrough says, with the report in it."""
        done = self.run(name)
        assert done.status == 0, done
        base = self.root / self.words(name)[-1]
        assert done.workspace.parent == base
        assert done.workspace.name.startswith(f"{kind}_")
        assert (done.workspace / f"{kind}_report.json").is_file()
        return done.workspace


def test_the_kernels_part(tmp_path: Path) -> None:
    walk = Walk(tmp_path)
    assert walk.run("gpus").status == 0
    for name in ("baseline", "a", "b"):
        walk.workspace(name, "analyze")
    walk.workspace("compare", "compare")
    assert sorted(path.name for path in (tmp_path / "results").iterdir() if path.name != ".magpie-tui") == [
        "walkthrough-candidate-a",
        "walkthrough-candidate-b",
        "walkthrough-kernel-baseline",
        "walkthrough-kernel-compare",
    ]


def test_the_serving_part(tmp_path: Path) -> None:
    walk = Walk(tmp_path)
    clean = walk.workspace("clean", "benchmark")
    profiled = walk.workspace("profiled", "benchmark")
    walk.stands_for["<profiled-workspace>"] = str(profiled)
    tables = subprocess.run(walk.words("tables"), capture_output=True, text=True, check=True).stdout.split()
    assert tables, "compact roofline summaries"
    shutil.rmtree(profiled / "gap_analysis", ignore_errors=True)
    sources = walk.run("sources")
    assert sources.status == 0, sources
    assert (profiled / "gap_analysis" / "gap_analysis.csv").is_file()
    header = next(
        line for line in (profiled / "gap_analysis" / "gap_analysis.csv").read_text().splitlines() if "Name" in line
    )
    assert {"source_file", "test_file", "test_cmd"} <= set(header.split(","))
    walk.workspace("optimized", "benchmark")
    the_campaign_ends_headless(walk, clean, profiled)


def the_campaign_ends_headless(walk: Walk, clean: Path, profiled: Path) -> None:
    """The same work as one campaign, from results that are there to a verdict; nobody is at a terminal."""
    config = yaml.safe_load((walk.root / "clean.yaml").read_text())
    config["benchmark"]["envs"]["MY_KERNEL"] = 1
    (walk.root / "optimized.yaml").write_text(yaml.safe_dump(config))
    checkout(walk.root / "repo")
    own = {name: str(walk.root / name.lower()) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    for name in own.values():
        Path(name).mkdir()
    triton = Path(own["HOME"]) / ".triton" / "cache"
    triton.mkdir(parents=True)

    def campaign(*words: object) -> Finished:
        done = magpie("campaign", *words, cwd=walk.root, env=own)
        assert done.status == 0, done
        return done

    campaign("new", "one", "--baseline", "clean.yaml", "--profiled", "profiled.yaml", "--goal", "output_throughput:3")
    for step, workspace in (("baseline", clean), ("twin", profiled)):
        edit.link(load_campaign(walk.root / "one"), BY_KEY[step], workspace, adopted=True)
    campaign("config", "one", "--kernel", "rms_norm_kernel", "--repos", "repo", "--test-seconds", "0")
    for step in ("analyze", "candidates", "compare"):
        edit.skip(load_campaign(walk.root / "one"), BY_KEY[step], "no GPU here")
    campaign("set", "one", "--integration", "environment=MY_KERNEL", "--optimized", "optimized.yaml", "--pairs", "1")
    said = campaign("next", "one", "--all").stderr
    assert f"moved aside: {triton}" in said and not triton.exists()
    shown = json.loads(campaign("show", "one", "--json").stdout)
    settled = {"done", "adopted", "skipped"}
    assert [step["state"] for step in shown["steps"] if step["state"] not in settled] == []
    assert shown["goal"]["judged"], "the goal is judged"
    campaign("report", "one", "-o", "report.html", "--format", "html")
    campaign("caches", "one", "--restore")
    assert triton.is_dir()


def test_the_smoke_line_works_or_names_what_is_missing(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "simple_hip_test", tmp_path / "examples" / "simple_hip_test")
    done = magpie(*shlex.split(LINES["smoke"])[1:], cwd=tmp_path)
    if shutil.which("hipcc") is None:
        assert done.status == 3
        assert "hipcc is not installed" in done.stderr
    elif done.status == 3:
        assert "there is no AMD GPU here" in done.stderr
    else:
        assert done.status == 0, done
        log = done.workspace / "logs" / "vector_add" / "testcase_1.stdout"
        assert log.read_text() == "PASSED: All 1024 elements correct.\n"
