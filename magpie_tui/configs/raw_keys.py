"""Kernels without a host program: do arguments, launch geometry and shape grid fit each other?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from magpie_tui.basics.expressions import FUNCTIONS, ExpressionError, names_in
from magpie_tui.basics.text import nearest, printable
from magpie_tui.configs.kernel_fields import DTYPES
from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.configs.positions import MapNode, Node, Value
from magpie_tui.configs.schema import Reader

RAW_TYPES = ("hip", "cuda", "cpp")


def role_of(argument: Value) -> str:
    """Return ``in``, ``out``, ``inout`` (tensors) or ``scalar``."""
    if not isinstance(argument, Mapping) or "shape" not in argument:
        return "scalar"
    role = argument.get("role")
    if isinstance(role, str):
        return role
    return "out" if argument.get("output") is True else "in"


def grid_names(entry: KernelEntry) -> frozenset[str]:
    """Return the names that the points of the shape grid give values."""
    points = (point for point in entry.shapes if isinstance(point, Mapping))
    return frozenset(
        name for point in points for name, value in point.items() if isinstance(value, int) and name != "guard"
    )


def dtype_names(entry: KernelEntry) -> frozenset[str]:
    """Return the names that arguments have in place of a dtype: the points of the shape grid say which one it is."""
    dtypes = (argument.get("dtype") for argument in entry.arguments if isinstance(argument, Mapping))
    return frozenset(dtype for dtype in dtypes if isinstance(dtype, str) and dtype not in DTYPES)


def known_names(entry: KernelEntry) -> frozenset[str]:
    """Return the names that have values at a launch: of the shape grid, and those that stand alone in input shapes."""
    told = {
        part
        for argument in entry.arguments
        if isinstance(argument, Mapping) and role_of(argument) in ("in", "inout")
        for part in _shape(argument)
        if isinstance(part, str) and part.isidentifier()
    }
    return frozenset(told) | grid_names(entry)


def _shape(argument: Mapping[str, Value]) -> tuple[Value, ...]:
    shape = argument.get("shape")
    return shape if isinstance(shape, tuple) else ()


def _expressions(entry: KernelEntry) -> Iterator[tuple[str, str]]:
    """Yield (key, text) of every expression."""
    for index, argument in enumerate(entry.arguments):
        if isinstance(argument, Mapping):
            yield from ((f"arguments[{index}].shape", part) for part in _shape(argument) if isinstance(part, str))
            value = argument.get("value")
            if isinstance(value, str):
                yield f"arguments[{index}].value", value
    for key, parts in (("grid", entry.grid), ("block", entry.block), ("shared_memory", (entry.shared_memory,))):
        yield from ((key, part) for part in parts if isinstance(part, str))


def _check_dtypes(reader: Reader, place: Node, entry: KernelEntry, key: str) -> None:
    """Report dtypes of arguments that are neither one nor a name that every point of the shape grid gives one."""
    points = [point for point in entry.shapes if isinstance(point, Mapping)]
    for name in sorted(dtype_names(entry)):
        if points and all(point.get(name) in DTYPES for point in points):
            continue
        guess = nearest(name, DTYPES)
        reader.problems.error(
            place,
            "bad-value",
            f"{key}.arguments: {printable(name)} is no dtype",
            expected=f"one of {', '.join(DTYPES)}, or a name to which every point of shapes gives one of them",
            hint=f"did you mean {guess}?" if guess else None,
        )


def check_launch(reader: Reader, node: MapNode, nodes: Mapping[str, Node], entry: KernelEntry, key: str) -> None:
    """Report what is missing or unknown in an entry with ``arguments``."""
    _check_dtypes(reader, nodes.get("arguments", node), entry, key)
    if not entry.arguments or entry.kernel_name is None:
        return
    if entry.type not in RAW_TYPES:
        reader.problems.error(
            nodes.get("arguments", node),
            "conflict",
            f"{key}.arguments belongs to kernels of the types {', '.join(RAW_TYPES)}, not {entry.type}",
            hint="a PyTorch or Triton kernel is called by its own Python file",
        )
        return
    if entry.type != "cpp":
        for name in ("grid", "block"):
            if not getattr(entry, name):
                reader.problems.error(
                    node, "missing-key", f"{key} has arguments but no {name}", expected=f"{name}, the launch geometry"
                )
    roles = [role_of(argument) for argument in entry.arguments]
    if not {"out", "inout"} & set(roles):
        reader.problems.error(
            nodes.get("arguments", node),
            "no-output",
            f"{key}.arguments has no tensor that the kernel writes",
            expected="role: out, or role: inout",
        )
    if "inout" in roles and not entry.in_place:
        reader.problems.error(
            nodes.get("arguments", node),
            "conflict",
            f"{key}.arguments has a tensor with role inout, and in_place is not set",
            hint="in_place: true says that the kernel may write to its inputs; the reference then has to do so too",
        )
    _check(reader, node, nodes, key, _expressions(entry), known_names(entry))


def check_work(reader: Reader, node: MapNode, nodes: Mapping[str, Node], entry: KernelEntry, key: str) -> None:
    """Report names in ``flops`` and ``bytes`` that have no value."""
    given = (("flops", entry.flops), ("bytes", entry.bytes_moved))
    texts = [(name, text) for name, text in given if isinstance(text, str)]
    _check(reader, node, nodes, key, texts, known_names(entry))


def _check(
    reader: Reader,
    node: MapNode,
    nodes: Mapping[str, Node],
    key: str,
    expressions: Iterable[tuple[str, str]],
    known: frozenset[str],
) -> None:
    for where, text in expressions:
        place = nodes.get(where.partition("[")[0], node)
        try:
            unknown = sorted(names_in(text) - known)
        except ExpressionError as error:
            reader.problems.error(
                place,
                "bad-expression",
                f"{key}.{where}: {printable(text)}: {error}",
                expected=f"numbers, names, + - * // % and {', '.join(FUNCTIONS)}",
            )
            continue
        for name in unknown:
            guess = nearest(name, sorted(known))
            reader.problems.error(
                place,
                "unknown-name",
                f"{key}.{where}: {printable(name)} has no value",
                expected="a name of the shape grid, or one that stands alone in the shape of an input",
                hint=f"did you mean {guess}?" if guess else None,
            )
