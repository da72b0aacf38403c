"""Places of a config that a person still has to fill in: values such as ``<fill in: what belongs here>``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from magpie_tui.configs.positions import ListNode, MapNode, Node, Problem, ProblemList, Scalar

GAP_CODE = "to-fill-in"
_BEGIN, _END = "<fill in: ", ">"


def gap(what: str) -> str:
    """Return the value that stands for a gap.

    Args:
        what: What belongs there, in words.
    """
    return f"{_BEGIN}{what}{_END}"


def has_gaps(path: Path) -> bool:
    """True when a file holds the sign of a gap; False for one that cannot be read."""
    try:
        return _BEGIN in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def report_gaps(root: Node | None, problems: ProblemList) -> None:
    """Report each gap as the one error of its place, whatever else a check found there."""
    gaps = [node for node in _scalars(root) if node.text.startswith(_BEGIN)]
    problems.items[:] = [item for item in problems.items if not any(_inside(item, node) for node in gaps)]
    for node in gaps:
        what = node.text.removeprefix(_BEGIN).removesuffix(_END)
        problems.error(node, GAP_CODE, f"this is for a person to fill in: {what}")


def _inside(problem: Problem, node: Scalar) -> bool:
    last = node.column + len(node.text) + 1
    return problem.line == node.line and node.column <= problem.column <= last


def _scalars(node: Node | None) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from _scalars(item)
    elif isinstance(node, MapNode):
        for entry in node.entries:
            yield from _scalars(entry.value)
