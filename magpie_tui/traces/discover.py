"""Which files of a directory are traces of ranks, and which are something else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.basics.errors import UserInputError

_RANK_UPSTREAM = re.compile(r"-rank-(\d+)(?=\.|.*\.)")
_RANK_ANYWHERE = re.compile(r"(?:^|[-_.])rank[-_]?(\d+)(?=[-_.]|$)", re.IGNORECASE)
_RANK_SGLANG = re.compile(r"-TP-(\d+)(?=[-.])")
_RANK_FOLDER = re.compile(r"(?:pp\d+_)?(?:rank[-_]?(\d+)|dp\d+_tp(\d+))\Z", re.IGNORECASE)
_COORDINATOR = re.compile(r"(?:^|[._-])(?:async_llm|coordinator|api_?server|de?tokenizer|front_?end)(?:[._-]|$)", re.I)
_SPLIT = re.compile(
    r"(?:steady_state_prefill_\d+|_chunk\d+_steps\d+_|annotation_iteration_\d+_|_clamped_[\d.]+_[\d.]+\.)",
    re.IGNORECASE,
)
_CAPTURE = re.compile(r"(?:^|[-_.])graph_capture(?:[-_.]|$)|(?:^|_)capture_\d+_", re.IGNORECASE)
_SUFFIXES = (".json.gz", ".json", ".zip")
_PEEK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace of one rank.

    Attributes:
        rank: Read from the name; otherwise the running number.
        rank_from: ``name``, ``folder`` or ``order``.
    """

    path: Path
    rank: int
    rank_from: str


@dataclass(frozen=True, slots=True)
class SetAside:
    """A file that was not taken for a rank, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class TraceSet:
    """The traces that belong together.

    Attributes:
        root: The file or directory that was given.
        files: Sorted by rank, numerically.
        set_aside: Files that look like traces but are not ranks.
        notes: What a reader should know about the choice.
    """

    root: Path
    files: tuple[TraceFile, ...]
    set_aside: tuple[SetAside, ...] = ()
    notes: tuple[str, ...] = field(default=())


def rank_of(path: Path) -> tuple[int, str] | None:
    """Return the rank that a file's name or one of its folders states, and where it was found."""
    for pattern in (_RANK_UPSTREAM, _RANK_ANYWHERE, _RANK_SGLANG):
        match = pattern.search(path.name)
        if match:
            return int(match[1]), "name"
    for folder in path.parents:
        match = _RANK_FOLDER.fullmatch(folder.name)
        if match:
            return int(match[1] or match[2]), "folder"
    return None


def why_not_a_rank(path: Path, root: Path) -> str | None:
    """Return why a trace is not one of a rank's run, or None."""
    try:
        folders = {part.lower() for part in path.relative_to(root).parts[:-1]}
    except ValueError:
        folders = set()
    if "capture_traces" in folders or _CAPTURE.search(path.name):
        return "graph capture, not the measured run"
    if folders & {"trace_split", "prefilldecodemix", "decode_only"} or _SPLIT.search(path.name):
        return "window cut from another trace"
    if _COORDINATOR.search(path.name):
        return "not a worker: the coordinating process"
    return None


def looks_like_trace(path: Path) -> bool:
    """Peek into a file whose name does not say ``.trace.json``: does a list of events begin in it?"""
    from magpie_tui.traces.containers import open_stream

    if ".trace.json" in path.name.lower():
        return True
    seen = b""
    try:
        with open_stream(path) as stream:
            for block in stream.blocks:
                seen += block
                if b'"traceEvents"' in seen:
                    return True
                start = seen.lstrip(b"\xef\xbb\xbf \t\r\n")
                if start[:1] == b"[":
                    return b'"ph"' in start[: 1 << 16]
                if len(seen) > _PEEK_BYTES or start[:1] not in (b"{", b""):
                    return False
    except UserInputError:
        return False
    # Nothing at all in a file with a trace's place is reported as an empty trace, not passed over.
    return not seen.strip() and path.name.lower().endswith(".json.gz")


