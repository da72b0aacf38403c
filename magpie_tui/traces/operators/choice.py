"""Which calls of a tree become rows: the outermost ones with a model, and what else launched work.

Upstream's rules, with its two blind spots (driver calls, collectives) as switches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from magpie_tui.traces.operators.tree import Kind, Tree

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class How(IntEnum):
    """Why an instance became a row."""

    model = 0
    backward = 1
    leaf = 2
    kernel = 3
    pseudo = 4


@dataclass(frozen=True, slots=True)
class PseudoOp:
    """An op that upstream makes up over some work of another one.

    Attributes:
        name: Its name.
        node: Node whose arguments it has.
        start, end: Slice of the tree's work.
        modelled: It has a model.
        extra: Arguments that it adds.
    """

    name: str
    node: int
    start: int
    end: int
    modelled: bool = True
    extra: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """How calls are chosen.

    Attributes:
        follow_driver: Work launched by driver calls makes an op a leaf too.
        collectives: Collectives become rows.
    """

    follow_driver: bool
    collectives: bool


UPSTREAM = Rules(follow_driver=False, collectives=False)
OURS = Rules(follow_driver=True, collectives=True)


@dataclass(frozen=True, slots=True)
class Merged:
    """A graph launch whose work is described by a capture.

    Attributes:
        modelled: Something in the capture has a model.
        described: Pieces of the launch's work, from its start, that the capture describes.
    """

    modelled: bool
    described: int


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """What is known about the nodes and the work of a tree.

    Attributes:
        modelled: Mask of the nodes with a model.
        backward: Mask of the nodes that are the only backward op of a forward op with a backward model.
        collective: bool, mask of the tree's work.
        pseudo: Pseudo ops by the node at which they appear.
        merged: Launches that a capture describes, by node.
    """

    modelled: Sequence[bool]
    backward: frozenset[int]
    collective: npt.NDArray[np.bool_]
    pseudo: Mapping[int, Sequence[PseudoOp]] = field(default_factory=dict)
    merged: Mapping[int, Merged] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Choice:
    """Chosen instances; the arrays have one entry each.

    Attributes:
        node: int64.
        start, end: int64, slices of the tree's work.
        how: int8, values of :class:`How`.
        pseudo: int64, place in ``pseudo_ops``; -1 for none.
        covered: bool, mask of the tree's work that belongs to an instance made of a call.
    """

    node: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    how: npt.NDArray[np.int8]
    pseudo: npt.NDArray[np.int64]
    pseudo_ops: tuple[PseudoOp, ...]
    covered: npt.NDArray[np.bool_]


def choose(tree: Tree, facts: TreeFacts, rules: Rules) -> Choice:
    """Walk the tree from its roots; what no chosen call covers becomes a row for each piece of work."""
    import numpy as np

    walk = _Walk(tree, facts, rules)
    walk.run()
    covered = walk.covered()
    rest = ~covered
    for launch, merged in facts.merged.items():
        rest[tree.start[launch] : tree.start[launch] + merged.described] = False
    if not rules.collectives:
        rest &= ~facts.collective
    position = np.flatnonzero(rest)
    owner = tree.owner[position]
    above = np.array(tree.op_above() or [-1], np.int64)[owner] if len(owner) else owner
    node = np.concatenate([np.array(walk.node, np.int64), np.where(above >= 0, above, owner)])
    count = len(position)
    return Choice(
        node,
        np.concatenate([np.array(walk.start, np.int64), position]),
        np.concatenate([np.array(walk.end, np.int64), position + 1]),
        np.concatenate([np.array(walk.how, np.int8), np.full(count, How.kernel, np.int8)]),
        np.concatenate([np.array(walk.pseudo, np.int64), np.full(count, -1, np.int64)]),
        tuple(walk.pseudo_ops),
        covered,
    )


class _Walk:
    """State of one walk."""

    def __init__(self, tree: Tree, facts: TreeFacts, rules: Rules) -> None:
        import numpy as np

        self._tree, self._facts, self._rules = tree, facts, rules
        self._collectives = np.concatenate([[0], np.cumsum(facts.collective)])
        self._claimed = np.zeros(len(tree.work), np.bool_)
        self.node: list[int] = []
        self.start: list[int] = []
        self.end: list[int] = []
        self.how: list[int] = []
        self.pseudo: list[int] = []
        self.pseudo_ops: list[PseudoOp] = []

    def run(self) -> None:
        """Visit each node at most once."""
        tree, facts = self._tree, self._facts
        below, direct = self._below()
        modelled, pseudo = facts.modelled, facts.pseudo
        op = int(Kind.op)
        kind, start, end, last = tree.kind, tree.start, tree.end, tree.last
        node, count = 0, len(tree)
        while node < count:
            if start[node] == end[node]:
                node = last[node]
                continue
            if pseudo and node in pseudo:
                node = self._take_pseudo(node)
                continue
            if kind[node] == op:
                if modelled[node]:
                    self._take(node, How.model)
                    node = last[node]
                    continue
                if not below[node]:
                    if node in facts.backward:
                        self._take(node, How.backward)
                        node = last[node]
                        continue
                    if direct[node]:
                        if self._rules.collectives or not self._has_collective(node):
                            self._take(node, How.leaf)
                        node = last[node]
                        continue
            node += 1

    def _below(self) -> tuple[list[bool], list[bool]]:
        """Is there a modelled op below each node; does it launch work without an op between."""
        import numpy as np

        tree, facts = self._tree, self._facts
        count = len(tree)
        below, direct = [False] * count, [False] * count
        own = np.bincount(tree.owner, minlength=count).tolist() if count else []
        op, driver = int(Kind.op), int(Kind.driver)
        follow = self._rules.follow_driver
        for node, merged in facts.merged.items():
            own[node] -= merged.described
            below[node] = merged.modelled
        for node in range(count - 1, -1, -1):
            if tree.start[node] == tree.end[node]:
                continue
            if node in facts.pseudo:
                below[node] = True
            if tree.kind[node] == op and own[node] > 0:
                # An engine on a CPU: the op is the work itself.
                direct[node] = True
            parent = tree.parent[node]
            if parent < 0:
                continue
            if below[node] or facts.modelled[node]:
                below[parent] = True
            kind = tree.kind[node]
            if kind != op and (own[node] > 0 or direct[node]) and (follow or kind != driver):
                direct[parent] = True
        return below, direct

    def _has_collective(self, node: int) -> bool:
        start, end = self._tree.start[node], self._tree.end[node]
        return bool(self._collectives[end] > self._collectives[start])

    def _take(self, node: int, how: How, slice_: tuple[int, int] | None = None, pseudo: int = -1) -> None:
        start, end = slice_ or (self._tree.start[node], self._tree.end[node])
        if self.pseudo_ops and self._claimed[start:end].all():
            return
        self.node.append(node)
        self.start.append(start)
        self.end.append(end)
        self.how.append(int(how))
        self.pseudo.append(pseudo)

    def _take_pseudo(self, node: int) -> int:
        """Take the pseudo ops of a node and say where the walk goes on."""
        tree = self._tree
        for item in self._facts.pseudo[node]:
            if self._claimed[item.start : item.end].all():
                continue
            self.pseudo_ops.append(item)
            self.node.append(item.node)
            self.start.append(item.start)
            self.end.append(item.end)
            self.how.append(int(How.pseudo))
            self.pseudo.append(len(self.pseudo_ops) - 1)
            self._claimed[item.start : item.end] = True
        whole = bool(self._claimed[tree.start[node] : tree.end[node]].all())
        return tree.last[node] if whole else node + 1

    def covered(self) -> npt.NDArray[np.bool_]:
        """Mask of the work within the instances taken."""
        import numpy as np

        change = np.zeros(len(self._tree.work) + 1, np.int64)
        np.add.at(change, np.array(self.start, np.int64), 1)
        np.add.at(change, np.array(self.end, np.int64), -1)
        result: npt.NDArray[np.bool_] = np.cumsum(change)[:-1] > 0
        return result
