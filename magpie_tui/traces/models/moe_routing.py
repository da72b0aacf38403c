"""Choosing experts, sorting tokens by expert, sharing them out and adding up what comes back.

Formula: comparisons of all scores, then bytes of what is read and written once; a softmax takes 6 operations a score.
"""

from __future__ import annotations

from collections.abc import Mapping

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build
from magpie_tui.traces.models.model import Calculation, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import elements, kind, number, tensor, tensors


def _largest(arguments: OperatorArguments) -> Work:
    """One operation an element of the largest operand; every operand moves once."""
    found = tensors(arguments)
    if not found:
        raise Unmodelled("no shapes recorded")
    count = max(elements(shape) for shape, _name in found)
    return build(
        "vector",
        kind(arguments, 0),
        count,
        lambda of: sum(elements(shape) * of(name) for shape, name in found),
        parameters={"op_shape": found[0][0]},
        formula="n",
        formula_bytes="every operand once",
        numbers={"n": count},
    )


def _append_shared(arguments: OperatorArguments) -> Work:
    """Ids and weights of the chosen experts, with the shared ones behind them."""
    ids, weights = tensor(arguments, 0), tensor(arguments, 1)
    return build(
        "vector",
        kind(arguments, 1),
        elements(ids),
        lambda of: 2 * (elements(ids) * of(kind(arguments, 0)) + elements(weights) * of(kind(arguments, 1))),
        parameters={"op_shape": ids},
        formula="n",
        formula_bytes="2*(n0*a + n1*b)",
        numbers={"n": elements(ids), "n0": elements(ids), "n1": elements(weights)},
    )


def _softplus(arguments: OperatorArguments) -> Work:
    """aiter::topk_softplus: logits i2 [M,E], k from i0."""
    tokens, experts = tensor(arguments, 2, 2)
    chosen = tensor(arguments, 0, 2)[1]
    name = kind(arguments, 2)
    return build(
        "vector",
        name,
        6 * tokens * experts,
        lambda of: tokens * experts * of(name) + 4 * experts + 8 * tokens * chosen,
        parameters={"num_tokens": tokens, "num_experts": experts, "topk": chosen},
        formula="6*M*E",
        formula_bytes="M*E*a + 4*E + 8*M*k",
        numbers={"M": tokens, "E": experts, "k": chosen},
    )


def _exchanged(arguments: OperatorArguments) -> Work:
    """MoEDispatch, MoECombine: the tokens once."""
    shape, name = tensor(arguments, 0), kind(arguments, 0)
    return build(
        "vector",
        name,
        0,
        lambda of: elements(shape) * of(name),
        parameters={"op_shape": shape, "dtype": name},
        formula_bytes="n*a",
        numbers={"n": elements(shape)},
    )


def _scores(logits: int, chosen: int | None) -> Calculation:
    """Softmax or sigmoid of all scores and the best k: weights and ids of four bytes are written."""

    def calculate(arguments: OperatorArguments) -> Work:
        tokens, experts = tensor(arguments, logits, 2)
        name = kind(arguments, logits)
        k = tensor(arguments, chosen, 2)[1] if chosen is not None else int(number(arguments, 1, 4))
        return build(
            "vector",
            name,
            6 * tokens * experts,
            lambda of: tokens * experts * of(name) + 8 * tokens * k,
            parameters={"num_tokens": tokens, "num_experts": experts, "topk": k},
            formula="6*M*E",
            formula_bytes="M*E*a + 8*M*k",
            numbers={"M": tokens, "E": experts, "k": k},
        )

    return calculate


