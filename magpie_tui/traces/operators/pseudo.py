"""Ops that upstream makes up (``--enable_pseudo_ops``): parts of fused MoE and attention ops by their kernels."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from magpie_tui.traces.operators.choice import PseudoOp
from magpie_tui.traces.operators.tree import Kind, Tree

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_DEFAULT_TOPK = 4
_DEFAULT_GPTQ_TOPK = 8
_TRIGGERS = {
    "vllm::moe_forward",
    "vllm::rocm_aiter_fused_moe",
    "vllm::outplace_fused_experts",
    "aiter::fused_moe_",
    "aiter::mla_decode_stage1_asm_fwd",
    "aiter::mla_prefill_ps_asm_fwd",
    "aiter::v4_attention_with_output",
}
_V4_SIZES = re.compile(r"qk_norm_rope_H(\d+)_D(\d+)_RD\d+")
_PROFILER_NUMBER = re.compile(r"\A(sglang_profiler::.*)_\d+\Z")


def plain_op_name(name: str) -> str:
    """Name without the number that SGLang's profiler gives its ops."""
    match = _PROFILER_NUMBER.match(name)
    return match[1] if match else name


@dataclass(frozen=True, slots=True)
class _Kernels:
    """Work of a tree with the names of its kernels and their start times."""

    tree: Tree
    names: npt.NDArray[np.int64]
    table: Sequence[str]
    times: npt.NDArray[np.int64]

    def below(self, node: int, fits: Callable[[str], bool]) -> list[int]:
        """Places, by time, of the work below a node whose kernel name fits."""
        places = [
            place
            for place in range(self.tree.start[node], self.tree.end[node])
            if fits(self.table[int(self.names[place])])
        ]
        return sorted(places, key=lambda place: int(self.times[place]))

    def name(self, place: int) -> str:
        return self.table[int(self.names[place])]


def pseudo_ops(
    tree: Tree, names: npt.NDArray[np.int64], table: Sequence[str], times: npt.NDArray[np.int64]
) -> dict[int, list[PseudoOp]]:
    """Find the pseudo ops of a tree, by the node at which they appear.

    Args:
        names: int64, code of the kernel of each entry of the tree's work.
        table: Names behind the codes.
        times: int64, what orders the work.
    """
    triggers = [node for node, name in enumerate(tree.name) if name in _TRIGGERS and tree.kind[node] == Kind.op]
    found: dict[int, list[PseudoOp]] = {}
    kernels = _Kernels(tree, names, table, times)
    for node in triggers:
        for place, items in _MAKERS[tree.name[node]](kernels, node).items():
            found.setdefault(place, []).extend(items)
    return found


def _one(name: str, node: int, place: int, *, modelled: bool = True) -> PseudoOp:
    return PseudoOp(name, node, place, place + 1, modelled)


def _moe_forward(kernels: _Kernels, node: int) -> dict[int, list[PseudoOp]]:
    found = kernels.below(node, lambda name: "matmul_ogs" in name)
    if not found:
        return _one_stage(kernels, node)
    topk = _topk(kernels.tree, node)
    items = []
    for index, place in enumerate(found):
        name = f"pseudo_op::moe_triton_unfused_{'up' if index == 0 else 'down'}"
        kernel = kernels.name(place)
        extra: dict[str, object] = {"MoE topk": topk, "MoE GEMM gated": "_swiglu" in kernel or "_glu" in kernel}
        items.append(PseudoOp(name, node, place, place + 1, True, tuple(extra.items())))
    for place in kernels.below(node, lambda name: "matmul_scatter" in name):
        items.append(_one("pseudo_op::moe_triton_unfused_finalize_matmul_scatter", node, place, modelled=False))
    return {node: items}


def _topk(tree: Tree, node: int) -> int:
    """Second concrete input of the first op below whose name has TopK."""
    for below in range(node + 1, tree.last[node]):
        if tree.kind[below] == Kind.op and "TopK" in tree.name[below]:
            concrete = _recorded(tree, below, "concrete")
            if len(concrete) > 1 and str(concrete[1]).isdecimal():
                return int(str(concrete[1]))
            break
    return _DEFAULT_TOPK


def _recorded(tree: Tree, node: int, what: str) -> list[object]:
    """``dims`` or ``concrete`` of an op; empty when not recorded."""
    import numpy as np

    ops = tree.columns.ops
    place = int(np.searchsorted(ops.row, tree.row[node]))
    if place == len(ops.row) or ops.row[place] != tree.row[node]:
        return []
    code = int(getattr(ops, what)[place])
    value = json.loads(ops.texts[code], strict=False) if code >= 0 else []
    return value if isinstance(value, list) else []


