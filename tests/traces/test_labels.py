"""Labels of every dialect, and the names of stages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.labels import Dialect, StepLabel, UpstreamStep, parse_label
from magpie_tui.traces.stage_names import ALIASES, INFERENCE_STAGES, Stage, stage_named, stages_named


def parsed(text: str) -> StepLabel:
    label = parse_label(text)
    assert label is not None
    return label


@pytest.mark.parametrize(
    ("text", "dialect", "stage", "numbers", "upstream"),
    [
        (
            "execute_1783_context_4(sq1771sk1771sqsq962749sqsk962749)_generation_12(sq12sk7144sqsq12sqsk7144)",
            Dialect.vllm_detailed,
            Stage.prefilldecode,
            (1783, 4, 12, 1771, 12),
            UpstreamStep(1783, 4, 1771, 12, 12),
        ),
        (
            "execute_context_2(1024)_generation_0(0)",
            Dialect.vllm_native,
            Stage.prefill,
            (1024, 2, 0, 1024, 0),
            UpstreamStep(1024, 2, 1024, 0, 0),
        ),
        (
            "execute_context_1(888_788544)_generation_0(0)",
            Dialect.vllm_old,
            Stage.prefill,
            (888, 1, 0, 888, 0),
            UpstreamStep(888, 1, 888, 0, 0),
        ),
        ("execute_context_0(0)_generation_0(0)", Dialect.vllm_native, Stage.idle, (0, 0, 0, 0, 0), None),
        ("step[EXTEND bs=2 toks=960]", Dialect.sglang_native, Stage.prefill, (960, 2, 0, 960, 0), None),
        (
            "step[DECODE bs=16]",
            Dialect.sglang_native,
            Stage.decode,
            (16, 0, 16, 0, 16),
            UpstreamStep(16, 0, 0, 16, 16),
        ),
        (
            "step[MIXED bs=8]",
            Dialect.sglang_native,
            Stage.prefilldecode,
            (None, None, None, None, None),
            UpstreamStep(8, 8, 0, 0, 0),
        ),
        (
            "step[MIXED bs=9 c=2 g=7 c_sq=100 c_sqsq=5000 c_sqsk=5000 c_sk=100 g_sq=7 g_sqsq=7 g_sqsk=900 g_sk=900]",
            Dialect.sglang_detailed,
            Stage.prefilldecode,
            (107, 2, 7, 100, 7),
            UpstreamStep(107, 2, 100, 7, 7),
        ),
        (
            "step[DECODE bs=4 g_sq=4 g_sqsq=4 g_sqsk=99 g_sk=99]",
            Dialect.sglang_detailed,
            Stage.decode,
            (4, 0, 4, 0, 4),
            UpstreamStep(4, 0, 0, 4, 4),
        ),
        ("prefill[bs=3 tok=77 ctx=[1, 2, 3]]", Dialect.atom_native, Stage.prefill, (77, 3, 0, 77, 0), None),
        ("decode[bs=117/128 tok=117 d=117]", Dialect.atom_native, Stage.decode, (117, 0, 117, 0, 117), None),
        (
            "decode[bs=117/128 tok=117 d=117 sq=117 sqsq=117 sqsk=900 sk=900]",
            Dialect.atom_detailed,
            Stage.decode,
            (117, 0, 117, 0, 117),
            UpstreamStep(117, 0, 0, 117, 117),
        ),
        (
            "execute_diffusion_4_1024x768",
            Dialect.diffusion,
            Stage.unknown,
            (None, None, None, None, None),
            UpstreamStep(4, 0, 0, 0, 0),
        ),
        (
            "ProfilerStep#12",
            Dialect.profiler_step,
            Stage.unknown,
            (None, None, None, None, None),
            UpstreamStep(1, 0, 0, 1, 0),
        ),
    ],
)
def test_labels_of_every_dialect(
    text: str, dialect: Dialect, stage: Stage, numbers: tuple[int | None, ...], upstream: UpstreamStep | None
) -> None:
    label = parsed(text)
    assert (label.dialect, label.stage) == (dialect, stage)
    assert numbers == (
        label.batch_tokens,
        label.context_requests,
        label.generation_requests,
        label.context_tokens,
        label.generation_tokens,
    )
    if upstream is not None:
        assert label.upstream == upstream


def test_padding_sums_and_sizes_are_read() -> None:
    assert parsed("decode[bs=117/128 tok=117 d=117]").padded_to == 128
    assert parsed("execute_context_1(888_788544)_generation_0(0)").sums["c_sqsq"] == 888**2
    assert parsed("execute_diffusion_4_1024x768").sums == {"width": 1024, "height": 768}
    assert parsed("step[MIXED bs=8]").requests == 8


@pytest.mark.parametrize(
    "text",
    ["nccl:all_reduce", "## Call CompiledFxGraph x ##", "execute_model", "step[IDLE]", "prefill", "ProfilerStep", ""],
)
def test_other_annotations_are_no_steps(text: str) -> None:
    assert parse_label(text) is None


@given(st.text(max_size=60) | st.sampled_from(["step[EXTEND ", "execute_context_", "decode[bs="]).flatmap(
    lambda head: st.text("0123456789_=[]()/ bsqktogen", max_size=40).map(lambda tail: head + tail)
))  # fmt: skip
def test_no_text_breaks_the_parser(text: str) -> None:
    label = parse_label(text)
    assert label is None or label.upstream.num_requests >= 0


@given(*[st.integers(0, 10**9)] * 4)
def test_native_numbers_come_back(context: int, tokens: int, generation: int, generated: int) -> None:
    label = parsed(f"execute_context_{context}({tokens})_generation_{generation}({generated})")
    assert label.upstream == UpstreamStep(tokens + generated, context, tokens, generation, generated)
    assert label.requests == context + generation


@pytest.mark.parametrize("stage", INFERENCE_STAGES)
def test_stages_go_by_every_alias(stage: Stage) -> None:
    for name in (stage.value, *ALIASES[stage]):
        assert stage_named(f" {name.upper()} ") is stage
    assert stages_named("all") == INFERENCE_STAGES
    assert stages_named(f"{stage.value},decode-only") == tuple(dict.fromkeys([stage, Stage.decode]))


def test_an_unknown_stage_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UserInputError, match="'warmup'") as refusal:
        stages_named("decode,warmup")
    assert "prefill-decode" in (refusal.value.hint or "")
