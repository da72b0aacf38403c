"""Collectives: traffic of the local memory and, of ours, what a GPU has to send to the others.

Formula: an all-reduce reads n values and writes n; a ring sends 2*(p - 1)/p*n to the next rank, a switch that reduces
(NVLink SHARP) at least n; gathers and scatters send (p - 1)/p of the full message (NCCL's bus bandwidth, nccl-tests).
"""

from __future__ import annotations

from collections.abc import Mapping

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build, widths
from magpie_tui.traces.models.element_types import width
from magpie_tui.traces.models.model import Calculation, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import elements, kind, tensor

_LOCAL = "only the traffic of the local memory is counted in bytes"


def _all_reduce(source: int) -> Calculation:
    """Custom all-reduces: n values read and written in local memory."""

    def calculate(arguments: OperatorArguments) -> Work:
        count, name = elements(tensor(arguments, source)), kind(arguments, source)
        size = width(name)
        return build(
            "vector",
            "",
            0,
            lambda of: 2 * count * of(name),
            parameters={"op_shape": tensor(arguments, source), "dtype": name},
            formula_bytes="2*n*a",
            numbers=widths(a=name) | {"n": count},
            caveats=(_LOCAL, "the links carry at least n*a, more without a switch that reduces"),
            link_bytes=count * size if size == size else 0,
        )

    return calculate


def _in_and_out(source: int, result: int) -> Calculation:
    """Gathers and scatters: input read, output written."""

    def calculate(arguments: OperatorArguments) -> Work:
        one, other = tensor(arguments, source), tensor(arguments, result)
        name, out = kind(arguments, source), kind(arguments, result)
        smaller, larger = sorted((elements(one) * width(name), elements(other) * width(out)))
        return build(
            "vector",
            "",
            0,
            lambda of: elements(one) * of(name) + elements(other) * of(out),
            parameters={"op_shape": one, "dtype": name},
            formula_bytes="n_in*a + n_out*o",
            numbers=widths(a=name, o=out) | {"n_in": elements(one), "n_out": elements(other)},
            caveats=(_LOCAL,),
            link_bytes=larger - smaller if larger == larger else 0,
        )

    return calculate


_WIDTHS: Mapping[str, float] = {
    "float": 4, "int": 4, "long": 8, "double": 8, "bfloat16": 2, "half": 2, "short": 2, "bool": 1, "byte": 1, "char": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip


def _recorded(arguments: OperatorArguments) -> Work:
    """NCCL and RCCL with the fields that the profiler keeps beside the call."""
    extra = arguments.extra
    sent, received = _count(extra, "In msg nelems"), _count(extra, "Out msg nelems")
    size = _WIDTHS.get(str(extra.get("dtype", "")).lower())
    if sent is None or received is None or size is None:
        raise Unmodelled("the profiler recorded no message size for this collective")
    group = _count(extra, "Group size") or 1
    collective = str(extra.get("Collective name", "")).lower()
    link, formula = _sent(collective, max(sent, received) * size, group)
    return Work(
        0,
        (sent + received) * size,
        None,
        {"Collective name": collective, "Group size": group, "dtype": str(extra.get("dtype", ""))},
        f"bytes (n_in + n_out)*a = ({sent:.0f} + {received:.0f})*{size:g}; links {formula}",
        (_LOCAL,),
        link_bytes=link,
    )


def _sent(collective: str, message: float, group: float) -> tuple[float, str]:
    """Bytes that a rank has to send for a full message, with the formula."""
    if group <= 1:
        return 0.0, "none in a group of one"
    if "allreduce" in collective or "all_reduce" in collective:
        return 2 * (group - 1) / group * message, f"2*(p - 1)/p*m = 2*{group - 1:.0f}/{group:.0f}*{message:.0f}"
    if any(word in collective for word in ("gather", "scatter", "all_to_all", "alltoall")):
        return (group - 1) / group * message, f"(p - 1)/p*m = {group - 1:.0f}/{group:.0f}*{message:.0f}"
    return message, f"m = {message:.0f}"


def _count(extra: Mapping[str, object], key: str) -> float | None:
    value = extra.get(key)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _models(calculate: Calculation, *names: str, own: bool = False) -> dict[str, Model]:
    return {name: Model("CustomCollective", "CustomCollective", calculate, own=own) for name in names}


MODELS: Mapping[str, Model] = {
    **_models(_all_reduce(1), "_C_custom_ar::all_reduce", "_C_custom_ar::qr_all_reduce"),
    **_models(_all_reduce(1), "sgl_kernel::all_reduce_reg", "sgl_kernel::qr_all_reduce"),
    **_models(_in_and_out(1, 2), "aiter::reduce_scatter", "aiter::all_gather_reg"),
    **_models(_in_and_out(0, 1), "sglang::reg_all_gather_into_tensor"),
    **_models(
        _all_reduce(0),
        "symm_mem::multimem_all_reduce_",
        "symm_mem::one_shot_all_reduce",
        "symm_mem::one_shot_all_reduce_out",
        "symm_mem::two_shot_all_reduce_",
        "symm_mem::two_shot_all_reduce_out",
        "vllm::all_reduce",
        "vllm::outplace_all_reduce",
        "sglang::inplace_all_reduce",
        "sglang::outplace_all_reduce_custom",
        "sgl_kernel::all_reduce",
        own=True,
    ),
    **_models(_recorded, "record_param_comms", own=True),
}