def _one_stage(kernels: _Kernels, node: int) -> dict[int, list[PseudoOp]]:
    """One fused kernel of aiter below an op without ops below it."""
    tree = kernels.tree
    if any(tree.kind[below] == Kind.op for below in range(node + 1, tree.last[node])):
        return {}
    found = kernels.below(
        node,
        lambda name: "aiter::" in name and "fmoe" in name and "MoeSorting" not in name and "quant" not in name,
    )
    if len(found) != 1:
        return {}
    return {node: [_one("pseudo_op::moe_aiter_fused_1stage", node, found[0])]}


def _gptq(kernels: _Kernels, node: int) -> dict[int, list[PseudoOp]]:
    found = kernels.below(node, lambda name: "fused_moe_kernel_gptq_awq" in name)
    dims = _recorded(kernels.tree, node, "dims")
    ids = dims[4] if len(dims) > 4 else None
    topk = ids[1] if isinstance(ids, list) and len(ids) > 1 else _DEFAULT_GPTQ_TOPK
    return {
        node: [
            PseudoOp(
                f"pseudo_op::moe_gptq_awq_{'up' if index == 0 else 'down'}",
                node,
                place,
                place + 1,
                True,
                (("MoE topk", topk),),
            )
            for index, place in enumerate(found)
        ]
    }


def _frames(kernels: _Kernels, node: int, pattern: str, name: str) -> dict[int, list[PseudoOp]]:
    """A pseudo op over each frame of this form below a node."""
    tree = kernels.tree
    return {
        below: [PseudoOp(name, node, tree.start[below], tree.end[below])]
        for below in range(node + 1, tree.last[node])
        if tree.kind[below] == Kind.frame and re.search(pattern, tree.name[below])
    }


def _flydsl(kernels: _Kernels, node: int) -> dict[int, list[PseudoOp]]:
    found = _frames(kernels, node, r": flydsl_moe_stage1\Z", "pseudo_op::moe_flydsl_stage1")
    return found | _frames(kernels, node, r": flydsl_moe_stage2\Z", "pseudo_op::moe_flydsl_stage2")


def _above(pattern: str, name: str) -> Callable[[_Kernels, int], dict[int, list[PseudoOp]]]:
    """Make a pseudo op over the frame of this form that encloses the op, with the op's arguments."""

    def make(kernels: _Kernels, node: int) -> dict[int, list[PseudoOp]]:
        tree = kernels.tree
        above = tree.parent[node]
        while above >= 0:
            if tree.kind[above] == Kind.frame and re.search(pattern, tree.name[above]):
                return {above: [PseudoOp(name, node, tree.start[above], tree.end[above])]}
            above = tree.parent[above]
        return {}

    return make


def _v4(kernels: _Kernels, node: int) -> dict[int, list[PseudoOp]]:
    """Decode attention of DeepSeek-V4; which form it is, kernels that run beside it tell."""
    below = [kernels.name(place) for place in range(kernels.tree.start[node], kernels.tree.end[node])]
    form = "swa"
    if any(name.startswith("hca_") for name in below):
        form = "hca"
    elif any(name.startswith(("fused_compress_attn", "_update_compressor_states_kernel")) for name in below):
        form = "csa"
    pattern = r"paged_decode\.py\(\d+\): sparse_attn_v4_paged_decode\Z"
    extra: dict[str, object] = {key: os.environ[key] for key in ("TL_MODEL", "TL_TP") if key in os.environ}
    for match in filter(None, map(_V4_SIZES.search, below)):
        extra |= {"H_Q": int(match[1]), "d_h": int(match[2])}
        break
    found = _frames(kernels, node, pattern, f"pseudo_v4_paged_decode_{form}")
    return {place: [replace(item, extra=tuple(extra.items())) for item in items] for place, items in found.items()}


_MAKERS: dict[str, Callable[[_Kernels, int], dict[int, list[PseudoOp]]]] = {
    "vllm::moe_forward": _moe_forward,
    "vllm::rocm_aiter_fused_moe": _one_stage,
    "vllm::outplace_fused_experts": _gptq,
    "aiter::fused_moe_": _flydsl,
    "aiter::mla_decode_stage1_asm_fwd": _above(r"aiter/mla\.py\(\d+\): mla_decode_fwd\Z", "pseudo_mla_decode_fwd"),
    "aiter::mla_prefill_ps_asm_fwd": _above(r": mla_fp8_prefill_attn\Z", "pseudo_mla_prefill_fwd"),
    "aiter::v4_attention_with_output": _v4,
}
