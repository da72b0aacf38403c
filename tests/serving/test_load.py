"""The load generator against a server that logs what it truly did, and against one that misbehaves."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.serving.load.driver import LoadDriver
from magpie_tui.serving.load.files import check_plan, read_result
from magpie_tui.serving.load.health import HealthMonitor, judge_client
from magpie_tui.serving.load.model import (
    ClosedLoop,
    ConstantRate,
    GammaRate,
    LoadProgress,
    LoadResult,
    PromptFile,
    RandomPrompts,
    Replay,
    RequestRow,
    ShareGptFile,
)
from magpie_tui.serving.load.run import run_load
from magpie_tui.serving.metrics import summarize
from tests.serving.stand_in import StandIn, short_plan, stand_in

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One fast server for the whole module."""
    with stand_in(tmp_path_factory.mktemp("server"), "--ttft-ms", "5", "--tpot-ms", "0.5") as running:
        yield running


def _load(server: StandIn, **changes: Any) -> LoadResult:
    """Run a load in this process."""
    plan = short_plan(server.url, **changes)
    check_plan(plan)
    return asyncio.run(LoadDriver(plan).run())


def _faulty(server: StandIn, fault: str, **changes: Any) -> LoadResult:
    return _load(server, headers={"x-fault": fault}, **changes)


def test_counts_come_from_the_server_and_times_from_a_schedule(server: StandIn, tmp_path: Path) -> None:
    result = run_load(short_plan(server.url, requests=8, warmup_requests=2, seed=3), tmp_path)
    assert [row.index for row in result.requests] == list(range(8))
    assert len(result.warmup) == 2
    for row in result.requests:
        assert row.status == "completed", row.error
        assert row.output_tokens == row.requested_output
        assert row.prompt_tokens == row.requested_input
        assert row.chunks == row.output_tokens
        assert len(row.gaps_us) == row.chunks - 1
        assert row.connect_s is None, "connections are opened before"
        times = (row.scheduled_s, row.sent_s, row.first_content_s, row.last_content_s, row.ended_s)
        assert all(time is not None for time in times)
        assert list(times) == sorted(times)  # type: ignore[type-var]
        emitted = server.emitted()[f"measuring-{row.index}"]
        true_ms = (emitted["emits_ns"][0] - emitted["received_ns"]) / 1e6
        assert row.ttft_s is not None and row.ttft_s * 1e3 >= true_ms
    assert result.client.cpu_share is not None and result.client.send_lag_p99_ms is not None
    assert read_result(tmp_path) == result
    for name, lines in (("requests", (tmp_path / "requests.jsonl").read_text().splitlines()), ("load", [])):
        schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
        for line in lines or [(tmp_path / "load.json").read_text()]:
            jsonschema.validate(json.loads(line), schema)


def test_the_same_seed_sends_the_same_requests_and_another_does_not(server: StandIn) -> None:
    def asked(seed: int) -> list[tuple[int | None, int | None]]:
        result = _load(server, seed=seed)
        return [(row.requested_input, row.requested_output) for row in result.requests]

    assert asked(1) == asked(1)
    assert asked(1) != asked(2)


def test_chat_counts_neither_the_role_nor_the_usage_as_a_token(server: StandIn) -> None:
    result = _load(server, endpoint="chat", prompts=RandomPrompts(30, 30), warmup_requests=2)
    assert [(row.part, row.index) for row in result.warmup] == [("warmup", index) for index in range(5)]
    assert [row.prompt_tokens for row in result.warmup[:3]] == [15, 31, 289], "three to calibrate by"
    for row in result.requests:
        assert row.chunks == row.output_tokens == row.requested_output
        # The words were calibrated against the server's own count, which adds 7 tokens for the frame of a message.
        assert row.prompt_tokens == 30
        assert row.first_content_s is not None and row.sent_s is not None
        assert row.first_content_s - row.sent_s >= 0.005, "the role comes at once, the first token after 5 ms"


def test_open_loops_keep_their_schedule(server: StandIn) -> None:
    for arrival in (ConstantRate(200.0), GammaRate(200.0, burstiness=0.5)):
        result = _load(server, arrival=arrival, requests=12)
        assert not result.failed, result.first_error
        scheduled = [row.scheduled_s for row in result.requests]
        assert scheduled == sorted(scheduled)
        if isinstance(arrival, ConstantRate):
            gaps = [after - before for before, after in itertools.pairwise(scheduled)]
            assert gaps == pytest.approx([0.005] * 11, abs=1e-6)
    limited = _load(server, arrival=ConstantRate(2000.0, concurrency=1), requests=4)
    waits = [row.waited_s for row in limited.requests]
    assert waits[0] == 0 and waits == sorted(waits) and waits[-1] > 0.01
    last = limited.requests[-1]
    assert last.ttft_s is not None and last.ttft_s > waits[-1], "waiting for a slot counts"


