"""Recorded inputs of ops as values, each distinct set once, also over several traces."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from magpie_tui.traces.columns import TraceColumns

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class Recorded:
    """Inputs of one call.

    Attributes:
        dims, strides: Nested tuples of ints, one entry an argument.
        types, concrete: One text an argument.
    """

    dims: tuple[object, ...]
    types: tuple[str, ...]
    strides: tuple[object, ...]
    concrete: tuple[str, ...]

    @cached_property
    def literals(self) -> tuple[str, str, str, str]:
        """Dims, types, strides and concrete inputs as Python literals of tuples."""
        return (repr(self.dims), repr(self.types), repr(self.strides), repr(self.concrete))

    @cached_property
    def list_literals(self) -> tuple[str, str, str, str]:
        """The same as literals of lists."""
        return (
            repr(_listed(self.dims)),
            repr(list(self.types)),
            repr(_listed(self.strides)),
            repr(list(self.concrete)),
        )


def _listed(value: object) -> object:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


def _frozen(value: object) -> object:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


NOT_RECORDED = 0


class RecordedInputs:
    """Codes of recorded inputs; :data:`NOT_RECORDED` stands for none."""

    def __init__(self) -> None:
        self._values: list[Recorded | None] = [None]
        self._codes: dict[Recorded, int] = {}
        self._seen: dict[int, dict[tuple[int, ...], int]] = {}

    def __getitem__(self, code: int) -> Recorded | None:
        """Inputs behind a code; None for :data:`NOT_RECORDED`."""
        return self._values[code]

    def codes_of(self, columns: TraceColumns, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Code of each event."""
        import numpy as np

        ops = columns.ops
        codes = np.full(len(rows), NOT_RECORDED, np.int64)
        if not len(ops.row) or not len(rows):
            return codes
        place = np.minimum(np.searchsorted(ops.row, rows), len(ops.row) - 1)
        found = np.flatnonzero(ops.row[place] == rows)
        place = place[found]
        seen = self._seen.setdefault(id(columns), {})
        texts = zip(
            ops.dims[place].tolist(),
            ops.types[place].tolist(),
            ops.strides[place].tolist(),
            ops.concrete[place].tolist(),
            strict=True,
        )
        result = []
        for key in texts:
            code = seen.get(key)
            if code is None:
                code = seen[key] = self._learn(columns, key)
            result.append(code)
        codes[found] = result
        return codes

    def _learn(self, columns: TraceColumns, key: tuple[int, ...]) -> int:
        dims, types, strides, concrete = (_frozen(columns.ops.value(code)) for code in key)
        value = Recorded(_tuple(dims), _texts(types), _tuple(strides), _texts(concrete))
        code = self._codes.setdefault(value, len(self._values))
        if code == len(self._values):
            self._values.append(value)
        return code


def _tuple(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else ()


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item if isinstance(item, str) else json.dumps(item) for item in _tuple(value))


class EventArguments(Mapping[str, object]):
    """Arguments of an event, decoded when first asked for, with others laid over them."""

    def __init__(self, columns: TraceColumns, row: int, over: Mapping[str, object]) -> None:
        self._columns, self._row, self._over = columns, row, over
        self._values: dict[str, object] | None = None

    def _all(self) -> dict[str, object]:
        if self._values is None:
            self._values = {**self._columns.arguments(self._row), **self._over}
        return self._values

    def __getitem__(self, key: str) -> object:
        """Value of an argument."""
        return self._over[key] if key in self._over else self._all()[key]

    def __iter__(self) -> Iterator[str]:
        """Names of the arguments."""
        return iter(self._all())

    def __len__(self) -> int:
        """Number of arguments."""
        return len(self._all())
