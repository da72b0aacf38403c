"""Stops a process with everything that it started, and lets it go on."""

from __future__ import annotations

import contextlib
import os
import signal

from magpie_tui.processes import procfs
from magpie_tui.processes.identity import ProcessIdentity, descendants, identify, signal_process

MOST_ROUNDS = 5
"""Times that new children are looked for: each may have had one more before it was stopped."""


def _children(pid: int) -> list[ProcessIdentity] | None:
    """Return the children of a process as its threads list them; None where the kernel keeps no such list."""
    found = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names of a virtual directory
    except OSError:
        return []
    for thread in threads:
        data = procfs.read_bytes(f"/proc/{pid}/task/{thread}/children")
        if data is None:
            if os.path.exists(f"/proc/{pid}/task/{thread}"):  # noqa: PTH110 - pathlib costs more than the look
                return None
            continue
        found += [child for text in data.split() if (child := identify(int(text))) is not None]
    return found


def _family(pid: int) -> list[ProcessIdentity]:
    found: list[ProcessIdentity] = []
    queue = [pid]
    while queue:
        children = _children(queue.pop())
        if children is None:
            return descendants(pid)
        found += children
        queue += [child.pid for child in children]
    return found


def pause(pid: int) -> list[ProcessIdentity]:
    """Stop a process and its descendants (SIGSTOP); returns those that were stopped, for :func:`go_on`.

    What moved away from its parents is not found, as by everything else that asks for descendants.
    """
    stopped: dict[ProcessIdentity, None] = {}
    own = identify(pid)
    waiting = [] if own is None else [own]
    for _round in range(MOST_ROUNDS):
        for item in waiting:
            with contextlib.suppress(PermissionError):
                if signal_process(item, signal.SIGSTOP):
                    stopped[item] = None
        waiting = [item for item in _family(pid) if item not in stopped]
        if not waiting:
            break
    return list(stopped)


def go_on(stopped: list[ProcessIdentity]) -> None:
    """Let processes that :func:`pause` stopped go on, parents first."""
    for item in stopped:
        with contextlib.suppress(PermissionError):
            signal_process(item, signal.SIGCONT)
