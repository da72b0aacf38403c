"""Verification: what is stated is computed again, and one changed digit anywhere is named."""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from magpie_tui.campaigns import edit
from magpie_tui.campaigns.bundle_files import scrub, scrub_tree, write_bundle
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.steps import BY_KEY
from magpie_tui.campaigns.verify import verify
from magpie_tui.campaigns.verify_model import CheckState, agrees, compared
from magpie_tui.configs.benchmark import load_benchmark_config
from magpie_tui.serving.experiment import judge_experiment
from magpie_tui.serving.experiment_state import ExperimentPlan, start_state
from magpie_tui.serving.load.run import run_load
from magpie_tui.serving.metrics import summarize
from magpie_tui.serving.outcome import Findings, build_report, objectives_of, write_outcome
from magpie_tui.serving.profiling import analyse_traces
from magpie_tui.workspaces.record import RecordInputs, complete_record, start_record
from tests.conftest import PROJECT_ROOT
from tests.serving.stand_in import short_plan, stand_in

CONFIG = """\
framework: vllm
model: tiny
precision: auto
run_mode: local
envs: {TP: 1, CONC: 2, ISL: 8, OSL: 4}
gap_analysis: {enabled: true, top_k: 5}
profiler: {torch_profiler: {enabled: false}}
"""
TRACE = PROJECT_ROOT / "examples" / "traces" / "h200_eager_rank-0.pt.trace.json.gz"


def served(workspace: Path, url: str | None) -> Path:
    """A workspace of a real short load, or of a profiled run with a real trace where there is no server."""
    workspace.mkdir(parents=True)
    (workspace / "config.yaml").write_text(CONFIG)
    config = load_benchmark_config(workspace / "config.yaml")
    secret = {"HF_TOKEN": "hf_abcdefghijklmnopqrst", "HOME": str(Path.home())}
    record = start_record(workspace, RecordInputs("benchmark", {"model": "tiny"}, environment=secret))
    findings = Findings()
    if url is not None:
        findings.load = run_load(short_plan(url), workspace)
        findings.metrics = summarize(findings.load, objectives_of(config))
    else:
        (workspace / "torch_trace").mkdir()
        shutil.copy(TRACE, workspace / "torch_trace" / TRACE.name)
        findings.traces = analyse_traces(workspace, config)
    report, status, _ = build_report(config, workspace, findings, profiled=url is None)
    write_outcome(workspace, report, findings)
    names = ["requests.jsonl", "load.json"] if url is not None else []
    complete_record(workspace, record, status=status, samples=list(map(Path, names)), results=[Path("summary.txt")])
    return workspace


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One clean run, one profiled one, and an experiment of two pairs."""
    root = tmp_path_factory.mktemp("runs")
    with stand_in(root) as server:
        served(root / "benchmark_vllm_20261130_101500", server.url)
        experiment = root / "experiment_20261130_101700"
        experiment.mkdir()
        (root / "a.yaml").write_text(f"benchmark:\n{''.join(f'  {line}' for line in CONFIG.splitlines(True))}")
        start_state(
            experiment, ExperimentPlan(pairs=2), root / "a.yaml", root / "a.yaml", began_at="2026-11-30T10:17:00Z"
        )
        for name in ("pair_01_a", "pair_01_b", "pair_02_a", "pair_02_b"):
            served(experiment / name, server.url)
    judge_experiment(experiment)
    served(root / "benchmark_vllm_20261130_101600", None)
    return root


@pytest.fixture
def own(runs: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return shutil.copytree(runs, tmp_path / "own")


def changed_digit(path: Path, pattern: str) -> None:
    """Change the last digit of the first number that a pattern's first group matches."""
    text = path.read_text()
    match = re.search(pattern, text)
    assert match is not None, (path, pattern)
    number = match.group(1)
    place = match.start(1) + max(index for index, sign in enumerate(number) if sign.isdigit())
    path.write_text(text[:place] + str((int(text[place]) + 5) % 10) + text[place + 1 :])


@pytest.mark.parametrize(
    "name", ["benchmark_vllm_20261130_101500", "benchmark_vllm_20261130_101600", "experiment_20261130_101700"]
)
def test_what_is_stated_holds(runs: Path, name: str) -> None:
    found = verify(runs / name)
    assert found.differing == ()
    assert found.counts[CheckState.OK] >= 3


