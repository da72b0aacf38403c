"""The argument vectors of containers, and how exactly ours are ended: by the label that we gave them.

A server's container gets the devices that it needs and no privileges; nothing is handed over by value that is secret.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import MachineError
from magpie_tui.machine.model import Gpu
from magpie_tui.machine.probe import ToolOutput, run_tool

LABEL = "magpie-tui.run"
WORKSPACE_MOUNT = "/workspace"
CACHE_MOUNT = "/root/.cache/huggingface"
SCRIPTS_MOUNT = "/opt/InferenceX"
_COMMAND_TIMEOUT_S = 60.0
_IMAGES: Mapping[str, Mapping[str, str]] = {
    "vllm": {
        "gfx942": "vllm/vllm-openai-rocm:v0.19.1",
        "gfx950": "vllm/vllm-openai-rocm:v0.19.1",
        "sm": "vllm/vllm-openai:v0.19.1",
    },
    "sglang": {
        "gfx942": "lmsysorg/sglang:v0.5.12-rocm720-mi30x",
        "gfx950": "lmsysorg/sglang:v0.5.12-rocm720-mi35x",
        "sm": "lmsysorg/sglang:v0.5.8-cu130-amd64-runtime",
    },
    "atom": {"gfx942": "rocm/atom:latest", "gfx950": "rocm/atom:latest"},
}
"""Upstream's table: framework to architecture to image; ``sm`` stands for all of NVIDIA's that it names."""
_NVIDIA = ("sm_80", "sm_90", "sm_100")


def image_for(framework: str, architecture: str | None, given: str | None) -> str:
    """Return the image to run: the config's own, or upstream's for this GPU.

    Raises:
        MachineError: There is none for it.
    """
    if given:
        return given
    base = (architecture or "").removesuffix("a") if (architecture or "").startswith("sm_") else architecture or ""
    image = _IMAGES.get(framework, {}).get("sm" if base in _NVIDIA else base)
    if image is None:
        raise MachineError(
            f"no {framework} image is known for {architecture or 'this machine, which has no GPU'}",
            hint="give docker_image, or gpu_arch",
            key="docker_image",
        )
    return image


def device_arguments(gpus: Sequence[Gpu], *, sys_root: Path = Path("/sys")) -> tuple[str, ...]:
    """Return what gives a container exactly these GPUs; nothing without any.

    AMD: the compute device and the render node of each GPU (all of ``/dev/dri`` where a node cannot be told), and the
    right to trace and to set memory policies that its profiler and collectives need. NVIDIA: the container runtime.
    """
    if not gpus:
        return ()
    if gpus[0].vendor == "NVIDIA":
        return ("--gpus", '"device=' + ",".join(str(gpu.index) for gpu in gpus) + '"')
    nodes = [_render_node(gpu, sys_root) for gpu in gpus]
    places = ["/dev/dri"] if any(node is None for node in nodes) else [f"/dev/dri/{node}" for node in nodes]
    devices = [f"--device={place}" for place in ("/dev/kfd", *places)]
    return (*devices, "--group-add=video", "--cap-add=SYS_PTRACE", "--security-opt=seccomp=unconfined")


def _render_node(gpu: Gpu, sys_root: Path) -> str | None:
    if gpu.pci_address is None:
        return None
    directory = sys_root / "bus/pci/devices" / gpu.pci_address / "drm"
    try:
        return next((item.name for item in sorted(directory.iterdir()) if re.fullmatch(r"renderD\d+", item.name)), None)
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class Mounts:
    """Directories of the host that a container sees.

    Attributes:
        workspace: Seen as ``/workspace``.
        cache: Hugging Face cache; None: none.
        model: Directory of the weights, seen under its own path; None where the model is a hub id.
        scripts: InferenceX checkout for a benchmark script; None: none.
    """

    workspace: Path
    cache: Path | None = None
    model: Path | None = None
    scripts: Path | None = None

    def arguments(self) -> tuple[str, ...]:
        """``-v`` for each of them."""
        pairs: list[tuple[Path, str, str]] = [(self.workspace, WORKSPACE_MOUNT, "")]
        if self.cache is not None:
            pairs.append((self.cache, CACHE_MOUNT, ""))
        if self.model is not None:
            pairs.append((self.model, str(self.model), ":ro"))
        if self.scripts is not None:
            pairs.append((self.scripts, SCRIPTS_MOUNT, ""))
        return tuple(word for place, seen, mode in pairs for word in ("-v", f"{place}:{seen}{mode}"))


@dataclass(frozen=True, slots=True)
class Container:
    """A container of ours.

    Attributes:
        docker: Client program.
        label: Value of our label; no other container has it.
        run: Runs the client; tests pass their own.
    """

    docker: str
    name: str
    label: str
    run: Callable[[Sequence[str]], ToolOutput]

    def stop(self, grace_s: float) -> None:
        """Ask it to end: SIGTERM, ``grace_s``, SIGKILL."""
        self.run((self.docker, "stop", "--time", f"{grace_s:.0f}", self.name))

    def remove(self) -> None:
        """Remove whatever bears our label."""
        found = self.run((self.docker, "ps", "--all", "--quiet", "--filter", f"label={LABEL}={self.label}"))
        ids = found.stdout.split() if found.exit_code == 0 else []
        if ids:
            self.run((self.docker, "rm", "--force", "--volumes", *ids))


def _run_docker(command: Sequence[str]) -> ToolOutput:
    return run_tool(command, timeout_s=_COMMAND_TIMEOUT_S)


def new_container(docker: str, run: Callable[[Sequence[str]], ToolOutput] = _run_docker) -> Container:
    """Return the handle of a container that is yet to be started, with a name and a label of its own."""
    label = secrets.token_hex(6)
    return Container(docker, f"magpie-tui-{label}", label, run)


def container_named(docker: str, name: str, label: str) -> Container:
    """Return the handle of a container that an earlier run of ours started."""
    return Container(docker, name, label, _run_docker)


def run_arguments(
    container: Container,
    image: str,
    command: Sequence[str],
    *,
    devices: Sequence[str],
    mounts: Mounts,
    environment: Mapping[str, str],
    passed_on: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return ``docker run`` for a command.

    Args:
        environment: Variables written into the argument vector.
        passed_on: Names that the client takes from its own environment: tokens never stand in a process list.
    """
    variables = [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
    names = [word for name in passed_on for word in ("-e", name)]
    return (
        container.docker,
        "run",
        "--rm",
        "--init",
        "--ipc=host",
        "--shm-size=16g",
        "--network=host",
        "--name",
        container.name,
        "--label",
        f"{LABEL}={container.label}",
        *devices,
        *mounts.arguments(),
        *variables,
        *names,
        "--entrypoint",
        command[0],
        image,
        *command[1:],
    )


def script_command(script: str, *, as_user: tuple[int, int] | None = None) -> tuple[str, ...]:
    """Return what runs a benchmark script inside a container, and gives the workspace back to its owner afterwards."""
    user, group = as_user or (os.getuid(), os.getgid())
    text = f'cd {SCRIPTS_MOUNT} && bash "$0"; status=$?; chown -R {user}:{group} {WORKSPACE_MOUNT}; exit $status'
    return ("/bin/bash", "-c", text, script)
