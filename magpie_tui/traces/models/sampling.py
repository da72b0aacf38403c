"""Sampling of the next token: passes over the logits of the whole vocabulary.

Formula: temperature, softmax and the drawing take a few operations a logit; logits move once (a kernel that sorts
moves them several times and shows as far from the roof).
"""

from __future__ import annotations

from collections.abc import Mapping

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build
from magpie_tui.traces.models.element_types import precision
from magpie_tui.traces.models.model import Calculation, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import elements, kind, tensor, tensors


def _exponential(arguments: OperatorArguments) -> Work:
    """aiter::mixed_sample_outer_exponential: logits i1 [T,V] and as much noise."""
    tokens, vocabulary = tensor(arguments, 1, 2)
    name, noise = kind(arguments, 1), kind(arguments, 2)
    count = tokens * vocabulary
    return build(
        "vector",
        name,
        2 * count,
        lambda of: count * (of(name) + of(noise)) + 4 * tokens,
        parameters={"op_shape": (tokens, vocabulary), "dtype": name},
        formula="2*T*V",
        formula_bytes="T*V*(a + b) + 4*T",
        numbers={"T": tokens, "V": vocabulary},
    )


def _cross_entropy(arguments: OperatorArguments) -> Work:
    """CrossEntropyFunction: 5 operations a logit; indices and losses beside it."""
    shape, name = tensor(arguments, 0), kind(arguments, 0)
    batch, vocabulary = elements(shape[:-1]), shape[-1]
    return build(
        "vector",
        name,
        5 * batch * vocabulary,
        lambda of: batch * vocabulary * of(name) + 8 * batch + 4 * batch,
        parameters={"op_shape": shape, "dtype": name},
        formula="5*B*V",
        formula_bytes="B*V*a + 12*B",
        numbers={"B": batch, "V": vocabulary},
    )


def _over_logits(operations: int, *, written: bool) -> Calculation:
    """One pass over the largest tensor of floats; ``written``: it is written too."""

    def calculate(arguments: OperatorArguments) -> Work:
        found = [(shape, name) for shape, name in tensors(arguments) if precision(name) is not None]
        if not found:
            raise Unmodelled("no logits among the arguments")
        shape, name = max(found, key=lambda item: elements(item[0]))
        count, rows = elements(shape), elements(shape[:-1])
        times = 2 if written else 1
        return build(
            "vector",
            name,
            operations * count,
            lambda of: times * count * of(name) + 4 * rows,
            parameters={"op_shape": shape},
            formula=f"{operations}*n",
            formula_bytes=f"{times}*n*a + 4*T",
            numbers={"n": count, "T": rows},
        )

    return calculate


def _sorted(passes: int) -> Calculation:
    """Sorting and top-k over the last dimension: values read, values and eight-byte places written."""

    def calculate(arguments: OperatorArguments) -> Work:
        shape, name = tensor(arguments, 0), kind(arguments, 0)
        count = elements(shape)
        return build(
            "vector",
            name,
            passes * count,
            lambda of: 2 * count * of(name) + 8 * count,
            parameters={"op_shape": shape},
            formula=f"{passes}*n",
            formula_bytes="2*n*a + 8*n",
            numbers={"n": count},
            caveats=("one pass over the values: a radix sort takes several",),
        )

    return calculate


def _top(arguments: OperatorArguments) -> Work:
    """aten::topk: values read once; what is written is small."""
    shape, name = tensor(arguments, 0), kind(arguments, 0)
    count = elements(shape)
    return build(
        "vector",
        name,
        count,
        lambda of: count * of(name),
        parameters={"op_shape": shape},
        formula="n",
        formula_bytes="n*a",
        numbers={"n": count},
    )


def _own(calculate: Calculation, *names: str) -> dict[str, Model]:
    return {name: Model("Sampling", "Sampling", calculate, own=True) for name in names}


MODELS: Mapping[str, Model] = {
    "aiter::mixed_sample_outer_exponential": Model("Sampling", "elementwise", _exponential),
    "CrossEntropyFunction": Model("CrossEntropy", "CrossEntropy_fwd", _cross_entropy),
    **_own(_sorted(1), "aten::sort", "aten::argsort", "aten::msort"),
    **_own(_top, "aten::topk", "aten::kthvalue"),
    **_own(
        _over_logits(6, written=False),
        "aten::multinomial",
        "flashinfer::sampling_from_probs",
        "flashinfer::sampling_from_logits",
        "flashinfer::top_k_sampling_from_probs",
        "flashinfer::top_p_sampling_from_probs",
        "flashinfer::top_k_top_p_sampling_from_probs",
        "flashinfer::min_p_sampling_from_probs",
        "sgl_kernel::top_k_top_p_sampling_from_probs",
        "sgl_kernel::min_p_sampling_from_probs",
        "aiter::greedy_sample",
    ),
    **_own(
        _over_logits(8, written=True),
        "flashinfer::softmax",
        "flashinfer::top_k_renorm_probs",
        "flashinfer::top_p_renorm_probs",
        "flashinfer::top_k_mask_logits",
        "sgl_kernel::top_k_renorm_probs",
        "sgl_kernel::top_p_renorm_probs",
        "_C::apply_repetition_penalties_",
    ),
}
