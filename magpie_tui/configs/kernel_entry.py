"""Read one entry of a kernel config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from magpie_tui.configs.command_reading import read_commands, read_env
from magpie_tui.configs.kernel_fields import ENTRY_FIELDS, OWN_KEYS, SNAPSHOT_KEYS, SNAPSHOT_ONLY
from magpie_tui.configs.kernel_model import Command, KernelEntry, KernelType
from magpie_tui.configs.kernel_paths import Places, absolute, choose_places, exists, similar_name
from magpie_tui.configs.own_keys import (
    read_arguments,
    read_geometry,
    read_reference,
    read_shapes,
    read_size,
    read_tolerance,
)
from magpie_tui.configs.positions import ListNode, MapNode, Node, Origin, Setting, Value
from magpie_tui.configs.raw_keys import check_launch, check_work
from magpie_tui.configs.schema import Reader, leaves, nested

_COMMAND_KEYS = ("compile_command", "testcase_command", "prof_command")


def is_snapshot_entry(node: MapNode) -> bool:
    return any(entry.key in SNAPSHOT_KEYS for entry in node.entries)


@dataclass(slots=True)
class ReadEntry:
    """An entry whose reference still waits for the ids of the others."""

    entry: KernelEntry
    reader: Reader
    key: str
    reference_node: Node | None
    places: Places

    def with_reference(self, ids: list[str]) -> KernelEntry:
        """Return the entry with its reference resolved."""
        if self.reference_node is None:
            return self.entry
        reference = read_reference(
            self.reader,
            self.reference_node,
            f"{self.key}.reference",
            own_id=self.entry.id,
            ids=ids,
            find=self.places.find,
        )
        return replace(self.entry, reference=reference)


@dataclass(slots=True)
class EntryReader:
    reader: Reader
    node: MapNode
    key: str
    caller: Path
    path: Path

    def read(self) -> ReadEntry:
        reader = self.reader
        snapshot = is_snapshot_entry(self.node)
        if snapshot:
            self.node = _with_own_keys(self.node)
        # Upstream fills variables in before it writes a snapshot, so what still looks like one is meant as it is.
        reader.expands = not snapshot
        nodes = reader.read(self.node, ENTRY_FIELDS, f"{self.key}.")
        if not snapshot:
            self._refuse_snapshot_keys()
        places, sources = self._sources()
        commands = {key: self._commands(nodes, key) for key in _COMMAND_KEYS}
        env = read_env(reader, nodes["env"], f"{self.key}.env") if "env" in nodes else {}
        entry = KernelEntry(
            id=str(self._value("id")),
            type=cast(KernelType, self._value("type")),
            source_files=sources,
            working_dir=places.working_dir,
            env=env,
            compile_commands=commands["compile_command"],
            testcase_commands=commands["testcase_command"],
            prof_commands=commands["prof_command"],
            get_inputs_func=str(self._value("get_inputs_func")),
            get_init_inputs_func=str(self._value("get_init_inputs_func")),
            python=self._python(places),
            kernel_name=self._text("kernel_name"),
            compile_options=self._texts("compile_options"),
            config_files=self._config_files(places),
            change=self._text("change"),
            in_place=self._value("in_place") is True,
            deterministic=cast("bool | None", self._value("deterministic")),
            budget_seconds=self._seconds("budget_seconds"),
            timeout_seconds=self._seconds("timeout_seconds"),
            bench_target=nested(reader.settings, f"{self.key}.bench_target") or None,
        )
        entry = self._own(entry, nodes)
        reader.expands = False
        reference = self.node.get("reference")
        origins = self._origins()
        return ReadEntry(
            replace(entry, origin=origins), reader, self.key, reference.value if reference else None, places
        )

    def _refuse_snapshot_keys(self) -> None:
        for entry in self.node.entries:
            if entry.key in SNAPSHOT_ONLY:
                self.reader.problems.error(
                    entry.key_node,
                    "unknown-key",
                    f"unknown key {self.key}.{entry.key}",
                    hint="it belongs to the snapshot of a workspace"
                    + (", did you mean shapes?" if entry.key == "input_shapes" else ""),
                )

    def _value(self, name: str) -> Value:
        setting = self.reader.settings.get(f"{self.key}.{name}")
        if setting is not None:
            return setting.value
        return next(item.default for item in ENTRY_FIELDS if item.key == name)

    def _text(self, name: str) -> str | None:
        value = self._value(name)
        return value if isinstance(value, str) else None

    def _seconds(self, name: str) -> float | None:
        value = self._value(name)
        return float(value) if isinstance(value, (int, float)) else None

    def _commands(self, nodes: Mapping[str, Node], name: str) -> tuple[Command, ...]:
        node = nodes.get(name)
        if node is None:
            return ()
        key = f"{self.key}.{name}"
        commands = read_commands(self.reader, node, key)
        self.reader.put(key, commands, node)
        return commands

    def _sources(self) -> tuple[Places, tuple[Path, ...]]:
        given = self._value("source_files")
        texts = [item for item in given if isinstance(item, str)] if isinstance(given, tuple) else []
        working_dir = self._text("working_dir")
        directory = self.path.parent.absolute()
        first = texts[0] if texts else None
        places = choose_places(first, working_dir, caller=self.caller, config_directory=directory)
        nodes = self._source_nodes()
        sources = tuple(
            self._source(text, nodes[index] if index < len(nodes) else self.node, places)
            for index, text in enumerate(texts)
        )
        self._check_working_dir(working_dir, places)
        if not texts and self._value("type") == "pytorch":
            self.reader.problems.error(
                self.node,
                "missing-key",
                f"{self.key} is a PyTorch kernel without source_files",
                expected="source_files",
            )
        key = f"{self.key}.source_files"
        if key in self.reader.settings and sources:
            setting = self.reader.settings[key]
            origin = replace(setting.origin, detail="; ".join(filter(None, (setting.origin.detail, places.text))))
            self.reader.settings[key] = Setting(key, tuple(str(path) for path in sources), origin)
        return places, sources

    def _source_nodes(self) -> tuple[Node, ...]:
        entry = self.node.get("source_files") or self.node.get("source_file_path")
        if entry is None:
            return ()
        return entry.value.items if isinstance(entry.value, ListNode) else (entry.value,)

    def _source(self, text: str, node: Node, places: Places) -> Path:
        found = places.find(text)
        if found is not None:
            if found.is_dir():
                self.reader.problems.error(
                    node, "missing-source", f"the source {text} is a directory", expected="a file"
                )
            self._warn_ambiguous(text, node, places, found)
            return found
        path = absolute(places.directories[-1], text)
        looked = [str(absolute(directory, text)) for directory in places.directories]
        beside = absolute(self.path.parent, text)
        if str(beside) not in looked:
            looked.append(str(beside))
        if "$" not in text:
            guess = similar_name(path)
            self.reader.problems.error(
                node,
                "missing-source",
                f"the source {text} is not there",
                expected="a file: " + " or ".join(looked),
                hint=f"did you mean {guess}?" if guess else None,
            )
        return path

    def _warn_ambiguous(self, text: str, node: Node, places: Places, found: Path) -> None:
        others = [absolute(directory, text) for directory in places.directories]
        same = [path for path in others if path != found and exists(path) and not _same_file(path, found)]
        if same:
            self.reader.problems.warning(
                node,
                "ambiguous-source",
                f"{found} is taken, although {same[0]} is there as well",
                hint="write the path so that only one of them fits",
            )

    def _check_working_dir(self, text: str | None, places: Places) -> None:
        entry = self.node.get("working_dir")
        key = f"{self.key}.working_dir"
        directory = places.working_dir
        if directory is None:
            return
        if entry is None or text is None:
            detail = "the first source lies beside the config"
            self.reader.settings[key] = Setting(key, str(directory), Origin("derived", detail=detail))
            return
        setting = self.reader.settings.get(key)
        if setting is not None:
            origin = replace(setting.origin, detail="; ".join(filter(None, (setting.origin.detail, places.text))))
            self.reader.settings[key] = Setting(key, str(directory), origin)
        if "$" in text and not exists(directory):
            return
        if not exists(directory) or not directory.is_dir():
            problem = "is not a directory" if exists(directory) else "is not there"
            guess = similar_name(directory)
            self.reader.problems.error(
                entry.value,
                "missing-directory",
                f"the working directory {text} {problem}",
                expected=f"a directory: {directory}",
                hint=f"did you mean {guess}?" if guess else None,
            )

    def _python(self, places: Places) -> str | None:
        text = self._text("python")
        if text is None or "/" not in text:
            return text
        return str(places.find(text) or absolute(places.base, text))

    def _own(self, entry: KernelEntry, nodes: Mapping[str, Node]) -> KernelEntry:
        reader, key = self.reader, self.key
        if "tolerance" in nodes:
            entry = replace(entry, tolerance=read_tolerance(reader, nodes["tolerance"], f"{key}.tolerance"))
        if "shapes" in nodes:
            entry = replace(entry, shapes=read_shapes(reader, nodes["shapes"], f"{key}.shapes"))
        if "arguments" in nodes:
            entry = replace(entry, arguments=read_arguments(reader, nodes["arguments"], f"{key}.arguments"))
        if "grid" in nodes:
            entry = replace(entry, grid=read_geometry(reader, nodes["grid"], f"{key}.grid"))
        if "block" in nodes:
            entry = replace(entry, block=read_geometry(reader, nodes["block"], f"{key}.block"))
        if "shared_memory" in nodes:
            entry = replace(entry, shared_memory=read_size(reader, nodes["shared_memory"], f"{key}.shared_memory"))
        if "flops" in nodes:
            entry = replace(entry, flops=read_size(reader, nodes["flops"], f"{key}.flops"))
        if "bytes" in nodes:
            entry = replace(entry, bytes_moved=read_size(reader, nodes["bytes"], f"{key}.bytes"))
        if entry.kernel_name is None and (entry.grid or entry.block or entry.arguments):
            reader.problems.error(
                self.node,
                "missing-key",
                f"{key} has grid, block or arguments but no kernel_name",
                expected="kernel_name, the function to launch",
            )
        check_launch(reader, self.node, nodes, entry, key)
        check_work(reader, self.node, nodes, entry, key)
        return entry

    def _config_files(self, places: Places) -> tuple[Path, ...]:
        """Return the files of ``config_files``, looked up like sources; one that is not there is an error."""
        given = self._value("config_files")
        found = []
        entry = self.node.get("config_files")
        for text in given if isinstance(given, tuple) else ():
            path = places.find(str(text))
            if path is None and entry is not None:
                self.reader.problems.error(
                    entry.value,
                    "missing-file",
                    f"the file {text} is not there",
                    expected="a file that tunes the kernel",
                )
            found.append(path or absolute(places.directories[-1], str(text)))
        return tuple(found)

    def _texts(self, name: str) -> tuple[str, ...]:
        value = self._value(name)
        return tuple(str(item) for item in value) if isinstance(value, tuple) else ()

    def _origins(self) -> dict[str, Origin]:
        prefix = f"{self.key}."
        origins: dict[str, Origin] = {
            key: Origin("default") for key, _item in leaves(ENTRY_FIELDS) if key not in SNAPSHOT_ONLY
        }
        for key, setting in self.reader.settings.items():
            if key.startswith(prefix):
                origins[key.removeprefix(prefix)] = setting.origin
        return origins


def _with_own_keys(node: MapNode) -> MapNode:
    """Return a snapshot's entry with our keys, which stand under ``magpie_tui`` there, in their usual place."""
    own = node.get("magpie_tui")
    if own is None or not isinstance(own.value, MapNode):
        return node
    here = node.keys()
    moved = tuple(entry for entry in own.value.entries if entry.key in OWN_KEYS and entry.key not in here)
    return replace(node, entries=node.entries + moved)


def _same_file(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return False
