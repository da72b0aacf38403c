"""Writes the page of all keys: ``python -m magpie_tui.tui.docs > docs/keys.md``."""

from __future__ import annotations

import sys

from magpie_tui.tui.actions import Action, key_text, registry

_HEAD = """\
# Keys

Written by `python -m magpie_tui.tui.docs`; do not edit. Lower-case keys look, mark, note and copy; capitals start, stop
or write (except `G`, `N` and `Y`). `?` shows the keys that work where you are, `ctrl+p` finds an action by its name.

Any key can be changed in `keymap.yaml` in the config directory (`magpie-tui paths` says where that is): the name of the
action, then a key, a list of keys, or `[]` for none.

```yaml
app.show_help: [f1, question_mark]
app.redraw: ctrl+r
```
"""


def _keys(action: Action) -> str:
    return " ".join(f"`{key_text(key)}`" for key in action.keys) or "palette only"


def keys_page() -> str:
    """Return the whole page as Markdown."""
    groups: dict[str, list[Action]] = {}
    for action in registry():
        groups.setdefault(action.group, []).append(action)
    parts = [_HEAD]
    for group, actions in groups.items():
        rows = [f"| {_keys(action)} | {action.description} | `{action.id}` |" for action in actions]
        parts.append("\n".join([f"## {group}", "", "| keys | what | action |", "|---|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def main() -> int:
    """Print the page."""
    sys.stdout.write(keys_page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
