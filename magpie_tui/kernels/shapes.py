"""The points of a kernel's shape grid: named dimensions and dtypes, a weight, guards outside the mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.text import printable
from magpie_tui.configs.kernel_fields import DTYPES
from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.configs.positions import Value
from magpie_tui.kernels.model import Fact


@dataclass(frozen=True, slots=True)
class ShapePoint:
    """One shape at which a kernel is judged and timed.

    Attributes:
        id: Name in reports, such as ``rows=32 cols=4096``; unique in a run.
        dims: Named dimensions; the inputs are made by calling ``get_inputs(**dims, **dtypes)`` with those names that
            its signature has.
        dtypes: Named dtypes (``float16``).
        weight: Share in the geometric mean, at least 0; None: all points without one count equally.
        guard: Timed and shown, but outside the mean: what the tuning costs elsewhere.
        tensors: For a point without names (a list of dimensions, or shapes from a trace): the shapes of the input
            tensors, which are then made as random tensors; their dtypes are ``dtypes["0"]``, ``dtypes["1"]`` and so on
            (float32 where there is none).
    """

    id: str
    dims: Mapping[str, int] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    weight: float | None = None
    guard: bool = False
    tensors: tuple[tuple[int, ...], ...] = ()

    def to_message(self) -> dict[str, Fact]:
        """Return what a harness needs to make inputs at this point."""
        return {
            "id": self.id,
            "dims": dict(self.dims),
            "dtypes": dict(self.dtypes),
            "tensors": [list(shape) for shape in self.tensors],
        }

    def to_json(self) -> dict[str, Fact]:
        """Return the point as reports hold it."""
        found: dict[str, Fact] = {"shape": self.id, "dims": dict(self.dims), "dtypes": dict(self.dtypes)}
        if self.tensors:
            found["tensors"] = [list(shape) for shape in self.tensors]
        return {**found, "weight": self.weight, "guard": self.guard}


def _point(value: Value) -> ShapePoint:
    """Read one value of ``KernelEntry.shapes``: a mapping of names, a shape, or a list of shapes."""
    if isinstance(value, Mapping) and "tensors" in value:
        return _of_tensors(value)
    if isinstance(value, Mapping):
        dims = {name: item for name, item in value.items() if isinstance(item, int) and not isinstance(item, bool)}
        dims.pop("weight", None)
        dtypes = {name: item for name, item in value.items() if isinstance(item, str)}
        weight = value.get("weight")
        named = [f"{name}={item}" for name, item in dims.items()]
        return ShapePoint(
            id=" ".join([*named, *(text for text in dtypes.values())]) or "default",
            dims=dims,
            dtypes=dtypes,
            weight=float(weight) if isinstance(weight, (int, float)) and not isinstance(weight, bool) else None,
            guard=value.get("guard") is True,
        )
    items = value if isinstance(value, tuple) else (value,)
    shapes: list[tuple[int, ...]] = []
    plain: list[int] = []
    dtypes = {}
    for item in items:
        if isinstance(item, tuple):
            shapes.append(tuple(extent for extent in item if isinstance(extent, int)))
        elif isinstance(item, int):
            plain.append(item)
        elif isinstance(item, str) and item in DTYPES:
            dtypes[str(len(dtypes))] = item
    tensors = tuple(shapes) if shapes else (tuple(plain),)
    return ShapePoint(id=tensors_text(tensors, dtypes), dtypes=dtypes, tensors=tensors)


def _of_tensors(value: Mapping[str, Value]) -> ShapePoint:
    """Read ``{tensors: [[32, 4096], [4096]], dtypes: [bfloat16, bfloat16], weight: 0.3, guard: false}``."""
    given, names, weight = value["tensors"], value.get("dtypes"), value.get("weight")
    tensors = tuple(
        tuple(extent for extent in item if isinstance(extent, int))
        for item in (given if isinstance(given, tuple) else ())
        if isinstance(item, tuple)
    )
    told = names if isinstance(names, tuple) else (names,) * len(tensors)
    dtypes = {str(index): name for index, name in enumerate(told) if isinstance(name, str) and name}
    return ShapePoint(
        id=tensors_text(tensors, dtypes),
        dtypes=dtypes,
        weight=float(weight) if isinstance(weight, (int, float)) and not isinstance(weight, bool) else None,
        guard=value.get("guard") is True,
        tensors=tensors,
    )


def tensors_text(tensors: Sequence[Sequence[int]], dtypes: Mapping[str, str]) -> str:
    """Return ``32x4096 4096 float16``: the shapes of tensors, then their dtypes, equal ones once."""
    shapes = ["x".join(map(str, shape)) or "scalar" for shape in tensors]
    return " ".join([*shapes, *dict.fromkeys(dtypes.values())])


def points_of(entry: KernelEntry) -> tuple[ShapePoint, ...]:
    """Return the shape points of an entry in order, ids unique; empty when it has no ``shapes:``."""
    points: list[ShapePoint] = []
    seen: dict[str, int] = {}
    for value in entry.shapes:
        point = _point(value)
        count = seen[point.id] = seen.get(point.id, 0) + 1
        if count == 1:
            points.append(point)
    return tuple(points)


def points_of_run(kernels: Sequence[KernelEntry], baseline: int | None) -> tuple[ShapePoint, ...]:
    """Return the points of a comparison: the baseline's, else those of the first entry that has some.

    Raises:
        UserInputError: Two entries name different points: their times could not be compared.
    """
    order = list(kernels)
    if baseline is not None:
        order.insert(0, order.pop(baseline))
    with_points = [(entry, found) for entry in order if (found := points_of(entry))]
    if not with_points:
        return ()
    first, points = with_points[0]
    for entry, other in with_points[1:]:
        if {item.id for item in other} != {item.id for item in points}:
            raise UserInputError(
                f"the kernels {printable(first.id)} and {printable(entry.id)} have different shapes",
                key="shapes",
                hint="give the shapes once, in the baseline's entry: they hold for all kernels of a comparison",
            )
    return points


def weights_of(points: Sequence[ShapePoint]) -> dict[str, float]:
    """Return the weight of each point in the mean, summing to 1: guards have none, equal shares where none is given.

    Points without a weight get 0 as soon as one point has a weight.
    """
    counted = [point for point in points if not point.guard]
    given = any(point.weight is not None for point in counted)
    raw = {point.id: (point.weight or 0.0) if given else 1.0 for point in counted}
    total = sum(raw.values())
    return {name: value / total for name, value in raw.items()} if total > 0 else {}
