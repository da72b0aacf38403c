"""The end-to-end verdict: its error rates, and every rule that changes a word."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.serving.verdict import judge_workspaces
from magpie_tui.serving.verdict_comparability import declared_changes
from magpie_tui.serving.verdict_model import Fact, Pair, ServingVerdict
from magpie_tui.serving.verdict_reading import pair_up
from magpie_tui.serving.verdict_rule import Question, Twins, decide, interim_text
from magpie_tui.serving.verdict_text import markdown, verdict_json
from tests.serving.simulated_runs import served_run, simulated_verdict, steady_pairs, twin


def test_an_unchanged_system_is_seldom_called_improved() -> None:
    words = Counter(simulated_verdict(seed, 0.0).word for seed in range(400))
    assert words["improved"] + words["improved_with_regression"] <= 28, words
    assert words["regressed"] <= 28, words


def test_three_percent_are_found() -> None:
    words = Counter(simulated_verdict(seed, 0.03).word for seed in range(200))
    assert words["improved"] + words["improved_with_regression"] >= 0.85 * 200, words


def _word(pairs: list[Pair], **settings: Any) -> str:
    question = Question(planned=len(pairs), **settings.pop("question", {}))
    return decide(question, pairs, interleaved=settings.pop("interleaved", True), **settings).word


def test_words_follow_the_interval() -> None:
    assert _word(steady_pairs(0.03)) == "improved"
    assert _word(steady_pairs(-0.03)) == "regressed"
    assert _word(steady_pairs(0.0)) == "equivalent"
    assert simulated_verdict(1, 0.0).word == "inconclusive", "noise of 1.5 % a run is too wide to call it equal"
    assert _word(steady_pairs(0.0105, count=8), question={"floors": {"output_throughput": 0.02}}) == "equivalent"


def test_the_sentence_quotes_the_interval() -> None:
    verdict = decide(Question(planned=8), steady_pairs(0.03), interleaved=True)
    assert verdict.sentence.startswith("Improved: output token throughput +2.9 % (95 % interval +2.")
    assert verdict.sentence.endswith(" %, 8 pairs).")


def test_few_pairs_or_no_turns_are_indicative_at_most() -> None:
    assert _word(steady_pairs(0.03, count=5)) == "indicative"
    assert _word(steady_pairs(0.03, count=6)) == "improved"
    assert _word(steady_pairs(0.03), interleaved=False) == "indicative"
    verdict = decide(Question(planned=8), steady_pairs(0.03, count=7), interleaved=True)
    assert (verdict.word, verdict.reasons[0]) == ("indicative", "7 of 8 planned pairs were run")


def test_no_word_is_told_before_the_last_pair() -> None:
    text = interim_text(Question(planned=8), steady_pairs(0.03, count=3))
    assert "3 of 8 pairs" in text and "improved" not in text.lower() and "interval" in text


def test_a_worse_guard_qualifies_a_gain() -> None:
    pairs = steady_pairs(0.03, values={"ttft_p99_ms": 240.0})
    verdict = decide(Question(planned=8), pairs, interleaved=True)
    assert verdict.word == "improved_with_regression"
    assert "TTFT p99 got worse: +" in verdict.reasons[0]
    failing = decide(Question(planned=8), steady_pairs(0.03, values={"error_rate": 0.05}), interleaved=True)
    assert failing.word == "improved_with_regression" and "error rate got worse: +5.00 points" in failing.reasons[0]


def test_a_guard_without_figures_prevents_a_clean_improved() -> None:
    verdict = decide(Question(planned=8), steady_pairs(0.03, values={"ttft_p99_ms": None}), interleaved=True)
    guard = next(item for item in verdict.guards if item.key == "ttft_p99_ms")
    assert guard.state == "not_evaluated" and "missing in 8 runs of 16" in (guard.reason or "")
    assert verdict.word == "indicative"
    accuracy = next(item for item in verdict.guards if item.key == "accuracy")
    assert accuracy.state == "not_applicable", "no accuracy check was asked for"


def test_an_undeclared_difference_forbids_a_comparison() -> None:
    for facts, word in (
        ({"model.name": "other"}, "not_comparable"),
        ({"measured.cache_hit_rate": 0.71}, "not_comparable"),
        ({"measured.cache_hit_rate": 0.01}, "improved"),
        ({"load.seed": 7}, "not_comparable"),
    ):
        verdict = decide(Question(planned=8), steady_pairs(0.03, facts=facts), interleaved=True)
        assert verdict.word == word, facts
    warm = decide(Question(planned=8), steady_pairs(0.8, facts={"measured.cache_hit_rate": 0.71}), interleaved=True)
    assert warm.sentence.startswith("Not comparable: cache_state: measured.cache_hit_rate is 0.0 in A and 0.71 in B")
    declared = Question(planned=8, changes=("model.*",))
    assert decide(declared, steady_pairs(0.03, facts={"model.name": "other"}), interleaved=True).word == "improved"
    unread = steady_pairs(0.03, facts={"measured.cache_hit_rate": None})
    assert any("cache" in text for text in decide(Question(planned=8), unread, interleaved=True).comparability.notes)


def test_measured_lengths_may_differ_by_one_percent() -> None:
    def word(length: float) -> str:
        def facts(value: float) -> dict[str, Any]:
            return {"facts": {"measured.output_mean": value}}

        pairs = [
            Pair(pair.number, served_run("a", values=dict(pair.a.values), **facts(100.0)), pair.b, pair.first)
            for pair in steady_pairs(0.03, **facts(length))
        ]
        return decide(Question(planned=8), pairs, interleaved=True).word

    assert word(100.9) == "improved"
    assert word(102.0) == "not_comparable"


def test_servers_that_are_shared_are_said() -> None:
    """A reset cache is as good as a fresh server, and the verdict says so; a kept one in one arm only is not."""

    def verdict(policy: str) -> ServingVerdict:
        def facts(value: str) -> dict[str, Any]:
            return {"facts": {"server.cache_policy": value}}

        pairs = [
            Pair(pair.number, served_run("a", values=dict(pair.a.values), **facts("fresh server")), pair.b, pair.first)
            for pair in steady_pairs(0.03, **facts(policy))
        ]
        return decide(Question(planned=8), pairs, interleaved=True)

    shared = verdict("reset")
    assert shared.word == "improved"
    assert any("8 of 16 runs used a server that was running before" in note for note in shared.comparability.notes)
    assert verdict("kept").word == "not_comparable"


def test_a_run_that_does_not_count_makes_it_invalid() -> None:
    pairs = steady_pairs(0.03, status="invalid", reasons=("the client used 95% of a core",))
    verdict = decide(Question(planned=8), pairs, interleaved=True)
    assert verdict.word == "invalid" and "the client used 95% of a core" in verdict.sentence
    assert _word(steady_pairs(0.03, profiled=True)) == "invalid"
    assert _word([]) == "invalid"
    hot = decide(Question(planned=8), steady_pairs(0.03, throttled_share=0.3), interleaved=True)
    assert hot.word == "improved", "where one arm has no readings nothing can be compared"
    cool = [
        Pair(pair.number, replace(pair.a, throttled_share=0.0), pair.b, pair.first)
        for pair in steady_pairs(0.03, throttled_share=0.3)
    ]
    hot = decide(Question(planned=8), cool, interleaved=True)
    assert hot.word == "invalid" and "throttled in 0 % and 30 % of the readings of A and B" in hot.sentence


def test_a_kernel_change_has_to_be_seen_in_use() -> None:
    old, new = ("rms_norm_old", 20.0, 9.0), ("rms_norm_fused", 12.0, 5.0)
    gemm = ("gemm", 70.0, 90.0)
    question: dict[str, Any] = {"kernel": "rms_norm_fused", "replaces": "rms_norm_old", "kernel_ratio": 1.8}
    good = Twins(twin(gemm, old), twin(gemm, new))
    assert _word(steady_pairs(0.03), question=question, twins=good) == "improved"
    for twins in (Twins(), Twins(twin(gemm, old), twin(gemm, old)), Twins(twin(gemm, old, new), twin(gemm, new))):
        verdict = decide(Question(planned=8, **question), steady_pairs(0.03), interleaved=True, twins=twins)
        assert verdict.word == "invalid" and "candidate not observed" in verdict.sentence
    on_cpu = []
    for pair in steady_pairs(0.03):
        a, b = (served_run("x", values=dict(run.values), facts={"devices": "CPU"}) for run in (pair.a, pair.b))
        on_cpu.append(Pair(pair.number, a, b, "a"))
    verdict = decide(Question(planned=8, kernel="new"), on_cpu, interleaved=True)
    assert (verdict.word, verdict.proof_of_use.state) == ("improved", "not_applicable")


def test_a_gain_beyond_the_kernels_share_is_unexplained() -> None:
    twins = Twins(twin(("gemm", 90.0, 90.0), ("old", 5.0, 9.0)), twin(("other", 80.0, 99.0), ("new", 3.0, 4.0)))
    question = Question(planned=8, kernel="new", replaces="old", kernel_ratio=2.0)
    verdict = decide(question, steady_pairs(0.2), interleaved=True, twins=twins)
    assert verdict.word == "unexplained"
    assert verdict.plausibility.expected == pytest.approx(1 / (1 - 0.05 + 0.05 / 2) - 1)
    assert verdict.kernels.new_bottleneck == "other"
    assert decide(question, steady_pairs(0.025), interleaved=True, twins=twins).word == "improved"
    same = decide(question, steady_pairs(0.0), interleaved=True, twins=twins)
    assert same.word == "equivalent"
    assert "the kernel is 2.00 times faster, and serving as a whole is not shown to be faster" in same.sentence.lower()
    assert same.sentence.endswith("; most time now goes to other.")


def test_what_configs_change_on_purpose_is_the_change_under_test() -> None:
    base: dict[str, Fact] = {"envs.EXTRA_VLLM_ARGS": "", "envs.CONC": 8, "docker_image": "x:1", "model": "m"}
    changed = {**base, "envs.EXTRA_VLLM_ARGS": "--enforce-eager", "envs.VLLM_USE_X": "1", "docker_image": "x:2"}
    assert declared_changes(base, changed) == (
        "server.arguments",
        "engine.image",
        "engine.version",
        "server.environment",
        "envs.VLLM_USE_X",
    )
    assert declared_changes(base, {**base, "envs.CONC": 16, "model": "n"}) == ()


def test_turns_are_told_from_times() -> None:
    begin = datetime(2026, 1, 1, tzinfo=timezone.utc)

    def runs(*minutes: int) -> list[Any]:
        return [served_run(f"r{minute}", started_at=begin + timedelta(minutes=minute)) for minute in minutes]

    assert pair_up(runs(0, 3, 4), runs(1, 2, 5)).interleaved
    blocks = pair_up(runs(0, 1, 2), runs(3, 4, 5))
    assert not blocks.interleaved and "not made in turns" in (blocks.reason or "")
    assert "one arm always ran first" in (pair_up(runs(0, 2, 4), runs(1, 3, 5)).reason or "")
    assert "no partner" in (pair_up(runs(0, 3), runs(1)).reason or "")
    assert "is not known" in (pair_up([served_run("a")], [served_run("b")]).reason or "")


def test_files_of_a_verdict(tmp_path: Path) -> None:
    import jsonschema

    verdict = decide(Question(planned=8), steady_pairs(0.03), interleaved=True)
    value = json.loads(json.dumps(verdict_json(verdict), allow_nan=False))
    schema = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "verdict.schema.json").read_text())
    jsonschema.validate(value, schema)
    text = markdown(verdict, title="opt against <base>")
    assert text.startswith("# opt against &lt;base>\n\n**Improved: ")
    assert text.count("| A B |") == text.count("| B A |") == 4


def _upstream(directory: Path, throughput: float, **envs: Any) -> Path:
    """Write a workspace as upstream leaves it."""
    import yaml

    directory.mkdir(parents=True)
    latency = {name: {"mean_ms": 5.0, "median_ms": 5.0, "p99_ms": 9.0, "std_ms": 1.0} for name in ("ttft", "tpot")}
    report = {
        "success": True,
        "framework": "vllm",
        "model": "m",
        "throughput": {"output_throughput": throughput, "completed_requests": 100, "duration_seconds": 10.0},
        "latency": latency,
        "profiling_enabled": False,
        "errors": [],
    }
    (directory / "benchmark_report.json").write_text(json.dumps(report))
    config = {"framework": "vllm", "model": "m", "envs": {"CONC": 32, "TP": 1, **envs}}
    (directory / "config.yaml").write_text(yaml.safe_dump(config))
    return directory


def test_workspaces_that_are_there_already(tmp_path: Path) -> None:
    a = _upstream(tmp_path / "benchmark_vllm_20260101_100000", 1000.0)
    b = _upstream(tmp_path / "benchmark_vllm_20260101_110000", 1100.0, EXTRA_VLLM_ARGS="--new")
    verdict = judge_workspaces(a, b, Question())
    assert verdict.word == "indicative" and "+10.0 %" in verdict.sentence
    c = _upstream(tmp_path / "benchmark_vllm_20260101_120000", 1100.0, CONC=64)
    assert "load.concurrency is 32 in A and 64 in B" in judge_workspaces(a, c, Question()).sentence
    for name, rate in (("a", 1000.0), ("b", 1100.0)):
        result = {"completed": 9, "failed": 0, "output_throughput": rate, "p99_ttft_ms": 9.0}
        (tmp_path / f"{name}.json").write_text(json.dumps(result))
    files = judge_workspaces(tmp_path / "a.json", tmp_path / "b.json", Question())
    assert files.word == "indicative" and "tell nothing of model" in files.comparability.unknown[0]
    with pytest.raises(UserInputError, match="same directory"):
        judge_workspaces(a, a, Question())
    with pytest.raises(UserInputError, match="no such workspace"):
        judge_workspaces(a, tmp_path / "gone", Question())
    with pytest.raises(UserInputError, match="no workspace of a benchmark"):
        (tmp_path / "empty").mkdir()
        judge_workspaces(a, tmp_path / "empty", Question())


def test_interleaved_directories_can_carry_a_claim(tmp_path: Path) -> None:
    for pair in range(6):
        hours = (2 * pair, 2 * pair + 1) if pair % 2 == 0 else (2 * pair + 1, 2 * pair)
        for arm, hour, rate in zip("ab", hours, (1000.0, 1050.0), strict=True):
            name = f"benchmark_vllm_20260101_{hour:02d}0000"
            _upstream(tmp_path / arm / name, rate * (1 + pair / 1000), **({"NEW": "1"} if arm == "b" else {}))
    verdict = judge_workspaces(tmp_path / "a", tmp_path / "b", Question())
    assert verdict.interleaved
    assert verdict.word == "indicative", "upstream's report has no error rate, so that guard was not evaluated"
    assert "error rate was not evaluated" in verdict.reasons[0]
