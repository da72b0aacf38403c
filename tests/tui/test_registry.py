"""The registry of actions is complete, consistent and what everything else is built from."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest
from textual.dom import DOMNode

import magpie_tui.tui
from magpie_tui.tui.actions import (
    CONVENTIONAL_CAPITALS,
    Action,
    OfferedActions,
    Registry,
    action_name,
    active_actions,
    bindings_for,
    is_real_key,
    key_text,
    registry,
)
from magpie_tui.tui.docs import keys_page
from magpie_tui.tui.keymap import parse_keymap
from tests.conftest import PROJECT_ROOT
from tests.tui.support import World, wait_ready

NEVER_REQUIRED = ("alt+", "ctrl+shift+", "ctrl+enter", "ctrl+i", "ctrl+m", "ctrl+left", "ctrl+right", "ctrl+up")


def _classes() -> dict[str, type[DOMNode]]:
    """Return every widget, screen and app class of the program by name."""
    found: dict[str, type[DOMNode]] = {}
    for module in pkgutil.walk_packages(magpie_tui.tui.__path__, "magpie_tui.tui."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(value) and issubclass(value, DOMNode) and value.__module__.startswith("magpie_tui."):
                found[name] = value
    return found


CLASSES = _classes()


@pytest.mark.parametrize("action", list(registry()), ids=lambda action: action.id)
def test_action_is_well_formed(action: Action) -> None:
    """Its target carries it out, its texts are sentences and phrases, its keys arrive through tmux and SSH."""
    target = CLASSES[action.target]
    assert callable(getattr(target, f"action_{action_name(action.method)}", None)), "the target has no such method"
    assert action.description[0].isupper() and action.description.endswith(".")
    assert action.title[0].islower() or action.title[0].isdigit()
    assert not action.title.endswith(".") and "." in action.id
    for key in action.keys:
        assert not key.startswith(NEVER_REQUIRED), f"{key} does not arrive everywhere"
        assert not (key.startswith("f") and key[1:].isdigit() and int(key[1:]) > 4), "no function keys above F4"


@pytest.mark.parametrize("action", list(registry()), ids=lambda action: action.id)
def test_capitals_do_and_small_letters_look(action: Action) -> None:
    """A capital starts, stops or writes, but for three conventions; what does so has no small letter."""
    letters = [key for key in action.keys if len(key) == 1 and key.isalpha()]
    for key in letters:
        if key in CONVENTIONAL_CAPITALS and action.effect == "looks":
            continue
        assert key.isupper() == (action.effect != "looks"), f"{key}: {action.effect}"


def test_keys_of_one_target_are_different() -> None:
    for target in registry().targets:
        keys = [key for action in registry().of_target(target) for key in action.keys]
        assert len(keys) == len(set(keys)), target


def test_every_binding_of_ours_comes_from_the_registry() -> None:
    known = registry()
    strangers = [
        (name, binding)
        for name, cls in CLASSES.items()
        for binding in vars(cls).get("BINDINGS", ())
        if known.get(getattr(binding, "id", None)) is None
    ]
    assert strangers == []


def test_every_target_binds_its_actions() -> None:
    for target in registry().targets:
        ids = {binding.id for binding in vars(CLASSES[target]).get("BINDINGS", ())}
        assert {action.id for action in registry().of_target(target)} <= ids, target


def test_two_actions_of_one_id_are_refused() -> None:
    action = next(iter(registry()))
    with pytest.raises(ValueError, match="two actions have the id"):
        Registry([action, action])


def test_bindings_of_an_unknown_class_are_refused() -> None:
    with pytest.raises(ValueError, match="no actions are registered for Nobody"):
        bindings_for("Nobody")


def test_palette_only_actions_get_a_key_that_no_keyboard_has() -> None:
    keys = [binding.key for binding in bindings_for("MagpieApp") if not is_real_key(binding.key)]
    assert len(keys) == len(set(keys)) >= 2


def test_page_of_keys_is_fresh() -> None:
    page = (PROJECT_ROOT / "docs/keys.md").read_text(encoding="utf-8")
    assert page == keys_page(), "run: python -m magpie_tui.tui.docs > docs/keys.md"


def test_example_of_the_page_is_a_valid_keymap() -> None:
    text = keys_page().split("```yaml\n")[1].split("```")[0]
    assert parse_keymap(text, Path("keymap.yaml"))["app.redraw"] == "ctrl+r"


def test_keys_are_printed_for_people() -> None:
    assert [key_text(key) for key in ("question_mark", "f1", "escape", "ctrl+p", "G")] == [
        "?",
        "F1",
        "esc",
        "ctrl+p",
        "G",
    ]


async def test_what_is_offered_follows_focus_keymap_and_reasons(world: World) -> None:
    """What one look has worked out is not kept for longer than it holds."""
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        await pilot.press("2")
        offered = OfferedActions(app.screen)

        def now() -> dict[str, tuple[str, ...]]:
            return {active.action.id: active.keys for active in offered.now()}

        first = now()
        assert {active.action.id for active in active_actions(app.screen)} == set(first)
        assert first["app.show_help"][0] == "question_mark"
        assert set(active.action.id for active in offered.now(footer_only=True)) < set(first)
        await pilot.press("slash")
        assert set(now()) != set(first), "the filter has other keys"
        await pilot.press("escape")
        assert now() == first
        app.set_keymap({"app.show_help": "f2"})
        assert now()["app.show_help"] == ("f2",)
        reason = app.screen.disabled_reason("stop_run")  # type: ignore[attr-defined]
        assert {a.reason for a in offered.now() if a.action.id == "runs.stop_run"} == {reason}
