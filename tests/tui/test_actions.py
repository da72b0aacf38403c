"""Every action of the registry has a proof, and every proof holds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from magpie_tui.tui.actions import Action, registry
from tests.conftest import set_home
from tests.tui import proofs
from tests.tui.restart import can_restart, restart
from tests.tui.support import ALONE, PROOFS, Stage, World, wait_ready

assert proofs.__doc__
MOST = 10
"""Actions that one test proves: parts of it can be called for, and several workers share an area."""


def _parts() -> dict[str, list[Action]]:
    """Return the actions by the part of their ids before the dot, in the order of the tables, ``MOST`` at a time."""
    parts: dict[str, list[Action]] = {}
    for area, of_area in groupby(registry(), lambda action: action.id.partition(".")[0]):
        actions = list(of_area)
        for begin in range(0, len(actions), MOST):
            parts[f"{area}-{begin // MOST + 1}"] = actions[begin : begin + MOST]
    return parts


PARTS = _parts()


@pytest.fixture
def new_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """What gives a user new directories, as each test has its own."""
    return lambda: set_home(tmp_path_factory, monkeypatch)


async def prove(actions: list[Action], proved: list[str], new_home: Callable[[], Path]) -> None:
    """Prove actions in one app, each in its own world and home, until a proof fails or ends the app.

    Args:
        actions: What is to be proved; each is taken away before its proof begins.
        proved: Gets the id of each, the last one is that of the proof that fails.
    """
    world = World()
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        while True:
            action = actions.pop(0)
            proved.append(action.id)
            await PROOFS[action.id](Stage(pilot, app, world, action.keys[0] if action.keys else ""))
            if not actions or action.id in ALONE or actions[0].id in ALONE or not can_restart(app):
                return
            new_home()
            await restart(pilot, world)


@pytest.mark.parametrize("part", PARTS)
async def test_actions(part: str, new_home: Callable[[], Path]) -> None:
    """The keys do what the registry says; a failure names its action and keeps no other proof from being made."""
    left, proved = list(PARTS[part]), list[str]()
    failures: dict[str, Exception] = {}
    while left:
        new_home()
        try:
            await prove(left, proved, new_home)
        except Exception as error:
            failures[proved[-1]] = error
    assert proved == [action.id for action in PARTS[part]]
    if failures:
        words = "\n".join(f"{action_id}: {error or repr(error)}" for action_id, error in failures.items())
        raise AssertionError(f"these actions fail, the first one as above:\n{words}") from next(iter(failures.values()))


def test_every_action_has_a_proof() -> None:
    """Each is proved by one of the parts; a proof of an action that is gone is dead code."""
    known = [action.id for action in registry()]
    assert [action.id for actions in PARTS.values() for action in actions] == known
    assert [action_id for action_id in known if action_id not in PROOFS] == [], "add a proof in tests/tui/proofs"
    assert [action_id for action_id in PROOFS if action_id not in known] == []
