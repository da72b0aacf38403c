"""Mixtures of experts: dense work a chosen expert, and the weights of the experts that were hit.

Formula: T tokens go to k of E experts each; gate and up products take 2*T*H*I*k*g, down 2*T*H*I*k, the weighted sum
T*H*(2*k - 1) operations. With tokens spread evenly, E*(1 - ((E - k)/E)^T) experts are hit and their weights read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import spelled
from magpie_tui.traces.models.element_types import moe_width, precision, reference_precision
from magpie_tui.traces.models.model import Calculation, Correction, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import kind, number, tensor


def experts_hit(experts: int, chosen: int, tokens: int) -> float:
    """Expected number of distinct experts that `tokens` tokens reach, `chosen` each, evenly spread."""
    if experts <= 0:
        raise Unmodelled("no experts in the call")
    return float(experts * (1 - ((experts - chosen) / experts) ** tokens))


@dataclass(frozen=True, slots=True)
class Experts:
    """Sizes of a mixture: tokens, hidden and intermediate size, experts, chosen ones a token, gated or not."""

    tokens: int
    hidden: int
    inner: int
    experts: int
    chosen: int
    gated: bool

    @property
    def hit(self) -> float:
        """Experts that are expected to be hit."""
        return experts_hit(self.experts, self.chosen, self.tokens)

    @property
    def numbers(self) -> dict[str, float]:
        """Symbols of the formulas."""
        return {
            "T": self.tokens,
            "H": self.hidden,
            "I": self.inner,
            "k": self.chosen,
            "g": 2 if self.gated else 1,
            "E_hit": self.hit,
        }


_FLOPS = {
    "fused": "2*T*H*I*k*g + 2*T*H*I*k + T*H*(2*k - 1)",
    "up": "2*T*H*I*k*g",
    "down": "2*T*H*I*k",
}
_BYTES = {
    "fused": "T*H*in + E_hit*I*H*(g + 1)*w + T*H*out",
    "up": "T*H*in + E_hit*g*H*I*w + T*I*k*out",
    "down": "T*I*k*in + E_hit*I*H*w + T*H*out",
}


def answer(
    part: str,
    sizes: Experts,
    widths: tuple[float, float, float],
    precision_of: str | None,
    types: Mapping[str, object],
    caveats: tuple[str, ...] = (),
) -> Work:
    """Answer for a fused mixture, its gate and up part, or its down part.

    Args:
        part: "fused", "up" or "down".
        widths: Bytes of an element of input, weight and output.
        precision_of: Name of the precision, like "fp8".
        types: Types to show.
    """
    t, h, i, k = sizes.tokens, sizes.hidden, sizes.inner, sizes.chosen
    g = 2 if sizes.gated else 1
    of_input, of_weight, of_output = widths
    up, down = 2 * t * h * i * k * g, 2 * t * h * i * k
    if part == "fused":
        flops = up + down + t * h * (2 * k - 1)
        moved = t * h * of_input + sizes.hit * i * h * (g + 1) * of_weight + t * h * of_output
    elif part == "up":
        flops = up
        moved = t * h * of_input + sizes.hit * g * h * i * of_weight + t * i * k * of_output
    else:
        flops = down
        moved = t * i * k * of_input + sizes.hit * i * h * of_weight + t * h * of_output
    numbers = sizes.numbers | {"in": of_input, "w": of_weight, "out": of_output}
    return Work(
        flops,
        moved,
        f"matrix_{precision_of}" if precision_of else None,
        {
            "num_tokens": t,
            "hidden_dim": h,
            "inter_dim": i,
            "num_experts": sizes.experts,
            "topk": k,
            "gated": sizes.gated,
            **types,
        },
        f"FLOP {spelled(_FLOPS[part], numbers)}; bytes {spelled(_BYTES[part], numbers)}",
        ("tokens are taken to spread evenly over the experts", *caveats),
    )


def _by_types(arguments: OperatorArguments, first: int, weight: int) -> tuple[tuple[float, float, float], str, str]:
    """Widths from the recorded types: unknown inputs have two bytes, unknown weights one, the result two."""
    name, stored = kind(arguments, first), kind(arguments, weight)
    return (moe_width(name, 2), moe_width(stored, 1), 2), name, stored


def _one_stage(part: str) -> Calculation:
    """i0 [T,.], w1 [E,gI,H/p], w2 [E,H,I/p], chosen ones in i3; p values are packed in an element."""

    def calculate(arguments: OperatorArguments) -> Work:
        tokens = tensor(arguments, 0)[0]
        w1, w2 = tensor(arguments, 1, 3), tensor(arguments, 2, 3)
        hidden = w2[1]
        packed = max(1, hidden // w1[2])
        inner = w2[2] * packed
        sizes = Experts(tokens, hidden, inner, w1[0], tensor(arguments, 3)[1], w1[1] == 2 * inner)
        widths, name, stored = _by_types(arguments, 0, 1)
        precision_of = reference_precision(stored if part != "fused" else name)
        return answer(part, sizes, widths, precision_of, {"input_dtype": name, "weight_dtype": stored})

    return calculate


def _g1u1(arguments: OperatorArguments) -> Work:
    """aiter::fmoe_*_g1u1: output first, weights i2 [E,2I,H], i3 [E,H,I]."""
    w1, w2 = tensor(arguments, 2, 3), tensor(arguments, 3, 3)
    tokens = tensor(arguments, 0)[0]
    packed = max(1, w2[1] // w1[2])
    inner = w2[2] * packed
    sizes = Experts(tokens, w2[1], inner, w1[0], int(number(arguments, 8)), w1[1] == 2 * inner)
    out, name, stored = kind(arguments, 0), kind(arguments, 1), kind(arguments, 2)
    widths = (moe_width(name, 2), moe_width(stored, 1), moe_width(out, 2))
    return answer(
        "fused",
        sizes,
        widths,
        reference_precision(name),
        {"input_dtype": name, "weight_dtype": stored, "output_dtype": out},
    )


def _two_stages(part: str) -> Calculation:
    """aiter::moe_cktile2stages: up i0 [T,H], i1 [E,gI,.], i2 [T,k,I]; down i0 [T,k,I], i1 [E,H,.]."""

    def calculate(arguments: OperatorArguments) -> Work:
        first, w = tensor(arguments, 0), tensor(arguments, 1, 3)
        widths, name, stored = _by_types(arguments, 0, 1)
        if part == "up":
            out = tensor(arguments, 2, 3)
            sizes = Experts(first[0], first[1], out[2], w[0], out[1], w[1] == 2 * out[2])
        else:
            sizes = Experts(first[0], w[1], first[2], w[0], first[1], False)
        types = {"input_dtype": name, "weight_dtype": stored}
        return answer(part, sizes, widths, reference_precision(stored), types)

    return calculate


def _ck_stage(part: str) -> Calculation:
    """aiter::ck_moe_stage1 / stage2."""

    def calculate(arguments: OperatorArguments) -> Work:
        first = tensor(arguments, 0)
        widths, name, stored = _by_types(arguments, 0, 1)
        w1, w2 = tensor(arguments, 1, 3), tensor(arguments, 2, 3)
        packed = max(1, w2[1] // w1[2])
        inner = w2[2] * packed
        if part == "up":
            sizes = Experts(first[0], w2[1], inner, w1[0], tensor(arguments, 6)[1], w1[1] == 2 * inner)
        else:
            sizes = Experts(first[0], w2[1], inner, w2[0], first[1], False)
        types = {"input_dtype": name, "weight_dtype": stored}
        return answer(part, sizes, widths, reference_precision(stored), types)

    return calculate


def _matmul_ogs(part: str) -> Calculation:
    """Triton's matmul_ogs (gpt-oss): no weights among the arguments, so the intermediate size counts as the hidden."""

    def calculate(arguments: OperatorArguments) -> Work:
        tokens, hidden = tensor(arguments, 0, 2)
        experts = tensor(arguments, 1, 2)[1]
        chosen = int(str(arguments.extra.get("MoE topk", 4)))
        gated = part == "up" and bool(arguments.extra.get("MoE GEMM gated", _is_gated(arguments)))
        weight = _weight_of_kernel(arguments.kernel_names)
        name = kind(arguments, 0)
        sizes = Experts(tokens, hidden, hidden, experts, chosen, gated)
        widths = (moe_width(name, 2), moe_width(weight, 1), 2.0)
        precision_of = reference_precision(weight) or reference_precision(name)
        work = answer(
            part,
            sizes,
            widths,
            precision_of,
            {"input_dtype": name, "weight_dtype": weight},
            ("the intermediate size is not in the trace: taken to be the hidden size",),
        )
        own = precision(name)
        if own is None or own == precision_of:
            return work
        why = "weights are widened to the activations' type before they are multiplied: its peak counts"
        return replace(work, correction=Correction(why, compute_spec=f"matrix_{own}"), caveats=(*work.caveats, why))

    return calculate


