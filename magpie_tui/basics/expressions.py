"""Small arithmetic over named whole numbers: ``(n + 255) // 256``, ``ceil_div(rows, 4) * cols``.

Nothing but numbers, names, the operators below and a few functions is understood, so that text from a file can be
evaluated. The module needs the standard library only: children that run kernels import it too.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

Number = int | float
MOST_BITS = 4096
"""Whole numbers above 2 to this power are refused: a typing error, not a shape."""


class ExpressionError(ValueError):
    """The text is no expression of this kind, or has no value."""


def ceil_div(first: int, second: int) -> int:
    """Divide and round up."""
    return -(-first // second)


def next_power_of_2(value: int) -> int:
    """Return the least power of two that is not below ``value``."""
    return 1 if value <= 1 else 1 << (int(value) - 1).bit_length()


_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, tuple[Callable[..., Number], int]] = {
    "ceil_div": (ceil_div, 2),
    "cdiv": (ceil_div, 2),
    "min": (min, 0),
    "max": (max, 0),
    "next_power_of_2": (next_power_of_2, 1),
}
FUNCTIONS = tuple(_FUNCTIONS)
"""Names that cannot be names of dimensions."""


def _parse(text: str) -> ast.expr:
    if len(text) > 500:
        raise ExpressionError("it is longer than 500 characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{text!r} is no expression") from error


def names_in(text: str) -> frozenset[str]:
    """Return the names that an expression uses, functions left out.

    Raises:
        ExpressionError: It is no expression, or uses something else than numbers, names, + - * // / % ** and functions.
    """
    found: set[str] = set()
    _walk(_parse(text), found)
    return frozenset(found)


def _walk(node: ast.expr, found: set[str]) -> None:
    if isinstance(node, ast.Name):
        found.add(node.id)
    elif isinstance(node, ast.BinOp):
        if type(node.op) not in _OPERATORS:
            raise ExpressionError("only + - * // / % ** are understood")
        _walk(node.left, found)
        _walk(node.right, found)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        _walk(node.operand, found)
    elif isinstance(node, ast.Call):
        for argument in _call_arguments(node):
            _walk(argument, found)
    else:
        _number(node)


def _number(node: ast.expr) -> Number:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return node.value
    raise ExpressionError(f"{ast.unparse(node)!r} is neither a number, nor a name, nor arithmetic")


def _call_arguments(node: ast.Call) -> list[ast.expr]:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if name not in _FUNCTIONS:
        raise ExpressionError(f"there is no function {name!r} here, only {', '.join(FUNCTIONS)}")
    count = _FUNCTIONS[name][1]
    if node.keywords or any(isinstance(item, ast.Starred) for item in node.args):
        raise ExpressionError(f"{name} takes plain arguments")
    if (count and len(node.args) != count) or (not count and len(node.args) < 2):
        raise ExpressionError(f"{name} takes {count or 'two or more'} arguments, not {len(node.args)}")
    return node.args


def evaluate(text: str | Number, names: Mapping[str, Number]) -> Number:
    """Return the value of an expression; a number is its own value.

    Raises:
        ExpressionError: See ``names_in``; or a name has no value, something is divided by 0, or the value is too large.
    """
    if not isinstance(text, str):
        return text
    try:
        return _value(_parse(text), names)
    except (ZeroDivisionError, OverflowError, TypeError, ValueError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(f"{text!r} has no value: {error}") from error


def _value(node: ast.expr, names: Mapping[str, Number]) -> Number:
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise ExpressionError(f"{node.id!r} has no value here")
        return names[node.id]
    if isinstance(node, ast.BinOp):
        return _binary(node, names)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _value(node.operand, names)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call):
        arguments = [_value(item, names) for item in _call_arguments(node)]
        function = _FUNCTIONS[node.func.id][0] if isinstance(node.func, ast.Name) else None
        if function is not None:
            return function(*arguments)
    return _number(node)


def _binary(node: ast.BinOp, names: Mapping[str, Number]) -> Number:
    function = _OPERATORS.get(type(node.op))
    if function is None:
        raise ExpressionError("only + - * // / % ** are understood")
    left, right = _value(node.left, names), _value(node.right, names)
    if isinstance(node.op, ast.Pow) and not -64 <= right <= 64:
        raise ExpressionError("a power beyond 64 is refused")
    result = function(left, right)
    if isinstance(result, complex) or (isinstance(result, int) and result.bit_length() > MOST_BITS):
        raise ExpressionError("the value is too large")
    return result


def evaluate_whole(text: str | Number, names: Mapping[str, Number], *, least: int = 0) -> int:
    """Return the value of an expression that must be a whole number of at least ``least``.

    Raises:
        ExpressionError: It is none; see also ``evaluate``.
    """
    value = evaluate(text, names)
    if isinstance(value, float):
        if not value.is_integer():
            raise ExpressionError(f"{text!r} is {value:g}, which is no whole number (// and ceil_div divide whole)")
        value = int(value)
    if value < least:
        raise ExpressionError(f"{text!r} is {value}, below {least}")
    return value