def _sort_tokens(arguments: OperatorArguments) -> Work:
    """SortTokens of Triton's kernels (gpt-oss): a pass over the choices for the counts and one for the places."""
    chosen = tensor(arguments, 0, 2)
    count = elements(chosen)
    weights, ids = kind(arguments, 0), kind(arguments, 1)
    return build(
        "vector",
        weights,
        count,
        lambda of: count * (2 * of(weights) + 2 * of(ids) + 8),
        parameters={"num_tokens": chosen[0], "topk": chosen[1]},
        formula="M*k",
        formula_bytes="M*k*(2*a + 2*b + 8)",
        numbers={"M": chosen[0], "k": chosen[1]},
        caveats=("gate weights and ids read and written once, two index lists of four bytes written",),
    )


def _finalize_scatter(arguments: OperatorArguments) -> Work:
    """Adds up the k rows of every token: [T*k,H] read, [T,H] written."""
    tokens, hidden = tensor(arguments, 0, 2)
    chosen = int(str(arguments.extra.get("MoE topk", 4)))
    name = kind(arguments, 0)
    return build(
        "vector",
        name,
        tokens * hidden * (chosen - 1),
        lambda of: tokens * hidden * (chosen + 1) * of(name) + 4 * tokens * chosen,
        parameters={"num_tokens": tokens, "hidden_dim": hidden, "topk": chosen},
        formula="T*H*(k - 1)",
        formula_bytes="T*H*(k + 1)*a + 4*T*k",
        numbers={"T": tokens, "H": hidden, "k": chosen},
        caveats=() if "MoE topk" in arguments.extra else ("the number of chosen experts is taken to be 4",),
    )


def _sum(arguments: OperatorArguments) -> Work:
    """moe_sum(input [T,k,H], output [T,H])."""
    source, name = tensor(arguments, 0, 3), kind(arguments, 0)
    tokens, chosen, hidden = source
    return build(
        "vector",
        name,
        tokens * hidden * (chosen - 1),
        lambda of: tokens * hidden * (chosen + 1) * of(name),
        parameters={"num_tokens": tokens, "hidden_dim": hidden, "topk": chosen},
        formula="T*H*(k - 1)",
        formula_bytes="T*H*(k + 1)*a",
        numbers={"T": tokens, "H": hidden, "k": chosen},
    )


def _models(sheet: str, calculate: Calculation, *names: str, own: bool = False) -> dict[str, Model]:
    return {name: Model(sheet, sheet, calculate, own=own) for name in names}


MODELS: Mapping[str, Model] = {
    **_models(
        "MoE_aux", _largest, "aiter::biased_grouped_topk_hip", "aiter::moe_sorting_fwd", "aiter::mxfp4_moe_sort_hip"
    ),
    **_models("MoE_aux", _append_shared, "sglang_profiler::fused_moe_triton_kernels_fused_append_shared_experts"),
    **_models("MoE_aux", _softplus, "aiter::topk_softplus"),
    **_models("MoE_comm", _exchanged, "MoEDispatch", "MoECombine"),
    # topk_softmax(weights, ids, source rows, gating output)
    **_models("MoE_aux", _scores(3, 0), "_moe_C::topk_softmax", "aiter::topk_softmax", own=True),
    **_models("MoE_aux", _scores(2, 0), "sgl_kernel::topk_softmax", own=True),
    **_models("MoE_aux", _scores(0, None), "TopK", own=True),
    **_models("MoE_aux", _sort_tokens, "SortTokens", own=True),
    **_models("MoE_unfused", _finalize_scatter, "pseudo_op::moe_triton_unfused_finalize_matmul_scatter", own=True),
    **_models("MoE_aux", _sum, "_moe_C::moe_sum", "aiter::moe_sum", own=True),
    **_models(
        "MoE_aux",
        _largest,
        "aiter::moe_sorting_opus_fwd",
        "aiter::moe_align_block_size",
        "_moe_C::moe_align_block_size",
        "sgl_kernel::moe_align_block_size",
        "_moe_C::grouped_topk",
        "aiter::grouped_topk",
        "aiter::moe_fused_gate",
        "sgl_kernel::moe_fused_gate",
        own=True,
    ),
}
