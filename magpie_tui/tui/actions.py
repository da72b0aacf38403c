"""The one registry of actions: what can be done, where, with which key, and how it is called.

Footer, help, command palette, the page of all keys and the user's keymap are built from it. The entries are plain data
in ``action_tables``, so that the registry is complete before any screen is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from textual.binding import Binding
    from textual.dom import DOMNode
    from textual.screen import Screen

Effect = Literal["looks", "starts", "stops", "writes"]
"""What an action does to the world. Keys of actions that do more than look are capital letters."""

CONVENTIONAL_CAPITALS = frozenset({"G", "N", "Y"})
"""Capitals that only look, by convention: last row, previous match, copy the command line."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a user can do.

    Attributes:
        id: ``area.verb_object``, unique; the name in the user's keymap.
        target: Class name of the widget, screen or app that carries it out.
        method: Textual action: ``open_run`` stands for the method ``action_open_run`` of the target.
        keys: Default keys in Textual's names, the one that is shown first.
        title: Verb and object, as the palette lists it after the area: ``stop the run``.
        description: One sentence for help and documentation.
        group: The area: heading in help, first word in the palette.
        label: The word in the footer; empty: not in the footer.
        effect: Whether it looks, starts, stops or writes.
        priority: Checked before the focused widget sees the key.
        in_palette: Movement keys are not worth an entry.
    """

    id: str
    target: str
    method: str
    keys: tuple[str, ...]
    title: str
    description: str
    group: str
    label: str = ""
    effect: Effect = "looks"
    priority: bool = False
    in_palette: bool = True

    @property
    def footer(self) -> bool:
        """True when the footer shows it."""
        return bool(self.label)

    @property
    def palette_entry(self) -> str:
        """``area: verb object``."""
        return f"{self.group}: {self.title}"


@runtime_checkable
class SaysWhyNot(Protocol):
    """A target some of whose actions are impossible at times."""

    def disabled_reason(self, action: str) -> str | None:
        """Return why ``action`` (the method's name) is impossible now, or None when it is possible."""
        ...


class Registry:
    """All actions, by id and by target, in the order of the tables."""

    def __init__(self, actions: Iterable[Action]) -> None:
        self._by_id: dict[str, Action] = {}
        self._by_target: dict[str, list[Action]] = {}
        for action in actions:
            if action.id in self._by_id:
                raise ValueError(f"two actions have the id {action.id}")
            self._by_id[action.id] = action
            self._by_target.setdefault(action.target, []).append(action)

    def __iter__(self) -> Iterator[Action]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, action_id: str | None) -> Action | None:
        """Return the action of that id, or None."""
        return None if action_id is None else self._by_id.get(action_id)

    def of_target(self, target: str) -> tuple[Action, ...]:
        """Return the actions of one class, in order."""
        return tuple(self._by_target.get(target, ()))

    @property
    def targets(self) -> tuple[str, ...]:
        """Class names that carry out actions, in order."""
        return tuple(self._by_target)


def _load() -> Registry:
    from magpie_tui.tui.action_tables import TABLES

    actions: list[Action] = []
    for name in TABLES:
        actions.extend(importlib.import_module(f"magpie_tui.tui.action_tables.{name}").ACTIONS)
    return Registry(actions)


_registry: Registry | None = None


def registry() -> Registry:
    """Return the registry, read once."""
    global _registry
    if _registry is None:
        _registry = _load()
    return _registry


def bindings_for(target: str) -> list[Binding]:
    """Return the Textual bindings of a class, to be assigned to its ``BINDINGS``.

    Raises:
        ValueError: The registry knows no action of that class.
    """
    from textual.binding import Binding

    actions = registry().of_target(target)
    if not actions:
        raise ValueError(f"no actions are registered for {target}")
    return [
        Binding(
            ",".join(action.keys) or unbound_key(action.id),
            action.method,
            action.description,
            show=action.footer,
            priority=action.priority,
            id=action.id,
        )
        for action in actions
    ]


_UNBOUND = "unbound-"


def unbound_key(action_id: str) -> str:
    """Return the name of a key that no keyboard has, for an action that only the palette offers."""
    return _UNBOUND + action_id


def is_real_key(key: str) -> bool:
    """False for what ``unbound_key`` returns."""
    return not key.startswith(_UNBOUND)


