"""A clean and a profiled config that differ in the profiler block only, with the proof."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from magpie_tui.basics.errors import InternalError, UserInputError
from magpie_tui.basics.files import create_directory, write_text
from magpie_tui.basics.json_strict import to_plain
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.configs.check import check_document
from magpie_tui.configs.difference import Change, ConfigDifference, compare_configs
from magpie_tui.configs.effective import EffectiveConfig, effective_of
from magpie_tui.configs.kernel_paths import exists
from magpie_tui.configs.positions import Entry, MapNode, Value, raise_on_errors
from magpie_tui.configs.schema import plain_value
from magpie_tui.configs.syntax import load_document, parse_document

_ENDINGS = re.compile(r"[_-](?:clean|profiled|baseline|profile|twin)\Z", re.IGNORECASE)
_TITLE = re.compile(r"# (?:Clean|Profiled) twin of ")
_CLEAN_COMMENT = "# No profiler: this is the run whose numbers count."
_PROFILED_COMMENT = "# Traces and TraceLens: this run explains, its numbers do not count."
_COMMENTS = (("Clean", _CLEAN_COMMENT), ("Profiled", _PROFILED_COMMENT))


@dataclass(frozen=True, slots=True)
class Twins:
    """Two config texts and what tells them apart.

    Attributes:
        difference: Effective differences between the two: in the group ``profiler`` only.
        keeps_comments: The texts are edited copies; False: written anew from the values.
    """

    clean_path: Path
    profiled_path: Path
    clean_text: str
    profiled_text: str
    difference: ConfigDifference
    keeps_comments: bool

    @property
    def changes(self) -> tuple[Change, ...]:
        """The values that differ."""
        return tuple(change for group in self.difference.groups for change in group.changes)


def make_twins(path: Path, *, directory: Path | None = None, environment: Mapping[str, str] | None = None) -> Twins:
    """Make the clean and the profiled form of a benchmark config, and prove that only the profiler differs.

    Args:
        directory: Where the files shall lie; None: beside ``path``.

    Raises:
        UserInputError: The config has errors, is not a benchmark config, or its other settings exclude a profiler.
    """
    document = load_document(path)
    check = check_document(document, environment=environment)
    raise_on_errors(check.problems)
    if not isinstance(check.config, BenchmarkConfig) or not isinstance(document.root, MapNode):
        raise UserInputError("only a benchmark config has a clean and a profiled form", path=path)
    original = effective_of(check, environment=environment)
    _refuse_conflicts(check.config, path)
    target = path.parent if directory is None else directory
    stem = _ENDINGS.sub("", path.stem)
    names = (target / f"{stem}_clean.yaml", target / f"{stem}_profiled.yaml")
    profiler = _given_profiler(document.root)
    blocks = (_clean_block(profiler), _profiled_block(profiler))
    for edit in (_edited_text, _written_text):
        clean, profiled = (
            edit(path, document.root, block, comment, title)
            for block, (title, comment) in zip(blocks, _COMMENTS, strict=True)
        )
        if clean is None or profiled is None:
            continue
        twins = _proven(names, (clean, profiled), original, environment, keeps_comments=edit is _edited_text)
        if twins is not None:
            return twins
    raise InternalError("the twins differ in more than the profiler", path=path)


def write_twins(twins: Twins, *, force: bool = False) -> tuple[Path, Path]:
    """Write both files.

    Raises:
        UserInputError: One of them is there with another content and ``force`` is not given.
    """
    pairs = ((twins.clean_path, twins.clean_text), (twins.profiled_path, twins.profiled_text))
    for path, text in pairs:
        if (
            not force
            and exists(path)
            and not (path.is_file() and path.read_bytes() == text.encode("utf-8", "surrogateescape"))
        ):
            raise UserInputError(
                "there is such a file already", path=path, hint="give --force to overwrite it, or -o DIR"
            )
    for path, text in pairs:
        create_directory(path.parent)
        write_text(path, text)
    return twins.clean_path, twins.profiled_path


def _refuse_conflicts(config: BenchmarkConfig, path: Path) -> None:
    if config.value("run_kind") == "measurement":
        raise UserInputError(
            "run_kind measurement allows no profiler, so that there is no profiled form",
            path=path,
            key="run_kind",
            hint="remove run_kind, or write auto",
        )
    if config.value("server_lifecycle.enabled") is True and config.value("server_lifecycle.cleanup") is not True:
        raise UserInputError(
            "a kept server excludes the torch profiler, so that there is no profiled form",
            path=path,
            key="server_lifecycle",
            hint="write server_lifecycle.cleanup: true, or remove server_lifecycle",
        )


def _benchmark(root: MapNode) -> MapNode:
    entry = root.get("benchmark")
    return entry.value if entry is not None and isinstance(entry.value, MapNode) else root


def _given_profiler(root: MapNode) -> dict[str, Value]:
    entry = _benchmark(root).get("profiler")
    value = plain_value(entry.value) if entry is not None else {}
    return dict(value) if isinstance(value, dict) else {}


def _section(profiler: Mapping[str, Value], name: str) -> dict[str, Value]:
    value = profiler.get(name)
    return dict(value) if isinstance(value, dict) else {}


def _clean_block(profiler: Mapping[str, Value]) -> dict[str, Value]:
    block: dict[str, Value] = {"torch_profiler": {"enabled": False}, "tracelens": {"enabled": False}}
    if _section(profiler, "system_profiler"):
        block["system_profiler"] = {"enabled": False}
    return {**block, **{key: value for key, value in profiler.items() if key not in (*block, "targeted_trace")}}


def _profiled_block(profiler: Mapping[str, Value]) -> dict[str, Value]:
    tracelens = {
        "enabled": True,
        "analysis_mode": "inference",
        "analysis_stages": "all",
        "export_format": "csv",
        **{key: value for key, value in _section(profiler, "tracelens").items() if key != "enabled"},
    }
    block: dict[str, Value] = {
        "torch_profiler": {**_section(profiler, "torch_profiler"), "enabled": True},
        "tracelens": tracelens,
    }
    return {**block, **{key: value for key, value in profiler.items() if key not in block}}


def _dump(value: Mapping[str, Value]) -> str:
    return yaml.safe_dump(to_plain(value), sort_keys=False, default_flow_style=False, allow_unicode=True, width=4096)


def _written_text(path: Path, root: MapNode, block: Mapping[str, Value], comment: str, title: str) -> str:
    """Write the config anew from its values: comments and anchors are lost."""
    values = plain_value(_benchmark(root))
    given = dict(values) if isinstance(values, dict) else {}
    given["profiler"] = block
    return f"# {title} twin of {path.name}.\n{comment}\n" + _dump({"benchmark": given})


def _edited_text(path: Path, root: MapNode, block: Mapping[str, Value], comment: str, title: str) -> str | None:
    """Replace the profiler block in the file's own text; None where its form does not allow that."""
    lines = path.read_text(encoding="utf-8-sig", errors="replace").split("\n")
    benchmark = _benchmark(root)
    first = next((entry for entry in benchmark.entries if not entry.merged), None)
    if first is None:
        return None
    indent = first.key_node.column - 1
    if lines[first.key_node.line - 1][:indent].strip():
        return None  # flow style, or on the line of benchmark:
    new = [
        " " * indent + comment,
        *(" " * indent + line for line in _dump({"profiler": block}).rstrip("\n").split("\n")),
    ]
    entry = benchmark.get("profiler")
    if entry is None:
        at = first.key_node.line - 1
        return _titled([*lines[:at], *new, *lines[at:]], path, title)
    span = _span(lines, entry, indent)
    if span is None:
        return None
    start, end = span
    while start > 0 and lines[start - 1].startswith(" " * indent + "#"):
        start -= 1  # comments right above it tell about the old block
    return _titled([*lines[:start], *new, *lines[end:]], path, title)


