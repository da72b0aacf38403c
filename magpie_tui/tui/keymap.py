"""The user's keymap: ``keymap.yaml`` in the config directory, action ids to keys.

table.sort_by: S
app.show_help: [question_mark, f1, f2]
runs.stop_run: []          # no key; the palette still has it
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import read_small
from magpie_tui.tui.actions import Action, Registry, key_text, registry, unbound_key

if TYPE_CHECKING:
    import yaml

_MODIFIER = re.compile(r"^(ctrl|shift|alt|super)\+")
_NAMED_KEYS = frozenset(
    {"up", "down", "left", "right", "home", "end", "pageup", "pagedown", "insert", "delete", "backspace"}
    | {"tab", "enter", "escape", "space"}
    | {f"f{number}" for number in range(1, 13)}
)
_HINT = "correct the file, or remove it for the keys as they come"


def load_keymap(path: Path) -> dict[str, str]:
    """Read the user's keymap; a missing file is an empty keymap.

    Returns:
        Keys, comma-separated in Textual's names, by action id: what ``App.set_keymap`` takes.

    Raises:
        UserInputError: With line and column: not a mapping, an unknown action, an unknown key, a conflict.
    """
    try:
        text = read_small(path).decode("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserInputError(f"cannot read the keymap: {reason}", path=path, hint=_HINT) from error
    return parse_keymap(text, path)


def parse_keymap(text: str, path: Path, known: Registry | None = None) -> dict[str, str]:
    """Read a keymap from its text; see ``load_keymap``."""
    import yaml

    actions = known or registry()
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise UserInputError(
            f"this is not YAML: {error.problem or error}",
            path=path,
            line=mark.line + 1 if mark else None,
            column=mark.column + 1 if mark else None,
        ) from error
    except yaml.YAMLError as error:
        raise UserInputError(f"this is not YAML: {error}", path=path) from error
    except RecursionError as error:
        raise UserInputError("this is nested too deeply for a keymap", path=path, hint=_HINT) from error
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise _problem("the keymap is a mapping from action ids to keys", path, root, "write  app.show_help: f2")
    keymap: dict[str, str] = {}
    lines: dict[str, yaml.Node] = {}
    for key_node, value_node in root.value:
        action = _action(key_node, actions, path)
        if action.id in keymap:
            raise _problem(f"{action.id} stands here a second time", path, key_node)
        keys = _keys(value_node, path)
        keymap[action.id] = ",".join(keys) or unbound_key(action.id)
        lines[action.id] = key_node
    _refuse_conflicts(keymap, lines, actions, path)
    return keymap


def _problem(message: str, path: Path, node: yaml.Node, hint: str | None = None) -> UserInputError:
    mark = node.start_mark
    return UserInputError(message, path=path, line=mark.line + 1, column=mark.column + 1, hint=hint)


def _action(node: yaml.Node, actions: Registry, path: Path) -> Action:
    name = str(node.value)
    action = actions.get(name)
    if action is None:
        guess = difflib.get_close_matches(name, [item.id for item in actions], n=1, cutoff=0.5)
        hint = f"did you mean {guess[0]}?" if guess else "docs/keys.md lists the actions"
        raise _problem(f"there is no action {name!r}", path, node, hint)
    return action


def _keys(node: yaml.Node, path: Path) -> list[str]:
    import yaml

    if isinstance(node, yaml.SequenceNode):
        return [_key(item, path) for item in node.value]
    if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
        return []
    return [_key(node, path)]


def _key(node: yaml.Node, path: Path) -> str:
    import yaml
    from textual.keys import _character_to_key

    hint = "a character, or a name such as f2, ctrl+t, pageup, space, question_mark"
    if not isinstance(node, yaml.ScalarNode) or not node.value:
        raise _problem("a key is one word", path, node, hint)
    value = str(node.value)
    if len(value) == 1:
        # The one mapping between characters and Textual's key names; private there, pinned by tests.
        return _character_to_key(value)
    bare = value
    while match := _MODIFIER.match(bare):
        bare = bare[match.end() :]
    if len(bare) == 1 or bare in _NAMED_KEYS or bare in _character_names():
        return value
    raise _problem(f"there is no key {value!r}", path, node, hint)


def _character_names() -> frozenset[str]:
    from textual.keys import _character_to_key

    return frozenset(_character_to_key(chr(code)) for code in range(0x21, 0x7F))


def _refuse_conflicts(keymap: Mapping[str, str], lines: Mapping[str, yaml.Node], actions: Registry, path: Path) -> None:
    """Refuse two actions of one target on one key, and keys that an action of higher priority would always take.

    A key of the frame may have another meaning in an inner part, as in the defaults: the inner one wins there.
    """

    def keys_of(action: Action) -> list[str]:
        return keymap[action.id].split(",") if action.id in keymap else list(action.keys)

    everywhere = {key: action for action in actions if action.priority for key in keys_of(action)}
    taken: dict[tuple[str, str], Action] = {}
    for action in actions:
        for key in keys_of(action):
            other = taken.setdefault((action.target, key), action)
            if other is action:
                other = everywhere.get(key, action)
            if other is action or not {action.id, other.id} & keymap.keys():
                continue
            node = lines[action.id if action.id in keymap else other.id]
            raise _problem(
                f"{key_text(key)} would do two things: {other.id} and {action.id}",
                path,
                node,
                "give one of them another key, or none: []",
            )
