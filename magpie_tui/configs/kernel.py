"""Load kernel configs (``analyze -k``, ``compare -k``): upstream's keys and forms, snapshots, and our own keys."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.configs.gaps import report_gaps
from magpie_tui.configs.kernel_arguments import kernel_entries_from_arguments
from magpie_tui.configs.kernel_entry import EntryReader, is_snapshot_entry
from magpie_tui.configs.kernel_fields import (
    CORRECTNESS_FIELDS,
    ENTRY_FIELDS,
    LATENCY_FIELDS,
    PERFORMANCE_FIELDS,
    RAY_FIELDS,
    SCHEDULER_FIELDS,
    TOP_FIELDS,
)
from magpie_tui.configs.kernel_model import (
    KERNEL_TYPES,
    Command,
    KernelConfig,
    KernelEntry,
    KernelType,
    Reference,
    Tolerance,
)
from magpie_tui.configs.kernel_sections import read_roofline
from magpie_tui.configs.positions import Document, ListNode, MapNode, Node, ProblemList, Scalar, raise_on_errors
from magpie_tui.configs.schema import Field, Kind, Reader, nested, vocabulary
from magpie_tui.configs.syntax import load_document

__all__ = [
    "KERNEL_TYPES",
    "Command",
    "KernelConfig",
    "KernelEntry",
    "KernelType",
    "Reference",
    "Tolerance",
    "kernel_entries_from_arguments",
    "load_kernel_config",
    "read_kernel_config",
]


_VOCABULARY = vocabulary(
    (
        Field("kernels", Kind.SECTION, fields=ENTRY_FIELDS),
        Field("performance", Kind.SECTION, fields=PERFORMANCE_FIELDS),
        Field("correctness", Kind.SECTION, fields=CORRECTNESS_FIELDS),
        Field("scheduler", Kind.SECTION, fields=SCHEDULER_FIELDS),
        Field("latency", Kind.SECTION, fields=LATENCY_FIELDS),
    )
)


def load_kernel_config(
    path: Path, *, environment: Mapping[str, str] | None = None, caller_directory: Path | None = None
) -> KernelConfig:
    """Load a kernel config or the snapshot of a workspace.

    Args:
        environment: Variables to fill in; None is the process environment.
        caller_directory: What relative paths belong to; None is the current directory.

    Raises:
        UserInputError: The file cannot be read, or has errors; the message lists all of them.
    """
    config = read_kernel_config(load_document(path), environment=environment, caller_directory=caller_directory)
    raise_on_errors(config.problems)
    return config


def read_kernel_config(
    document: Document, *, environment: Mapping[str, str] | None = None, caller_directory: Path | None = None
) -> KernelConfig:
    """Read a parsed file as a kernel config; all problems are in the result, none is raised."""
    problems = ProblemList(document.path, list(document.problems))
    reader = Reader(problems, os.environ if environment is None else environment, vocabulary=_VOCABULARY)
    caller = (Path.cwd() if caller_directory is None else caller_directory).absolute()
    return _ConfigReader(document, reader, caller).read()


@dataclass(slots=True)
class _ConfigReader:
    document: Document
    reader: Reader
    caller: Path

    def read(self) -> KernelConfig:
        root = self.document.root
        if root is None:
            if not self.document.problems:
                self.reader.problems.error((1, 1), "empty-file", "the file is empty", expected="kernels")
            return self._config((), is_snapshot=False)
        nodes = self.reader.read(root, TOP_FIELDS)
        entries = self._entry_nodes(nodes)
        if not entries and isinstance(root, MapNode) and not self.document.recovered:
            self.reader.problems.error(root, "no-kernels", "there are no kernels", expected="kernel or kernels")
        is_snapshot = any(is_snapshot_entry(node) for node in entries)
        kernels = [
            EntryReader(self.reader, node, f"kernels[{index}]", self.caller, self.document.path).read()
            for index, node in enumerate(entries)
        ]
        ids = [kernel.entry.id for kernel in kernels]
        finished = tuple(kernel.with_reference(ids) for kernel in kernels)
        self._warn_same_ids(entries, ids)
        self._sections(nodes)
        report_gaps(root, self.reader.problems)
        return self._config(finished, is_snapshot=is_snapshot)

    def _entry_nodes(self, nodes: Mapping[str, Node]) -> list[MapNode]:
        found: list[MapNode] = []
        for key in ("kernel", "kernels"):
            node = nodes.get(key)
            if node is None or (isinstance(node, Scalar) and node.value is None):
                continue
            if key == "kernels" and not isinstance(node, ListNode):
                self.reader.wrong_type(
                    node, key, "a list of kernels", "start each kernel with - , or use kernel: for one"
                )
                continue
            items = node.items if key == "kernels" and isinstance(node, ListNode) else (node,)
            for index, item in enumerate(items):
                name = f"kernels[{index}]" if key == "kernels" else "kernel"
                if isinstance(item, MapNode) and item.entries:
                    found.append(item)
                elif isinstance(item, MapNode) or (isinstance(item, Scalar) and item.value is None):
                    self.reader.problems.warning(item, "empty-entry", f"{name} is empty and is skipped")
                else:
                    self.reader.wrong_type(item, name, "a mapping")
        return found

    def _warn_same_ids(self, entries: Sequence[MapNode], ids: Sequence[str]) -> None:
        seen: dict[str, int] = {}
        for node, name in zip(entries, ids, strict=True):
            if name in seen:
                self.reader.problems.warning(
                    node,
                    "same-id",
                    f"the id {name} is also that of the kernel in line {seen[name]}",
                    hint="reports tell kernels apart by id",
                )
            seen.setdefault(name, node.line)

    def _sections(self, nodes: Mapping[str, Node]) -> None:
        tables: tuple[tuple[str, tuple[Field, ...], bool], ...] = (
            ("performance", PERFORMANCE_FIELDS, True),
            ("correctness", CORRECTNESS_FIELDS, True),
            ("latency", LATENCY_FIELDS, True),
            ("scheduler", SCHEDULER_FIELDS, False),
            ("ray_config", RAY_FIELDS, False),
        )
        for key, fields, expands in tables:
            node = nodes.get(key)
            if node is None or (isinstance(node, Scalar) and not node.value and not isinstance(node.value, str)):
                continue
            self.reader.expands = expands
            self.reader.read(node, fields, f"{key}.")
            if key == "performance":
                read_roofline(self.reader, node)
        self.reader.expands = False

    def _config(self, kernels: tuple[KernelEntry, ...], *, is_snapshot: bool) -> KernelConfig:
        settings = self.reader.settings
        root = self.document.root
        has_ray = isinstance(root, MapNode) and root.get("ray_config") is not None
        return KernelConfig(
            path=self.document.path,
            kernels=kernels,
            performance=nested(settings, "performance"),
            correctness=nested(settings, "correctness"),
            latency=nested(settings, "latency"),
            scheduler=nested(settings, "scheduler"),
            ray_config=nested(settings, "ray_config") if has_ray else None,
            settings=tuple(settings.values()),
            problems=self.reader.problems.sorted(),
            is_snapshot=is_snapshot,
        )
