"""Who listens on a TCP port of this host, by /proc."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from magpie_tui.machine.model import Port

_LISTEN = "0A"


def _listeners(proc: Path) -> dict[int, set[str]] | None:
    """Inodes of listening sockets by port; ``None`` when neither table can be read."""
    found: dict[int, set[str]] = {}
    readable = False
    for table in ("net/tcp", "net/tcp6"):
        try:
            lines = (proc / table).read_text(encoding="ascii", errors="replace").splitlines()[1:]
        except OSError:
            continue
        readable = True
        for line in lines:
            parts = line.split()
            if len(parts) > 9 and parts[3] == _LISTEN and re.match(r"^[0-9A-Fa-f]+:[0-9A-Fa-f]{1,4}$", parts[1]):
                found.setdefault(int(parts[1].split(":")[1], 16), set()).add(parts[9])
    return found if readable else None


def _holders(proc: Path, inodes: set[str]) -> dict[str, int]:
    """Process that holds each socket, as far as their descriptors may be read."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    holders: dict[str, int] = {}
    for directory in proc.glob("[0-9]*"):
        try:
            for descriptor in (directory / "fd").iterdir():
                try:
                    inode = wanted.get(str(descriptor.readlink()))
                except OSError:
                    continue
                if inode is not None:
                    holders.setdefault(inode, int(directory.name))
        except OSError:
            continue  # the process has ended, or is not ours to look into
        if len(holders) == len(wanted):
            break
    return holders


def read_ports(numbers: Iterable[int], *, root: Path = Path("/")) -> tuple[Port, ...]:
    """Tell for each port whether somebody listens on it, and who.

    Raises:
        ValueError: A number is not a port (1 to 65535).
    """
    wanted = list(dict.fromkeys(numbers))
    for port_number in wanted:
        if not 1 <= port_number <= 65535:
            raise ValueError(f"a TCP port lies between 1 and 65535, not {port_number}")
    if not wanted:
        return ()
    proc = root / "proc"
    listeners = _listeners(proc)
    if listeners is None:
        return tuple(Port(port_number, reason="/proc/net/tcp cannot be read") for port_number in wanted)
    taken = {port_number: listeners[port_number] for port_number in wanted if port_number in listeners}
    holders = _holders(proc, set().union(*taken.values())) if taken else {}
    ports = []
    for port_number in wanted:
        if port_number not in taken:
            ports.append(Port(port_number, True))
            continue
        pid = next((holders[inode] for inode in sorted(taken[port_number]) if inode in holders), None)
        if pid is None:
            ports.append(Port(port_number, False, reason="held by a process of another user or container"))
        else:
            ports.append(Port(port_number, False, pid, _name(proc, pid)))
    return tuple(ports)


def _name(proc: Path, pid: int) -> str | None:
    try:
        return (proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
