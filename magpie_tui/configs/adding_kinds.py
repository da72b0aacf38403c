"""What a new candidate changes against the kernel that it is made from, for each kind of candidate."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.text import printable
from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.configs.positions import MapNode, Value
from magpie_tui.configs.schema import plain_value

Kind = Literal["source", "environment", "flag", "file"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_COMMANDS = ("compile_command", "testcase_command", "prof_command")
_COMPILED = ("hip", "cuda", "cpp")
_NO_COMPILERS = frozenset({"bash", "sh", "zsh", "env", "make", "cmake", "ninja", "python", "python3"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody asks for.

    Attributes:
        base: Id or index of the kernel that it is made from.
        id: Of the new kernel.
        value: ``NAME=VALUE`` of a variable, words for the compiler, or which tuning file; None for a source.
        change: One line saying what it changes; None: made from the kind.
    """

    base: str
    id: str
    kind: Kind = "source"
    value: str | None = None
    change: str | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """What is to be done.

    Attributes:
        changes: Keys of the new entry that differ from the other one's, with their values.
        copy: The file to copy, and where to.
        notes: What a person has to look at.
    """

    changes: Mapping[str, Value]
    copy: tuple[Path, Path] | None = None
    notes: tuple[str, ...] = ()


def plan(entry: KernelEntry, node: MapNode, draft: Draft) -> Planned:
    """Return what a candidate changes.

    Args:
        entry, node: The kernel that it is made from, as loaded and as written.

    Raises:
        UserInputError: The kind does not fit that kernel, or the value is not of its form.
    """
    given = {item.key: plain_value(item.value) for item in node.entries}
    planner = _Planner(entry, given, draft)
    said = {"source": planner.source, "environment": planner.environment, "flag": planner.flag, "file": planner.file}[
        draft.kind
    ]()
    made = f"{entry.change}; {said}" if entry.change else said
    change = " ".join((draft.change or made).split())
    return Planned({"id": draft.id, "change": change, **planner.changes}, planner.copy, tuple(planner.notes))


def copy_name(original: Path, kernel_id: str) -> Path:
    """Return the path of a candidate's copy: beside the original, with the candidate's id in its name."""
    slug = re.sub(r"[^A-Za-z0-9]+", "_", kernel_id).strip("_")
    return original.with_name(f"{original.stem}_{slug}{original.suffix}")


