"""Tells which workspaces changed: by inotify where that works, by looking every two seconds where it does not."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.files import is_directory
from magpie_tui.workspaces.browse import find_workspaces
from magpie_tui.workspaces.names import parse_workspace_name

DEBOUNCE_MS = 400
STEP_MS = 50
POLL_SECONDS = 2.0
_IDLE_CHECK_MS = 500

# File systems whose changes made elsewhere never reach inotify.
_POLLED_TYPES = frozenset(
    "nfs nfs4 cifs smb3 smbfs 9p afs ceph lustre gpfs beegfs glusterfs overlay overlayfs autofs virtiofs vboxsf".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Change:
    """What happened since the last one.

    Attributes:
        paths: Workspaces of which something changed, appeared or vanished; empty when it only says how changes are
            found. A path is to be read anew, whatever happened to it.
        mode: ``inotify`` or ``polling``.
        reason: Why it polls; None for inotify.
    """

    paths: tuple[Path, ...]
    mode: str
    reason: str | None = None


def polling_reason(path: Path, mounts_text: str | None = None) -> str | None:
    """Return why changes below ``path`` have to be looked for; None where inotify tells them.

    Args:
        mounts_text: Content of ``/proc/self/mounts``; None means that it is read.
    """
    if mounts_text is None:
        try:
            mounts_text = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return "the mounts of this system cannot be read"
    best, kind = "", ""
    place = os.path.realpath(path)
    for line in mounts_text.splitlines():
        words = line.split(" ")
        if len(words) < 3:
            continue
        mount = words[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        inside = place == mount or place.startswith(mount.rstrip("/") + "/")
        # A later mount on the same place hides the earlier one.
        if inside and len(mount) >= len(best):
            best, kind = mount, words[2]
    if kind in _POLLED_TYPES or kind.startswith("fuse"):
        return f"{best} is a {kind} mount, where changes are not announced"
    return None


def workspace_of(path: Path, roots: Iterable[Path]) -> Path | None:
    """Return the workspace that a changed path belongs to, or None: hidden files and other directories are no news."""
    for root in roots:
        try:
            parts = path.relative_to(root).parts
        except ValueError:
            continue
        if any(part.startswith(".") for part in parts):
            return None
        if parse_workspace_name(root.name) is not None:
            return root
        for count, part in enumerate(parts, 1):
            if parse_workspace_name(part) is not None:
                return root.joinpath(*parts[:count])
    return None


def watch(
    roots: Iterable[Path],
    stop_event: threading.Event,
    *,
    force_polling: bool = False,
    poll_seconds: float = POLL_SECONDS,
    watched: Callable[[], Iterable[Path]] | None = None,
) -> Iterator[Change]:
    """Yield changes below ``roots`` until ``stop_event`` is set.

    The first change has no paths: it says how changes are found, and that from now on none is missed, so that a list
    made after it is complete. A later one without paths says that the way had to be changed: make the list anew.

    Args:
        roots: Directories; those that do not exist (yet) are looked for by polling.
        force_polling: Poll even where inotify would work.
        poll_seconds: Time between two looks.
        watched: Returns the workspaces of which contents are looked at when polling; None means all.
    """
    places = [Path(os.path.realpath(root)) for root in roots]
    reason = "polling was asked for" if force_polling else None
    for place in places:
        if reason is None and not is_directory(place):
            reason = f"{place} does not exist yet"
        reason = reason or polling_reason(place)
    if reason is None and places:
        failure: list[str] = []
        yield from _watch_inotify(places, stop_event, failure)
        if stop_event.is_set() or not failure:
            return
        reason = failure[0]
    yield from _poll(places, stop_event, reason, poll_seconds, watched)


def _watch_inotify(places: list[Path], stop_event: threading.Event, failure: list[str]) -> Iterator[Change]:
    from watchfiles import watch as watch_files

    changes = watch_files(
        *places,
        watch_filter=None,
        debounce=DEBOUNCE_MS,
        step=STEP_MS,
        stop_event=stop_event,
        rust_timeout=_IDLE_CHECK_MS,
        yield_on_timeout=True,
        raise_interrupt=True,
        ignore_permission_denied=True,
    )
    announced = False
    try:
        for batch in changes:
            if not announced:
                # Only now is it certain that changes are seen.
                announced = True
                yield Change((), "inotify")
            found = {workspace_of(Path(name), places) for _kind, name in batch}
            paths = tuple(sorted(path for path in found if path is not None))
            if paths:
                yield Change(paths, "inotify")
            gone = next((place for place in places if not batch and not is_directory(place)), None)
            if gone is not None:
                failure.append(f"{gone} is not there any more")
                return
    except (OSError, RuntimeError) as error:
        # The limit of inotify watches or instances is reached.
        text = " ".join(str(error).split()) or type(error).__name__
        failure.append(f"inotify {'stopped' if announced else 'is not available'}: {text}")


_Stamp = tuple[int, int, int]


def _look(
    places: list[Path], watched: Callable[[], Iterable[Path]] | None
) -> dict[Path, frozenset[tuple[str, _Stamp]]]:
    workspaces = [path for path, _name in find_workspaces(places)]
    looked_into = None if watched is None else {Path(os.path.realpath(path)) for path in watched()}
    seen: dict[Path, frozenset[tuple[str, _Stamp]]] = {}
    for workspace in workspaces:
        if looked_into is not None and workspace not in looked_into:
            seen[workspace] = frozenset()
            continue
        seen[workspace] = frozenset(_stamps(workspace))
    return seen


def _stamps(workspace: Path) -> Iterator[tuple[str, _Stamp]]:
    """Yield name and stamp of every entry directly in a workspace; what vanishes meanwhile is left out."""
    try:
        with os.scandir(workspace) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                yield entry.name, (status.st_ino, status.st_mtime_ns, status.st_size)
    except OSError:
        return


def _poll(
    places: list[Path],
    stop_event: threading.Event,
    reason: str | None,
    poll_seconds: float,
    watched: Callable[[], Iterable[Path]] | None,
) -> Iterator[Change]:
    before = _look(places, watched)
    yield Change((), "polling", reason)
    while not stop_event.wait(poll_seconds):
        now = _look(places, watched)
        changed = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
        before = now
        if changed:
            yield Change(tuple(sorted(changed)), "polling", reason)
