"""Attention whose lengths stand in the arguments: two products of N_Q x N_KV with the head sizes.

Formula: Q K^T takes 2*N_Q*N_KV*d_qk and P V takes 2*N_Q*N_KV*d_v operations a head (FlashAttention-2, Dao 2023, 4.1);
a causal mask halves both, the softmax is not counted. Backward: five such products (four without recomputation).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build
from magpie_tui.traces.models.element_types import precision, width
from magpie_tui.traces.models.model import Calculation, Correction, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import flag, kind, number, tensor


@dataclass(frozen=True, slots=True)
class Heads:
    """Sizes of an attention: batch, query and KV length, query and KV heads, head sizes."""

    batch: int
    n_q: int
    n_kv: int
    h_q: int
    h_kv: int
    d_qk: int
    d_v: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where an operator has its tensors and flags.

    Attributes:
        tensors: Positions of q, k, v.
        heads_first: [B,H,N,d]; else [B,N,H,d].
        dropout, causal: Positions among the concrete inputs; None where the operator has none.
        typed: Whether the reference reads the type; without it there is no precision, hence no roofline.
        causal_default: Taken where the flag is not recorded.
    """

    tensors: tuple[int, int, int]
    heads_first: bool
    dropout: int | None
    causal: int | None
    typed: bool = True
    causal_default: bool = False
    flash: bool = True


def _heads(arguments: OperatorArguments, layout: Layout) -> Heads:
    q, k, v = (tensor(arguments, index, 4) for index in layout.tensors)
    h, n = (1, 2) if layout.heads_first else (2, 1)
    return Heads(q[0], q[n], k[n], q[h], k[h], q[3], v[3])


def _parameters(
    arguments: OperatorArguments, layout: Layout, heads: Heads, causal: bool, dropout: float
) -> dict[str, object]:
    shown: dict[str, object] = {
        "B": heads.batch,
        "N_Q": heads.n_q,
        "H_Q": heads.h_q,
        "N_KV": heads.n_kv,
        "H_KV": heads.h_kv,
        "d_h_qk": heads.d_qk,
        "d_h_v": heads.d_v,
        "dropout": dropout,
        "causal": causal,
        "flash_impl": layout.flash,
    }
    if layout.typed:
        shown["dtype_A_B"] = (kind(arguments, layout.tensors[0]), kind(arguments, layout.tensors[1]))
    return shown


def _numbers(heads: Heads) -> dict[str, float]:
    return {
        "B": heads.batch,
        "N_Q": heads.n_q,
        "N_KV": heads.n_kv,
        "H_Q": heads.h_q,
        "H_KV": heads.h_kv,
        "d_qk": heads.d_qk,
        "d_v": heads.d_v,
    }


def forward(layout: Layout) -> Calculation:
    """Forward pass with all lengths equal within the batch."""

    def calculate(arguments: OperatorArguments) -> Work:
        heads = _heads(arguments, layout)
        causal = layout.causal is not None and flag(arguments, layout.causal, layout.causal_default)
        dropout = number(arguments, layout.dropout, 0.0) if layout.dropout is not None else 0.0
        flops = 2 * heads.batch * heads.h_q * heads.n_q * heads.n_kv * (heads.d_qk + heads.d_v)
        size = heads.d_qk + heads.d_v
        values = heads.batch * (heads.n_q * heads.h_q + heads.n_kv * heads.h_kv) * size
        name = kind(arguments, layout.tensors[0])
        shown = _parameters(arguments, layout, heads, causal, dropout)
        work = build(
            "matrix",
            name if layout.typed else "",
            flops / 2 if causal else flops,
            lambda _of: values * 2,
            parameters=shown,
            formula="B*H_Q*N_Q*N_KV*2*(d_qk + d_v)" + ("/2" if causal else ""),
            formula_bytes="B*(N_Q*H_Q + N_KV*H_KV)*(d_qk + d_v)*2",
            numbers=_numbers(heads),
            caveats=("softmax is not counted",),
        )
        if causal and heads.n_q != heads.n_kv:
            return _causal_of_unequal(work, heads, values, name)
        return _with_true_width(work, values, name, layout.typed)

    return calculate


def _causal_of_unequal(work: Work, heads: Heads, values: int, name: str) -> Work:
    """The reference fails here; the mask of the last N_Q rows leaves N_Q*N_KV - N_Q*(N_Q-1)/2 pairs."""
    pairs = heads.n_q * heads.n_kv - heads.n_q * (heads.n_q - 1) / 2
    if heads.n_kv < heads.n_q:
        pairs = heads.n_kv * (heads.n_kv + 1) / 2
    flops = 2 * heads.batch * heads.h_q * pairs * (heads.d_qk + heads.d_v)
    moved = values * (width(name) if width(name) == width(name) else 2)
    why = "the reference has no figures for a causal mask with unequal lengths"
    return replace(
        work,
        flops=None,
        bytes=None,
        formula=f"{work.formula}; causal pairs {pairs:.0f}",
        reason="N_Q and N_KV differ under a causal mask",
        correction=Correction(why, flops, moved, work.compute_spec),
    )


