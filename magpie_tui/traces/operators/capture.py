"""Lays the calls of a capture run over the graph launches of a replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.load import load_columns
from magpie_tui.traces.operators.capture_files import (
    CaptureFile,
    CaptureRoot,
    capture_files,
    capture_roots,
    chosen_file,
)
from magpie_tui.traces.operators.launches import LaunchPairs
from magpie_tui.traces.operators.matching import Dispatch, Piece, WorkKind, matched
from magpie_tui.traces.operators.tree import Kind, Tree, nested
from magpie_tui.traces.steps import Steps, upstream_steps

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_GRAPH_LAUNCHES = ("cudaGraphLaunch", "hipGraphLaunch")


@dataclass(frozen=True, slots=True)
class Template:
    """The calls of one capture, as far as they have work in a replay.

    Attributes:
        tree: Its work holds the rows of the launching calls in the trace of the capture.
        names: int64, code (in the replay) of the kernel of each entry of the tree's work.
    """

    tree: Tree
    names: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MergedLaunch:
    """A graph launch that a capture describes.

    Attributes:
        node: The launch in the tree of the replay.
        template: Place in :attr:`Captures.templates`.
        described: The first pieces of the launch's work, in the order of the template's work.
    """

    node: int
    template: int
    described: int


@dataclass(frozen=True, slots=True)
class Captures:
    """What captures say about the graph launches of a trace.

    Attributes:
        launches: By node.
        graph_launches: Graph launches with work in the tree.
        notes: Why steps or launches were left as they are.
    """

    templates: tuple[Template, ...] = ()
    launches: tuple[MergedLaunch, ...] = ()
    graph_launches: int = 0
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Loaded:
    """A trace of a capture run, with what was learnt from it."""

    columns: TraceColumns
    roots: list[CaptureRoot]
    dispatches: dict[int, list[Dispatch]] = field(default_factory=dict)

    def of(self, place: int) -> list[Dispatch]:
        """Dispatches of a root."""
        if place not in self.dispatches:
            rows = self.roots[place].dispatches
            kernels = {row: args.get("kernel") for row, args in self.columns.arguments_of(sorted(rows.tolist()))}
            self.dispatches[place] = [
                Dispatch(self.columns.name_of(row), str(kernels[row]) if kernels.get(row) else None)
                for row in rows.tolist()
            ]
        return self.dispatches[place]


def graph_launch_nodes(tree: Tree) -> list[int]:
    """Graph launches of a tree that have work."""
    return [
        node
        for node, name in enumerate(tree.name)
        if name in _GRAPH_LAUNCHES and tree.kind[node] != Kind.op and tree.end[node] > tree.start[node]
    ]


def merge_captures(tree: Tree, folder: Path) -> Captures:
    """Lay captures over the launches of the trace's steps; the tree's work is put into the order of the captures.

    Raises:
        UserInputError: The folder or a trace in it can't be read.
    """
    merging = _Merging(tree, capture_files(folder))
    nodes = graph_launch_nodes(tree)
    if nodes and not merging.files:
        merging.notes.append(f"{folder} holds no capture of a known batch size and mode")
    elif nodes:
        for label, batch_size, mine in _launches_of_steps(tree, upstream_steps(tree.columns), nodes):
            merging.step(label, batch_size, mine)
    return Captures(
        tuple(merging.templates),
        tuple(sorted(merging.launches, key=lambda launch: launch.node)),
        len(nodes),
        tuple(dict.fromkeys(merging.notes)),
    )


def _launches_of_steps(tree: Tree, steps: Steps, nodes: Sequence[int]) -> list[tuple[str, int, list[int]]]:
    """Label, batch size and graph launches of each step that has some."""
    import numpy as np

    columns = tree.columns
    rows = np.array([tree.row[node] for node in nodes], np.int64)
    start = columns.ts_ns[rows]
    end = start + np.where(columns.dur_ns[rows] == MISSING, 0, columns.dur_ns[rows])
    order = np.argsort(start, kind="stable")
    found = []
    for index, label in enumerate(steps.labels):
        begin, finish = int(steps.start_ns[index]), int(steps.end_ns[index])
        first = int(np.searchsorted(start[order], begin))
        last = int(np.searchsorted(start[order], finish))
        inside = [nodes[place] for place in order[first:last].tolist() if end[place] <= finish]
        if inside:
            found.append((label.text, label.upstream.batch_size, inside))
    return found


class _Merging:
    """State of one merge."""

    def __init__(self, tree: Tree, files: list[CaptureFile]) -> None:
        self._tree = tree
        self.files = files
        self.templates: list[Template] = []
        self.launches: list[MergedLaunch] = []
        self.notes: list[str] = []
        self._known: dict[tuple[Path, int, tuple[int, ...], bytes], int] = {}
        self._loaded: dict[Path, _Loaded] = {}

    def step(self, label: str, batch_size: int, nodes: Sequence[int]) -> None:
        """Lay captures over the launches (by time) of a step."""
        file = chosen_file(self.files, batch_size, len(nodes))
        if file is None:
            self.notes.append(f"no capture for a batch of {batch_size} ({label})")
            return
        loaded = self._load(file)
        roots = len(loaded.roots)
        if roots != 1 and roots != len(nodes):
            self.notes.append(f"{file.path.name} holds {roots} captures, the step {label} launches {len(nodes)} graphs")
            return
        for index, node in enumerate(nodes):
            self._launch(file, loaded, 0 if roots == 1 else index, node)

    def _load(self, file: CaptureFile) -> _Loaded:
        if file.path not in self._loaded:
            if not file.path.is_file():
                raise UserInputError("the list of captures names a trace that is not there", path=file.path)
            columns = load_columns(file.path)
            self._loaded[file.path] = _Loaded(columns, capture_roots(columns))
        return self._loaded[file.path]

    def _launch(self, file: CaptureFile, loaded: _Loaded, place: int, node: int) -> None:
        import numpy as np

        tree = self._tree
        start, end = tree.start[node], tree.end[node]
        rows = tree.work[start:end]
        rows = rows[np.argsort(tree.columns.ts_ns[rows], kind="stable")]
        columns = tree.columns
        kinds = {"gpu_memcpy": WorkKind.copy, "gpu_memset": WorkKind.fill}
        pieces = [
            Piece(
                columns.name_of(row),
                int(columns.stream[row]),
                kinds.get(columns.category_of(row).lower(), WorkKind.kernel),
            )
            for row in rows.tolist()
        ]
        found = matched(loaded.of(place), pieces)
        if found is None:
            self.notes.append(f"the kernels of a launch of {len(pieces)} do not match the capture in {file.path.name}")
            return
        places = np.array(found, np.int64)
        used = np.flatnonzero(places >= 0)
        names = columns.name[rows[places[used]]].astype(np.int64)
        key = (file.path, place, tuple(used.tolist()), names.tobytes())
        if key not in self._known:
            self._known[key] = len(self.templates)
            self.templates.append(_template(loaded, place, used, names))
        template = self.templates[self._known[key]]
        dispatches = loaded.roots[place].dispatches
        piece_of = dict(zip(dispatches[used].tolist(), rows[places[used]].tolist(), strict=True))
        described = [piece_of[dispatch] for dispatch in template.tree.work.tolist()]
        left = set(rows.tolist()) - set(described)
        tree.work[start:end] = np.array(described + [row for row in rows.tolist() if row in left], np.int64)
        self.launches.append(MergedLaunch(node, self._known[key], len(described)))


def _template(loaded: _Loaded, place: int, used: npt.NDArray[np.int64], names: npt.NDArray[np.int64]) -> Template:
    import numpy as np

    root = loaded.roots[place]
    rows = np.sort(root.dispatches[used])
    tree = nested(loaded.columns, LaunchPairs(rows, rows), (root.begin_ns, root.end_ns))
    name_of = dict(zip(root.dispatches[used].tolist(), names.tolist(), strict=True))
    return Template(tree, np.array([name_of[row] for row in tree.work.tolist()], np.int64))