def action_name(method: str) -> str:
    """Return the bare name in a Textual action string: ``go_place('runs')`` becomes ``go_place``."""
    return method.split("(", 1)[0].rsplit(".", 1)[-1]


class Explaining:
    """Mix-in for targets: an action that ``disabled_reason`` explains is disabled, not hidden."""

    def disabled_reason(self, action: str) -> str | None:
        """Return why ``action`` is impossible now; the base class allows everything."""
        return None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Textual's hook: None disables the key and keeps it in the footer."""
        return None if self.disabled_reason(action) else True


@dataclass(frozen=True, slots=True)
class ActiveAction:
    """An action that the focused widget, one of its parents, the screen or the app offers now.

    Attributes:
        action: The entry of the registry.
        keys: Keys that trigger it now, the user's keymap applied and keys taken by inner widgets left out.
        node: The object that carries it out.
        reason: Why it is impossible now, or None.
    """

    action: Action
    keys: tuple[str, ...]
    node: DOMNode
    reason: str | None


class OfferedActions:
    """What can be done on one screen; what does not change between two looks is worked out once.

    Which keys lead to which actions depends on the focus, the keymap and the classes on the way up from the focus; only
    whether an action is possible is asked anew each time. That holds because no ``check_action`` here hides a key:
    ``Explaining`` disables at most.
    """

    def __init__(self, screen: Screen[Any]) -> None:
        self._screen = screen
        self._made_for: tuple[object, ...] | None = None
        self._offered: list[_Offered] = []

    def now(self, *, footer_only: bool = False) -> list[ActiveAction]:
        """Return what can be done now, innermost target first, each target in the order of its table.

        Args:
            footer_only: Leave out what the footer does not show, and so the asking whether it is possible.
        """
        chain = tuple(_chain(self._screen))
        # The keymap has no public name in Textual (tests/tui/test_registry.py holds that it counts).
        made_for = (*chain, self._screen.app._keymap)
        if made_for != self._made_for:
            self._made_for = made_for
            self._offered = _offered(self._screen, chain)
        return [
            ActiveAction(action, keys, node, None if reason_of is None else reason_of(action_name(action.method)))
            for action, keys, node, reason_of in self._offered
            if not footer_only or (action.footer and keys)
        ]


_Offered = tuple[Action, tuple[str, ...], "DOMNode", Callable[[str], "str | None"] | None]


def active_actions(screen: Screen[Any]) -> list[ActiveAction]:
    """Return what can be done now on ``screen``, innermost target first, each target in the order of its table."""
    return OfferedActions(screen).now()


def _offered(screen: Screen[Any], chain: tuple[DOMNode, ...]) -> list[_Offered]:
    known = registry()
    keys: dict[str, list[str]] = {}
    nodes: dict[str, DOMNode] = {}
    for key, active in screen.active_bindings.items():
        action = known.get(active.binding.id)
        if action is None:
            continue
        keys.setdefault(action.id, [])
        if is_real_key(key):
            keys[action.id].append(key)
        nodes.setdefault(action.id, active.node)
    depths = {id(node): depth for depth, node in enumerate(chain)}
    found: list[_Offered] = []
    for action in sorted(
        (action for action in known if action.id in keys), key=lambda item: depths.get(id(nodes[item.id]), 99)
    ):
        node = nodes[action.id]
        first = {key: position for position, key in enumerate(action.keys)}
        ordered = tuple(sorted(keys[action.id], key=lambda key: first.get(key, 0)))
        found.append((action, ordered, node, node.disabled_reason if isinstance(node, SaysWhyNot) else None))
    return found


def _chain(screen: Screen[Any]) -> Iterator[DOMNode]:
    if screen.focused is not None:
        yield from screen.focused.ancestors_with_self
    else:
        yield screen
        yield screen.app


_KEY_NAMES = {
    "question_mark": "?",
    "slash": "/",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "exclamation_mark": "!",
    "escape": "esc",
    "pageup": "page up",
    "pagedown": "page down",
    "full_stop": ".",
    "comma": ",",
    "plus": "+",
    "minus": "-",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "colon": ":",
    "f1": "F1",
}


def key_text(key: str) -> str:
    """Return a key as it is printed for people: ``question_mark`` becomes ``?``."""
    return _KEY_NAMES.get(key, key)