def test_requests_are_replayed_at_recorded_times(server: StandIn, tmp_path: Path) -> None:
    times = tmp_path / "times.jsonl"
    times.write_text('{"timestamp": 1000}\n{"timestamp": 1010}\n{"timestamp": 1040}\n')
    result = _load(server, arrival=Replay(times, unit="ms", speed=2.0), requests=3)
    first = result.requests[0].scheduled_s
    assert [row.scheduled_s - first for row in result.requests] == pytest.approx([0, 0.005, 0.02], abs=1e-6)
    with pytest.raises(UserInputError, match="4 requests are asked for"):
        _load(server, arrival=Replay(times), requests=4)


def test_prompts_come_from_files(server: StandIn, tmp_path: Path) -> None:
    lines = tmp_path / "prompts.jsonl"
    lines.write_text('{"prompt": "one two three", "output_len": 4}\n"four five"\nplain text of five words\n')
    result = _load(server, prompts=PromptFile(lines), requests=4)
    assert [row.prompt_tokens for row in result.requests] == [3, 2, 5, 3]
    assert result.requests[0].output_tokens == 4
    share = tmp_path / "share.json"
    turns = [{"from": "human", "value": "a b c d"}, {"from": "gpt", "value": "e"}]
    share.write_text(json.dumps([{"id": "1", "conversations": turns}, {"id": "2", "conversations": turns[1:]}]))
    result = _load(server, prompts=ShareGptFile(share), requests=2)
    assert [row.prompt_tokens for row in result.requests] == [4, 4]


def test_headers_reach_no_file(server: StandIn, tmp_path: Path) -> None:
    run_load(short_plan(server.url, headers={"authorization": "Bearer hush-hush"}, requests=1), tmp_path)
    assert not any(b"hush-hush" in path.read_bytes() for path in tmp_path.iterdir())
    with pytest.raises(UserInputError, match="cannot be sent"):
        _load(server, headers={"x": "a\r\nb: c"})


@pytest.mark.parametrize(
    ("fault", "words", "status"),
    [
        ("truncate", "closed in the middle of the answer, after 2 chunks", 200),
        ("no-done", "truncated: the stream ended after", 200),
        ("status-429", "HTTP 429: the stand-in is overloaded (429)", 429),
        ("status-503", "HTTP 503: the stand-in is overloaded (503)", 503),
        ("error-in-stream", "the stream says: the engine died", 200),
        ("garbage", "an event that cannot be read", 200),
        ("hang", "timed out after 0.3 s", None),
    ],
)
def test_what_goes_wrong_is_a_failure_with_its_text(
    fault: str, words: str, status: int | None, server: StandIn
) -> None:
    result = _faulty(server, fault, requests=3, timeout_s=0.3 if fault == "hang" else 20.0)
    assert [row.status for row in result.requests] == ["failed"] * 3
    assert all(words in (row.error or "") for row in result.requests), result.first_error
    assert result.requests[0].http_status == status
    metrics = summarize(result)
    assert (metrics.completed, metrics.failed, metrics.error_rate) == (0, 3, 1.0)
    assert metrics.request_throughput == 0.0, "0 of 3 in a time that is known"
    assert metrics.first_error == result.requests[0].error
    assert all(latency.n == 0 and latency.mean_ms is None for latency in metrics.latencies.values())


def test_an_answer_that_does_not_stream_has_no_ttft(server: StandIn) -> None:
    metrics = summarize(_faulty(server, "no-stream"))
    assert metrics.completed == 6 and metrics.output_tokens
    assert metrics.latency("ttft").n == 0 and metrics.latency("ttft").reason == "the answers did not stream"
    assert metrics.latency("tpot").n == 0
    assert metrics.latency("e2el").n == 6


def test_a_slow_first_token_shows_in_the_ttft_only(server: StandIn) -> None:
    for row in _faulty(server, "slow-first", requests=2).requests:
        emits = server.emitted()[f"measuring-{row.index}"]["emits_ns"]
        assert row.ttft_s is not None and row.ttft_s > 0.05
        assert row.tpot_s is not None and row.tpot_s < 0.02, emits


