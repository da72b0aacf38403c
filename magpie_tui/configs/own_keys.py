"""Our own keys of a kernel entry: tolerance, shapes, arguments, launch geometry, reference."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from magpie_tui.basics.text import nearest
from magpie_tui.configs.kernel_fields import DTYPES
from magpie_tui.configs.kernel_model import Reference, Tolerance
from magpie_tui.configs.positions import ListNode, MapNode, Node, Scalar, Value
from magpie_tui.configs.scalars import describe
from magpie_tui.configs.schema import Field, Kind, Reader, nested

_CALLABLE = re.compile(r"(?P<path>.+\.py):(?P<function>[A-Za-z_][\w.]*)\Z")
_TOLERANCE_FIELDS = (
    Field("atol", Kind.NUMBER, "Absolute tolerance.", minimum=0),
    Field("rtol", Kind.NUMBER, "Relative tolerance.", minimum=0),
)
_ARGUMENT_FIELDS = (
    Field("name", Kind.TEXT, "Name, for reports and expressions."),
    Field("dtype", Kind.TEXT, "Element type, or the name under which the points of shapes give it."),
    Field("shape", Kind.NODE, "Dimensions: numbers, or names of the shape grid."),
    Field("value", Kind.ANY, "Value of a scalar argument, or an expression in the names of the shape grid."),
    Field("output", Kind.BOOLEAN, "The kernel writes it: the same as role: out.", default=False),
    Field("role", Kind.TEXT, "Whether the kernel reads it, writes it, or both.", choices=("in", "out", "inout")),
)
_POINT_FIELDS = {
    "weight": Field("weight", Kind.NUMBER, "Share in the geometric mean.", minimum=0),
    "guard": Field("guard", Kind.BOOLEAN, "Timed and shown, outside the mean.", default=False),
}
_DTYPE_FIELD = Field("dtypes", Kind.TEXT, "Dtype of each tensor.", choices=DTYPES)
_MAX_GRID_POINTS = 10_000


def read_tolerance(reader: Reader, node: Node, key: str) -> dict[str, Tolerance]:
    """Read ``{atol, rtol}`` or a mapping of dtype names to such; ``"*"`` holds for all dtypes without their own."""
    if isinstance(node, Scalar) and node.value is None:
        return {}
    if not isinstance(node, MapNode):
        reader.wrong_type(node, key, "{atol: ..., rtol: ...}, or a mapping of dtypes to such")
        return {}
    result: dict[str, Tolerance] = {}
    general = MapNode(tuple(entry for entry in node.entries if entry.key in ("atol", "rtol")), node.line, node.column)
    if general.entries:
        result["*"] = _one_tolerance(reader, general, key)
    for entry in node.entries:
        if entry.key in ("atol", "rtol"):
            continue
        if entry.key not in DTYPES:
            reader.unknown_key(entry.key_node, entry.value, ("atol", "rtol", *DTYPES), f"{key}.")
            continue
        result[entry.key] = _one_tolerance(reader, entry.value, f"{key}.{entry.key}")
    if not node.entries:
        reader.problems.error(node, "empty-value", f"{key} is empty", expected="atol, rtol or a dtype")
    return result


def _one_tolerance(reader: Reader, node: Node, key: str) -> Tolerance:
    reader.read(node, _TOLERANCE_FIELDS, f"{key}.")
    values = nested(reader.settings, key)

    def number(name: str) -> float | None:
        value = values.get(name)
        return float(value) if isinstance(value, (int, float)) else None

    return Tolerance(number("atol"), number("rtol"))


def read_shapes(reader: Reader, node: Node, key: str) -> tuple[Value, ...]:
    """Read the shape grid: a list of points, or a mapping of names to lists whose combinations are the points."""
    if isinstance(node, Scalar) and node.value is None:
        return ()
    if isinstance(node, MapNode):
        points = _grid_points(reader, node, key)
    elif isinstance(node, ListNode):
        points = tuple(
            point for index, item in enumerate(node.items) for point in _points(reader, item, f"{key}[{index}]")
        )
    else:
        reader.wrong_type(node, key, "a list of shapes, or a mapping of names to lists")
        return ()
    reader.put(key, points, node)
    return points


def _grid_points(reader: Reader, node: MapNode, key: str) -> tuple[Value, ...]:
    points: list[dict[str, Value]] = [{}]
    for entry in node.entries:
        items: Sequence[Node] = entry.value.items if isinstance(entry.value, ListNode) else (entry.value,)
        name = f"{key}.{entry.key}"
        if not items:
            reader.problems.error(entry.value, "empty-value", f"{name} is empty", expected="at least one value")
            return ()
        values = [_point_value(reader, item, name) for item in items]
        if len(points) * len(values) > _MAX_GRID_POINTS:
            reader.problems.error(entry.value, "too-many-values", f"{key} makes more than {_MAX_GRID_POINTS:,} shapes")
            return ()
        points = [{**point, entry.key: value} for point in points for value in values]
    return tuple(points) if node.entries else ()


def _points(reader: Reader, node: Node, key: str) -> tuple[Value, ...]:
    """One item of a list of shapes: a point, or ``{product: {name: [...], ...}, weight: ..., guard: ...}``."""
    product = node.get("product") if isinstance(node, MapNode) else None
    if product is None or not isinstance(node, MapNode):
        return (_point(reader, node, key),)
    if not isinstance(product.value, MapNode):
        reader.wrong_type(product.value, f"{key}.product", "a mapping of names to lists")
        return ()
    rest = MapNode(tuple(entry for entry in node.entries if entry.key != "product"), node.line, node.column)
    common = _point(reader, rest, key)
    found = _grid_points(reader, product.value, f"{key}.product")
    return tuple({**point, **common} for point in found if isinstance(point, dict) and isinstance(common, dict))


def _point(reader: Reader, node: Node, key: str) -> Value:
    if isinstance(node, MapNode):
        point: dict[str, Value] = {}
        for entry in node.entries:
            name = f"{key}.{entry.key}"
            if entry.key in _POINT_FIELDS:
                value = reader.value(entry.value, _POINT_FIELDS[entry.key], name)
                if isinstance(value, (bool, int, float)):
                    point[entry.key] = value
            elif entry.key == "tensors" and isinstance(entry.value, ListNode):
                point[entry.key] = tuple(
                    _point_value(reader, item, f"{name}[{index}]") for index, item in enumerate(entry.value.items)
                )
            elif entry.key == "dtypes" and isinstance(entry.value, ListNode):
                dtypes = (reader.value(item, _DTYPE_FIELD, name) for item in entry.value.items)
                point[entry.key] = tuple(item for item in dtypes if isinstance(item, str))
            else:
                point[entry.key] = _point_value(reader, entry.value, name)
        return point
    if isinstance(node, ListNode):
        return tuple(_point_value(reader, item, f"{key}[{index}]") for index, item in enumerate(node.items))
    value = _point_value(reader, node, key)
    return (value,)


def _point_value(reader: Reader, node: Node, key: str) -> Value:
    """A dimension (a whole number from 0), a text such as a dtype, or a list of dimensions."""
    if isinstance(node, ListNode):
        return tuple(_dimension(reader, item, f"{key}[{index}]") for index, item in enumerate(node.items))
    if isinstance(node, Scalar) and isinstance(node.value, str):
        numeric = re.fullmatch(r"[-+]?[0-9][0-9_.]*(?:[eE][-+]?[0-9]+)?", node.text)
        if node.plain and numeric:
            reader.wrong_type(node, key, "a whole number of at least 0")
        return node.text
    return _dimension(reader, node, key)


def _dimension(reader: Reader, node: Node, key: str) -> Value:
    value = reader.value(node, Field(key, Kind.INTEGER, minimum=0), key)
    return value if isinstance(value, int) else 0


def read_arguments(reader: Reader, node: Node, key: str) -> tuple[Value, ...]:
    """Read launch arguments: each a number, or a mapping with name, dtype, shape, value and output."""
    if isinstance(node, Scalar) and node.value is None:
        return ()
    if not isinstance(node, ListNode):
        reader.wrong_type(node, key, "a list of arguments")
        return ()
    arguments: list[Value] = []
    for index, item in enumerate(node.items):
        name = f"{key}[{index}]"
        if isinstance(item, MapNode):
            arguments.append(_argument(reader, item, name))
        elif isinstance(item, Scalar) and isinstance(item.value, (bool, int, float)) and _finite(item.value):
            reader.warn_surprise(item, name)
            arguments.append(item.value)
        else:
            reader.wrong_type(item, name, "a number, or a mapping with name, dtype, shape, value, output")
    reader.put(key, tuple(arguments), node)
    return tuple(arguments)


def _finite(value: float) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _argument(reader: Reader, node: MapNode, key: str) -> Value:
    inner = Reader(reader.problems, reader.environment)
    nodes = inner.read(node, _ARGUMENT_FIELDS, f"{key}.")
    argument = {name.removeprefix(f"{key}."): setting.value for name, setting in inner.settings.items()}
    shape = nodes.get("shape")
    if shape is not None:
        if isinstance(shape, ListNode):
            argument["shape"] = tuple(_name_or_number(reader, item, f"{key}.shape", 0) for item in shape.items)
        else:
            reader.wrong_type(shape, f"{key}.shape", "a list of numbers or names")
    if "shape" in argument and "value" in argument:
        reader.problems.error(
            node, "conflict", f"{key} has both shape and value", hint="a tensor has a shape, a scalar a value"
        )
    elif "shape" not in argument and "value" not in argument:
        reader.problems.error(node, "missing-key", f"{key} has neither shape nor value", expected="one of shape, value")
    if "shape" in argument and "dtype" not in argument:
        reader.problems.error(node, "missing-key", f"{key} has no dtype", expected="one of " + ", ".join(DTYPES))
    return argument


def _name_or_number(reader: Reader, node: Node, key: str, minimum: int) -> int | str:
    if isinstance(node, Scalar) and isinstance(node.value, str) and re.search("[A-Za-z_]", node.text):
        return node.text
    value = reader.value(node, Field(key, Kind.INTEGER, minimum=minimum), key)
    return value if isinstance(value, int) else minimum


def read_size(reader: Reader, node: Node, key: str) -> int | str | None:
    """Read ``shared_memory``: bytes, a number or an expression."""
    if isinstance(node, Scalar) and node.value is None:
        return None
    value = _name_or_number(reader, node, key, 0)
    reader.put(key, value, node)
    return value


def read_geometry(reader: Reader, node: Node, key: str) -> tuple[int | str, ...]:
    """Read ``grid`` or ``block``: one to three numbers from 1, or expressions in the names of the shape grid."""
    if isinstance(node, Scalar) and node.value is None:
        return ()
    items = node.items if isinstance(node, ListNode) else (node,)
    if isinstance(node, MapNode) or not 1 <= len(items) <= 3:
        reader.wrong_type(node, key, "one to three whole numbers")
        return ()
    values: list[int | str] = [_name_or_number(reader, item, key, 1) for item in items]
    reader.put(key, tuple(values), node)
    return tuple(values)


def read_reference(
    reader: Reader,
    node: Node,
    key: str,
    *,
    own_id: str,
    ids: Sequence[str],
    find: Callable[[str], Path | None],
) -> Reference | None:
    """Tell which kind of reference a text is: an entry's id first, then ``file.py:function``, then a saved output.

    Args:
        own_id: Id of the entry that names the reference.
        ids: Ids of all entries of the config.
        find: Finds a file by the rules for sources; None when it is not there.
    """
    text = reader.settings[key].value if key in reader.settings else None
    if not isinstance(text, str):
        return None
    if text in ids:
        if text == own_id:
            reader.problems.error(node, "bad-reference", f"{key} names the entry itself", hint="name another entry")
        elif ids.count(text) > 1:
            reader.problems.error(
                node, "bad-reference", f"{key}: several entries have the id {text}", hint="give them different ids"
            )
        return Reference("entry", text, entry_id=text)
    match = _CALLABLE.match(text)
    path = find(match["path"] if match else text)
    if path is None or not path.is_file():
        guess = nearest(text, [name for name in ids if name != own_id])
        reader.problems.error(
            node,
            "missing-reference",
            f"{key} names nothing that is there",
            expected="the id of another entry, file.py:function, or the path of a saved output",
            found=describe(node),
            hint=f"did you mean {guess}?" if guess else None,
        )
        return None
    if match:
        return Reference("callable", text, path=path, function=match["function"])
    return Reference("saved", text, path=path)
