"""Operators that fill, gather, scatter, concatenate or look up: no arithmetic, only bytes.

Formula: what is selected is read once and written once; indices are read once; a fill only writes.
"""

from __future__ import annotations

from collections.abc import Mapping

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build, widths
from magpie_tui.traces.models.model import Calculation, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import (
    Sizes,
    as_sizes,
    elements,
    kind,
    number,
    sizes,
    tensor,
    tensors,
    whole_numbers,
)


def _moved(
    arguments: OperatorArguments,
    name: str,
    values: float,
    indices: float = 0,
    index_kind: str = "long int",
    note: str = "",
) -> Work:
    """Answer for ``values`` elements moved and ``indices`` read."""
    return build(
        "vector",
        name,
        0,
        lambda of: values * of(name) + (indices * of(index_kind) if indices else 0),
        parameters={"num_elements": values},
        formula_bytes="n*a + i*b" if indices else "n*a",
        numbers=widths(b=index_kind) | {"n": values, "i": indices},
        caveats=(note,) if note else (),
    )


def _fill(arguments: OperatorArguments) -> Work:
    """Only writes."""
    return _moved(arguments, kind(arguments, 0), elements(sizes(arguments, 0)))


def _new(arguments: OperatorArguments) -> Work:
    """Writes a tensor whose size is a concrete list: aten::zeros, aten::full."""
    shape = whole_numbers(arguments, 0)
    if not shape:
        raise Unmodelled("the size was not recorded")
    return _moved(arguments, "float", elements(shape), note="the type is not recorded: four bytes a value are taken")


def _index_select(arguments: OperatorArguments) -> Work:
    """aten::index_select(self, dim, index): rows along one dimension."""
    source, axis = tensor(arguments, 0), int(number(arguments, 1))
    chosen = elements(sizes(arguments, 2))
    count = elements(source) // max(1, source[axis]) * chosen
    return _moved(arguments, kind(arguments, 0), 2 * count, chosen, kind(arguments, 2))


def _embedding(arguments: OperatorArguments) -> Work:
    """aten::embedding(weight, indices): a row an index."""
    row, chosen = tensor(arguments, 0, 2)[1], elements(sizes(arguments, 1))
    return _moved(arguments, kind(arguments, 0), 2 * chosen * row, chosen, kind(arguments, 1))


def _gather(arguments: OperatorArguments) -> Work:
    """aten::gather(self, dim, index): as many elements as indices; an expanded index is read once a row."""
    index = tensor(arguments, 2)
    count = elements(index)
    stride = arguments.input_strides[2] if len(arguments.input_strides) > 2 else ()
    known = as_sizes(stride) or ()
    read = elements([size for size, step in zip(index, known, strict=False) if step != 0]) if known else count
    return _moved(arguments, kind(arguments, 0), 2 * count, read, kind(arguments, 2))


def _index(arguments: OperatorArguments) -> Work:
    """aten::index(self, [indices]): the sizes of the list of indices are often not recorded."""
    source = tensor(arguments, 0)
    found = _listed(arguments, 1)
    if not found:
        note = "the indices were not recorded: as many elements as the source has are taken, at most"
        return _moved(arguments, kind(arguments, 0), 2 * elements(source), note=note)
    shape = found[0]
    for other in found[1:]:
        shape = max(shape, other, key=elements)
    rest = source[len(found) :]
    count = elements(shape) * elements(rest)
    return _moved(arguments, kind(arguments, 0), 2 * count, sum(elements(item) for item in found))


def _listed(arguments: OperatorArguments, index: int) -> list[Sizes]:
    """Sizes of the tensors of a list that have dimensions."""
    value = arguments.input_dims[index] if index < len(arguments.input_dims) else ()
    if not isinstance(value, (tuple, list)) or as_sizes(value):
        return []
    return [inner for item in value if (inner := as_sizes(item))]


def _index_put(arguments: OperatorArguments) -> Work:
    """aten::index_put_(self, [indices], values): the values are read and written."""
    values = sizes(arguments, 2)
    found = _listed(arguments, 1)
    count = elements(values) if values else elements(found[0]) if found else 1
    return _moved(arguments, kind(arguments, 0), 2 * count, sum(elements(item) for item in found))


def _scatter(arguments: OperatorArguments) -> Work:
    """aten::scatter_(self, dim, index, src): as many elements as indices."""
    count = elements(tensor(arguments, 2))
    return _moved(arguments, kind(arguments, 0), 2 * count, count, kind(arguments, 2))


