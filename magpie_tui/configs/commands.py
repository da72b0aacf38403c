"""Command strings: split once by the rules of a POSIX shell, with everything that only a shell could do reported."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from magpie_tui.basics.text import printable

_OPERATOR_CHARACTERS = "|&;<>()"
_OPERATOR = re.compile(r"\d*(?:&>>?|[<>]&\d*|<<<|<<|>>|<|>|\|\||\|&|\||&&|&|;;|;|\(|\))")
_OPERATOR_TOKENS = frozenset({"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1", "&>", "<<", "<<<"})
_BUILTINS = frozenset(
    {"cd", "export", "source", ".", "alias", "ulimit", "set", "unset", "eval", "exec", "pushd", "popd"}
)
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SHELL_HINT = 'a command is run without a shell; for shell features write [bash, -lc, "..."]'


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a command that will not do what its author means.

    Attributes:
        code: ``shell-operator``, ``unbalanced-quote``, ``trailing-backslash``, ``shell-builtin`` ...
        offset: Index in the command string.
    """

    severity: str
    code: str
    message: str
    offset: int
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """A command string taken apart; ``offsets`` tells where in the string each token begins."""

    tokens: tuple[str, ...]
    faults: tuple[Fault, ...] = ()
    offsets: tuple[int, ...] = ()


