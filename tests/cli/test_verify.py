"""``verify``, ``campaign config|diff|report|show`` : exit statuses and JSON that follows its schemas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.campaigns import edit
from magpie_tui.campaigns.steps import BY_KEY
from magpie_tui.campaigns.verify import verify
from magpie_tui.campaigns.verify_model import Check, CheckState, Verification
from magpie_tui.cli.verify import verify_lines
from tests.campaigns.test_configure import TRACE, checkout
from tests.cli.kernel_helpers import follow_schema, magpie


def test_a_campaign_from_its_kernel_to_a_verified_bundle(tmp_path: Path) -> None:
    edit.new_campaign(tmp_path / "one", template="full")
    checkout(tmp_path / "repo")
    done = magpie(
        *("campaign", "config", "one", "--kernel", "rms_norm_kernel", "--repos", "repo", "--trace", TRACE),
        *("--test-seconds", "0", "--json"),
        cwd=tmp_path,
    )
    assert done.status == 0, done.stderr
    follow_schema(json.loads(done.stdout), "campaign_config")
    shown = json.loads(magpie("campaign", "show", "one", "--json", cwd=tmp_path).stdout)
    follow_schema(shown, "campaign")
    assert shown["changes"] == {"a": {"added": 0, "removed": 0, "of": "source"}}
    changes = json.loads(magpie("campaign", "diff", "one", "a", "--json", cwd=tmp_path).stdout)
    follow_schema(changes, "campaign_diff")
    assert '+  id: "candidate_a"' in changes["candidates"]["a"]
    words = ("--format", "html", "-o", "r.html", "--bundle", "b.tar.gz", "--json")
    report = magpie("campaign", "report", "one", *words, cwd=tmp_path)
    assert report.status == 0, report.stderr
    told = json.loads(report.stdout)
    follow_schema(told, "campaign_report")
    assert (told["report"], told["verification"]["differs"]) == ("r.html", 0)
    assert "1 ok, 0 differs" in (tmp_path / "r.html").read_text()
    checked = magpie("verify", "b.tar.gz", "--json", cwd=tmp_path)
    assert checked.status == 0, checked.stdout
    follow_schema(json.loads(checked.stdout), "verify")


def test_caches_are_listed_moved_and_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME"):  # nobody's own caches are touched
        (tmp_path / name.lower()).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    (tmp_path / "triton").mkdir()
    (tmp_path / "clean.yaml").write_text(
        "benchmark: {framework: vllm, model: m, run_mode: local, envs: {TORCHINDUCTOR_CACHE_DIR: none}}\n"
    )
    edit.new_campaign(tmp_path / "one", template="full", files={"baseline": tmp_path / "clean.yaml"})
    for words, is_there in (((), True), (("--aside",), False), (("--restore",), True)):
        done = magpie("campaign", "caches", "one", *words, "--json", cwd=tmp_path)
        assert done.status == 0, done.stderr
        told = json.loads(done.stdout)
        follow_schema(told, "campaign_caches")
        assert (tmp_path / "triton").is_dir() is is_there
        assert (str(tmp_path / "triton") in told["done"]) is bool(words)
    done = magpie("campaign", "caches", "one", "--aside", "--restore", cwd=tmp_path)
    assert (done.status, done.stdout) == (2, "")
    assert "B: the optimized config is not named" in told["notes"]


def test_what_differs_ends_with_one(tmp_path: Path) -> None:
    campaign = edit.new_campaign(tmp_path / "one", template="full")
    decision = {"kernel": "rms_norm_kernel", "share_pct": 9.0, "stage": "decode", "trace": str(TRACE)}
    edit.decide(campaign, BY_KEY["kernels"], decision)
    done = magpie("verify", "one", cwd=tmp_path)
    assert done.status == 1
    assert "DIFFERS  campaign.yaml  steps.kernels.decision.share_pct: stated 9.0, recomputed 6.62" in done.stdout


def test_wrong_input(tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_text("no archive")
    for path, words in (("nowhere", "nothing is there"), (".", "no workspace"), ("x.gz", "no bundle")):
        with pytest.raises(UserInputError, match=words):
            verify(tmp_path / path)
    done = magpie("verify", "x.gz", cwd=tmp_path)
    assert (done.status, done.stdout) == (2, "")


def test_unchanged_files_take_one_line_that_counts_them() -> None:
    keys = ("sha256", "files: a.py", "files: b.py", "verdicts")
    checks = tuple(Check("record.json", key, CheckState.OK) for key in keys)
    told = list(verify_lines(Verification(Path("w"), "compare", checks)))
    assert told[1] == "ok       record.json  2 files as recorded" and len(told) == 4
    assert told[-1] == "compare w: 4 ok, 0 differs, 0 cannot"