def _cat(arguments: OperatorArguments) -> Work:
    """aten::cat([tensors], dim): everything read and written; lists carry no types."""
    found = tensors(arguments)
    if not found:
        raise Unmodelled("the sizes of the list were not recorded")
    count = sum(elements(shape) for shape, _name in found)
    name = _cat_kind(arguments.kernel_names)
    note = "" if name else "the type of listed tensors is not recorded: two bytes a value are taken"
    return _moved(arguments, name or "c10::BFloat16", 2 * count, note=note)


def _cat_kind(kernel_names: tuple[str, ...]) -> str:
    """Type from the kernel's name: ``OpaqueType<2u>`` is two bytes."""
    for size, name in ((1, "unsigned char"), (2, "c10::BFloat16"), (4, "float"), (8, "double")):
        if any(f"OpaqueType<{size}" in kernel for kernel in kernel_names):
            return name
    return ""


def _arange(arguments: OperatorArguments) -> Work:
    """aten::arange(start, end, step): writes one value a step."""
    values = [number(arguments, index, 0) for index in range(3)]
    found = [value for value, text in zip(values, arguments.concrete_inputs, strict=False) if text]
    start, end, step = (*found, 1.0)[:3] if len(found) >= 2 else (0.0, found[0] if found else 0.0, 1.0)
    count = max(0, -(-int(end - start) // max(1, int(step))))
    return _moved(arguments, "long int", count)


def _random(arguments: OperatorArguments) -> Work:
    """Random fills: the values are written; the generator's operations are not counted."""
    return _moved(arguments, kind(arguments, 0), elements(sizes(arguments, 0)), note="the generator is not counted")


def _scalar(arguments: OperatorArguments) -> Work:
    """aten::_local_scalar_dense, aten::item: one value to the host."""
    return _moved(arguments, kind(arguments, 0), elements(sizes(arguments, 0)))


def _pool(backward: bool) -> Calculation:
    """aten::max_pool2d_with_indices: a window of comparisons an output; its backward adds each gradient once."""

    def calculate(arguments: OperatorArguments) -> Work:
        source, name = tensor(arguments, 1 if backward else 0, 4), kind(arguments, 0)
        if backward:
            grad = elements(tensor(arguments, 0))
            return build(
                "vector",
                name,
                grad,
                lambda of: grad * (of(name) + 8) + elements(source) * of(name),
                parameters={"input_shape": source},
                formula="n_out",
                formula_bytes="n_out*(a + 8) + n*a",
                numbers={"n": elements(source), "n_out": grad},
            )
        window, step, pad, gap = (whole_numbers(arguments, index) for index in (1, 2, 3, 4))
        step = step or window
        out = [(source[2 + i] + 2 * pad[i] - gap[i] * (window[i] - 1) - 1) // step[i] + 1 for i in range(len(window))]
        count = source[0] * source[1] * elements(out)
        return build(
            "vector",
            name,
            count * elements(window),
            lambda of: elements(source) * of(name) + count * (of(name) + 8),
            parameters={"input_shape": source},
            formula="n_out*w",
            formula_bytes="n*a + n_out*(a + 8)",
            numbers={"n": elements(source), "n_out": count, "w": elements(window)},
        )

    return calculate


def _own(category: str, calculate: Calculation, *names: str) -> dict[str, Model]:
    return {name: Model("Indexing", category, calculate, own=True) for name in names}


def _aten(*names: str) -> tuple[str, ...]:
    return tuple(f"aten::{name}" for name in names)


MODELS: Mapping[str, Model] = {
    **_own("elementwise", _fill, *_aten("fill_", "zero_")),
    **_own("elementwise", _new, *_aten("zeros", "ones", "full", "new_zeros")),
    **_own("other", _index_select, *_aten("index_select")),
    **_own("other", _embedding, *_aten("embedding")),
    **_own("other", _gather, *_aten("gather", "take_along_dim")),
    **_own("elementwise", _index, *_aten("index")),
    **_own("elementwise", _index_put, *_aten("index_put_", "_index_put_impl_", "index_copy_", "index_put")),
    **_own("other", _scatter, *_aten("scatter_", "scatter", "scatter_add_")),
    **_own("other", _cat, *_aten("cat", "stack", "_cat")),
    **_own("other", _arange, *_aten("arange")),
    **_own("elementwise", _random, *_aten("normal_", "uniform_", "random_", "exponential_")),
    **_own("other", _scalar, *_aten("_local_scalar_dense", "item")),
    **_own("other", _pool(False), *_aten("max_pool2d_with_indices")),
    **_own("other", _pool(True), *_aten("max_pool2d_with_indices_backward")),
}
