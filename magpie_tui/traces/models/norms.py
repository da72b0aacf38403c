"""Batch, layer, group, instance and RMS norm, forward and backward.

Formula: per channel the mean and the variance with their roots (6 operations), per element the shift and the scale
(2, and 3 more for the statistics when training); counting as TraceLens does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build
from magpie_tui.traces.models.element_types import WidthOf
from magpie_tui.traces.models.model import Calculation, Correction, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import (
    Sizes,
    elements,
    has_sizes,
    kind,
    number,
    strides,
    tensor,
    text,
    truths,
    whole_numbers,
)


@dataclass(frozen=True, slots=True)
class Norm:
    """What a norm works on: shape and type of its input, channels, and what it learns."""

    shape: Sizes
    kind: str
    channels: float
    bias: bool
    affine: bool
    training: bool
    strides: Sizes | None
    mask: tuple[bool, ...] | None = None

    @property
    def parameters(self) -> dict[str, object]:
        """The reference's columns."""
        shown: dict[str, object] = {
            "op_shape": self.shape,
            "dtype_in_out": (self.kind, None),
            "stride_input": self.strides,
            "stride_output": None,
            "num_channels": self.channels,
            "has_bias": self.bias,
            "is_affine": self.affine,
            "is_training": self.training,
        }
        if self.mask is not None:
            shown["output_mask"] = list(self.mask)
        return shown


def _forward(norm: Norm) -> Work:
    n, c = elements(norm.shape), norm.channels
    per_element = 5 if norm.training else 2
    stored = 2 + norm.affine + norm.bias + (2 if norm.training else 0)
    return build(
        "vector",
        norm.kind,
        6 * c + per_element * n,
        lambda of: (2 * n + c * stored) * of(norm.kind),
        parameters=norm.parameters,
        formula=f"6*c + {per_element}*n",
        formula_bytes=f"(2*n + {stored}*c)*a",
        numbers={"n": n, "c": c},
    )


def _by_channels(arguments: OperatorArguments) -> Work:
    """Batch and instance norm; the flag is text for the reference, so always true."""
    shape = tensor(arguments, 0)
    if len(shape) < 2:
        raise Unmodelled("a norm over channels needs two dimensions")
    training = bool(text(arguments, 5))
    norm = Norm(shape, kind(arguments, 0), shape[1], True, True, training, strides(arguments, 0))
    work = _forward(norm)
    if text(arguments, 5) != "False":
        return work
    ours = _forward(replace(norm, training=False))
    why = "the reference takes every batch norm for one in training"
    return replace(work, correction=Correction(why, ours.best_flops, ours.best_bytes, ours.best_compute_spec))


def _by_groups(arguments: OperatorArguments) -> Work:
    shape = tensor(arguments, 0)
    if len(shape) < 2:
        raise Unmodelled("a norm over channels needs two dimensions")
    return _forward(Norm(shape, kind(arguments, 0), shape[1], True, True, True, strides(arguments, 0)))


def _layer(arguments: OperatorArguments) -> Work:
    shape, normalised = tensor(arguments, 0), whole_numbers(arguments, 1)
    if not normalised:
        raise Unmodelled("the normalised sizes were not recorded")
    channels = elements(normalised)
    return _forward(Norm(shape, kind(arguments, 0), channels, True, True, True, strides(arguments, 0)))


def _backward(norm: Norm) -> Work:
    """Per channel with e elements: 4e for the sums, 5e for the input's gradient when training."""
    n, c = elements(norm.shape), norm.channels
    mask = norm.mask or (True,)
    grad = bool(mask[0])
    e = n / c
    per_channel = (0 if norm.training else 3) + 4 * e
    if grad and norm.training:
        per_channel += 5 * e
    elif not grad:
        per_channel += 2 * e
    reads = 2 if grad and norm.training else 1
    stored = norm.training + norm.affine * (1 + norm.training * (1 + norm.bias))
    return build(
        "vector",
        norm.kind,
        c * per_channel,
        lambda of: (n + n * reads + c * stored) * of(norm.kind),
        parameters=norm.parameters,
        formula="c*f",
        formula_bytes=f"(n*{1 + reads} + {stored}*c)*a",
        numbers={"c": c, "f": per_channel, "n": n},
    )


def _batch_backward(training_index: int | None) -> Calculation:
    def calculate(arguments: OperatorArguments) -> Work:
        shape = tensor(arguments, 0)
        training = training_index is not None and text(arguments, training_index) == "True"
        norm = Norm(shape, kind(arguments, 0), shape[1], True, True, training, strides(arguments, 0), (True,))
        return _backward(norm)

    return calculate


def _layer_backward(arguments: OperatorArguments) -> Work:
    shape, channels = tensor(arguments, 0), elements(whole_numbers(arguments, 2))
    affine = has_sizes(arguments, 5)
    bias = has_sizes(arguments, 6)
    mask = tuple(truths(arguments, 7)) or None
    return _backward(Norm(shape, kind(arguments, 0), channels, bias, affine, True, strides(arguments, 0), mask))


def _group_backward(arguments: OperatorArguments) -> Work:
    """native_group_norm_backward: channels a group, from the concrete inputs 6 and 8."""
    shape = tensor(arguments, 0)
    channels = number(arguments, 6) / number(arguments, 8)
    mask = tuple(truths(arguments, 9)) or None
    return _backward(Norm(shape, kind(arguments, 0), channels, True, True, True, strides(arguments, 0), mask))


