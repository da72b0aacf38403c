"""A trace's tree of calls with the captures laid over its graph launches."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.operators.capture import Captures, graph_launch_nodes, merge_captures
from magpie_tui.traces.operators.choice import PseudoOp
from magpie_tui.traces.operators.launches import LaunchPairs
from magpie_tui.traces.operators.pseudo import plain_op_name, pseudo_ops
from magpie_tui.traces.operators.recorded import RecordedInputs
from magpie_tui.traces.operators.tree import Kind, Tree, build_tree

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Forest:
    """Trees of a trace: the first is its own, the others are those of captures.

    Attributes:
        trees: Trees; ``trees[0].work`` holds the device rows of the trace.
        names: For each tree int64 codes (into the names of the trace) of the kernels of its work.
        pseudo: For each tree its pseudo ops by node.
        captures: What was laid over which launch.
        inputs: Recorded inputs of all trees.
    """

    columns: TraceColumns
    pairs: LaunchPairs
    trees: tuple[Tree, ...]
    names: tuple[npt.NDArray[np.int64], ...]
    pseudo: tuple[dict[int, list[PseudoOp]], ...]
    captures: Captures
    inputs: RecordedInputs = field(default_factory=RecordedInputs)

    @property
    def main(self) -> Tree:
        """The trace's own tree."""
        return self.trees[0]


def plant(
    columns: TraceColumns, pairs: LaunchPairs, *, capture_folder: Path | None = None, pseudo: bool = True
) -> Forest:
    """Build the trees of a trace.

    Args:
        capture_folder: Traces of the capture run.
        pseudo: Make up upstream's pseudo ops.

    Raises:
        UserInputError: The capture folder can't be read.
    """
    main = build_tree(columns, pairs)
    if capture_folder is None:
        captures = Captures(graph_launches=len(graph_launch_nodes(main)))
    else:
        captures = merge_captures(main, capture_folder)
    trees = (main, *(template.tree for template in captures.templates))
    names = (columns.name[main.work].astype("int64"), *(template.names for template in captures.templates))
    found: list[dict[int, list[PseudoOp]]] = []
    for tree, codes in zip(trees, names, strict=True):
        if not pseudo:
            found.append({})
            continue
        _rename(tree)
        found.append(pseudo_ops(tree, codes, columns.names, tree.columns.ts_ns[tree.work]))
    return Forest(columns, pairs, trees, names, tuple(found), captures)


def _rename(tree: Tree) -> None:
    """Take the numbers off the ops of SGLang's profiler."""
    op = int(Kind.op)
    for node, name in enumerate(tree.name):
        if tree.kind[node] == op and name.startswith("sglang_profiler::"):
            tree.name[node] = plain_op_name(name)
