"""An option declared once: flag, form field, check, help, JSON schema and the command line it stands for."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.text import nearest, plural

OptionKind = Literal["text", "path", "integer", "number", "flag", "choice", "texts", "paths"]
OptionValue = str | int | float | bool | tuple[str, ...] | None
"""What an option is worth; None means that it is not given."""

Values = Mapping[str, OptionValue]


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """One option of a command.

    Attributes:
        name: Identifier in code, the key in ``Values`` and in the JSON schema: ``timeout_seconds``.
        flags: ``("--timeout", "-t")``, the long one first; empty for a positional argument.
        kind: Type of the value; ``texts`` and ``paths`` take several.
        help: One sentence; in forms the line under the field.
        default: What holds when it is not given; options at their default are left out of command lines.
        choices: Allowed words of a ``choice``.
        metavar: What help calls the value.
        minimum, maximum: Bounds of a number, both allowed.
        required: Must be given.
        title: Label in forms; by default the name in words.
        advanced: Forms show it after the others.
        negative_flag: Flag that switches a flag off, where it is on by default.
    """

    name: str
    flags: tuple[str, ...]
    kind: OptionKind
    help: str
    default: OptionValue = None
    choices: tuple[str, ...] = ()
    metavar: str = ""
    minimum: float | None = None
    maximum: float | None = None
    required: bool = False
    title: str = ""
    advanced: bool = False
    negative_flag: str = ""

    def __post_init__(self) -> None:
        if self.kind == "choice" and not self.choices:
            raise ValueError(f"{self.name}: a choice needs choices")
        if self.kind == "flag" and self.default is True and not self.negative_flag:
            raise ValueError(f"{self.name}: a flag that is on by default needs a flag to switch it off")

    @property
    def label(self) -> str:
        """What a form calls it."""
        return self.title or self.name.replace("_", " ")

    @property
    def shown_name(self) -> str:
        """What messages call it: the long flag, or the name of the argument."""
        return self.flags[0] if self.flags else (self.metavar or self.name.upper())

    @property
    def several(self) -> bool:
        """True when it takes several values."""
        return self.kind in ("texts", "paths")


def parse_option(spec: OptionSpec, text: str) -> OptionValue:
    """Turn the text of a form field into the option's value; blank text is the default.

    Several values are parted as in a shell, so that names with blanks can be quoted.

    Raises:
        UserInputError: With the option as ``key``, what was expected, and a hint.
    """
    stripped = text.strip()
    if not stripped:
        if spec.required and spec.default is None:
            raise UserInputError(f"{spec.shown_name} is needed", key=spec.name, hint=spec.help)
        return spec.default
    if spec.several:
        try:
            return tuple(shlex.split(stripped))
        except ValueError as error:
            raise _wrong(spec, f"{error}".lower(), "quote names with blanks") from error
    if spec.kind in ("integer", "number"):
        return _parse_number(spec, stripped)
    if spec.kind == "flag":
        return _parse_flag(spec, stripped)
    if spec.kind == "choice" and stripped not in spec.choices:
        guess = nearest(stripped, spec.choices)
        hint = f"did you mean {guess}?" if guess else f"one of {', '.join(spec.choices)}"
        raise _wrong(spec, f"{stripped!r} is not a choice", hint)
    return stripped


def _wrong(spec: OptionSpec, message: str, hint: str | None = None) -> UserInputError:
    return UserInputError(f"{spec.shown_name}: {message}", key=spec.name, hint=hint)


def _parse_flag(spec: OptionSpec, text: str) -> bool:
    word = text.lower()
    if word in ("yes", "true", "on", "1"):
        return True
    if word in ("no", "false", "off", "0"):
        return False
    raise _wrong(spec, f"{text!r} is neither yes nor no")


def _parse_number(spec: OptionSpec, text: str) -> int | float:
    bounds = _bounds_text(spec)
    wanted = f"{'a whole number' if spec.kind == 'integer' else 'a number'}{bounds}"
    try:
        value = int(text) if spec.kind == "integer" else float(text)
    except ValueError as error:
        raise _wrong(spec, f"{text!r} is not {wanted}") from error
    too_low = spec.minimum is not None and value < spec.minimum
    too_high = spec.maximum is not None and value > spec.maximum
    if too_low or too_high or not math.isfinite(value):
        raise _wrong(spec, f"{text} is not {wanted}")
    return value


def _bounds_text(spec: OptionSpec) -> str:
    if spec.minimum is not None and spec.maximum is not None:
        return f" from {spec.minimum:g} to {spec.maximum:g}"
    if spec.minimum is not None:
        return f" of at least {spec.minimum:g}"
    return f" of at most {spec.maximum:g}" if spec.maximum is not None else ""


def format_option(spec: OptionSpec, value: OptionValue) -> str:
    """Return the text of a form field for a value; ``parse_option`` turns it back."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return shlex.join(value)
    return str(value)