def test_tokens_are_unknown_without_usage(server: StandIn) -> None:
    metrics = summarize(_faulty(server, "no-usage"))
    assert metrics.completed == 6
    assert metrics.output_tokens is None and metrics.output_throughput is None
    assert "without the server's token counts" in metrics.reasons["output_throughput"]


def test_connections_that_the_server_closes_are_opened_again(server: StandIn) -> None:
    result = _faulty(server, "close-each")
    assert len(result.completed) == 6, result.first_error
    assert sum(row.connect_s is not None for row in result.requests) == 4, "two were open beforehand"


def test_events_that_share_a_read_are_flagged(tmp_path: Path) -> None:
    with stand_in(tmp_path, "--ttft-ms", "1", "--tpot-ms", "0.1", "--coalesce", "8") as server:
        result = _load(server, output_min=16, output_max=16)
    assert all(row.coalesced >= 12 for row in result.requests), "7 of 8 chunks of each write"
    assert any("say little" in text for text in result.client.warnings)


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        result = asyncio.run(LoadDriver(short_plan(nobody, requests=20)).run())
    assert len(result.failed) == 20
    assert result.first_error == "cannot connect: Connection refused"
    metrics = summarize(result)
    assert (metrics.completed, metrics.failed, metrics.request_throughput) == (0, 20, 0.0)
    assert all(latency.n == 0 and latency.mean_ms is None for latency in metrics.latencies.values())


def test_a_load_can_be_cancelled_and_keeps_what_it_has(tmp_path: Path) -> None:
    seen: list[LoadProgress] = []
    with stand_in(tmp_path, "--ttft-ms", "1", "--tpot-ms", "20") as server:
        result = run_load(
            short_plan(server.url, requests=500, output_min=20, output_max=20),
            tmp_path,
            on_progress=seen.append,
            cancelled=lambda: bool(seen and seen[-1].completed >= 2),
        )
    assert result.stopped == "cancelled by the user"
    assert len(result.requests) == 500
    statuses = {row.status for row in result.requests}
    assert statuses == {"completed", "cancelled"}
    assert seen[-1].phase == "measuring" and seen[-1].total == 500
    assert read_result(tmp_path).stopped == result.stopped


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"url": "localhost:8000"}, "base_url"),
        ({"requests": 0}, "requests"),
        ({"arrival": ClosedLoop(0)}, "concurrency"),
        ({"arrival": GammaRate(0.0)}, "requests_per_s"),
        ({"prompts": RandomPrompts(9, 8)}, "input_min"),
        ({"output_max": 1}, "output_max"),
        ({"endpoint": "chat", "prompts": RandomPrompts(1, 2, form="tokens")}, "form"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(UserInputError) as caught:
        check_plan(short_plan(**{"url": "http://127.0.0.1:1", **changes}))
    assert caught.value.key == key


def test_a_busy_client_is_the_reason_against_its_run() -> None:
    def monitor(cpu: float, seconds: float = 10.0) -> HealthMonitor:
        found = HealthMonitor(lags_ns=[100_000] * 50)
        found._began, found._ended = (0, 0), (int(seconds * 1e9), int(cpu * seconds * 1e9))
        return found

    def rows(lag_s: float, gap_s: float) -> list[RequestRow]:
        return [
            RequestRow("measured", index, "completed", index * gap_s, sent_s=index * gap_s + lag_s)
            for index in range(200)
        ]

    fine = judge_client(monitor(0.3), rows(0.001, 0.01), 0, "")
    assert fine.is_valid and not fine.warnings
    assert judge_client(monitor(0.72), rows(0.001, 0.01), 0, "").warnings
    busy = judge_client(monitor(0.85), rows(0.001, 0.01), 0, "")
    assert busy.client_bound == ("the client used 85% of a core (limit 80%)",)
    late = judge_client(monitor(0.3), rows(0.02, 0.01), 0, "")
    assert "requests left late: 99th percentile 20.0 ms" in late.client_bound[0]
    assert judge_client(monitor(0.3), rows(0.02, 3.0), 0, "").is_valid, "20 ms are less than 1 % of 3 s"
    waited = [replace(row, waited_s=0.019) for row in rows(0.02, 0.01)]
    assert judge_client(monitor(0.3), waited, 0, "").is_valid, "waiting for a slot is not the client's doing"
    assert judge_client(monitor(0.95, seconds=0.2), rows(0.02, 0.001), 0, "").is_valid, "too short to be judged"
