"""Declares what a config may hold, once: the reader, the defaults, ``config show`` and the docs follow from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from magpie_tui.basics.text import nearest
from magpie_tui.configs.positions import ListNode, MapNode, Node, Origin, ProblemList, Scalar, Setting, Value
from magpie_tui.configs.scalars import describe, number_surprise
from magpie_tui.configs.variables import expand, references


class Kind(Enum):
    """What a value must be."""

    TEXT = "text"
    INTEGER = "a whole number"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    TEXT_LIST = "a list of texts"
    INTEGER_LIST = "a list of whole numbers"
    NUMBER_MAP = "a mapping of names to numbers"
    MAP = "a mapping"
    ANY = "any value"
    SECTION = "a mapping "
    NODE = "a value read by its own rules"


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a mapping.

    Attributes:
        default: Value when the key is absent.
        code_default: Framework config only: upstream's fallback when a file without this key is given.
        choices: Allowed texts; ``fold_case`` compares them without regard to case.
        aliases: Other names of the key, and of choices as ``{"torch": "pytorch"}`` in ``choice_aliases``.
        minimum, maximum: Inclusive limits of a number; ``above`` is an exclusive lower limit.
        ignored: Why upstream does not read this key; said as a warning.
        single: One text may stand for a list of one.
        literal: A dollar sign in it has no meaning.
        hidden: Not named among the keys that one may write.
        fields: Keys of a section.
        null_is_default: An empty value means the default instead of being wrong.
    """

    key: str
    kind: Kind
    help: str = ""
    default: Value = None
    code_default: Value = None
    has_code_default: bool = False
    nullable: bool = False
    null_is_default: bool = False
    choices: tuple[str, ...] = ()
    choice_aliases: Mapping[str, str] = field(default_factory=dict)
    fold_case: bool = False
    aliases: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    single: bool = False
    hidden: bool = False
    literal: bool = False
    ignored: str | None = None
    fields: tuple[Field, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The key and its aliases."""
        return (self.key, *self.aliases)

    @property
    def expected(self) -> str:
        """What should stand there, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        text = self.kind.value.strip()
        if self.above is not None:
            text += f" above {self.above:g}"
        elif self.minimum is not None and self.maximum is not None:
            text += f" from {self.minimum:g} to {self.maximum:g}"
        elif self.minimum is not None:
            text += f" of at least {self.minimum:g}"
        return text + " or null" if self.nullable else text


class _Wrong:
    """Marks a value that was refused; a problem was reported."""


WRONG = _Wrong()


def plain_value(node: Node) -> Value:
    """Return a node as plain lists, mappings and scalars; dates and binary data as their text."""
    if isinstance(node, Scalar):
        value = node.value
        return value if value is None or isinstance(value, (bool, int, float, str)) else node.text
    if isinstance(node, ListNode):
        return tuple(plain_value(item) for item in node.items)
    return {entry.key: plain_value(entry.value) for entry in node.entries}


@dataclass(slots=True)
class Reader:
    """Reads mappings by their declarations and collects problems and settings.

    Attributes:
        settings: What the file gives, under dotted keys.
        vocabulary: Dotted places of every key name in this kind of file, to tell where a misplaced key belongs.
        expands: Fill variables in, as upstream does for this part of the file.
        origin_kind: ``file``, or ``framework`` when a framework config is read for another file.
    """

    problems: ProblemList
    environment: Mapping[str, str]
    settings: dict[str, Setting] = field(default_factory=dict)
    expands: bool = False
    origin_kind: Literal["file", "framework"] = "file"
    vocabulary: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def origin(self, node: Node, detail: str | None = None) -> Origin:
        """Return the origin of a value that stands in this file."""
        return Origin(self.origin_kind, self.problems.path, node.line, node.column, detail)

    def put(self, key: str, value: Value, node: Node, detail: str | None = None) -> None:
        """Record an effective value of this file."""
        self.settings[key] = Setting(key, value, self.origin(node, detail))

    def read(self, node: Node, fields: Sequence[Field], prefix: str = "") -> dict[str, Node]:
        """Read a mapping; return the nodes of those keys that have rules of their own (``Kind.NODE``)."""
        if not isinstance(node, MapNode):
            name = prefix.rstrip(".") or "the file"
            self.problems.error(
                node, "wrong-type", f"{name} has the wrong type", expected="a mapping", found=describe(node)
            )
            return {}
        by_name = {name: item for item in fields for name in item.names}
        seen: dict[str, str] = {}
        nodes: dict[str, Node] = {}
        for entry in node.entries:
            item = by_name.get(entry.key)
            if item is None:
                self.unknown_key(entry.key_node, entry.value, [item.key for item in fields if not item.hidden], prefix)
                continue
            if item.key in seen:
                message = f"{prefix}{entry.key} and {prefix}{seen[item.key]} are two names of one key"
                self.problems.error(entry.key_node, "duplicate-key", message, hint="remove one of them")
            seen[item.key] = entry.key
            if item.ignored:
                self.problems.warning(
                    entry.key_node, "ignored-key", f"{prefix}{entry.key} has no effect: {item.ignored}"
                )
            if item.ignored and item.kind is not Kind.SECTION:
                continue
            elif item.kind is Kind.NODE:
                nodes[item.key] = entry.value
            elif item.kind is Kind.SECTION:
                self._section(entry.value, item, f"{prefix}{item.key}")
            else:
                self._leaf(entry.value, item, f"{prefix}{item.key}")
        return nodes

    def unknown_key(self, key: Scalar, value: Node, known: Sequence[str], prefix: str) -> None:
        """Report a key that is not known, unless it only holds an anchor or is marked as an extension (``x-``)."""
        if key.text.startswith("x-") or value.aliased:
            return
        guess = nearest(key.text, known) or self._elsewhere(key.text)
        self.problems.error(
            key,
            "unknown-key",
            f"unknown key {prefix}{key.text}",
            expected=None if guess else "one of " + ", ".join(sorted(known)),
            hint=f"did you mean {guess}?" if guess else None,
        )

    def _elsewhere(self, key: str) -> str | None:
        """Return the dotted place of the most similar key in other mappings of this kind of file."""
        found = nearest(key, self.vocabulary, cutoff=0.8)
        return None if found is None else " or ".join(self.vocabulary[found])

    def _section(self, node: Node, item: Field, key: str) -> None:
        if isinstance(node, Scalar) and not node.value and not isinstance(node.value, str):
            return  # a falsy section stands for its defaults
        self.read(node, item.fields, f"{key}.")

    def _leaf(self, node: Node, item: Field, key: str) -> None:
        value = self.value(node, item, key)
        if not isinstance(value, _Wrong):
            self.put(key, value, node, self._detail(node))

    def _detail(self, node: Node) -> str | None:
        if not self.expands or not isinstance(node, Scalar):
            return None
        used = expand(node.text, self.environment).used
        return f"with {', '.join(used)} from the environment" if used else None

    def wrong_type(self, node: Node, key: str, expected: str, hint: str | None = None) -> _Wrong:
        """Report a value of the wrong type."""
        self.problems.error(
            node, "wrong-type", f"{key} has the wrong type", expected=expected, found=describe(node), hint=hint
        )
        return WRONG

    def value(self, node: Node, item: Field, key: str) -> Value | _Wrong:
        """Return the value of ``node`` as ``item`` wants it, or WRONG after reporting why not."""
        if isinstance(node, Scalar) and node.value is None:
            if item.nullable or item.kind is Kind.ANY:
                return None
            return item.default if item.null_is_default else self.wrong_type(node, key, item.expected)
        if item.kind is Kind.TEXT:
            return self._text(node, item, key)
        if item.kind in (Kind.INTEGER, Kind.NUMBER):
            return self._number(node, item, key)
        if item.kind is Kind.BOOLEAN:
            if isinstance(node, Scalar) and isinstance(node.value, bool):
                return node.value
            return self.wrong_type(node, key, item.expected)
        if item.kind in (Kind.TEXT_LIST, Kind.INTEGER_LIST):
            return self._list(node, item, key)
        if item.kind in (Kind.MAP, Kind.NUMBER_MAP):
            return self._map(node, item, key)
        return self.expanded_value(node, key)

    def _text(self, node: Node, item: Field, key: str) -> Value | _Wrong:
        if not isinstance(node, Scalar):
            return self.wrong_type(node, key, item.expected)
        if not isinstance(node.value, str):
            hint = f"put it in quotes if the text {node.text} is meant" if not item.choices else None
            return self.wrong_type(node, key, item.expected, hint)
        text = node.text if item.literal or item.choices else self.text(node, key)
        if not item.choices:
            return text
        folded = text.lower() if item.fold_case else text
        folded = item.choice_aliases.get(folded, folded)
        if folded in item.choices:
            return folded
        guess = nearest(text, (*item.choices, *item.choice_aliases))
        self.problems.error(
            node,
            "bad-choice",
            f"{key} has no such choice",
            expected=item.expected,
            found=describe(node),
            hint=f"did you mean {guess}?" if guess else None,
        )
        return WRONG

    def text(self, node: Scalar, key: str) -> str:
        """Return the text of a scalar with its variables filled in (or reported where they are not)."""
        if not self.expands:
            self.not_expanded(node, key)
            return node.text
        expansion = expand(node.text, self.environment)
        for name in expansion.unset:
            self.unset_variable(node, key, name)
        for written in expansion.malformed:
            message = f"{key} holds {written}, which is not filled in"
            self.problems.error(
                node,
                "bad-variable",
                message,
                expected="$NAME or ${NAME}",
                hint="defaults and operators are not supported",
            )
        return expansion.text

    def unset_variable(self, node: Node, key: str, name: str) -> None:
        """Report a variable that is not set."""
        hint = f"export {name}=..., or write the value"
        self.problems.error(node, "unset-variable", f"{key} uses the variable {name}, which is not set", hint=hint)

    def not_expanded(self, node: Scalar, key: str, *, lenient: bool = False) -> None:
        """Report references in a part of the file where upstream does not fill variables in.

        Args:
            lenient: The text goes into the environment of a script and may hold a dollar sign for other reasons.
        """
        found = references(node.text)
        expansion = expand(node.text, self.environment)
        for name in expansion.unset:
            if lenient and f"${{{name}}}" not in found:
                continue
            self.problems.error(
                node,
                "unset-variable",
                f"{key} uses the variable {name}, which is not set; variables are not filled in here anyway",
                hint="write the value itself",
            )
        for name in expansion.used:
            severity: Literal["error", "warning"] = "warning" if lenient else "error"
            message = f"{key} refers to the variable {name}, but variables are not filled in here"
            self.problems.add(severity, node, "variable-not-expanded", message, hint="write the value itself")

    def _number(self, node: Node, item: Field, key: str) -> Value | _Wrong:
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return self.wrong_type(node, key, item.expected)
        if item.kind is Kind.INTEGER and not isinstance(value, int):
            return self.wrong_type(node, key, item.expected)
        if isinstance(value, float) and not math.isfinite(value):
            return self.wrong_type(node, key, f"{item.expected}, finite")
        self.warn_surprise(node, key)
        low, high = item.minimum, item.maximum
        outside = (low is not None and value < low) or (high is not None and value > high)
        if outside or (item.above is not None and value <= item.above):
            self.problems.error(
                node, "out-of-range", f"{key} is out of range", expected=item.expected, found=describe(node)
            )
            return WRONG
        return value

    def warn_surprise(self, node: Node, key: str) -> None:
        """Warn of octal and base-60 numbers, which nobody means."""
        if not isinstance(node, Scalar) or isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            return
        if node.plain and number_surprise(node.value, node.text):
            self.problems.warning(
                node,
                "surprising-number",
                f"{key} is not the number it looks like",
                found=describe(node),
                hint="write it without the zero or colon",
            )

    def _list(self, node: Node, item: Field, key: str) -> Value | _Wrong:
        if item.single and isinstance(node, Scalar) and isinstance(node.value, str):
            return (self.text(node, key),)
        if not isinstance(node, ListNode):
            return self.wrong_type(node, key, item.expected)
        values: list[Value] = []
        wrong = False
        single = Field(
            item.key,
            Kind.TEXT if item.kind is Kind.TEXT_LIST else Kind.INTEGER,
            minimum=item.minimum,
            choices=item.choices,
        )
        for index, element in enumerate(node.items):
            value = self.value(element, single, f"{key}[{index}]")
            if isinstance(value, _Wrong):
                wrong = True
            else:
                values.append(value)
        return WRONG if wrong else tuple(values)

    def _map(self, node: Node, item: Field, key: str) -> Value | _Wrong:
        if not isinstance(node, MapNode):
            return self.wrong_type(node, key, item.expected)
        if item.kind is Kind.MAP:
            return {entry.key: self.expanded_value(entry.value, f"{key}.{entry.key}") for entry in node.entries}
        number = Field(item.key, Kind.NUMBER)
        values = {entry.key: self.value(entry.value, number, f"{key}.{entry.key}") for entry in node.entries}
        return {name: value for name, value in values.items() if not isinstance(value, _Wrong)}

    def expanded_value(self, node: Node, key: str) -> Value:
        """Return any value with the variables of its texts filled in (or reported)."""
        if isinstance(node, ListNode):
            return tuple(self.expanded_value(item, f"{key}[{index}]") for index, item in enumerate(node.items))
        if isinstance(node, MapNode):
            return {entry.key: self.expanded_value(entry.value, f"{key}.{entry.key}") for entry in node.entries}
        if isinstance(node.value, str):
            return self.text(node, key)
        return plain_value(node)


def vocabulary(fields: Sequence[Field], prefix: str = "") -> dict[str, tuple[str, ...]]:
    """Return the dotted places of every key name, hidden ones left out."""
    places: dict[str, tuple[str, ...]] = {}
    for item in fields:
        if item.hidden:
            continue
        here = {item.key: (f"{prefix}{item.key}",)}
        for name, found in {**here, **vocabulary(item.fields, f"{prefix}{item.key}.")}.items():
            places[name] = tuple(dict.fromkeys((*places.get(name, ()), *found)))
    return {name: found for name, found in places.items() if len(found) <= 3}


def leaves(fields: Sequence[Field], prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Yield every dotted key with its declaration, sections opened."""
    for item in fields:
        if item.kind is Kind.SECTION:
            yield from leaves(item.fields, f"{prefix}{item.key}.")
        else:
            yield f"{prefix}{item.key}", item


def nested(settings: Mapping[str, Setting], prefix: str) -> dict[str, Value]:
    """Return the settings below ``prefix`` as nested mappings: ``{"metrix": {"profile": "quick"}}``."""
    result: dict[str, Value] = {}
    for key, setting in settings.items():
        if not key.startswith(f"{prefix}."):
            continue
        *parents, last = key[len(prefix) + 1 :].split(".")
        place = result
        for parent in parents:
            below = place.setdefault(parent, {})
            if not isinstance(below, dict):
                break
            place = below
        else:
            place[last] = setting.value
    return result