def _is_gated(arguments: OperatorArguments) -> bool:
    return any("_swiglu" in name or "_glu" in name for name in arguments.kernel_names)


def _weight_of_kernel(kernel_names: tuple[str, ...]) -> str:
    """Type of the weights from a matmul_ogs kernel's name: ``bf16xbf16xmxfp4``."""
    name = " ".join(kernel_names).lower()
    if "mxfp4" in name or "fp4" in name:
        return "FP4"
    if "fp8" in name or "e4m3" in name:
        return "FP8"
    return "c10::BFloat16"


def _packed_four_bit(part: str) -> Calculation:
    """pseudo_op::moe_gptq_awq: weights [E,2I,.] and [E,H,I/2], half a byte a value."""

    def calculate(arguments: OperatorArguments) -> Work:
        first = tensor(arguments, 0)
        name = kind(arguments, 0)
        if part == "up":
            w = tensor(arguments, 1)
            sizes = Experts(first[0], first[1], w[1] // 2, w[0], _chosen(arguments), True)
        else:
            w = tensor(arguments, 2)
            sizes = Experts(first[0], first[1], 2 * w[2], w[0], _chosen(arguments), False)
        widths = (moe_width(name, 2), 0.5, 2.0)
        return answer(part, sizes, widths, reference_precision(name), {"input_dtype": name, "weight_dtype": "FP4"})

    return calculate


def _chosen(arguments: OperatorArguments) -> int:
    if "MoE topk" in arguments.extra:
        return int(str(arguments.extra["MoE topk"]))
    return tensor(arguments, 3)[1]


def _fused_moe_kernel(arguments: OperatorArguments) -> Work:
    """SGLang's invoke_fused_moe_kernel: B=i1 [E,N,K], ids=i8 [T,k]; one product of T*k rows."""
    experts, n, k = tensor(arguments, 1, 3)
    tokens, chosen = tensor(arguments, 8, 2)
    rows = tokens * chosen
    name, stored = kind(arguments, 0), kind(arguments, 1)
    out = kind(arguments, 3) or name
    hit = experts_hit(experts, chosen, tokens)
    moved = rows * k * moe_width(name, 2) + hit * n * k * moe_width(stored, 1) + rows * n * moe_width(out, 2)
    found = reference_precision(stored)
    numbers = {"R": rows, "N": n, "K": k, "E_hit": hit}
    return Work(
        2 * rows * n * k,
        moved,
        f"matrix_{found}" if found else None,
        {"num_tokens": tokens, "num_experts": experts, "topk": chosen, "N": n, "K": k},
        f"FLOP {spelled('2*R*N*K', numbers)}; bytes {spelled('R*K*in + E_hit*N*K*w + R*N*out', numbers)}",
        ("tokens are taken to spread evenly over the experts",),
    )


def _moe(sheet: str, calculate: Callable[[OperatorArguments], Work], *names: str) -> dict[str, Model]:
    return {name: Model(sheet, sheet, calculate) for name in names}


MODELS: Mapping[str, Model] = {
    **_moe("MoE_fused", _one_stage("fused"), "pseudo_op::moe_aiter_fused_1stage"),
    **_moe("MoE_fused", _g1u1, "aiter::fmoe_fp8_blockscale_g1u1", "aiter::fmoe_g1u1"),
    **_moe("MoE_unfused", _one_stage("up"), "pseudo_op::moe_flydsl_stage1"),
    **_moe("MoE_unfused", _one_stage("down"), "pseudo_op::moe_flydsl_stage2"),
    **_moe("MoE_unfused", _two_stages("up"), "aiter::moe_cktile2stages_gemm1_ck"),
    **_moe("MoE_unfused", _two_stages("down"), "aiter::moe_cktile2stages_gemm2_ck"),
    **_moe("MoE_unfused", _ck_stage("up"), "aiter::ck_moe_stage1"),
    **_moe("MoE_unfused", _ck_stage("down"), "aiter::ck_moe_stage2"),
    **_moe("MoE_unfused", _matmul_ogs("up"), "pseudo_op::moe_triton_unfused_up"),
    **_moe("MoE_unfused", _matmul_ogs("down"), "pseudo_op::moe_triton_unfused_down"),
    **_moe("MoE_unfused", _packed_four_bit("up"), "pseudo_op::moe_gptq_awq_up"),
    **_moe("MoE_unfused", _packed_four_bit("down"), "pseudo_op::moe_gptq_awq_down"),
    **_moe("MoE_unfused", _fused_moe_kernel, "sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel"),
}