def _with_true_width(work: Work, values: int, name: str, typed: bool) -> Work:
    """The reference counts two bytes whatever the type, and no type for some operators."""
    own = width(name)
    if own != own:
        return work
    flawed = work.bytes != values * own
    if typed and not flawed:
        return work
    spec = work.compute_spec or _spec(name)
    why = "counted with two bytes a value" if flawed else "the reference reads no type here"
    return replace(work, correction=Correction(why, bytes=values * own, compute_spec=spec))


def _spec(name: str) -> str | None:
    found = precision(name)
    return f"matrix_{found}" if found else None


def backward(layout: Layout, heads_of: Callable[[OperatorArguments], Heads] | None = None) -> Calculation:
    """Backward pass; the recomputed product of a flash kernel counts."""

    def calculate(arguments: OperatorArguments) -> Work:
        heads = heads_of(arguments) if heads_of else _heads(arguments, layout)
        causal = layout.causal is not None and flag(arguments, layout.causal, layout.causal_default)
        dropout = number(arguments, layout.dropout, 0.0) if layout.dropout is not None else 0.0
        terms = 2 * heads.d_v + 2 * heads.d_qk + (heads.d_qk if layout.flash else 0)
        flops: float = heads.batch * heads.h_q * 2 * heads.n_q * heads.n_kv * terms
        flops += heads.batch * heads.n_kv * (heads.d_v + heads.d_qk) * (heads.h_q // heads.h_kv - 1)
        q, k, v = (
            heads.batch * heads.n_q * heads.h_q * heads.d_qk,
            heads.batch * heads.n_kv * heads.h_kv * heads.d_qk,
            heads.batch * heads.n_kv * heads.h_kv * heads.d_v,
        )
        out = heads.batch * heads.n_q * heads.h_q * heads.d_v
        moved = 2 * (2 * (q + k + v) + out)
        return build(
            "matrix",
            kind(arguments, layout.tensors[0]) if layout.typed else "",
            flops / 2 if causal else flops,
            lambda _of: moved,
            parameters=_parameters(arguments, layout, heads, causal, dropout),
            formula=f"B*H_Q*2*N_Q*N_KV*(2*d_v + {3 if layout.flash else 2}*d_qk)" + ("/2" if causal else ""),
            numbers=_numbers(heads),
            caveats=("softmax is not counted",),
        )

    return calculate


def varlen_forward(arguments: OperatorArguments) -> Work:
    """flash_attn::_flash_attn_varlen_forward: [N,H,d]; one sequence at the longest, the rest at their mean."""
    q, k, v = (tensor(arguments, index, 3) for index in range(3))
    sequences = tensor(arguments, 3)[0] - 1
    longest_q, longest_kv = int(number(arguments, 5)), int(number(arguments, 6))
    causal = flag(arguments, 9)
    pairs = varlen_pairs(q[0], k[0], sequences, longest_q, longest_kv)
    size = q[2] + v[2]
    flops = 2 * q[1] * pairs * size
    heads = Heads(sequences, q[0], k[0], q[1], k[1], q[2], v[2])
    layout = Layout((0, 1, 2), False, 7, 9)
    return build(
        "matrix",
        kind(arguments, 0),
        flops / 2 if causal else flops,
        lambda _of: (q[0] * q[1] + k[0] * k[1]) * size * 2,
        parameters=_parameters(arguments, layout, heads, causal, number(arguments, 7, 0.0)),
        formula="2*H_Q*pairs*(d_qk + d_v)" + ("/2" if causal else ""),
        formula_bytes="(N_Q*H_Q + N_KV*H_KV)*(d_qk + d_v)*2",
        numbers=_numbers(heads) | {"pairs": pairs},
        caveats=("only the longest sequence and the number of sequences are known: the rest counts at its mean",),
    )


def varlen_pairs(n_q: int, n_kv: int, sequences: int, longest_q: int, longest_kv: int) -> float:
    """Query-key pairs of sequences of which the longest and the total are known."""
    if sequences < 1:
        raise Unmodelled("no sequences in the call")
    pairs: float = longest_q * longest_kv
    if sequences > 1:
        rest = sequences - 1
        pairs += rest * ((n_q - longest_q) / rest) * ((n_kv - longest_kv) / rest)
    return pairs


def _varlen_backward(arguments: OperatorArguments) -> Work:
    """flash_attn::_flash_attn_varlen_backward: q,k,v behind the gradient."""
    q, k, v = (tensor(arguments, index, 3) for index in (1, 2, 3))
    sequences = tensor(arguments, 9)[0] - 1
    pairs = varlen_pairs(q[0], k[0], sequences, int(number(arguments, 11)), int(number(arguments, 12)))
    causal = flag(arguments, 15)
    flops = q[1] * 2 * pairs * (2 * v[2] + 3 * q[2]) + k[0] * (v[2] + q[2]) * (q[1] // k[1] - 1)
    q_values, k_values, v_values = q[0] * q[1] * q[2], k[0] * k[1] * q[2], k[0] * k[1] * v[2]
    moved = 2 * (2 * (q_values + k_values + v_values) + q[0] * q[1] * v[2])
    heads = Heads(sequences, q[0], k[0], q[1], k[1], q[2], v[2])
    return build(
        "matrix",
        kind(arguments, 1),
        flops / 2 if causal else flops,
        lambda _of: moved,
        parameters=_parameters(arguments, Layout((1, 2, 3), False, 13, 15), heads, causal, number(arguments, 13, 0.0)),
        formula="H_Q*2*pairs*(2*d_v + 3*d_qk)" + ("/2" if causal else ""),
        numbers=_numbers(heads) | {"pairs": pairs},
    )


def _evoformer(arguments: OperatorArguments) -> Work:
    """EvoformerAttention: [B,S,R,H,d], a batch of B*S, length R."""
    batch, rows, length, heads, size = tensor(arguments, 0, 5)
    flops = 2 * batch * rows * heads * length * length * 2 * size
    values = 2 * batch * rows * length * heads * 2 * size
    return build(
        "matrix",
        kind(arguments, 0),
        flops,
        lambda _of: values * 2,
        parameters={"B": batch * rows, "N_Q": length, "H_Q": heads, "d_h_qk": size},
        formula="2*B*H_Q*N*N*2*d",
        numbers={"B": batch * rows, "H_Q": heads, "N": length, "d": size},
    )


_FLASH = Layout((0, 1, 2), True, 3, 4)
_EFFICIENT = Layout((0, 1, 2), True, 5, 6)
_FLASH_FUNCTION = Layout((0, 1, 2), False, 3, 5)
_MATH = Layout((0, 1, 2), True, 4, 5, flash=False)
_CPU = Layout((0, 1, 2), True, 3, 4)


def _fwd(calculate: Calculation, *names: str, own: bool = False) -> dict[str, Model]:
    return {name: Model("SDPA", "SDPA_fwd", calculate, own=own) for name in names}


def _bwd(calculate: Calculation, *names: str) -> dict[str, Model]:
    return {name: Model("SDPA", "SDPA_bwd", calculate, backward=True) for name in names}


def _untyped(tensors: tuple[int, int, int], dropout: int | None, causal: int) -> Layout:
    return Layout(tensors, False, dropout, causal, typed=False)


MODELS: Mapping[str, Model] = {
    **_fwd(forward(_FLASH), "aten::_scaled_dot_product_flash_attention"),
    **_fwd(
        forward(_EFFICIENT),
        "aten::_scaled_dot_product_efficient_attention",
        "aten::_scaled_dot_product_cudnn_attention",
    ),
    **_fwd(forward(_FLASH_FUNCTION), "FlashAttnFunc", "flash_attn::_flash_attn_forward"),
    **_fwd(varlen_forward, "flash_attn::_flash_attn_varlen_forward"),
    **_bwd(backward(Layout((1, 2, 3), False, 8, 10, causal_default=True)), "flash_attn::_flash_attn_backward"),
    **_bwd(_varlen_backward, "flash_attn::_flash_attn_varlen_backward"),
    **_fwd(forward(_untyped((0, 1, 2), 3, 5)), "aiter::_flash_attn_forward", "aiter::mha_fwd", "aiter::fmha_v3_fwd"),
    **_bwd(backward(_untyped((0, 1, 2), 10, 12)), "aiter::_flash_attn_backward"),
    **_bwd(backward(_untyped((1, 2, 3), 6, 8)), "aiter::mha_bwd"),
    **_fwd(forward(_untyped((1, 2, 3), 4, 6)), "aiter::wrapper_fmha_v3_fwd"),
    **_bwd(backward(_untyped((1, 2, 3), 7, 9)), "aiter::wrapper_fmha_v3_bwd"),
    **_fwd(forward(_untyped((0, 1, 2), None, 24)), "flash_attn_3::fwd"),
    **_fwd(_evoformer, "EvoformerAttention"),
    **_fwd(forward(_MATH), "aten::_scaled_dot_product_attention_math", own=True),
    **_fwd(forward(_CPU), "aten::_scaled_dot_product_flash_attention_for_cpu", own=True),
}
"""The math form's mask stands before its flags: query, key, value, mask, dropout, causal."""

BACKWARD: Mapping[str, Model] = {
    "aten::_scaled_dot_product_flash_attention": Model("SDPA", "SDPA_bwd", backward(_FLASH), backward=True),
    "aten::_scaled_dot_product_efficient_attention": Model("SDPA", "SDPA_bwd", backward(_EFFICIENT), backward=True),
    "aten::_scaled_dot_product_cudnn_attention": Model("SDPA", "SDPA_bwd", backward(_EFFICIENT), backward=True),
    "FlashAttnFunc": Model("SDPA", "SDPA_bwd", backward(_FLASH_FUNCTION), backward=True),
}
"""Backward of forward operators whose arguments it is computed from."""