@dataclass(slots=True)
class _Planner:
    entry: KernelEntry
    given: Mapping[str, Value]
    draft: Draft
    changes: dict[str, Value] = field(default_factory=dict)
    copy: tuple[Path, Path] | None = None
    notes: list[str] = field(default_factory=list)

    def source(self) -> str:
        """A copy of the first source, built and tested in its stead."""
        original = self.entry.source_file
        if original is None:
            raise UserInputError(f"the kernel {printable(self.entry.id)} names no source file to copy", key="--from")
        target = copy_name(original, self.draft.id)
        self.copy = (original, target)
        first, *rest = _texts(self.given["source_files"])
        self.changes["source_files"] = (_renamed(first, original, target), *rest)
        touched = self._commands(lambda text: _swapped(text, original.name, target.name))
        if "compile_command" in self.given:
            if "compile_command" not in touched:
                self.notes.append(f"compile_command does not name {original.name}: let it build {target.name}")
            self._other_output()
        elif "testcase_command" in self.given and "testcase_command" not in touched:
            self.notes.append(f"testcase_command does not name {original.name}: let it test {target.name}")
        return f"source: {target.name}"

    def environment(self) -> str:
        """A variable."""
        name, equals, value = (self.draft.value or "").partition("=")
        if not equals or not _NAME.match(name):
            raise UserInputError("a variable is written NAME=VALUE", key="--value")
        env = self.given.get("env")
        before = dict(env) if isinstance(env, dict) else {}
        if str(before.get(name)) == value:
            raise UserInputError(f"{name} is {printable(value)} there already", key="--value")
        self.changes["env"] = {**before, name: value}
        return f"environment: {name}={value}"

    def flag(self) -> str:
        """Words for the compiler."""
        try:
            words = tuple(shlex.split(self.draft.value or ""))
        except ValueError as error:
            raise UserInputError(f"{error}".lower(), key="--value") from error
        if not words:
            raise UserInputError("which flag does the compiler get?", key="--value", hint="--value -O3")
        if self.entry.type not in _COMPILED:
            raise UserInputError(f"a {self.entry.type} kernel is built by no compiler that takes flags", key="--kind")
        if "compile_command" in self.given:
            self.changes["compile_command"] = _with_words(self.given["compile_command"], words)
            self._other_output()
        else:
            self.changes["compile_options"] = (*_texts(self.given.get("compile_options")), *words)
        return f"flag {shlex.join(words)}"

    def file(self) -> str:
        """A copy of a tuning file."""
        texts, paths = _texts(self.given.get("config_files")), self.entry.config_files
        if not texts or len(texts) != len(paths):
            raise UserInputError(f"the kernel {printable(self.entry.id)} names no config_files to copy", key="--kind")
        wanted = self.draft.value or texts[0]
        index = next((number for number, text in enumerate(texts) if wanted in (text, Path(text).name)), None)
        if index is None:
            raise UserInputError(
                f"{printable(wanted)} is not among its config_files: {', '.join(texts)}", key="--value"
            )
        original = paths[index]
        target = copy_name(original, self.draft.id)
        self.copy = (original, target)
        renamed = [*texts]
        renamed[index] = _renamed(texts[index], original, target)
        self.changes["config_files"] = tuple(renamed)
        touched = self._commands(lambda text: _swapped(text, original.name, target.name))
        env = self.given.get("env")
        if isinstance(env, dict):
            swapped = {name: _swapped(str(value), original.name, target.name) for name, value in env.items()}
            if any(swapped[name] != str(value) for name, value in env.items()):
                self.changes["env"] = swapped
        if not touched and "env" not in self.changes:
            self.notes.append(f"neither env nor a command names {original.name}: tell the kernel of {target.name}")
        return f"file: {target.name}"

    def _commands(self, change: Callable[[str], str]) -> set[str]:
        """Change the words of all commands; returns the keys of those that differ now."""
        touched = set()
        for key in _COMMANDS:
            before = self.changes.get(key, self.given.get(key))
            after = _mapped(before, change)
            if after != before:
                self.changes[key] = after
                touched.add(key)
        return touched

    def _other_output(self) -> None:
        """Let the compiler write another file than for the other kernel, and the tests run that one."""
        outputs = _outputs(self.given["compile_command"])
        if not outputs:
            self.notes.append("compile_command has no -o: both kernels may be built into the same file")
        for output in outputs:
            name = Path(output).name
            new = copy_name(Path(name), self.draft.id).name
            self._commands(lambda text, name=name, new=new: _swapped(text, name, new))  # type: ignore[misc]


def _texts(value: Value) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(str(item) for item in value) if isinstance(value, tuple) else (str(value),)


def _renamed(text: str, original: Path, target: Path) -> str:
    """Return a path as written with the new file's name; where the name is a variable's, the whole new path."""
    return text[: -len(original.name)] + target.name if text.endswith(original.name) else str(target)


def _swapped(text: str, old: str, new: str) -> str:
    """Replace a file's name wherever it stands as a whole, behind directories or not."""
    return re.sub(rf"(?<![\w.\-]){re.escape(old)}(?![\w.\-])", lambda _match: new, text)


def _mapped(value: Value, change: Callable[[str], str]) -> Value:
    if isinstance(value, tuple):
        return tuple(_mapped(item, change) for item in value)
    return change(value) if isinstance(value, str) else value


def _words(value: Value) -> list[str]:
    """Return the words of a command in any of its forms, those inside a shell's line too."""
    if isinstance(value, tuple):
        return [word for item in value for word in _words(item)]
    return value.split() if isinstance(value, str) else []


def _outputs(value: Value) -> list[str]:
    words = _words(value)
    after = [words[index + 1] for index, word in enumerate(words[:-1]) if word == "-o"]
    return list(dict.fromkeys([*after, *(word[2:] for word in words if word.startswith("-o") and len(word) > 2)]))


def _with_words(value: Value, words: tuple[str, ...]) -> Value:
    """Return a compile command with words at its end, where they win over earlier ones.

    Raises:
        UserInputError: Its first word is no compiler.
    """
    if isinstance(value, str):
        first, *rest = value.split()
        return " ".join((_compiler(first), *rest, *words))
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return (_with_words(value[0], words), *value[1:])
    if isinstance(value, tuple) and value:
        return (_compiler(str(value[0])), *value[1:], *words)
    raise UserInputError("its compile_command is empty", key="--kind")


def _compiler(word: str) -> str:
    if Path(word).name in _NO_COMPILERS:
        raise UserInputError(
            f"its compile_command runs {printable(Path(word).name)}, whose line has to be changed by hand", key="--kind"
        )
    return word