def _titled(lines: list[str], path: Path, title: str) -> str:
    """Join the lines under a first line that says what the file is; the line of an earlier twin gives way."""
    rest = lines[1:] if lines and _TITLE.match(lines[0]) else lines
    return "\n".join([f"# {title} twin of {path.name}.", *rest])


def _span(lines: list[str], entry: Entry, indent: int) -> tuple[int, int] | None:
    """Return the half-open range of the lines of a block entry, None when it does not start its line."""
    start = entry.key_node.line - 1
    if entry.merged or entry.key_node.column - 1 != indent or lines[start][:indent].strip():
        return None
    end = start + 1
    last = end
    while end < len(lines):
        text = lines[end]
        depth = len(text) - len(text.lstrip(" "))
        if text.strip() and depth <= indent:
            break
        end += 1
        if text.strip() and not text.lstrip().startswith("#"):
            last = end
    return start, last


def _proven(
    names: tuple[Path, Path],
    texts: tuple[str, str],
    original: EffectiveConfig,
    environment: Mapping[str, str] | None,
    *,
    keeps_comments: bool,
) -> Twins | None:
    """Return the twins when they load and differ, from each other and from the original, in the profiler only."""
    effective = []
    for path, text in zip(names, texts, strict=True):
        check = check_document(parse_document(text.encode(), path), environment=environment)
        if check.errors:
            return None
        effective.append(effective_of(check, environment=environment))
    difference = compare_configs(effective[0], effective[1])
    others = [difference, *(compare_configs(original, config) for config in effective)]
    keys = [change.key for item in others for group in item.groups for change in group.changes]
    if not all(key.startswith("profiler.") for key in keys):
        return None
    own = tuple(
        _kept_text(original, config, path, text) for config, path, text in zip(effective, names, texts, strict=True)
    )
    return Twins(names[0], names[1], own[0], own[1], difference, keeps_comments)


def _kept_text(original: EffectiveConfig, config: EffectiveConfig, path: Path, text: str) -> str:
    """Keep the file that is asked about when it is one of the twins already."""
    if path.is_file() and path.samefile(original.path) and compare_configs(original, config).is_empty:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    return text
