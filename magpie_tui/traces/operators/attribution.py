"""Guesses at replayed kernels without a capture: what the same kernels belonged to where they ran eagerly.

A guess is made only where it is unambiguous. Kernels of a replay that occur, in the same order, in an eager step of the
same batch get that step's calls with their shapes. Any other kernel gets the name of an op, without shapes, if eager
calls of no other op launched a kernel of its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from magpie_tui.traces.operators.choice import How
from magpie_tui.traces.operators.instances import Instances
from magpie_tui.traces.stages import steps_at
from magpie_tui.traces.steps import Steps

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

AMBIGUOUS = -2


@dataclass(frozen=True, slots=True)
class Attribution:
    """Instances with guesses; the arrays have one entry an instance.

    Attributes:
        by_position: bool, calls taken over from an eager step.
        by_name: int64, node of an eager call whose op the kernel belongs to by its name; -1 for none.
    """

    instances: Instances
    by_position: npt.NDArray[np.bool_]
    by_name: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Eager:
    """Work of an eager step in order of time.

    Attributes:
        step: Place of the step.
        codes: int32, kernel names.
        instance: int64, instance of each piece.
    """

    step: int
    codes: npt.NDArray[np.int32]
    instance: npt.NDArray[np.int64]


def attribute_replays(instances: Instances, steps: Steps, replayed: npt.NDArray[np.bool_]) -> Attribution:
    """Guess what replayed kernels belong to.

    Args:
        replayed: Mask of the instances that are single kernels of a graph launch.
    """
    import numpy as np

    nothing = np.zeros(len(instances), np.bool_)
    if not replayed.any():
        return Attribution(instances, nothing, np.full(len(instances), -1, np.int64))
    instances, by_position = _by_position(instances, steps, replayed)
    replayed = is_replayed(instances)
    return Attribution(instances, by_position, _by_name(instances, replayed & ~by_position))


def is_replayed(instances: Instances) -> npt.NDArray[np.bool_]:
    """Mask of the instances that are single kernels of a graph launch."""
    import numpy as np

    main = instances.forest.main
    table = np.array(["graphlaunch" in name.lower() for name in main.name] or [False], np.bool_)
    result: npt.NDArray[np.bool_] = (instances.how == How.kernel) & (instances.tree == 0)
    result[result] = table[instances.node[result]]
    return result


def _eager_steps(instances: Instances, steps: Steps, replayed: npt.NDArray[np.bool_]) -> list[_Eager]:
    """Steps without replays, as far as calls were found for all of their work."""
    import numpy as np

    columns, main = instances.forest.columns, instances.forest.main
    owner = steps_at(columns, steps, instances.host_rows()) if len(steps) else np.full(len(instances), -1, np.int64)
    with_replay = set(np.unique(owner[replayed]).tolist())
    found = []
    for step in sorted(set(np.unique(owner).tolist()) - with_replay - {-1}):
        mine = np.flatnonzero(owner == step)
        count = (instances.end - instances.start)[mine]
        position = np.concatenate([np.arange(instances.start[place], instances.end[place]) for place in mine.tolist()])
        order = np.argsort(columns.ts_ns[main.work[position]], kind="stable")
        codes = instances.forest.names[0][position[order]].astype(np.int32)
        found.append(_Eager(step, codes, np.repeat(mine, count)[order]))
    return found


def _by_position(
    instances: Instances, steps: Steps, replayed: npt.NDArray[np.bool_]
) -> tuple[Instances, npt.NDArray[np.bool_]]:
    """Replace the kernels of launches that repeat a part of an eager step of the same batch by that step's calls."""
    import numpy as np

    eager = _eager_steps(instances, steps, replayed)
    columns, main = instances.forest.columns, instances.forest.main
    taken: list[tuple[int, int, int, int]] = []
    gone_nodes: list[int] = []
    nodes = np.unique(instances.node[replayed]).tolist() if eager else []
    rows = np.array([main.row[node] for node in nodes], np.int64)
    at = steps_at(columns, steps, rows) if nodes else rows
    described = {launch.node for launch in instances.forest.captures.launches}
    for node, step in zip(nodes, at.tolist(), strict=True):
        if step < 0 or node in described:
            continue
        part = slice(main.start[node], main.end[node])
        work = main.work[part]
        main.work[part] = work[np.argsort(columns.ts_ns[work], kind="stable")]
        instances.forest.names[0][part] = columns.name[main.work[part]]
        calls = _nearest(eager, steps, step, instances.forest.names[0][part].astype(np.int32))
        if calls is None:
            continue
        gone_nodes.append(node)
        taken += [(node, place, main.start[node] + first, main.start[node] + last) for place, first, last in calls]
    if not taken:
        return instances, np.zeros(len(instances), np.bool_)
    gone = replayed & np.isin(instances.node, gone_nodes)
    return _with_calls(instances, ~gone, taken)


