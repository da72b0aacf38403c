"""The whole reading, through fake programs on a PATH of their own: right ones, and ones that misbehave."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpie_tui.machine.model import Machine
from magpie_tui.machine.read import read_gpus, read_machine
from tests.machine.tools import fake_amd_smi, fake_nvidia_smi, fake_tool, fixture, printing

XML = printing("h200/nvidia_smi_qx.xml")
QUERY = printing("h200/nvidia_query.csv")
APPS = printing("h200/nvidia_apps.csv")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root without /proc, /sys or vendors' directories."""
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.fixture
def bin_directory(tmp_path: Path) -> Path:
    directory = tmp_path / "bin"
    directory.mkdir()
    return directory


def read(bin_directory: Path, root: Path, *, timeout_s: float = 20.0, **environment: str) -> Machine:
    return read_machine(
        environment={"PATH": str(bin_directory), **environment}, timeout_s=timeout_s, root=root, directory=root
    )


def test_a_machine_with_nothing_is_a_normal_answer(bin_directory: Path, root: Path) -> None:
    machine = read(bin_directory, root)
    assert (machine.vendor, machine.architecture, machine.gpus) == (None, None, ())
    assert machine.reasons["gpus"] == "neither a GPU library nor a vendor's tool is installed"
    assert [tool.name for tool in machine.tools if tool.found] == ["python"]
    assert all(tool.reason for tool in machine.tools if not tool.found)
    assert machine.host.cpu_model is None and machine.host.reasons["cpu_model"]
    assert machine.containers is not None and machine.containers.daemon_answers is None
    assert machine.disk.free_bytes is not None


def test_nvidia_smi_gives_everything(bin_directory: Path, root: Path) -> None:
    fake_nvidia_smi(bin_directory, xml=XML, query=QUERY, apps=APPS)
    machine = read(bin_directory, root)
    assert (machine.vendor, machine.architecture, len(machine.gpus)) == ("NVIDIA", "sm_90", 2)
    assert (machine.driver_version, machine.runtime_version) == ("580.159.04", "13.0")
    for gpu in machine.gpus:
        assert gpu.sources == ("nvidia-smi",)
        assert gpu.processes == () and gpu.visible is True
        assert set(gpu.reasons) == {"compute_units"}


def test_the_query_fills_in_what_the_xml_cannot_tell(bin_directory: Path, root: Path) -> None:
    fake_nvidia_smi(bin_directory, xml="echo no driver; exit 9", query=QUERY, apps=APPS)
    machine = read(bin_directory, root)
    assert len(machine.gpus) == 2 and machine.gpus[0].name == "NVIDIA H200"
    (reading,) = machine.readings
    assert "exit status 9: no driver" in (reading.reason or "")
    assert machine.runtime_version is None and machine.reasons["runtime_version"]


def test_amd_smi_gives_everything(bin_directory: Path, root: Path) -> None:
    fake_amd_smi(bin_directory)
    machine = read(bin_directory, root)
    assert (machine.vendor, machine.architecture, machine.runtime_version) == ("AMD", "gfx942", "6.4.2")
    busy, idle = machine.gpus
    assert (busy.power_w, busy.power_cap_w, busy.clock_core_mhz, busy.partition) == (612, 750, 1985, "SPX/NPS1")
    assert busy.uuid == "00ff74a1-0000-1000-8000-000000000000"
    assert busy.processes is not None and [process.pid for process in busy.processes] == [4242]
    assert busy.processes[0].ours is None and "namespace" in busy.processes[0].reasons["ours"]
    assert idle.processes == ()


def test_amd_sources_complete_each_other(bin_directory: Path, root: Path) -> None:
    fake_amd_smi(bin_directory, metric="echo '{\"gpu_data\": [{'", process="exit 1")
    fake_tool(bin_directory, "rocm-smi", printing("amd/rocm_smi.json"))
    fake_tool(bin_directory, "rocminfo", printing("amd/rocminfo.txt"))
    first, _second = read(bin_directory, root).gpus
    assert first.sources == ("amd-smi", "rocm-smi", "rocminfo")
    assert (first.clock_core_mhz, first.clock_core_max_mhz) == (141, 2100), "rocm-smi, then rocminfo"
    assert first.uuid == "00ff74a1-0000-1000-8000-000000000000", "the most trusted source wins"
    assert first.throttle_reasons is None and "amd-smi metric printed no JSON" in first.reasons["throttle_reasons"]


def test_rocminfo_alone_gives_names_and_architectures(bin_directory: Path, root: Path) -> None:
    fake_tool(bin_directory, "rocminfo", printing("amd/rocminfo.txt"))
    machine = read(bin_directory, root)
    assert (machine.vendor, machine.architecture) == ("AMD", "gfx942")
    assert machine.gpus[0].processes is None and machine.gpus[0].reasons["processes"] == "not told by rocminfo"


