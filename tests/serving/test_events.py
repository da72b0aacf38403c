"""Event streams in whatever pieces they come, plans through JSON, arrivals and contents by their seeds."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.serving.load.arrivals import schedule
from magpie_tui.serving.load.events import StreamReader, body_error, read_whole
from magpie_tui.serving.load.files import decode_plan, encode_plan
from magpie_tui.serving.load.model import (
    Arrival,
    ClosedLoop,
    ConstantRate,
    FixedPrompt,
    GammaRate,
    LoadPlan,
    PromptFile,
    Prompts,
    RandomPrompts,
    Replay,
    ShareGptFile,
)
from magpie_tui.serving.load.prompts import Calibration, prompts_of

PIECES = st.lists(st.integers(1, 40), min_size=1)


def _cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, place, turn = [], 0, 0
    while place < len(data):
        size = sizes[turn % len(sizes)]
        pieces.append(data[place : place + size])
        place, turn = place + size, turn + 1
    return pieces


@given(
    texts=st.lists(st.text(max_size=12), max_size=8),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
    sizes=PIECES,
    comments=st.booleans(),
)
def test_pieces_never_change_what_is_read(texts: list[str], ending: str, sizes: list[int], comments: bool) -> None:
    lines = []
    for text in texts:
        if comments:
            lines += [": ping", "event: message", "id: 4"]
        lines += [f"data: {json.dumps({'choices': [{'text': text}]})}", ""]
    lines += ['data:{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9}}', "", "data: [DONE]", "", ""]
    stream = StreamReader()
    counted = sum(stream.feed(piece) for piece in _cut(ending.join(lines).encode(), sizes)) + stream.end()
    assert counted == stream.content_chunks == sum(bool(text) for text in texts)
    assert stream.error is None
    assert stream.usage is not None and stream.usage.completion_tokens == 9
    # A lone CR that ends the data may still be half of CRLF, so the last event waits for the end of the body.
    assert stream.done


@given(data=st.binary(max_size=200), sizes=PIECES)
def test_no_bytes_break_the_reader(data: bytes, sizes: list[int]) -> None:
    stream = StreamReader()
    for piece in _cut(data, sizes):
        stream.feed(piece)
    stream.end()
    read_whole(data)
    assert "\n" not in body_error(data)


def test_what_counts_as_content() -> None:
    def chunks(**choice: object) -> int:
        return StreamReader().feed(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")

    assert chunks(delta={"role": "assistant", "content": ""}) == 0
    assert chunks(delta={"content": None}) == chunks(delta={}) == chunks(text="") == 0
    assert chunks(delta={"content": "a"}) == chunks(text=" ") == 1
    assert chunks(delta={"reasoning_content": "hm"}) == chunks(delta={"reasoning": "hm"}) == 1
    assert chunks(delta={"tool_calls": [{"index": 0}]}) == 1
    several = StreamReader()
    assert several.feed(b'data: {"choices":\ndata: [{"text": "a"}]}\n\n') == 1, "data over two lines is one event"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error": {"message": "too\\nmany", "code": 429}}', "too many"),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"error": "plain"}', "plain"),
        (b"<html>busy</html>", "<html>busy</html>"),
        (b'{"object": "error", "message": "bad model"}', "bad model"),
    ],
)
def test_refusals_say_why(body: bytes, text: str) -> None:
    assert body_error(body) == text


ARRIVALS: tuple[Arrival, ...] = (
    ClosedLoop(4),
    ConstantRate(2.5, 9),
    GammaRate(2.0, 0.5),
    Replay(Path("/t.jsonl"), "ms", 2.0, 3),
)
PROMPTS: tuple[Prompts, ...] = (
    RandomPrompts(1, 9, "words", shared_prefix=2),
    FixedPrompt("hé"),
    PromptFile(Path("/p"), shuffle=True),
    ShareGptFile(Path("/s.json")),
)


@pytest.mark.parametrize("arrival", ARRIVALS, ids=lambda item: item.kind)
@pytest.mark.parametrize("prompts", PROMPTS, ids=lambda item: item.kind)
def test_a_plan_survives_json(arrival: Arrival, prompts: Prompts) -> None:
    plan = LoadPlan(
        "http://x", "chat", "m", 3, arrival, prompts, 1, 2, headers={"a": "b"}, sampling={"top_p": 0.5, "stop": ["x"]}
    )
    assert decode_plan(encode_plan(plan)) == plan


def test_gaps_have_the_rate_and_burstiness_asked_for() -> None:
    for burstiness in (1.0, 0.25, 4.0):
        times = schedule(GammaRate(20.0, burstiness), 20_000, 7) or ()
        gaps = [after - before for before, after in pairwise(times)]
        assert mean(gaps) == pytest.approx(0.05, rel=0.05)
        assert stdev(gaps) / mean(gaps) == pytest.approx(burstiness**-0.5, rel=0.08)
    assert schedule(GammaRate(20.0), 9, 1) == schedule(GammaRate(20.0), 9, 1)
    assert schedule(GammaRate(20.0), 9, 1) != schedule(GammaRate(20.0), 9, 2)
    assert schedule(ClosedLoop(3), 9, 1) is None


def test_random_prompts_keep_their_bounds_and_never_repeat() -> None:
    plan = LoadPlan("http://x", "completions", "m", 50, ClosedLoop(1), RandomPrompts(5, 60), 2, 9, seed=5)
    measured = prompts_of(plan, "measured", 50, Calibration())
    contents = [item.content for item in measured]
    assert all(isinstance(item, list) and 5 <= len(item) <= 60 for item in contents)
    assert all(1000 <= token < 4000 for item in contents for token in item if isinstance(token, int))
    assert len({len(item) for item in contents}) > 5 and all(2 <= item.output <= 9 for item in measured)
    assert len({tuple(item) for item in contents if isinstance(item, list)}) == 50
    warm = prompts_of(plan, "warmup", 50, Calibration())
    assert not {str(item.content) for item in warm} & {str(item) for item in contents}
