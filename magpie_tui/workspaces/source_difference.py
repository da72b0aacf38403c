"""The sources of a candidate against those of its baseline, as unified text."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.units import format_bytes
from magpie_tui.workspaces.damage import Damaged, read_bounded
from magpie_tui.workspaces.values import as_list, as_mapping, as_text

LARGEST_SOURCE_BYTES = 2 * 1024 * 1024
_MOST_LINES = 20_000
_CONTEXT_LINES = 3


@dataclass(frozen=True, slots=True)
class SourceDifference:
    """What a candidate changes.

    Attributes:
        lines: Unified text; heads start with ``---``, ``+++`` or ``@@``.
        added, removed: Numbers of lines.
        notes: What could not be compared, and what has changed since the run.
    """

    lines: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    notes: tuple[str, ...] = ()


def sources_of(
    kernel_id: str, config: Mapping[str, object] | None, record: Mapping[str, object] | None = None
) -> tuple[Path, ...]:
    """Return the sources of a kernel as the workspace's config (or its record) names them."""
    effective = as_mapping((record or {}).get("effective_config"))
    for kernels in ((config or {}).get("kernels"), effective.get("kernels")):
        for item in as_list(kernels):
            entry = as_mapping(item)
            if kernel_id not in (entry.get("kernel_id"), entry.get("id")):
                continue
            listed = entry.get("source_file_path", entry.get("source_files"))
            names = [listed] if isinstance(listed, str) else as_list(listed)
            base = as_text(entry.get("working_dir")) or ""
            paths = tuple(Path(base) / str(name) for name in names if isinstance(name, str))
            if paths:
                return paths
    return ()


def compare_sources(
    baseline: Sequence[Path], candidate: Sequence[Path], hashes: Mapping[str, str] | None = None
) -> SourceDifference:
    """Compare sources pairwise in their order; reads the files as they are now.

    Args:
        hashes: Path to the SHA-256 it had when the run read it; a file that differs from it is noted.
    """
    notes: list[str] = []
    if not candidate:
        return SourceDifference(notes=("the workspace does not say which sources this candidate has",))
    if not baseline:
        notes.append("the workspace does not say which sources the baseline has")
    lines: list[str] = []
    for index in range(max(len(baseline), len(candidate))):
        old = _text(baseline[index] if index < len(baseline) else None, notes, hashes or {})
        new = _text(candidate[index] if index < len(candidate) else None, notes, hashes or {})
        if old is None or new is None:
            continue
        names = (
            str(baseline[index]) if index < len(baseline) else "/dev/null",
            str(candidate[index]) if index < len(candidate) else "/dev/null",
        )
        if names[0] == names[1]:
            notes.append(f"{names[0]}: both use this file; they differ in something else (commands, environment)")
            continue
        lines += difflib.unified_diff(old, new, *names, lineterm="", n=_CONTEXT_LINES)
    body = [line for line in lines if not line.startswith(("---", "+++"))]
    return SourceDifference(
        tuple(lines),
        sum(line.startswith("+") for line in body),
        sum(line.startswith("-") for line in body),
        tuple(dict.fromkeys(notes)),
    )


def _text(path: Path | None, notes: list[str], hashes: Mapping[str, str]) -> list[str] | None:
    """Return the lines of a source; none for no path; None, with a note, when it cannot be compared."""
    if path is None:
        return []
    data = read_bounded(path, LARGEST_SOURCE_BYTES)
    if isinstance(data, Damaged):
        notes.append(f"{path}: gone since the run" if data.gone else f"{path}: {data.reason}")
        return None
    if b"\0" in data:
        notes.append(f"{path}: a binary file of {format_bytes(len(data))}, not compared")
        return None
    known = hashes.get(str(path))
    if known is not None:
        import hashlib

        if hashlib.sha256(data).hexdigest() != known:
            notes.append(f"{path}: changed since the run; shown as it is now")
    lines = data.decode("utf-8", "replace").splitlines()
    if len(lines) > _MOST_LINES:
        notes.append(f"{path}: {len(lines):,} lines, not compared")
        return None
    return lines
