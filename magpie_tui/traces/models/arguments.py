"""What a performance model may look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperatorArguments:
    """One call of an operator as the trace records it.

    Attributes:
        name: Operator name as in the trace.
        input_dims: Parsed ``Input Dims`` (nested tuples of ints), () when not recorded.
        input_types: ``Input type``, one an argument.
        input_strides: Like ``input_dims``, in elements.
        concrete_inputs: Scalars and lists as text, "" for tensors.
        extra: Other arguments that a model reads: ``kernel_file``, ``kernel_kwargs``, ``grid``, ``num_warps``, the
            fields of collectives, ``MoE topk``, ``MoE GEMM gated``; ``kernel_grids``, a tuple of three ints a kernel
            in the order of ``kernel_names``; ``nested``, a tuple of the `OperatorArguments` of the operators below
            (only for the operators that `registry.needs_nested` names).
        annotation: Innermost enclosing step label that parses; serving attention needs it.
        kernel_names: Device kernels below the call, in launch order.
    """

    name: str
    input_dims: tuple[object, ...]
    input_types: tuple[str, ...]
    input_strides: tuple[object, ...]
    concrete_inputs: tuple[str, ...]
    extra: Mapping[str, object]
    annotation: str | None
    kernel_names: tuple[str, ...]