def _rms(arguments: OperatorArguments) -> Work:
    """aten::_fused_rms_norm; affine always, as the reference has it."""
    shape, normalised = tensor(arguments, 0), whole_numbers(arguments, 1)
    if not normalised:
        raise Unmodelled("the normalised sizes were not recorded")
    norm = Norm(shape, kind(arguments, 0), elements(normalised), False, True, False, strides(arguments, 0))
    return rms_forward(norm)


def rms_forward(
    norm: Norm, *, extra_flops: float = 0, values: float | None = None, other: float = 0, formula: str = ""
) -> Work:
    """RMS norm: squares and their sum (2c + 2 operations a row), the scale and the weight (2 an element).

    Args:
        extra_flops: Operations on top (a residual, a quantisation).
        values: Elements moved at the input's width; twice the input without it.
        other: Bytes moved at other widths.
    """
    n, c = elements(norm.shape), norm.channels
    flops = (n / c) * (2 * c + 2) + n * (2 if norm.affine else 1) + extra_flops
    moved = 2 * n if values is None else values
    weight = c if norm.affine else 0

    def traffic(of: WidthOf) -> float:
        return (moved + weight) * of(norm.kind) + other

    return build(
        "vector",
        norm.kind,
        flops,
        traffic,
        parameters=norm.parameters,
        formula="(n/c)*(2*c + 2) + 2*n" + (" + x" if extra_flops else ""),
        formula_bytes=formula or ("(v + c)*a" + (" + y" if other else "")),
        numbers={"n": n, "c": c, "v": moved, "x": extra_flops, "y": other},
    )


def _rms_backward(arguments: OperatorArguments) -> Work:
    shape, normalised = tensor(arguments, 0), whole_numbers(arguments, 2)
    channels = elements(normalised)
    mask = tuple(truths(arguments, 5)) or (True, True)
    n = elements(shape)
    flops = n * 2 + (6 * n if mask[0] else 0) + (2 * n if len(mask) > 1 and mask[1] else 0)
    name = kind(arguments, 0)
    norm = Norm(shape, name, channels, False, True, False, strides(arguments, 0), mask)
    return build(
        "vector",
        name,
        flops,
        lambda of: (3 * n + 2 * channels) * of(name),
        parameters=norm.parameters,
        formula="f*n",
        formula_bytes="(3*n + 2*c)*a",
        numbers={"n": n, "c": channels, "f": flops / n},
    )


def _modulated(backward: bool) -> Calculation:
    """primus::fused_ln_modulate: layer norm with a scale and a shift a batch."""

    def calculate(arguments: OperatorArguments) -> Work:
        shape, name = tensor(arguments, 0), kind(arguments, 0)
        n, batch, hidden = elements(shape), shape[0], shape[-1]
        rows = n // hidden
        return build(
            "vector",
            name,
            (15 if backward else 12) * n,
            lambda of: 2 * n * of(name) + 2 * batch * hidden * of(name) + 8 * rows,
            parameters={"op_shape": shape, "dtype_in_out": (name, None)},
            formula="15*n" if backward else "12*n",
            formula_bytes="2*n*a + 2*B*H*a + 8*T",
            numbers={"n": n, "B": batch, "H": hidden, "T": rows},
        )

    return calculate


def _norm(calculate: Calculation, *names: str, backward: bool = False, own: bool = False) -> dict[str, Model]:
    category = "NORM_bwd" if backward else "NORM_fwd"
    return {name: Model("Normalization", category, calculate, backward=backward, own=own) for name in names}


def _aten(*names: str) -> tuple[str, ...]:
    return tuple(f"aten::{name}" for name in names)


MODELS: Mapping[str, Model] = {
    **_norm(_by_channels, *_aten("batch_norm", "native_batch_norm", "miopen_batch_norm", "cudnn_batch_norm")),
    **_norm(_by_channels, *_aten("instance_norm")),
    **_norm(_by_groups, *_aten("group_norm", "native_group_norm"), "aiter::_groupnorm_run"),
    **_norm(_layer, *_aten("layer_norm", "native_layer_norm")),
    **_norm(_rms, *_aten("_fused_rms_norm")),
    **_norm(_batch_backward(7), *_aten("native_batch_norm_backward"), backward=True),
    **_norm(_batch_backward(None), *_aten("miopen_batch_norm_backward", "cudnn_batch_norm_backward"), backward=True),
    **_norm(_layer_backward, *_aten("native_layer_norm_backward", "layer_norm_backward"), backward=True),
    **_norm(_group_backward, *_aten("native_group_norm_backward"), backward=True),
    **_norm(_rms_backward, *_aten("_fused_rms_norm_backward", "rms_norm_backward"), backward=True),
    **_norm(_modulated(False), "primus::fused_ln_modulate"),
    **_norm(_modulated(True), "primus::fused_ln_modulate_backward", backward=True),
    **_norm(_rms, *_aten("rms_norm"), own=True),
}

DROPPED = frozenset({"aten::instance_norm_backward"})
"""Operators whose rows the reference leaves out: its model says "not implemented"."""
