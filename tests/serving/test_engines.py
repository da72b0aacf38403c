"""How engines are started, profiled and found: argument vectors, word for word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.machine.model import Gpu
from magpie_tui.machine.probe import ToolOutput
from magpie_tui.serving.docker import (
    Container,
    Mounts,
    device_arguments,
    image_for,
    run_arguments,
    script_command,
)
from magpie_tui.serving.engines import engine_named
from magpie_tui.serving.engines.detect import detect_image, detect_local
from magpie_tui.serving.engines.model import Installed, ProfilePlan, ServePlan
from tests.serving.fake_engine import make_environment

HERE = Path("/env/bin/python")
PLAN = ServePlan(
    "org/model", "127.0.0.1", 8000, tensor_parallel=2, max_model_len=4096, memory_fraction=0.9, dtype="bfloat16"
)
PROFILED = ServePlan("org/model", "127.0.0.1", 8000, profile=ProfilePlan("/traces", 32))


def installed(engine: str, version: str | None, *files: str) -> Installed:
    script = Path("/env/bin/vllm") if engine == "vllm" else None
    return Installed(HERE, script, version, "environment", frozenset(files))


def test_vllm() -> None:
    engine = engine_named("vllm")
    here = installed("vllm", "0.32.0", "config/profiler.py")
    command = engine.command(PLAN, here)
    assert command.argv == (
        *("/env/bin/vllm", "serve", "org/model", "--host", "127.0.0.1", "--port", "8000"),
        *("--tensor-parallel-size", "2", "--max-model-len", "4096", "--gpu-memory-utilization", "0.9"),
        *("--dtype", "bfloat16"),
    )
    assert command.environment == {}
    assert engine.served_name(PLAN) == "org/model"


def test_what_the_user_gives_is_not_given_again() -> None:
    engine = engine_named("vllm")
    extra = ("--dtype=half", "--max_model_len", "100", "-tp", "1", "--served-model-name", "mine", "--x", '{"a": "b c"}')
    plan = ServePlan("m", "127.0.0.1", 8000, max_model_len=4096, dtype="bfloat16", extra=extra)
    argv = engine.command(plan, installed("vllm", "0.32.0")).argv
    assert argv[3:] == ("--host", "127.0.0.1", "--port", "8000", *extra)
    assert engine.served_name(plan) == "mine"


def test_the_profiler_of_new_and_old_vllm() -> None:
    engine = engine_named("vllm")
    new = engine.command(PROFILED, installed("vllm", "0.32.0", "config/profiler.py"))
    settings = json.loads(new.argv[new.argv.index("--profiler-config") + 1])
    assert settings["torch_profiler_dir"] == "/traces"
    assert settings["torch_profiler_with_stack"] is False
    assert settings["max_iterations"] == 32
    assert "VLLM_TORCH_PROFILER_DIR" not in new.environment
    old = engine.command(PROFILED, installed("vllm", "0.10.2"))
    assert "--profiler-config" not in old.argv
    assert old.environment["VLLM_TORCH_PROFILER_DIR"] == "/traces"
    assert old.environment["VLLM_TORCH_PROFILER_WITH_STACK"] == "0"
    by_tag = engine.command(PROFILED, detect_image("vllm/vllm-openai:v0.10.2"))
    assert by_tag.environment["VLLM_TORCH_PROFILER_DIR"] == "/traces"
    unknown = engine.command(PROFILED, detect_image("mine/vllm:latest"))
    assert "--profiler-config" in unknown.argv
    assert unknown.assumptions


def test_sglang() -> None:
    engine = engine_named("sglang")
    here = installed("sglang", "0.5.8")
    argv = engine.command(PLAN, here).argv
    assert argv == (
        *("/env/bin/python", "-m", "sglang.launch_server", "--model-path", "org/model"),
        *("--host", "127.0.0.1", "--port", "8000", "--tp-size", "2", "--context-length", "4096"),
        *("--mem-fraction-static", "0.9", "--dtype", "bfloat16", "--enable-metrics"),
    )
    control = engine.profiler(PROFILED, here)
    assert control.start_body == {
        "output_dir": "/traces",
        "num_steps": 32,
        "activities": ["CPU", "GPU"],
        "with_stack": False,
        "record_shapes": True,
    }
    assert engine.command(PROFILED, here).environment["SGLANG_PROFILE_WITH_STACK"] == "False"


def test_atom_has_two_entry_points() -> None:
    engine = engine_named("atom")
    new = engine.command(PROFILED, installed("atom", "1.0", "entrypoints/openai/api_server.py"))
    assert new.argv[:4] == ("/env/bin/python", "-m", "atom.entrypoints.openai.api_server", "--model")
    assert new.argv[-2:] == ("--torch-profiler-dir", "/traces")
    old = engine.command(PLAN, installed("atom", "0.1", "entrypoints/openai_server.py"))
    assert old.argv[2] == "atom.entrypoints.openai_server"
    assert "--server-port" in old.argv
    assert any("bfloat16" in text for text in old.assumptions)
    assert not engine.profiler(PROFILED, installed("atom", None)).bounded


def test_others_are_not_served() -> None:
    with pytest.raises(UserInputError, match="xdit is not served"):
        engine_named("xdit")


def test_detection_imports_nothing(tmp_path: Path) -> None:
    """The package of that environment raises when it is imported."""
    environment = make_environment(tmp_path / "env", "0.9.1")
    found = detect_local(engine_named("vllm"), str(environment))
    assert (found.version, found.source) == ("0.9.1", "environment")
    assert found.script == environment / "bin" / "vllm"
    assert found.files == {"config/profiler.py"}
    by_path = detect_local(engine_named("vllm"), None, environment={"PATH": str(environment / "bin")})
    assert by_path.script == environment / "bin" / "vllm"
    missing = detect_local(engine_named("sglang"), str(environment))
    assert not missing.found
    assert "no module 'sglang'" in (missing.reason or "")
    nowhere = detect_local(engine_named("vllm"), str(tmp_path / "none"))
    assert not nowhere.found


def amd(index: int, pci: str | None) -> Gpu:
    return Gpu(index, "AMD", architecture="gfx942", pci_address=pci)


def test_a_container_gets_only_its_devices(tmp_path: Path) -> None:
    node = tmp_path / "bus/pci/devices/0000:05:00.0/drm/renderD129"
    node.mkdir(parents=True)
    assert device_arguments([amd(1, "0000:05:00.0")], sys_root=tmp_path) == (
        *("--device=/dev/kfd", "--device=/dev/dri/renderD129", "--group-add=video"),
        *("--cap-add=SYS_PTRACE", "--security-opt=seccomp=unconfined"),
    )
    assert "--device=/dev/dri" in device_arguments([amd(1, None)], sys_root=tmp_path)
    nvidia = [Gpu(index, "NVIDIA") for index in (0, 3)]
    assert device_arguments(nvidia) == ("--gpus", '"device=0,3"')
    assert device_arguments([]) == ()


def test_docker_run() -> None:
    container = Container("docker", "magpie-tui-ab", "ab", lambda _command: ToolOutput((), 0, "", "", 0.0))
    argv = run_arguments(
        container,
        "vllm/vllm-openai:v0.19.1",
        ("vllm", "serve", "org/model"),
        devices=("--gpus", '"device=0"'),
        mounts=Mounts(Path("/results/w"), cache=Path("/hf"), model=Path("/models/m")),
        environment={"A": "1 2"},
        passed_on=["HF_TOKEN"],
    )
    assert argv == (
        *("docker", "run", "--rm", "--init", "--ipc=host", "--shm-size=16g", "--network=host"),
        *("--name", "magpie-tui-ab", "--label", "magpie-tui.run=ab", "--gpus", '"device=0"'),
        *("-v", "/results/w:/workspace", "-v", "/hf:/root/.cache/huggingface", "-v", "/models/m:/models/m:ro"),
        *("-e", "A=1 2", "-e", "HF_TOKEN", "--entrypoint", "vllm", "vllm/vllm-openai:v0.19.1", "serve", "org/model"),
    )
    assert "--privileged" not in argv
    assert script_command("/opt/InferenceX/benchmarks/x.sh", as_user=(7, 8))[-1] == "/opt/InferenceX/benchmarks/x.sh"


def test_only_containers_with_our_label_are_removed() -> None:
    said: list[tuple[str, ...]] = []

    def docker(command: object) -> ToolOutput:
        words = tuple(command)  # type: ignore[arg-type, var-annotated]
        said.append(words)
        return ToolOutput(words, 0, "c1 c2\n" if "ps" in words else "", "", 0.0)

    container = Container("docker", "magpie-tui-ab", "ab", docker)
    container.stop(30.0)
    container.remove()
    assert said == [
        ("docker", "stop", "--time", "30", "magpie-tui-ab"),
        ("docker", "ps", "--all", "--quiet", "--filter", "label=magpie-tui.run=ab"),
        ("docker", "rm", "--force", "--volumes", "c1", "c2"),
    ]


def test_images() -> None:
    assert image_for("vllm", "sm_90a", None) == "vllm/vllm-openai:v0.19.1"
    assert image_for("sglang", "gfx950", None).endswith("mi35x")
    assert image_for("atom", None, "mine:1") == "mine:1"
    with pytest.raises(MachineError, match="no atom image is known for sm_90"):
        image_for("atom", "sm_90", None)
