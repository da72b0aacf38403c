"""Host facts from a /proc and /sys of our own making, disk space, real and made-up ports."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from magpie_tui.machine.host import read_disk, read_host
from magpie_tui.machine.ports import read_ports


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_host_facts(tmp_path: Path) -> None:
    write(tmp_path, "proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9654\n\nprocessor\t: 1\nmodel name\t: x\n")
    write(tmp_path, "proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n")
    write(tmp_path, "proc/loadavg", "0.25 0.10 0.05 1/200 4242\n")
    write(tmp_path, "proc/sys/kernel/numa_balancing", "1\n")
    write(tmp_path, "sys/devices/system/node/online", "0-1,4\n")
    write(tmp_path, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n")
    write(tmp_path, "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n")
    write(tmp_path, "sys/fs/cgroup/cpu.max", "50000 100000\n")
    write(tmp_path, "sys/fs/cgroup/memory.max", "2048\n")
    write(tmp_path, "etc/os-release", 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04"\n')
    write(tmp_path, ".dockerenv", "")
    host = read_host(tmp_path)
    assert (host.cpu_model, host.cores, host.usable_cores) == ("AMD EPYC 9654", 2, 0.5)
    assert (host.memory_total_bytes, host.memory_available_bytes, host.memory_limit_bytes) == (1024000, 409600, 2048)
    assert (host.governor, host.numa_nodes, host.numa_balancing) == ("performance,powersave", 3, True)
    assert (host.system, host.load_average, host.inside_container) == ("Ubuntu 24.04", 0.25, True)
    assert host.reasons == {}


def test_damaged_host_files_give_reasons(tmp_path: Path) -> None:
    for name in ("proc/cpuinfo", "proc/meminfo", "proc/loadavg", "sys/devices/system/node/online"):
        write(tmp_path, name, "\x00 nonsense ,,-")
    host = read_host(tmp_path)
    assert {host.cpu_model, host.cores, host.memory_total_bytes, host.load_average, host.numa_nodes} == {None}
    assert {"cpu_model", "cores", "memory_total_bytes", "load_average", "numa_nodes", "governor"} <= set(host.reasons)


def test_this_host_is_readable() -> None:
    host = read_host()
    assert host.hostname and host.kernel and host.memory_total_bytes and host.usable_cores


def test_disk_of_a_directory_that_is_not_there_yet(tmp_path: Path) -> None:
    disk = read_disk(tmp_path / "a/b/c")
    assert disk.path == tmp_path / "a/b/c" and disk.free_bytes is not None and disk.total_bytes is not None
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert read_disk(tmp_path / "file/below").free_bytes is not None


def test_a_port_that_this_process_holds() -> None:
    with socket.socket() as held, socket.socket() as other:
        for item in (held, other):
            item.bind(("127.0.0.1", 0))
        held.listen()
        taken, free = read_ports([held.getsockname()[1], other.getsockname()[1]])
    assert (taken.free, taken.pid) == (False, os.getpid()) and taken.process
    assert (free.free, free.pid) == (True, None), "bound but not listening takes no connections"


def test_a_port_on_ipv6_counts_too() -> None:
    if not socket.has_ipv6 or not Path("/proc/net/tcp6").exists():
        pytest.skip("no IPv6 here")
    with socket.socket(socket.AF_INET6) as held:
        try:
            held.bind(("::1", 0))
        except OSError:
            pytest.skip("no IPv6 loopback here")
        held.listen()
        (taken,) = read_ports([held.getsockname()[1]])
    assert taken.free is False


def test_a_port_of_somebody_else_and_tables_that_cannot_be_read(tmp_path: Path) -> None:
    (unreadable,) = read_ports([80], root=tmp_path)
    assert unreadable.free is None and "cannot be read" in (unreadable.reason or "")
    header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    row = "   0: 00000000:1F40 00000000:0000 {} 00000000:00000000 00:00000000 00000000  1000 0 77 1\n"
    write(tmp_path, "proc/net/tcp", header + row.format("0A") + "broken line\n")
    (held,) = read_ports([8000], root=tmp_path)
    assert held.free is False and held.pid is None and "another user" in (held.reason or "")
    write(tmp_path, "proc/net/tcp", header + row.format("06"))
    assert read_ports([8000], root=tmp_path)[0].free is True, "a socket in TIME_WAIT does not listen"


def test_numbers_that_are_no_ports_are_refused() -> None:
    for number in (0, 65536, -1):
        with pytest.raises(ValueError, match="between 1 and 65535"):
            read_ports([number])
    assert read_ports([]) == ()
