"""Names of result directories: upstream's patterns, and the one of our experiments.

Upstream names a workspace ``<mode>[_<label or framework>]_<YYYYmmdd_HHMMSS>`` in local time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, get_args

from magpie_tui.basics.files import create_timestamped_directory
from magpie_tui.basics.logging_setup import log_debug

WorkspaceKind = Literal["analyze", "compare", "benchmark", "experiment"]
WORKSPACE_KINDS: tuple[WorkspaceKind, ...] = get_args(WorkspaceKind)

FRAMEWORKS = ("vllm", "sglang", "atom", "xdit", "custom")
"""Frameworks that occur in names of benchmark workspaces; ``custom`` is written by drivers, not by upstream."""

_NAME = re.compile(r"(?P<kind>analyze|compare|benchmark|experiment)(?:_(?P<label>.+))?_(?P<stamp>[0-9]{8}_[0-9]{6})")
_NOT_IN_A_LABEL = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_LABEL = 160
"""Characters of a label: file systems allow 255 bytes for the whole name."""


@dataclass(frozen=True, slots=True)
class WorkspaceName:
    """What the name of a result directory says.

    Attributes:
        name: The directory's own name.
        kind: What made it.
        label: Kernel id (analyze) or framework (benchmark); None where the name has none.
        stamp: ``YYYYmmdd_HHMMSS`` in the local time of the machine that made it.
    """

    name: str
    kind: WorkspaceKind
    label: str | None
    stamp: str

    @property
    def time(self) -> datetime:
        """The stamp as a naive local time."""
        return _time_of(self.stamp)


def _time_of(stamp: str) -> datetime:
    """Turn ``YYYYmmdd_HHMMSS`` into a time; ValueError when there is no such time."""
    year, month, day, hour, minute, second = (
        int(stamp[start:end]) for start, end in ((0, 4), (4, 6), (6, 8), (9, 11), (11, 13), (13, 15))
    )
    return datetime(year, month, day, hour, minute, second)


def sanitize_label(label: str) -> str:
    """Replace what upstream replaces: every character but letters, digits, ``-`` and ``_`` becomes ``_``."""
    return _NOT_IN_A_LABEL.sub("_", label)[:_LONGEST_LABEL]


def workspace_name(kind: WorkspaceKind, label: str | None, stamp: str) -> str:
    """Return the directory name of a workspace.

    Args:
        label: Kernel id for ``analyze`` (may be empty), framework for ``benchmark``. A comparison and an experiment
            bear none, as upstream's pattern for ``compare`` has none.
    """
    clean = sanitize_label(label or "")
    if kind in ("compare", "experiment") or not clean:
        return f"{kind}_{stamp}"
    return f"{kind}_{clean}_{stamp}"


def create_workspace(
    output_dir: Path,
    mode: WorkspaceKind,
    label: str | None = None,
    *,
    clock: Callable[[], float] = time.time,
) -> Path:
    """Create a new workspace below ``output_dir`` and return it absolute.

    Where the name of this second is taken, the next free second is used. Analyze and compare workspaces get upstream's
    ``performance/`` directory.

    Raises:
        UserInputError: A file is in the way.
        MachineError: The place cannot be written.
    """
    workspace = create_timestamped_directory(output_dir, lambda stamp: workspace_name(mode, label, stamp), clock=clock)
    if mode in ("analyze", "compare"):
        (workspace / "performance").mkdir(exist_ok=True)
    log_debug(__name__, "workspace %s created", workspace)
    return workspace


def parse_workspace_name(name: str) -> WorkspaceName | None:
    """Read a directory name, ours or upstream's; None when it is not the name of a workspace.

    A benchmark's framework may be one that upstream does not know: drivers invent names.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    kind, label, stamp = match["kind"], match["label"], match["stamp"]
    if kind in ("compare", "experiment") and label is not None:
        return None
    if kind == "benchmark" and label is None:
        return None
    try:
        _time_of(stamp)
    except ValueError:
        return None
    known_kind: WorkspaceKind = next(item for item in WORKSPACE_KINDS if item == kind)
    return WorkspaceName(name=name, kind=known_kind, label=label, stamp=stamp)


def report_name(kind: WorkspaceKind) -> str | None:
    """Return the file name of the report that upstream writes for ``kind``; an experiment has none."""
    return None if kind == "experiment" else f"{kind}_report.json"