def find_traces(root: Path) -> TraceSet:
    """Return the traces of a file, a directory or a benchmark workspace (its ``torch_trace`` is then used).

    The order of the search is upstream's: ranked ``*.pt.trace.json.gz``, else ranked ``*.pt.trace.json``, else every
    ``*.json.gz``, else every ``*.json``.

    Raises:
        UserInputError: The path does not exist, or no trace is there.
    """
    if root.is_file():
        found = rank_of(root)
        return TraceSet(root, (TraceFile(root, *(found or (0, "order"))),))
    if not root.is_dir():
        raise UserInputError("trace not found", path=root, hint="give a trace file, a directory or a workspace")
    directory = root / "torch_trace" if (root / "torch_trace").is_dir() else root
    candidates = sorted(
        path for path in directory.rglob("*") if path.name.lower().endswith(_SUFFIXES) and path.is_file()
    )
    set_aside = []
    workers = []
    for path in candidates:
        reason = why_not_a_rank(path, directory)
        if reason is None:
            workers.append(path)
        elif looks_like_trace(path):
            set_aside.append(SetAside(path, reason))
    files = _chosen(workers, set_aside)
    if not files:
        aside = f"; {len(set_aside)} set aside ({set_aside[0].reason})" if set_aside else ""
        raise UserInputError(
            f"no trace files found{aside}", path=directory, hint="a trace is a .json, .json.gz or .zip of the profiler"
        )
    return TraceSet(root, *_numbered(files, set_aside))


def _chosen(workers: list[Path], set_aside: list[SetAside]) -> list[Path]:
    """Apply upstream's order of groups; what another group was preferred to is set aside by name."""
    for suffix in (".pt.trace.json.gz", ".pt.trace.json"):
        group = [path for path in workers if path.name.endswith(suffix) and rank_of(path)]
        if group:
            taken = set(group)
            set_aside.extend(
                SetAside(path, "no rank in its name, and other files have one")
                for path in workers
                if path not in taken and ".trace.json" in path.name
            )
            return group
    for suffix in (".json.gz", ".json", ".zip"):
        group = [path for path in workers if path.name.lower().endswith(suffix) and looks_like_trace(path)]
        if group:
            return _without_copies(group, workers, set_aside)
    return []


def _without_copies(group: list[Path], workers: Iterable[Path], set_aside: list[SetAside]) -> list[Path]:
    """Add plain files that no packed file of the same name stands for."""
    packed = {str(path).removesuffix(".gz") for path in group}
    for path in workers:
        if path.suffix.lower() != ".json" or path in group:
            continue
        if str(path) in packed:
            set_aside.append(SetAside(path, "unpacked copy of a packed trace"))
        elif looks_like_trace(path):
            group.append(path)
    return group


def _numbered(
    paths: list[Path], set_aside: list[SetAside]
) -> tuple[tuple[TraceFile, ...], tuple[SetAside, ...], tuple[str, ...]]:
    ranks = [rank_of(path) for path in paths]
    notes = []
    if all(found is None for found in ranks):
        if len(paths) > 1:
            notes.append("no file name states a rank: files are numbered in order of their names")
        files = [TraceFile(path, index, "order") for index, path in enumerate(paths)]
    else:
        files = []
        for index, (path, found) in enumerate(zip(paths, ranks, strict=True)):
            files.append(TraceFile(path, *(found or (index, "order"))))
    files.sort(key=lambda file: (file.rank, str(file.path)))
    counts: dict[int, int] = {}
    for file in files:
        counts[file.rank] = counts.get(file.rank, 0) + 1
    several = [str(rank) for rank, count in counts.items() if count > 1]
    if several:
        notes.append(f"several files state the same rank ({', '.join(several)}): they are added up under that rank")
    return tuple(files), tuple(set_aside), tuple(notes)
