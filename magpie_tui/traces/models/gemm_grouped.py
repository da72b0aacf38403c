"""Grouped matrix products: one product a group, each group with its own weights.

Formula: 2*M*N*K over all rows, since every row belongs to exactly one group; the weights of all groups are read once.
"""

from __future__ import annotations

from collections.abc import Mapping

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build, widths
from magpie_tui.traces.models.model import Model, Unmodelled, Work
from magpie_tui.traces.models.reading import as_sizes, kind, tensor


def _grouped(arguments: OperatorArguments) -> Work:
    """[M,K] x [G,K,N] or [G,N,K], or lists of matrices paired off."""
    if not arguments.input_dims:
        raise Unmodelled("no shapes recorded")
    first, second = arguments.input_dims[0], arguments.input_dims[1]
    a, b = as_sizes(first), as_sizes(second)
    if a is not None and b is not None and len(a) == 2 and len(b) == 3:
        return _answer(arguments, [(a[0], b[2] if b[1] == a[1] else b[1], a[1])], b[0])
    if isinstance(first, tuple) and isinstance(second, tuple):
        pairs = [(as_sizes(left), as_sizes(right)) for left, right in zip(first, second, strict=False)]
        triples = [
            (left[0], right[1] if right[0] == left[1] else right[0], left[1])
            for left, right in pairs
            if left and right and len(left) == len(right) == 2
        ]
        if triples:
            return _answer(arguments, triples, 1)
    raise Unmodelled("neither [M,K] with [G,K,N] nor two lists of matrices")


def _variable(arguments: OperatorArguments) -> Work:
    """Weight gradients: [M,K] and [M,N] give [K,N] for each group; the compact form counts as one group."""
    rows, columns = tensor(arguments, 0, 2), tensor(arguments, 1, 2)
    return _answer(arguments, [(rows[1], columns[1], rows[0])], 1)


def _answer(arguments: OperatorArguments, products: list[tuple[int, int, int]], groups: int) -> Work:
    flops = sum(2 * m * n * k for m, n, k in products)
    inner, outer = kind(arguments, 0), kind(arguments, 1)
    m, n, k = products[0]
    return build(
        "matrix",
        inner,
        flops,
        lambda of: sum((m * k + groups * k * n) * of(inner) + m * n * of(outer) for m, n, k in products),
        parameters={"M": sum(row for row, _n, _k in products), "N": n, "K": k, "G": max(groups, len(products))},
        formula="2*M*N*K" if len(products) == 1 else "sum of 2*M*N*K over the groups",
        formula_bytes="(M*K + G*K*N)*a + M*N*o",
        numbers=widths(o=outer) | {"M": m, "N": n, "K": k, "G": groups} if len(products) == 1 else {},
    )


def _own_grouped(arguments: OperatorArguments) -> Work:
    """aten::_grouped_mm(self [M,K], mat2 [G,K,N], offs) and ``_scaled_grouped_mm``; a two-byte result."""
    a, b = tensor(arguments, 0), tensor(arguments, 1)
    if len(a) == 2 and len(b) == 3:
        groups, m, k, n = b[0], a[0], a[1], b[2] if b[1] == a[1] else b[1]
    elif len(a) == 3 and len(b) == 3:
        groups, m, k, n = a[0], a[0] * a[1], a[2], b[2]
    elif len(a) == 2 and len(b) == 2:
        groups, m, k, n = 1, a[0], a[1], b[1]
    else:
        raise Unmodelled(f"sizes {list(a)} and {list(b)} make no grouped product")
    first, second = kind(arguments, 0), kind(arguments, 1)
    return build(
        "matrix",
        first,
        2 * m * n * k,
        lambda of: m * k * of(first) + groups * k * n * of(second) + m * n * 2,
        parameters={"M": m, "N": n, "K": k, "G": groups},
        formula="2*M*N*K",
        formula_bytes="M*K*a + G*K*N*b + 2*M*N",
        numbers=widths(b=second) | {"M": m, "N": n, "K": k, "G": groups},
        caveats=("every group is taken to have rows: its weights are counted",),
    )


def _sized(model: Model, *names: str) -> dict[str, Model]:
    return dict.fromkeys(names, model)


_PREFIXES = ("primus_turbo::", "primus_turbo_cpp_extension::")
_GROUPED = Model("GroupedGEMM", "GroupedGEMM", _grouped)
_VARIABLE = Model("GroupedGEMM", "GroupedGEMM", _variable)

MODELS: Mapping[str, Model] = {
    **_sized(
        _GROUPED,
        *(
            f"{prefix}{maker}grouped_gemm{ending}"
            for prefix in _PREFIXES
            for maker in ("", "ck_")
            for ending in ("", "_impl")
        ),
    ),
    **_sized(
        _VARIABLE,
        *(
            f"{prefix}{maker}grouped_gemm_variable_k{ending}"
            for prefix in _PREFIXES
            for maker in ("", "ck_")
            for ending in ("", "_impl")
        ),
    ),
    **_sized(
        Model("GroupedGEMM", "GroupedGEMM", _own_grouped, own=True), "aten::_grouped_mm", "aten::_scaled_grouped_mm"
    ),
}
