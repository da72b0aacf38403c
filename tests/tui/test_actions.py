"""Every action of the registry has a proof, and every proof holds."""

from __future__ import annotations

import pytest

from magpie_tui.tui.actions import Action, registry
from tests.tui import proofs
from tests.tui.support import PROOFS, Stage, World, wait_ready

assert proofs.__doc__


@pytest.mark.parametrize("action", list(registry()), ids=lambda action: action.id)
async def test_action(action: Action, world: World) -> None:
    """The key does what the registry says."""
    proof = PROOFS.get(action.id)
    assert proof is not None, f"{action.id} has no proof: add one in tests/tui/proofs"
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        await proof(Stage(pilot, app, world, action.keys[0] if action.keys else ""))


def test_no_proof_without_action() -> None:
    """A proof of an action that is gone is dead code."""
    known = registry()
    assert [action_id for action_id in PROOFS if known.get(action_id) is None] == []
