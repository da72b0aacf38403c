"""Convolutions, forward and backward.

Formula: each output element sums over the filter of one output channel: 2*out*prod(filter sizes without the first)
operations (Goodfellow, Deep Learning, 9.1); input, filter and output move once. The output's size follows from stride,
padding and dilation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build
from magpie_tui.traces.models.element_types import width
from magpie_tui.traces.models.model import Calculation, Correction, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import (
    Sizes,
    elements,
    flag,
    has_sizes,
    kind,
    number,
    strides,
    tensor,
    truths,
    whole_numbers,
)


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of input and filter, and how the filter moves."""

    source: Sizes
    filter: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    transposed: bool
    output_padding: Sizes
    groups: int

    @property
    def result(self) -> Sizes:
        """Sizes of the output."""
        spatial = []
        for axis, size in enumerate(self.source[2:]):
            window = self.dilation[axis] * (self.filter[2 + axis] - 1) + 1
            if self.transposed:
                extra = self.output_padding[axis] if self.output_padding else 0
                spatial.append((size - 1) * self.stride[axis] - 2 * self.padding[axis] + window + extra)
            else:
                spatial.append((size + 2 * self.padding[axis] - window) // self.stride[axis] + 1)
        channels = self.filter[1] * self.groups if self.transposed else self.filter[0]
        return (self.source[0], channels, *spatial)

    @property
    def products(self) -> int:
        """Operations without a bias."""
        base = self.source if self.transposed else self.result
        return 2 * elements(base) * elements(self.filter[1:])


def _geometry(arguments: OperatorArguments, source: int, weight: int, first: int) -> Geometry:
    x, w = tensor(arguments, source), tensor(arguments, weight)
    rank = len(x) - 2
    if rank < 1 or len(w) != len(x):
        raise Unmodelled(f"sizes {list(x)} and {list(w)} make no convolution")
    lists = [whole_numbers(arguments, index) for index in (first, first + 1, first + 2)]
    stride, padding, dilation = ((item * rank)[:rank] if item else (1,) * rank for item in lists)
    if not lists[1]:
        padding = (0,) * rank
    return Geometry(
        x,
        w,
        stride,
        padding,
        dilation,
        flag(arguments, first + 3),
        whole_numbers(arguments, first + 4) or (0,) * rank,
        int(number(arguments, first + 5, 1)),
    )


def _parameters(
    arguments: OperatorArguments, found: Geometry, source: int, weight: int, bias: object
) -> dict[str, object]:
    return {
        "convNd": f"conv{len(found.source) - 2}d",
        "input_shape": found.source,
        "filter_shape": found.filter,
        "dtype_input_weight": (kind(arguments, source), kind(arguments, weight)),
        "input_stride": strides(arguments, source),
        "weight_stride": strides(arguments, weight),
        "bias": bias,
        "stride": found.stride,
        "padding": found.padding,
        "dilation": found.dilation,
        "transposed_conv": found.transposed,
        "output_padding": found.output_padding,
        "groups": found.groups,
    }


def _forward(always_bias: bool) -> Calculation:
    def calculate(arguments: OperatorArguments) -> Work:
        found = _geometry(arguments, 0, 1, 3)
        name = kind(arguments, 0)
        if kind(arguments, 1) != name:
            raise Unmodelled(f"input and filter have different types: {name} and {kind(arguments, 1)}")
        out = elements(found.result)
        bias = always_bias or len(arguments.input_dims) == 3
        moved = elements(found.source) + elements(found.filter) + out
        channels = found.result[1]
        flops = found.products + (out if bias else 0)
        work = build(
            "matrix",
            name,
            flops,
            lambda of: (moved + (channels if bias else 0)) * of(name),
            parameters=_parameters(arguments, found, 0, 1, bias),
            formula="2*out*w" + (" + out" if bias else ""),
            formula_bytes="(n_in + n_w + out)*a",
            numbers={
                "out": elements(found.source) if found.transposed else out,
                "w": elements(found.filter[1:]),
                "n_in": elements(found.source),
                "n_w": elements(found.filter),
            },
        )
        if bias or not has_sizes(arguments, 2):
            return work
        size = width(name)
        why = "the reference leaves the bias out"
        return replace(work, correction=Correction(why, flops + out, (moved + channels) * size, work.compute_spec))

    return calculate


def _backward(arguments: OperatorArguments) -> Work:
    """aten::convolution_backward(grad, input, weight, bias sizes, ...): three gradients by the mask."""
    found = _geometry(arguments, 1, 2, 4)
    name = kind(arguments, 1)
    if kind(arguments, 2) != name:
        raise Unmodelled(f"input and filter have different types: {name} and {kind(arguments, 2)}")
    grad = tensor(arguments, 0)
    mask = (*truths(arguments, 10), True, True, False)[:3] if truths(arguments, 10) else (True, True, False)
    bias = mask[2]
    out, source, weights = elements(grad), elements(found.source), elements(found.filter)
    one = found.products
    flops = 2 * one + (out if bias else 0)
    moved = (out + weights + source) + (out + source + weights)
    channels = grad[1]
    work = build(
        "matrix",
        name,
        flops,
        lambda of: moved * of(name) + (out + channels if bias else 0),
        parameters=_parameters(arguments, found, 1, 2, []),
        formula="2*(2*out*w)" + (" + out" if bias else ""),
        formula_bytes="2*(out + n_in + n_w)*a",
        numbers={"out": out, "w": elements(found.filter[1:]), "n_in": source, "n_w": weights},
    )
    true_flops = (one if mask[0] else 0) + (one if mask[1] else 0) + (out if bias else 0)
    halves = (1 if mask[0] else 0) + (1 if mask[1] else 0)
    true_bytes = (moved / 2 * halves + (out + channels if bias else 0)) * width(name)
    if true_flops == flops and true_bytes == work.bytes:
        return work
    why = "the reference counts gradients that were not asked for, and the bias in elements"
    return replace(work, correction=Correction(why, true_flops, true_bytes, work.compute_spec))


def _causal(arguments: OperatorArguments) -> Work:
    """A causal convolution of each channel with its own filter: x [B,C,L], weight [C,k]."""
    x, w = tensor(arguments, 0, 3), tensor(arguments, 1, 2)
    name = kind(arguments, 0)
    count = elements(x)
    return build(
        "vector",
        name,
        2 * count * w[1],
        lambda of: (2 * count + elements(w)) * of(name),
        parameters={"B": x[0], "C": x[1], "L": x[2], "k": w[1]},
        formula="2*B*C*L*k",
        formula_bytes="(2*n + n_w)*a",
        numbers={"B": x[0], "C": x[1], "L": x[2], "k": w[1], "n": count, "n_w": elements(w)},
    )


def _models(category: str, calculate: Calculation, *names: str, own: bool = False) -> dict[str, Model]:
    return {name: Model("CONV", category, calculate, own=own, backward=category.endswith("bwd")) for name in names}


MODELS: Mapping[str, Model] = {
    **_models("CONV_fwd", _forward(False), "aten::convolution"),
    **_models("CONV_fwd", _forward(True), "ConvBias_", "ConvBiasReLU_"),
    **_models("CONV_bwd", _backward, "aten::convolution_backward"),
    "DaoAILab::_causal_conv1d_fwd_cpp": Model("SSM", "SSM_fwd", _causal),
    **_models("CONV_fwd", _forward(False), "aten::_convolution", own=True),
}
