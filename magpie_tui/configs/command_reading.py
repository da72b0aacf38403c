"""Commands and environments in a config: every form upstream knows, read into argument vectors."""

from __future__ import annotations

from magpie_tui.basics.redact import is_secret_name
from magpie_tui.configs.commands import check_tokens, shell_script_start, split_command
from magpie_tui.configs.kernel_model import Command
from magpie_tui.configs.positions import ListNode, MapNode, Node, Scalar
from magpie_tui.configs.scalars import describe, type_of
from magpie_tui.configs.schema import Reader
from magpie_tui.configs.variables import expand

_FORMS = "text, a list of texts (one command), or a list of such lists (several commands)"


def read_commands(reader: Reader, node: Node, key: str) -> tuple[Command, ...]:
    """Read a command field: text is split by shell rules, a list is one command, a list of lists a sequence."""
    if isinstance(node, Scalar):
        if node.value is None:
            return ()
        if not isinstance(node.value, str):
            reader.wrong_type(node, key, _FORMS, "put it in quotes")
            return ()
        tokens = _split(reader, node, key)
        return (tokens,) if tokens else ()
    if isinstance(node, MapNode):
        reader.wrong_type(node, key, _FORMS)
        return ()
    if not node.items:
        return ()
    if isinstance(node.items[0], ListNode):
        return _sequence(reader, node, key)
    command = _token_list(reader, node, key)
    return (command,) if command else ()


def _sequence(reader: Reader, node: ListNode, key: str) -> tuple[Command, ...]:
    commands: list[Command] = []
    for index, item in enumerate(node.items):
        name = f"{key}[{index}]"
        if not isinstance(item, ListNode):
            reader.problems.error(
                item,
                "mixed-command",
                f"{name} stands among lists, so that there would be no command at all",
                expected="a list of texts",
                found=describe(item),
            )
        elif not item.items:
            reader.problems.error(item, "empty-command", f"{name} is empty", expected="a program and its arguments")
        elif command := _token_list(reader, item, name):
            commands.append(command)
    return tuple(commands)


def _token_list(reader: Reader, node: ListNode, key: str) -> Command:
    texts: list[str] = []
    nodes: list[Scalar] = []
    for index, item in enumerate(node.items):
        if isinstance(item, Scalar) and isinstance(item.value, str):
            texts.append(item.text)
            nodes.append(item)
        else:
            code = "wrong-type" if isinstance(item, Scalar) else "mixed-command"
            reader.problems.error(
                item,
                code,
                f"{key}[{index}] is not text, so that there would be no command at all",
                expected="text",
                found=describe(item),
                hint="put it in quotes" if isinstance(item, Scalar) else None,
            )
    if len(texts) != len(node.items):
        return ()
    tokens = tuple(texts)
    for fault in check_tokens(tokens):
        reader.problems.add(
            "error" if fault.severity == "error" else "warning",
            nodes[min(fault.offset, len(nodes) - 1)],
            fault.code,
            f"{key}: {fault.message}",
            hint=fault.hint,
        )
    return _fill_in(reader, tokens, nodes, key)


def _split(reader: Reader, node: Scalar, key: str) -> Command:
    split = split_command(node.text)
    report_faults(reader, node, key)
    return _fill_in(reader, split.tokens, [node] * len(split.tokens), key)


def report_faults(reader: Reader, node: Scalar, key: str) -> None:
    """Report what is wrong with a command string, at its place where that can be told."""
    for fault in split_command(node.text).faults:
        reader.problems.add(
            "error" if fault.severity == "error" else "warning",
            node.place(fault.offset),
            fault.code,
            f"{key}: {fault.message}",
            hint=fault.hint,
        )


def _fill_in(reader: Reader, tokens: Command, nodes: list[Scalar], key: str) -> Command:
    """Fill variables in, token by token: a value with blanks stays one argument."""
    if not reader.expands:
        return tokens
    filled = []
    script = shell_script_start(tokens)
    for index, token in enumerate(tokens):
        expansion = expand(token, reader.environment)
        filled.append(expansion.text)
        if script is not None and index >= script:
            continue  # the shell itself reads what is not set here
        for name in expansion.unset:
            reader.unset_variable(nodes[index], key, name)
        for written in expansion.malformed:
            reader.problems.error(
                nodes[index],
                "bad-variable",
                f"{key} holds {written}, which is not filled in",
                expected="$NAME or ${NAME}",
                hint='for shell features write [bash, -lc, "..."]',
            )
    return tuple(filled)


def read_env(reader: Reader, node: Node, key: str) -> dict[str, str]:
    """Read the ``env`` of a kernel: values are text; others are taken as written, with a warning."""
    if isinstance(node, Scalar) and node.value is None:
        return {}
    if not isinstance(node, MapNode):
        reader.wrong_type(node, key, "a mapping of names to texts")
        return {}
    env: dict[str, str] = {}
    for entry in node.entries:
        name = f"{key}.{entry.key}"
        value = entry.value
        if not entry.key or "=" in entry.key or "\0" in entry.key:
            reader.problems.error(entry.key_node, "bad-key", f"{name} cannot be the name of a variable")
        elif not isinstance(value, Scalar) or value.value is None:
            reader.wrong_type(value, name, "text", 'write "" for an empty value')
        elif isinstance(value.value, str):
            env[entry.key] = reader.text(value, name)
        else:
            env[entry.key] = value.text
            reader.problems.warning(
                value,
                "env-not-text",
                f"{name} is not text; it is taken as written, but upstream fails on it",
                expected="text",
                found=type_of(value) if is_secret_name(entry.key) else describe(value),
                hint="put it in quotes",
            )
        if entry.key in env:
            reader.put(name, env[entry.key], value)
    return env
