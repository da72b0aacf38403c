"""Performance models: work of single calls, counted by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import EntryPoint

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.traces.models import plugins, registry
from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import spelled
from magpie_tui.traces.models.model import Model, Work
from magpie_tui.traces.models.moe import experts_hit
from magpie_tui.traces.models.triton import fused_operators

BF16, FP8, F32, I64 = "c10::BFloat16", "c10::Float8_e4m3fn", "float", "long int"
STEP = "execute_8155_context_1(sq100sk100sqsq10000sqsk10000)_generation_2(sq2sk30sqsq2sqsk30)"


def call(
    name: str,
    dims: tuple[object, ...],
    types: tuple[str, ...] | str = BF16,
    concrete: tuple[str, ...] = (),
    *,
    label: str | None = None,
    kernels: tuple[str, ...] = (),
    strides: tuple[object, ...] = (),
    extra: Mapping[str, object] | None = None,
) -> OperatorArguments:
    """A call with the same type for every argument unless types are given."""
    kinds = (types,) * len(dims) if isinstance(types, str) else types
    texts = concrete or ("",) * len(dims)
    return OperatorArguments(name, dims, kinds, strides, texts, extra or {}, label, kernels)


def work_of(arguments: OperatorArguments) -> Work:
    """What the model of a call says; there has to be one."""
    model = registry.find_model(arguments)
    assert model is not None, arguments.name
    return model.evaluate(arguments)


NO = ""
COUNTED = [
    # 2*2*3*4 = 48; (2*4 + 4*3 + 2*3)*2 bytes.
    (call("aten::mm", ((2, 4), (4, 3))), 48, 52, "matrix_bf16"),
    # The bias adds M*N operations and N values.
    (call("aten::addmm", ((3,), (2, 4), (4, 3))), 54, 58, "matrix_bf16"),
    (call("aten::bmm", ((5, 2, 4), (5, 4, 3)), F32), 240, 520, "matrix_fp32"),
    (call("aten::baddbmm", ((5, 2, 3), (5, 2, 4), (5, 4, 3)), F32), 270, 580, "matrix_fp32"),
    # Eight-bit factors, a two-byte result: 2*4 + 4*3 + 2*2*3.
    (call("aten::_scaled_mm", ((2, 4), (4, 3), (), ()), FP8), 48, 32, "matrix_fp8"),
    (call("vllm::rocm_unquantized_gemm", ((2, 4), (3, 4), (3,))), 54, 58, "matrix_bf16"),
    (call("aiter::gemm_a8w8_ck", ((2, 4), (3, 4), (2, 1), (1, 3)), (FP8, FP8, F32, F32)), 48, 32, "matrix_fp8"),
    # K is stored halved: 2*2*3*8 = 96; half a byte a value and two bytes of result.
    (call("aiter::gemm_afp4wfp4_", ((2, 4), (3, 4)), "unsigned char"), 96, 32, "matrix_fp4"),
    # One scale byte for 32 values a row: (2 + 3)*1 on top.
    (call("aiter::gemm_a4w4", ((2, 4), (3, 4)), "unsigned char"), 96, 37, "matrix_fp4"),
    (call("_C::cutlass_scaled_mm", ((2, 3), (2, 4), (4, 3)), (BF16, FP8, FP8)), 48, 32, "matrix_fp8"),
    (call("primus_turbo::grouped_gemm", ((6, 4), (2, 4, 3))), 144, 132, "matrix_bf16"),
    # H*N*N*2*(d + d)*B = 2*3*3*2*8*1; q, k, v, out: 4 tensors of 2*3*4 values of two bytes.
    (
        call("aten::_scaled_dot_product_flash_attention", ((1, 2, 3, 4),) * 3, BF16, (NO, NO, NO, "0.", "False")),
        288,
        192,
        "matrix_bf16",
    ),
    # Causal halves it.
    (
        call("aten::_scaled_dot_product_flash_attention", ((1, 2, 3, 4),) * 3, BF16, (NO, NO, NO, "0.", "True")),
        144,
        192,
        "matrix_bf16",
    ),
    # 2*(8 + 8)*(2*10000 - 10000 + 2*30) and (102*3*16 + 28*1*16)*2 bytes.
    (
        call("vllm::unified_attention_with_output", ((102, 2, 8), (102, 1, 8), (102, 1, 8)), label=STEP),
        321920,
        10688,
        "matrix_bf16",
    ),
    # Two tokens, all experts alike: 2*2*3*5*1*2 + 2*2*3*5 + 2*3 and 2*3*2 + 1*5*3*3*2 + 2*3*2 bytes.
    (
        call("vllm::outplace_fused_experts", ((2, 3), (1, 10, 3), (1, 3, 5), (2, 1), (2, 1)), (BF16,) * 3 + (F32, I64)),
        186,
        114,
        "matrix_bf16",
    ),
    (call("aten::copy_", ((3, 4), (3, 4)), (F32, BF16)), 12, 72, "vector_fp32"),
    (call("aten::mul", ((3, 4), (3, 1)), F32), 12, 108, "vector_fp32"),
    (call("_C::silu_and_mul", ((3, 4), (3, 8))), 60, 72, "vector_bf16"),
    (call("aten::sum", ((3, 4),), F32), 12, 52, "vector_fp32"),
    # 6*4 + 5*12 (training); (2*12 + 6*4)*4.
    (
        call("aten::layer_norm", ((3, 4), (), (4,), (4,)), (F32, "ScalarList", F32, F32), (NO, "[4]", NO, NO)),
        84,
        192,
        "vector_fp32",
    ),
    # (12/4)*(2*4 + 2) + 2*12; (2*12 + 4)*2.
    (call("_C::rms_norm", ((3, 4), (3, 4), (4,))), 54, 56, "vector_bf16"),
    # The residual: 12 operations, two more tensors.
    (call("_C::fused_add_rms_norm", ((3, 4), (3, 4), (4,))), 66, 104, "vector_bf16"),
    # 5 tokens, 2 + 1 heads of 8, all turned.
    (
        call(
            "_C::rotary_embedding",
            ((5,), (5, 16), (5, 8), (), (99, 8), ()),
            (I64, BF16, BF16, "Scalar", BF16, "Scalar"),
            (NO, NO, NO, "8", NO, "True"),
        ),
        360,
        480,
        "vector_bf16",
    ),
    (call("_C::static_scaled_fp8_quant", ((3, 4), (3, 4), (1,)), (FP8, BF16, F32)), 24, 40, "vector_bf16"),
    (
        call("_C_cache_ops::reshape_and_cache_flash", ((5, 2, 8), (5, 2, 8), (9, 9, 2, 8), (9, 9, 2, 8), (5,)),
             (BF16, BF16, FP8, FP8, I64)),
        0,
        520,
        "vector_bf16",
    ),
    # 1 output channel, 3x3 over 4x4: 4 outputs of 9 products.
    (
        call(
            "aten::convolution",
            ((1, 1, 4, 4), (1, 1, 3, 3), (), (), (), (), (), (), ()),
            (F32, F32, *[""] * 7),
            (NO, NO, NO, "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1"),
        ),
        72,
        116,
        "matrix_fp32",
    ),
    (call("symm_mem::multimem_all_reduce_", ((100,), (), ())), 0, 400, None),
    (call("aten::fill_", ((3, 4), ()), F32), 0, 48, "vector_fp32"),
    (call("aten::index_select", ((9, 4), (), (2,)), (F32, "Scalar", I64), (NO, "0", NO)), 0, 80, "vector_fp32"),
    (call("aten::argmax", ((3, 4), (), ()), F32, (NO, "-1", "False")), 12, 72, "vector_fp32"),
    (call("TopK", ((3, 8), ()), BF16, (NO, "2")), 144, 96, "vector_bf16"),
    (
        call("triton_poi_fused_add_mul_3", ((8,), (8,), ()), (BF16, BF16, "Scalar"), (NO, NO, "8")),
        16,
        48,
        "vector_bfloat16",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "flops", "size", "spec"), COUNTED, ids=[item[0].name for item in COUNTED])
def test_work_counted_by_hand(arguments: OperatorArguments, flops: float, size: float, spec: str | None) -> None:
    work = work_of(arguments)
    assert (work.flops, work.bytes, work.compute_spec) == (flops, size, spec)
    assert work.formula
    # What stands behind the last sign of a formula, read as arithmetic, is the figure.
    assert not re.search(r"\b[abo]\b", work.formula.rpartition("=")[2]), "widths are put in"
    for word, figure in (("FLOP", flops), ("bytes", size)):
        text = re.search(rf"{word} [^;=]*=([^;=]*)(?:;|$)", work.formula)
        if text and re.fullmatch(r"[\d\s*+/().eE-]+", text[1]):
            assert eval(text[1]) == pytest.approx(figure, rel=1e-3), text[0]


def test_a_formula_has_its_numbers_put_in() -> None:
    assert spelled("2*M*N + k", {"M": 3, "N": 0.5}) == "2*M*N + k = 2*3*0.5 + k"


def test_ours_stand_beside_what_the_reference_gets_wrong() -> None:
    copied = work_of(call("aten::copy_", ((3, 4), (3, 4)), ("bool", "bool")))
    assert copied.bytes is None and copied.best_bytes == 24
    rows = work_of(call("aten::mean", ((3, 4), ()), (F32, "ScalarList"), (NO, "[-1]")))
    assert (rows.bytes, rows.best_bytes) == (52, 60)
    eight = work_of(call("aten::_scaled_dot_product_flash_attention", ((1, 2, 3, 4),) * 3, FP8))
    assert (eight.bytes, eight.best_bytes) == (192, 96)
    conv = work_of(
        call("aten::convolution", ((1, 1, 4, 4), (1, 1, 3, 3), (1,), (), (), (), (), (), ()), F32,
             (NO, NO, NO, "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1"))
    )  # fmt: skip
    assert (conv.flops, conv.best_flops) == (72, 76)
    running = work_of(call("aten::batch_norm", ((1, 2, 2, 2), *((2,),) * 4, (), ()), F32, (*[NO] * 5, "False", "0.1")))
    # 6*2 + 5*8 in training, 6*2 + 2*8 with running statistics.
    assert (running.flops, running.best_flops) == (52, 28)
    widened = work_of(
        call("pseudo_op::moe_triton_unfused_up", ((8, 4), (8, 2)), kernels=("_matmul_ogs_bf16xbf16xmxfp4_swiglu",))
    )
    assert (widened.compute_spec, widened.best_compute_spec) == ("matrix_fp4", "matrix_bf16")


def test_attention_without_lengths_says_why() -> None:
    work = work_of(call("vllm::unified_attention_with_output", ((8, 2, 8), (8, 1, 8), (8, 1, 8))))
    assert work.flops is None and work.reason is not None and "label" in work.reason
    old = work_of(
        call(
            "vllm::unified_attention_with_output",
            ((8, 2, 8), (8, 1, 8), (8, 1, 8)),
            label="execute_context_1(8_64)_generation_0(0)",
        )
    )
    assert old.flops is None and old.best_flops == 2 * 16 * 64


def test_an_engine_hides_its_experts_but_not_what_it_allocates() -> None:
    nested = (
        call("aten::empty", ((),), "ScalarList", ("[8, 2]",)),
        call("aten::empty", ((),), "ScalarList", ("[96, 32]",)),
        call("aten::empty", ((),), "ScalarList", ("[96, 64]",)),
    )
    arguments = call(
        "vllm::moe_forward",
        ((8, 64), (8, 4), ()),
        kernels=("bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t16x16x256_swiGlu_sm100f",),
        extra={"nested": nested, "kernel_grids": ((4, 6, 1),)},
    )
    work = work_of(arguments)
    # Grid 4 times tile 16 is both halves of the gated product: an intermediate size of 32.
    assert work.parameters["inter_dim"] == 32 and work.parameters["topk"] == 2 and work.compute_spec == "matrix_fp8"
    assert work.flops == 2 * 8 * 64 * 32 * 2 * 2 + 2 * 8 * 64 * 32 * 2 + 8 * 64 * 3
    inner = call("vllm::outplace_fused_experts", ((8, 64), (4, 64, 64), (4, 64, 32), (8, 2), (8, 2)))
    outer = work_of(call("vllm::moe_forward", ((8, 64), (8, 4), ()), extra={"nested": (inner,)}))
    assert (outer.flops, outer.bytes) == (work.flops, work_of(inner).bytes)
    unknown = work_of(call("vllm::moe_forward", ((8, 64), (8, 4), ())))
    assert unknown.flops is None and unknown.reason == "how many experts a token goes to is not in the trace"


def test_sizes_that_do_not_go_together_have_no_figures() -> None:
    work = work_of(call("ConvBias_", ((1, 1, 1), (1, 1, 3))))
    assert work.flops is None and work.reason == "the recorded sizes of ConvBias_ do not go together"


def test_experts_hit_by_evenly_spread_tokens() -> None:
    assert experts_hit(8, 8, 1) == 8
    assert experts_hit(8, 2, 1) == pytest.approx(2)
    assert experts_hit(128, 4, 10_000) == pytest.approx(128)


def test_names_of_fused_kernels_are_split_longest_first() -> None:
    assert fused_operators("_unsafe_view_add_mean_mul_pow_rsqrt") == (
        "_unsafe_view",
        "add",
        "mean",
        "mul",
        "pow",
        "rsqrt",
    )
    assert fused_operators("foo_add_bar") == ("add",)


def test_categories_as_the_reference_names_them() -> None:
    assert registry.family_of("aten::mm") == "GEMM"
    assert registry.family_of("triton_poi_fused_0") == "triton"
    assert registry.family_of("_C::rms_norm") == "other"
    assert registry.family_of("aten::eq", ("void at::native::vectorized_elementwise_kernel<4>",)) == "elementwise"
    assert registry.family_of("hipGraphLaunch->x", ("void at::native::reduce_kernel",)) == "other"
    assert registry.reference_models("aten::mm") and not registry.reference_models("_C::rms_norm")
    assert registry.find_backward_model("FlashAttnFunc") is not None


SHAPES = st.lists(
    st.one_of(st.just(()), st.tuples(*[st.integers(0, 9)] * 2), st.tuples(*[st.integers(1, 9)] * 3)), max_size=6
)


@given(st.sampled_from(sorted(registry.shipped_models())), SHAPES, st.sampled_from([BF16, F32, "", "TensorList"]))
def test_no_arguments_break_a_model(name: str, dims: list[tuple[int, ...]], kind: str) -> None:
    work = registry.shipped_models()[name].evaluate(call(name, tuple(dims), kind))
    assert work.flops is None or work.flops >= 0
    assert work.reason is not None or work.best_flops is not None or work.best_bytes is not None


def _mine(arguments: OperatorArguments) -> Work:
    return Work(7, 11, "vector_fp32", formula="seven")


MINE = {"my::op": Model("Mine", "mine", _mine), "my::wrong": "no model"}


def _broken() -> Mapping[str, Model]:
    raise RuntimeError("not today")


def test_users_add_models_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    points = (
        EntryPoint("mine", "tests.traces.test_models:MINE", plugins.GROUP),
        EntryPoint("broken", "tests.traces.test_models:_broken", plugins.GROUP),
        EntryPoint("absent", "tests.traces.no_such_module:X", plugins.GROUP),
    )
    monkeypatch.setattr(plugins, "entry_points", lambda group: points if group == plugins.GROUP else ())
    plugins.forget()
    try:
        work = work_of(call("my::op", ((1,),)))
        assert (work.flops, work.bytes, work.own) == (7, 11, True)
        assert registry.find_model(call("my::wrong", ())) is None
        told = plugins.problems()
        assert len(told) == 3 and any("not today" in text for text in told)
    finally:
        plugins.forget()