@pytest.mark.parametrize(
    ("file", "pattern", "named"),
    [
        ("benchmark_vllm_20261130_101500/requests.jsonl", r'"gaps_us":\[(\d+)', "requests.jsonl"),
        ("benchmark_vllm_20261130_101500/benchmark_report.json", r'"output_throughput": (\d\.\d\d|\d+)', "throughput"),
        ("benchmark_vllm_20261130_101500/benchmark_report.json", r'"median_ms": (\d+\.\d)', "latency"),
        ("benchmark_vllm_20261130_101500/inferencex_result.json", r'"completed": (\d+)', "completed"),
        ("benchmark_vllm_20261130_101500/record.json", r'"model": "tin(y)', "effective_config"),
        ("benchmark_vllm_20261130_101500/summary.txt", r"(\d+)", "summary.txt"),
        ("benchmark_vllm_20261130_101600/gap_analysis/gap_analysis.csv", r",(\d+),", "gap_analysis.csv"),
        ("benchmark_vllm_20261130_101600/benchmark_report.json", r'"calls": (\d+)', "calls"),
        ("experiment_20261130_101700/verdict.json", r'"ratio": (\d\.\d\d)', "verdict.ratio"),
        ("experiment_20261130_101700/pair_01_b/requests.jsonl", r'"first_content_s":(\d+\.\d\d)', "requests.jsonl"),
    ],
)
def test_one_changed_digit_is_named(own: Path, file: str, pattern: str, named: str) -> None:
    if pattern.endswith("tin(y)"):
        path = own / file
        path.write_text(path.read_text().replace('"model": "tiny"', '"model": "tinz"', 1))
    else:
        changed_digit(own / file, pattern)
    found = verify(own / file.partition("/")[0])
    assert any(named in f"{check.file} {check.key}" for check in found.differing), found.differing


def test_missing_raw_data_is_no_difference_but_said(own: Path) -> None:
    workspace = own / "benchmark_vllm_20261130_101500"
    (workspace / "requests.jsonl").unlink()
    found = verify(workspace)
    assert found.differing == ()
    assert any("no request rows" in (check.reason or "") for check in found.checks)


def repacked(bundle: Path, target: Path, change: Callable[[str, bytes], bytes]) -> Path:
    with tarfile.open(bundle) as old, tarfile.open(target, "w:gz") as new:
        for member in old:
            source = old.extractfile(member)
            assert source is not None
            data = change(member.name, source.read())
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    return target


def test_a_bundle_verifies_anywhere_and_holds_no_secret(own: Path, tmp_path: Path) -> None:
    campaign = edit.new_campaign(tmp_path / "one", template="full", name="one")
    for key, name in (("baseline", "benchmark_vllm_20261130_101500"), ("judge", "experiment_20261130_101700")):
        campaign = edit.link(campaign, BY_KEY[key], own / name, adopted=True)
    campaign = edit.add_note(campaign, BY_KEY["judge"], f"password: hunter22 in {Path.home()}/x")
    bundle = tmp_path / "one.tar.gz"
    assert write_bundle(load_campaign(campaign.directory), bundle, {"report.md": "# one\n"}) == {}
    shutil.rmtree(own)
    shutil.rmtree(campaign.directory)
    assert verify(bundle).differing == ()
    assert verify(bundle).counts[CheckState.OK] > 10
    with tarfile.open(bundle) as archive:
        texts = [file.read().decode() for member in archive if (file := archive.extractfile(member)) is not None]
    assert not any(str(Path.home()) in text or "hunter22" in text or "hf_abc" in text for text in texts)

    def change(name: str, data: bytes) -> bytes:
        return data.replace(b'"completed_requests": 6', b'"completed_requests": 7') if "baseline" in name else data

    found = verify(repacked(bundle, tmp_path / "changed.tar.gz", change))
    named = [f"{check.file} {check.key}" for check in found.differing]
    assert any("throughput.completed_requests" in text for text in named), named
    assert any("manifest.json" in text for text in named), named


def test_scrubbing_keeps_numbers() -> None:
    assert scrub_tree({"token": "abc", "api_token": 5, "list": ["--api-key", "x"]}) == {
        "token": "<redacted>",
        "api_token": 5,
        "list": ["--api-key", "<redacted>"],
    }
    assert scrub("HF_TOKEN: 12\n/home/ann/x token=abcdef\n") == "HF_TOKEN: 12\n/home/<redacted>/x token=<redacted>\n"


def test_leaves_are_compared_by_name_and_to_the_last_digits() -> None:
    checks = list(
        compared("f", "k", {"a": [1.0, 2], "b": None, "p": "x"}, {"a": [1.0 + 1e-12, 3], "c": 4, "p": "y"}, skip=["p"])
    )
    assert [(check.key, check.state.value) for check in checks if check.state is CheckState.DIFFERS] == [
        ("k.a[1]", "differs"),
        ("k.c", "differs"),
    ]
    assert not agrees(True, 1)
    assert json.loads(json.dumps(checks[0].to_json()))["stated"] == 2
