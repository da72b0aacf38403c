"""Values in the sections of kernel and framework configs that have rules of their own."""

from __future__ import annotations

from magpie_tui.configs.positions import MapNode, Node, Scalar
from magpie_tui.configs.schema import Reader

_TRUE_WORDS = ("1", "true", "yes", "on")
_FALSE_WORDS = ("0", "false", "no", "off")
ROOFLINE = "performance.rocprof_compute.roofline"


def read_roofline(reader: Reader, performance: Node | None) -> None:
    """Read ``rocprof_compute.roofline`` of a ``performance`` section: true, false, or a word that means one of them."""
    node = _below(_below(performance, "rocprof_compute"), "roofline")
    if node is None:
        return
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(node, Scalar) and value is None:
        reader.put(ROOFLINE, None, node)
    elif isinstance(value, (bool, int)) and value in (0, 1):
        reader.put(ROOFLINE, bool(value), node)
    elif isinstance(value, str) and value.lower() in (*_TRUE_WORDS, *_FALSE_WORDS):
        reader.put(ROOFLINE, value.lower() in _TRUE_WORDS, node)
    else:
        reader.wrong_type(node, ROOFLINE, "true or false")


def _below(node: Node | None, key: str) -> Node | None:
    entry = node.get(key) if isinstance(node, MapNode) else None
    return None if entry is None else entry.value