class _Splitter:
    """Walks over a command string once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = len(text.rstrip())
        self.position = 0
        self.tokens: list[str] = []
        self.offsets: list[int] = []
        self.faults: list[Fault] = []
        self.word: list[str] | None = None
        self.start = 0

    def fault(self, code: str, message: str, offset: int, *, hint: str | None = None, severity: str = "error") -> None:
        self.faults.append(Fault(severity, code, message, offset, hint))

    def put(self, characters: str) -> None:
        if self.word is None:
            self.word = []
            self.start = self.position
        self.word.append(characters)

    def end_word(self) -> None:
        if self.word is None:
            return
        self.tokens.append("".join(self.word))
        self.offsets.append(self.start)
        self.word = None

    def run(self) -> Split:
        text = self.text
        while self.position < len(text):
            character = text[self.position]
            if character in " \t":
                self.end_word()
            elif character == "\n":
                self.newline()
            elif character == "\\":
                self.backslash()
                continue
            elif character in "'\"":
                self.quote(character)
                continue
            elif character in _OPERATOR_CHARACTERS:
                self.operator()
                continue
            elif character == "`" or text.startswith("$(", self.position):
                self.substitution(character)
                continue
            else:
                self.plain(character)
            self.position += 1
        self.end_word()
        return Split(tuple(self.tokens), tuple(self.faults), tuple(self.offsets))

    def plain(self, character: str) -> None:
        if character in "*?":
            self.fault(
                "glob",
                f"{character} is passed on as it is: file names are not filled in",
                self.position,
                hint=_SHELL_HINT,
                severity="warning",
            )
        elif character == "~" and self.word is None:
            self.fault(
                "tilde", "~ is passed on as it is", self.position, hint="write the path, or ${HOME}", severity="warning"
            )
        self.put(character)

    def newline(self) -> None:
        self.end_word()
        if self.tokens and self.position < self.end:
            self.fault(
                "shell-operator",
                "a line end separates commands only in a shell",
                self.position,
                hint="write a list of lists for several commands, or fold the text with > for one",
            )

    def backslash(self) -> None:
        after = self.text[self.position + 1 : self.position + 2]
        if self.position + 1 >= self.end:
            self.fault(
                "trailing-backslash",
                "the command ends in a backslash",
                self.position,
                hint="remove it; YAML joins folded lines by itself",
            )
            self.position = len(self.text)
        elif after == "\n":
            self.position += 2
        elif self.word is None and after in " \t":
            self.fault(
                "trailing-backslash",
                "a backslash at a folded line end stays in the command",
                self.position,
                hint="remove it; YAML joins folded lines by itself",
            )
            self.position += 1
        else:
            self.put(after)
            self.position += 2

    def quote(self, mark: str) -> None:
        opened = self.position
        self.put("")
        position = opened + 1
        text = self.text
        part: list[str] = []
        while position < len(text) and text[position] != mark:
            if mark == '"' and text[position] == "\\" and text[position + 1 : position + 2] in ('"', "\\", "$", "`"):
                position += 1
            part.append(text[position])
            position += 1
        self.put("".join(part))
        if position >= len(text):
            kind = "single" if mark == "'" else "double"
            self.fault(
                "unbalanced-quote",
                f"the {kind} quote is not closed",
                opened,
                hint=f"close it, or escape it with a backslash if the {mark} is meant as it is",
            )
        self.position = position + 1

    def operator(self) -> None:
        found = _OPERATOR.match(self.text, self.position)
        operator = found.group() if found else self.text[self.position]
        self.fault(
            "shell-operator",
            f"the shell operator {operator} has no meaning in this command",
            self.position,
            hint=f"quote it if it is meant as text; {_SHELL_HINT}",
        )
        self.end_word()
        self.put(operator)
        self.position += len(operator)
        self.end_word()

    def substitution(self, character: str) -> None:
        shown = "`...`" if character == "`" else "$(...)"
        self.fault("shell-operator", f"{shown} is not run in this command", self.position, hint=_SHELL_HINT)
        closing = self.text.find("`" if character == "`" else ")", self.position + 2)
        end = len(self.text) if closing < 0 else closing + 1
        self.put(self.text[self.position : end])
        self.position = end


def split_command(text: str) -> Split:
    """Split a command string into its argument vector by shell rules, and report what only a shell would do.

    Where there is no fault, the tokens are those of :func:`shlex.split` (a backslash at a line end joins the lines, as
    a shell does).
    """
    split = _Splitter(text).run()
    return Split(split.tokens, split.faults + _program_faults(split.tokens, split.offsets), split.offsets)


def _program_faults(tokens: tuple[str, ...], offsets: tuple[int, ...]) -> tuple[Fault, ...]:
    if not tokens:
        return ()
    first = tokens[0]
    if first in _BUILTINS:
        hint = 'use working_dir or env of this entry, or write [bash, -lc, "..."]'
        return (Fault("error", "shell-builtin", f"{first} exists only inside a shell", offsets[0], hint),)
    if _ASSIGNMENT.match(first):
        name = first.split("=")[0]
        hint = f"put {name} under env of this entry"
        return (
            Fault("error", "shell-assignment", f"{name}=... before a program works only in a shell", offsets[0], hint),
        )
    return ()


def check_tokens(tokens: tuple[str, ...]) -> tuple[Fault, ...]:
    """Report what is doubtful in a command given as a list; ``offset`` is the index of the token.

    A list is passed on untouched, so these are warnings, except for an empty program name.
    """
    if not tokens:
        return ()
    faults = []
    if not tokens[0].strip():
        faults.append(Fault("error", "empty-program", "the name of the program is empty", 0))
    elif any(character.isspace() for character in tokens[0]) and not PurePath(tokens[0]).is_absolute():
        faults.append(
            Fault(
                "warning",
                "program-with-spaces",
                f"the program is named {printable(tokens[0])!r}, spaces included",
                0,
                "in a list each argument is an item of its own; write text instead of a list to have it split",
            )
        )
    script = shell_script_start(tokens)
    for index, token in enumerate(tokens[:script]):
        if token in _OPERATOR_TOKENS:
            message = f"{token} is passed on as an argument, not as a shell operator"
            faults.append(Fault("warning", "operator-argument", message, index, _SHELL_HINT))
    if tokens[0] in _BUILTINS:
        faults.extend(_program_faults(tokens, (0,) * len(tokens)))
    return tuple(faults)


def shell_script_start(tokens: tuple[str, ...]) -> int | None:
    """Return the index of the script of ``bash -c``: a shell reads it and what follows. None where there is none."""
    for start, token in enumerate(tokens):
        if PurePath(token).name not in _SHELLS:
            continue
        for position in range(start + 1, len(tokens)):
            option = tokens[position]
            if not option.startswith("-"):
                break
            if not option.startswith("--") and option.endswith("c"):
                return position + 1
    return None
