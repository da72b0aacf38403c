"""What kernel names tell: against labels set by hand for the kernels that hold 95 % of the time of real traces."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.sources.categories import CATEGORIES
from magpie_tui.sources.facts import facts_of, fused_ops
from magpie_tui.sources.families import FAMILIES
from magpie_tui.sources.plain import demangled, function_of, template_arguments, without_brackets

LABELS = Path(__file__).parent / "labelled_kernels.csv"


def test_families_and_categories_of_labelled_kernels() -> None:
    with LABELS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    wrong = []
    for row in rows:
        facts = facts_of(row["name"])
        if (facts.family, facts.category) != (row["family"], row["category"]):
            wrong.append((row["name"][:80], facts.family, facts.category, row["family"], row["category"]))
    assert len(rows) > 150
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "family", "category"),
    [
        ("execute_context_2(1024)_generation_0(0)", "annotation", "annotation"),
        ("## Call CompiledFxGraph fx ##", "annotation", "annotation"),
        ("Memcpy HtoD (Pinned -> Device)", "copy", "copy"),
        ("__amd_rocclr_fillBufferAligned.kd", "rocclr", "fill"),
        ("void flashinfer::BatchPrefillWithPagedKVCacheKernel<float>(int)", "flashinfer", "attention"),
        ("_topk_forward", "triton", "router"),
        ("create_flashinfer_kv_indices_triton", "triton", "kv_cache"),
        ("triton_tem_fused_addmm_3", "inductor", "gemm"),
        ("transpose_NCHW2CNHW_V2_2D_WG_off64", "miopen", "copy"),
        ("rcclGenericKernel", "nccl", "communication"),
        ("void rocprim::detail::trampoline_kernel<int>(int)", "rocprim", "unknown"),
        ("strange name, no kernel", "unknown", "unknown"),
        # Template arguments decide nothing: this is some library's reduction.
        ("void lib::reduce_all<lib::softmax_tag, lib::gemm_tag>(float*)", "hip_cpp", "reduction"),
    ],
)
def test_single_names(name: str, family: str, category: str) -> None:
    facts = facts_of(name)
    assert (facts.family, facts.category) == (family, category)


def test_facts_of_a_tensile_name() -> None:
    facts = facts_of("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64_MI16x16x1_SN_GSU4_WG64_4_1")
    assert facts.facts == {
        "a": "transposed",
        "b": "not transposed",
        "dtype": "bf16",
        "macro_tile": "256x32x64",
        "matrix_instruction": "16x16x1",
        "split_k": "4",
        "work_group": "64x4x1",
    }


def test_facts_of_other_families() -> None:
    assert facts_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)").facts == {
        "what": "AllReduce",
        "op": "Sum",
        "dtype": "bf16",
        "algorithm": "RING",
        "protocol": "LL",
    }
    matmul = facts_of("_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu.kd")
    assert matmul.function == "_matmul_ogs_NNT"
    assert matmul.facts["configuration"] == "bf16xbf16xmxfp4_128x128x128x1_swiglu"
    assert facts_of("nvjet_sm90_tst_64x8_64x16_1x4_h_bz_TNT").facts["layout"] == "TNT"
    assert facts_of("kernel_unified_attention_2d").function == "kernel_unified_attention_2d"
    assert facts_of("igemm_wrw_gtcx2_nhwc_bf16_bx0_ex1_bt256x128x16_wt32x32x8").facts["direction"] == "backward weights"


def test_what_inductor_fused() -> None:
    assert fused_ops("_unsafe_view_mul_silu") == ["_unsafe_view", "mul", "silu"]
    assert fused_ops("_to_copy_add_native_layer_norm") == ["_to_copy", "add", "native_layer_norm"]
    assert facts_of("triton_red_fused_add_mean_mul_pow_rsqrt_0").facts == {
        "kind": "reduction",
        "fuses": "add, mean, mul, pow, rsqrt",
    }


def test_mangled_names() -> None:
    whole = "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib"
    assert demangled(whole).startswith("void aiter::add_rmsnorm_quant_kernel<")
    # A name that the profiler cut off cannot be demangled; its beginning can be read.
    assert demangled("_ZN7ck_tile6kentryILi1ENS_12Rms") == "ck_tile::kentry"
    assert demangled("_Z9hip_thing") == "hip_thing"
    assert demangled("void f<int>(int) [clone .kd]") == "void f<int>(int)"


def test_functions_of_odd_types() -> None:
    text = "std::enable_if<(((8)>(0)))&&a::b<c10::BFloat16>::exists, void>::type vllm::norm<float, 8>(float*, long)"
    assert function_of(text) == "vllm::norm"
    assert function_of("void (anonymous namespace)::k<T, 16>(int)") == "k"
    assert (
        function_of("void cutlass::Kernel2<cutlass_80_gemm_bf16>(cutlass_80_gemm_bf16::Params)")
        == "cutlass_80_gemm_bf16"
    )
    assert template_arguments("void f<a, b<c, d> >(int)") == ("a", "b<c, d>")
    assert template_arguments("f(int)") == ()


@given(st.text(alphabet=st.sampled_from("_ZN019abIE<>(){}:, -\x00é"), max_size=60))
def test_no_name_is_too_odd(name: str) -> None:
    facts = facts_of(name)
    assert facts.family in FAMILIES
    assert facts.category in CATEGORIES
    assert isinstance(without_brackets(name), str)