def command_words(specs: Sequence[OptionSpec], values: Values, command: Sequence[str]) -> tuple[str, ...]:
    """Return the words of the command line that ``values`` stand for; what is at its default is left out.

    Args:
        command: The words before the options: ``("magpie-tui", "analyze")``. Arguments follow it, then options; an
            argument that starts with a dash is kept apart from them by ``--`` at the end.

    Raises:
        UserInputError: ``values`` names an option that there is not.
    """
    known = {spec.name for spec in specs}
    unknown = [name for name in values if name not in known]
    if unknown:
        raise UserInputError(f"there is no option {unknown[0]!r}", key=unknown[0])
    arguments: list[str] = []
    options: list[str] = []
    for spec in specs:
        value = values.get(spec.name, spec.default)
        if value is None or (value == spec.default and not (spec.required or not spec.flags)):
            continue
        texts = list(value) if isinstance(value, tuple) else [_word(value)]
        if not spec.flags:
            arguments += texts
        elif spec.kind == "flag":
            options.append(spec.flags[0] if value else spec.negative_flag)
        else:
            options += [spec.flags[0], *texts]
    options = [word for word in options if word]
    if any(word.startswith("-") for word in arguments):
        return (*command, *options, "--", *arguments)
    return (*command, *arguments, *options)


def read_words(specs: Sequence[OptionSpec], words: Sequence[str]) -> dict[str, OptionValue]:
    """Return the values that a command line gives: what ``command_words`` turned into words.

    Args:
        words: The words after the command. Options may stand in any order, as ``--name value``, ``--name=value``,
            ``-n value`` or ``-nvalue``; one that takes several takes all words up to the next option.

    Raises:
        UserInputError: A word is no option of these, or an option lacks its value.
    """
    arguments = next((spec for spec in specs if not spec.flags), None)
    by_flag = {flag: spec for spec in specs for flag in (*spec.flags, spec.negative_flag) if flag}
    texts: dict[str, list[str]] = {}
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word == "--" or not word.startswith("-") or word == "-":
            taken = waiting if word == "--" else [word]
            if arguments is None and taken:
                raise UserInputError(f"{taken[0]!r} is no option", key=taken[0])
            if arguments is not None:
                texts.setdefault(arguments.name, []).extend(taken)
            waiting = [] if word == "--" else waiting
            continue
        flag, value = _flag_and_value(word, by_flag)
        spec = by_flag.get(flag)
        if spec is None:
            guess = nearest(flag, by_flag)
            raise UserInputError(
                f"there is no option {flag}", key=flag, hint=f"did you mean {guess}?" if guess else None
            )
        if spec.kind == "flag":
            texts[spec.name] = ["no" if flag == spec.negative_flag else "yes"]
            continue
        given = [] if value is None else [value]
        while value is None and waiting and not (given and not spec.several):
            if spec.several and waiting[0].startswith("-"):
                break
            given.append(waiting.pop(0))
        if not given and not spec.several:
            raise UserInputError(f"{flag} lacks its value", key=spec.name)
        texts[spec.name] = [*texts.get(spec.name, ()), *given] if spec.several else given
    return {spec.name: _read_value(spec, texts[spec.name]) for spec in specs if spec.name in texts}


def _flag_and_value(word: str, by_flag: Mapping[str, OptionSpec]) -> tuple[str, str | None]:
    """Part ``--name=value`` and ``-nvalue``."""
    if word in by_flag:
        return word, None
    if word.startswith("--"):
        flag, equals, value = word.partition("=")
        return flag, value if equals else None
    return (word[:2], word[2:]) if word[:2] in by_flag and len(word) > 2 else (word, None)


def _read_value(spec: OptionSpec, texts: Sequence[str]) -> OptionValue:
    return tuple(texts) if spec.several else parse_option(spec, texts[0])


def _word(value: OptionValue) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def check_values(
    specs: Sequence[OptionSpec], texts: Mapping[str, str]
) -> tuple[dict[str, OptionValue], dict[str, str]]:
    """Parse every field of a form.

    Returns:
        Values of the fields that are right, and messages by name for those that are wrong.
    """
    values: dict[str, OptionValue] = {}
    problems: dict[str, str] = {}
    for spec in specs:
        try:
            values[spec.name] = parse_option(spec, texts.get(spec.name, ""))
        except UserInputError as error:
            problems[spec.name] = error.message + (f" ({error.hint})" if error.hint else "")
    return values, problems


_JSON_TYPES = {"integer": "integer", "number": "number", "flag": "boolean"}


def json_schema(specs: Sequence[OptionSpec], title: str) -> dict[str, object]:
    """Return the JSON Schema (2020-12) of an object that holds these options by name."""
    properties: dict[str, object] = {}
    for spec in specs:
        field: dict[str, object] = {"description": spec.help}
        if spec.several:
            field |= {"type": "array", "items": {"type": "string"}}
        else:
            field["type"] = _JSON_TYPES.get(spec.kind, "string")
        if spec.choices:
            field["enum"] = list(spec.choices)
        if spec.minimum is not None:
            field["minimum"] = spec.minimum
        if spec.maximum is not None:
            field["maximum"] = spec.maximum
        if spec.default is not None:
            field["default"] = list(spec.default) if isinstance(spec.default, tuple) else spec.default
        properties[spec.name] = field
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "properties": properties,
        "required": [spec.name for spec in specs if spec.required],
        "additionalProperties": False,
    }


def summary(problems: Mapping[str, str]) -> str:
    """Return ``2 problems: first one; second one`` for the line under a form, or the empty string."""
    return f"{plural(len(problems), 'problem')}: {'; '.join(problems.values())}" if problems else ""
