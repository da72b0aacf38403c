"""Arguments of a call by position, or a plain reason why they are not there."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.model import Unmodelled

Sizes = tuple[int, ...]


def sizes(arguments: OperatorArguments, index: int) -> Sizes:
    """Sizes of a tensor; () for scalars.

    Raises:
        Unmodelled: There is no such argument, or it is a list of tensors.
    """
    if not arguments.input_dims:
        raise Unmodelled("no shapes recorded (record_shapes was off, or the call came from a graph)")
    if not -len(arguments.input_dims) <= index < len(arguments.input_dims):
        raise Unmodelled(f"argument {index} was not recorded")
    found = as_sizes(arguments.input_dims[index])
    if found is None:
        raise Unmodelled(f"argument {index} is a list of tensors")
    return found


def as_sizes(value: object) -> Sizes | None:
    """Return a tuple of ints; None for anything else."""
    if not isinstance(value, (tuple, list)):
        return None
    found = tuple(size for size in value if isinstance(size, int))
    return found if len(found) == len(value) else None


def tensor(arguments: OperatorArguments, index: int, rank: int | None = None) -> Sizes:
    """Sizes of a tensor of that many dimensions (at least one).

    Raises:
        Unmodelled: It has another rank or is a scalar.
    """
    found = sizes(arguments, index)
    if not found or (rank is not None and len(found) != rank):
        wanted = "a tensor" if rank is None else f"{rank} dimensions"
        raise Unmodelled(f"argument {index} should have {wanted} and has the sizes {list(found)}")
    return found


def has_sizes(arguments: OperatorArguments, index: int) -> bool:
    """Say whether an argument is there and is a tensor with dimensions."""
    if not -len(arguments.input_dims) <= index < len(arguments.input_dims):
        return False
    return bool(as_sizes(arguments.input_dims[index]))


def kind(arguments: OperatorArguments, index: int) -> str:
    """Type of an argument; "" where none was recorded."""
    types = arguments.input_types
    return types[index] if -len(types) <= index < len(types) else ""


def strides(arguments: OperatorArguments, index: int) -> Sizes | None:
    """Strides of a tensor in elements; None where none were recorded."""
    if not -len(arguments.input_strides) <= index < len(arguments.input_strides):
        return None
    return as_sizes(arguments.input_strides[index])


def text(arguments: OperatorArguments, index: int) -> str:
    """Concrete value of a scalar or list as text; "" for tensors and what is missing."""
    values = arguments.concrete_inputs
    return values[index] if -len(values) <= index < len(values) else ""


def number(arguments: OperatorArguments, index: int, otherwise: float | None = None) -> float:
    """Concrete number.

    Raises:
        Unmodelled: There is none, and nothing to take instead.
    """
    value = text(arguments, index)
    try:
        return float(value)
    except ValueError:
        if otherwise is None:
            raise Unmodelled(f"argument {index} should be a number and is {value!r}") from None
        return otherwise


def flag(arguments: OperatorArguments, index: int, otherwise: bool = False) -> bool:
    """Concrete truth value: "True"/"False"."""
    value = text(arguments, index)
    return value == "True" if value in {"True", "False"} else otherwise


def whole_numbers(arguments: OperatorArguments, index: int) -> Sizes:
    """Concrete list of ints: "[1, 1]"; () for anything else."""
    try:
        value = ast.literal_eval(text(arguments, index))
    except (ValueError, SyntaxError):
        return ()
    return as_sizes(value) or ()


def truths(arguments: OperatorArguments, index: int) -> list[bool]:
    """Concrete list of truth values: "[True, False]"; [] for anything else."""
    try:
        value = ast.literal_eval(text(arguments, index))
    except (ValueError, SyntaxError):
        return []
    return [bool(item) for item in value] if isinstance(value, list) else []


def elements(of: Sequence[int]) -> int:
    """Number of elements; a scalar has one."""
    return math.prod(of)


def tensors(arguments: OperatorArguments) -> list[tuple[Sizes, str]]:
    """Sizes and types of all tensor arguments with dimensions; lists of tensors are opened, without their type."""
    found: list[tuple[Sizes, str]] = []
    for index, value in enumerate(arguments.input_dims):
        single = as_sizes(value)
        if single:
            found.append((single, kind(arguments, index)))
        elif single is None and isinstance(value, (tuple, list)):
            found.extend((inner, "") for item in value if (inner := as_sizes(item)))
    return found