def _nearest(
    eager: Sequence[_Eager], steps: Steps, step: int, codes: npt.NDArray[np.int32]
) -> list[tuple[int, int, int]] | None:
    """Calls (instance, first and last piece) of the nearest eager step of the same batch that holds these kernels."""
    import numpy as np

    wanted = steps.labels[step].batch_tokens
    for item in sorted(eager, key=lambda item: abs(item.step - step)):
        if wanted is None or steps.labels[item.step].batch_tokens != wanted:
            continue
        first = _only_place(item.codes, codes)
        if first is None:
            continue
        inside = item.instance[first : first + len(codes)]
        change = np.flatnonzero(np.diff(inside, prepend=-1))
        places = inside[change].tolist()
        limits = [*change.tolist(), len(codes)]
        whole = all(
            int((item.instance == place).sum()) == limits[index + 1] - limits[index]
            for index, place in enumerate(places)
        )
        if whole and len(set(places)) == len(places):
            return [(place, limits[index], limits[index + 1]) for index, place in enumerate(places)]
    return None


def _only_place(codes: npt.NDArray[np.int32], part: npt.NDArray[np.int32]) -> int | None:
    """Where a part stands in a sequence; None where it does not, or stands several times."""
    text, wanted = codes.tobytes(), part.tobytes()
    found: list[int] = []
    place = text.find(wanted)
    while place >= 0 and len(found) < 2:
        if place % 4 == 0:
            found.append(place // 4)
        place = text.find(wanted, place + 1)
    return found[0] if len(found) == 1 else None


def _with_calls(
    instances: Instances, kept: npt.NDArray[np.bool_], taken: Sequence[tuple[int, int, int, int]]
) -> tuple[Instances, npt.NDArray[np.bool_]]:
    import numpy as np

    table = np.array(taken, np.int64)
    model = table[:, 1]
    start = np.concatenate([instances.start[kept], table[:, 2]])
    order = np.argsort(start, kind="stable")

    def joined(old: npt.NDArray[np.signedinteger], new: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.int64]:
        return np.concatenate([old[kept], new])[order].astype(np.int64)

    found = replace(
        instances,
        tree=joined(instances.tree, instances.tree[model]).astype(np.int32),
        node=joined(instances.node, instances.node[model]),
        launch=joined(instances.launch, table[:, 0]),
        start=start[order],
        end=joined(instances.end, table[:, 3]),
        how=joined(instances.how, instances.how[model]).astype(np.int8),
        pseudo=joined(instances.pseudo, instances.pseudo[model]),
    )
    guessed = np.concatenate([np.zeros(int(kept.sum()), np.bool_), np.ones(len(taken), np.bool_)])[order]
    return found, guessed


def _by_name(instances: Instances, wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """For each wanted kernel the node of an eager call, if all eager calls with a kernel of its name are of one op."""
    import numpy as np

    result = np.full(len(instances), -1, np.int64)
    eager = np.flatnonzero((instances.how != How.kernel) & (instances.tree == 0) & (instances.launch < 0))
    if not len(eager) or not wanted.any():
        return result
    names, main = instances.forest.names[0], instances.forest.main
    node_of = np.full(len(instances.forest.columns.names), -1, np.int64)
    for place in eager.tolist():
        node = int(instances.node[place])
        for code in names[instances.start[place] : instances.end[place]].tolist():
            known = int(node_of[code])
            if known == -1:
                node_of[code] = node
            elif known != AMBIGUOUS and main.name[known] != main.name[node]:
                node_of[code] = AMBIGUOUS
    result[wanted] = np.maximum(node_of[names[instances.start[wanted]]], -1)
    return result