def test_the_version_file_of_rocm_is_read_where_no_tool_tells_it(bin_directory: Path, root: Path) -> None:
    fake_tool(bin_directory, "rocminfo", printing("amd/rocminfo.txt"))
    (root / "opt/rocm/.info").mkdir(parents=True)
    (root / "opt/rocm/.info/version").write_text("6.4.2-120\n", encoding="utf-8")
    assert read(bin_directory, root).runtime_version == "6.4.2-120"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("exec /bin/sleep 60", "no answer within 0.6 s"),
        ("(/bin/sleep 60) & /bin/sleep 60", "no answer within 0.6 s"),
        ("trap '' TERM; while :; do /bin/sleep 1; done", "no answer within 0.6 s"),
        ("echo garbage", "damaged XML"),
        ("exit 3", "exit status 3"),
        ('echo "couldn\'t communicate with the NVIDIA driver" >&2; exit 9', "communicate with the NVIDIA driver"),
        (r"printf '\377\376\000\001'", "damaged XML"),
        ("kill -SEGV $$", "killed by SIGSEGV"),
        ("exec /bin/cat /dev/zero", "killed by SIGXFSZ"),
        ("", "damaged XML"),
    ],
)
def test_an_nvidia_smi_that_misbehaves_gives_a_reason_and_no_gpu(
    bin_directory: Path, root: Path, line: str, said: str
) -> None:
    fake_tool(bin_directory, "nvidia-smi", line)
    hangs = "no answer" in said
    gpus, (reading,) = read_gpus(environment={"PATH": str(bin_directory)}, timeout_s=0.6 if hangs else 20.0, root=root)
    assert gpus == ()
    assert said in (reading.reason or "")


@pytest.mark.parametrize("name", ["amd-smi", "rocm-smi", "rocminfo"])
@pytest.mark.parametrize(
    "line", ["exec /bin/sleep 60", "echo '[{\"gpu\": 0,'", r"printf '\377{\"card0\": 1'", "exit 1", "echo '{}'"]
)
def test_an_amd_tool_that_misbehaves_gives_a_reason_and_no_gpu(
    bin_directory: Path, root: Path, name: str, line: str
) -> None:
    fake_tool(bin_directory, name, line)
    gpus, (reading,) = read_gpus(
        environment={"PATH": str(bin_directory)}, timeout_s=0.5 if "sleep" in line else 20.0, root=root
    )
    assert gpus == () and reading.source == name and reading.reason


def test_half_of_the_answers_is_better_than_none(bin_directory: Path, root: Path) -> None:
    fake_nvidia_smi(bin_directory, xml="exec /bin/sleep 60", query=QUERY, apps="exit 1")
    gpus, (reading,) = read_gpus(environment={"PATH": str(bin_directory)}, timeout_s=1.0, root=root)
    assert len(gpus) == 2 and gpus[0].processes is None
    assert "-q: no answer within 1 s" in (reading.reason or "")
    assert "no answer within 1 s" in gpus[0].reasons["processes"]


def test_a_program_that_is_no_program_is_reported(bin_directory: Path, root: Path) -> None:
    path = bin_directory / "nvidia-smi"
    path.write_bytes(b"\x7fELF broken")
    path.chmod(0o755)
    _gpus, (reading,) = read_gpus(environment={"PATH": str(bin_directory)}, root=root)
    assert "cannot be started" in (reading.reason or "")


def test_visible_device_variables_do_not_hide_gpus_from_the_tools(bin_directory: Path, root: Path) -> None:
    fake_tool(
        bin_directory,
        "rocminfo",
        f'[ -z "$ROCR_VISIBLE_DEVICES$HIP_VISIBLE_DEVICES" ] && {printing("amd/rocminfo.txt")}',
    )
    machine = read(bin_directory, root, ROCR_VISIBLE_DEVICES="1", HIP_VISIBLE_DEVICES="0")
    assert [gpu.visible for gpu in machine.gpus] == [False, True]
    assert machine.visible_devices == {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"}


def test_processes_of_our_runs_are_told_apart(bin_directory: Path, root: Path) -> None:
    for pid, variables in ((4242, b"A=1\0MAGPIE_TUI_RUN_DIR=/r\0"), (4243, b"A=1\0NOT_MAGPIE_TUI_RUN_DIR=/r\0")):
        (root / f"proc/{pid}").mkdir(parents=True)
        (root / f"proc/{pid}/environ").write_bytes(variables)
        (root / f"proc/{pid}/comm").write_text("python3\n", encoding="utf-8")
    apps = fixture("made/apps.csv").replace("GPU-aaaaaaaa-0000-0000-0000-000000000002", "GPU-x")
    (root / "apps.csv").write_text(apps, encoding="utf-8")
    query = "index, uuid, name\n0, GPU-x, NVIDIA X\n"
    (root / "query.csv").write_text(query, encoding="utf-8")
    fake_nvidia_smi(bin_directory, xml="exit 1", query=f"/bin/cat {root}/query.csv", apps=f"/bin/cat {root}/apps.csv")
    ((gpu,), _readings) = read_gpus(environment={"PATH": str(bin_directory)}, root=root)
    assert gpu.processes is not None
    assert [(process.pid, process.name, process.ours) for process in gpu.processes] == [
        (4242, "/usr/bin/python3", True),
        (4243, "[Not Found]", False),
    ]


def test_docker_whose_daemon_does_not_answer(bin_directory: Path, root: Path) -> None:
    fake_tool(
        bin_directory,
        "docker",
        'if [ "$1" = --version ]; then echo "Docker version 28.2.2, build e6534b4"; else\n'
        'echo "28.2.2|"; echo "Cannot connect to the Docker daemon" >&2; exit 1; fi',
    )
    machine = read(bin_directory, root)
    assert machine.containers is not None
    assert machine.containers.client.version == "28.2.2" and machine.containers.daemon_answers is False
    assert "Cannot connect" in (machine.containers.reason or "")
    docker = machine.tool("docker")
    assert docker is not None and docker.version == "28.2.2"


def test_docker_whose_daemon_answers(bin_directory: Path, root: Path) -> None:
    fake_tool(bin_directory, "docker", 'echo "28.2.2|27.0.1"')
    containers = read(bin_directory, root).containers
    assert containers is not None and containers.daemon_answers and containers.daemon_version == "27.0.1"
