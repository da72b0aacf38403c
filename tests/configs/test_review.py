"""The review of a config beside a machine, on machines made from plain data and on this one."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from magpie_tui.configs.review import Review, ReviewItem, review_config
from magpie_tui.machine.model import Containers, Disk, Gpu, GpuProcess, Host, Machine, Port, Tool

GB = 1_000_000_000
H200 = Gpu(
    0,
    "NVIDIA",
    "NVIDIA H200",
    "sm_90",
    memory_free_bytes=140 * GB,
    processes=(),
    visible=True,
    memory_total_bytes=141 * GB,
)
MI300 = replace(H200, vendor="AMD", name="MI300X", architecture="gfx942")
DOCKER = Containers(Tool("docker", Path("/usr/bin/docker"), on_path=True), True, "27.0")


def machine(
    *gpus: Gpu, containers: Containers | None = DOCKER, port: Port | None = None, free: int | None = 500 * GB
) -> Machine:
    return Machine(
        vendor=gpus[0].vendor if gpus else None,
        architecture=gpus[0].architecture if gpus else None,
        gpus=gpus,
        driver_version=None,
        runtime_version=None,
        visible_devices={},
        host=Host("here", "6.1"),
        disk=Disk(Path("/results"), 1000 * GB, free, None if free is not None else "no permission"),
        containers=containers,
        tools=(Tool("rocprof-compute", reason="not on PATH"), Tool("ncu", Path("/usr/bin/ncu"), "2024.3", True)),
        packages=(),
        ports=(port or Port(8888, True),),
        readings=(),
        read_at="2026-01-01T00:00:00Z",
        reasons={} if gpus else {"gpus": "no tool is installed"},
    )


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "b.yaml"
    path.write_text(
        "benchmark:\n  framework: vllm\n  model: a/b\n"
        "  envs: {TP: 2, CONC: 8, ISL: 100, OSL: 100, MAX_MODEL_LEN: 4096, NUM_PROMPTS: 400}\n"
        "  profiler: {torch_profiler: {enabled: false}}\n"
    )
    return path


def review(path: Path, on: Machine, **environment: str) -> Review:
    return review_config(path, machine=on, environment={"PATH": os.environ["PATH"], "HOME": "/nowhere", **environment})


def item(result: Review, name: str) -> ReviewItem:
    """Return the first item whose name begins with ``name``."""
    return next(item for item in result.items if item.name.startswith(name))


def statuses(result: Review) -> dict[str, str]:
    return {item.name: item.status for item in result.items}


def test_a_benchmark_that_fits(bench: Path) -> None:
    result = review(bench, machine(H200, replace(H200, index=1)))
    assert statuses(result) == {
        "config": "ok",
        "docker": "ok",
        "image": "unknown",
        "GPUs for TP 2": "ok",
        "idle GPUs": "ok",
        "port 8888": "ok",
        "model a/b": "unknown",
        "context": "ok",
        "requests": "ok",
        "disk under results": "ok",
    }
    assert not result.blockers
    assert item(result, "GPUs").evidence == "2 x NVIDIA H200 (sm_90), 2 visible and allowed"


def test_what_blocks_a_benchmark(bench: Path) -> None:
    busy = replace(H200, processes=(GpuProcess(7, "python"),))
    taken = Port(8888, False, 4711, "vllm")
    result = review(
        bench, machine(H200, containers=Containers(Tool("docker", reason="not on PATH")), port=taken, free=GB // 100)
    )
    assert {item.name for item in result.blockers} == {"docker", "GPUs for TP 2", "port 8888", "disk under results"}
    assert "pid 4711 (vllm)" in item(result, "port").evidence
    assert item(review(bench, machine(busy, replace(H200, index=1))), "idle GPUs").status == "blocker"
    unread = replace(H200, processes=None)
    assert item(review(bench, machine(unread, unread)), "idle GPUs").status == "unknown"
    nothing = review(bench, machine(containers=None, free=None))
    assert item(nothing, "GPUs").evidence == "no GPU was found: no tool is installed"
    assert statuses(nothing)["docker"] == statuses(nothing)["disk under results"] == "unknown"
    hidden = replace(H200, visible=False)
    assert item(review(bench, machine(H200, hidden)), "GPUs").status == "blocker"


def test_numbers_that_do_not_fit(bench: Path) -> None:
    bench.write_text(bench.read_text().replace("4096, NUM_PROMPTS: 400", "150"))
    result = review(bench, machine(H200, H200))
    assert item(result, "context").status == "blocker"
    assert (item(result, "requests").status, item(result, "requests").evidence) == ("warning", "80 requests")


def test_images_by_architecture(bench: Path) -> None:
    odd = replace(H200, architecture="sm_75")
    assert item(review(bench, machine(odd, odd)), "image").status == "blocker"
    bench.write_text(bench.read_text().replace("framework: vllm", "framework: atom"))
    assert item(review(bench, machine(H200, H200)), "image").status == "blocker"
    assert item(review(bench, machine(MI300, MI300)), "image").status == "unknown"
    bench.write_text(bench.read_text() + "  docker_image: me/atom:1\n")
    assert item(review(bench, machine(H200, H200)), "image").status == "unknown"


@pytest.mark.parametrize("token", ["", "hf_q1w2e3r4t5z6u7i8o9"], ids=["without", "with"])
def test_models(bench: Path, tmp_path: Path, token: str) -> None:
    two = machine(H200, H200)
    plain = item(review(bench, two, HF_TOKEN=token), "model")
    assert plain.status == "unknown"
    assert ("is set" in plain.evidence.replace("no Hugging Face token is set", "")) == bool(token)
    assert not token or token not in str(review(bench, two, HF_TOKEN=token).items)
    cache = tmp_path / "hf"
    (cache / "hub" / "models--a--b" / "snapshots" / "0123").mkdir(parents=True)
    assert item(review(bench, two, HF_HOME=str(cache)), "model").status == "ok"
    local = tmp_path / "weights"
    local.mkdir()
    bench.write_text(bench.read_text().replace("a/b", str(local)))
    assert item(review(bench, two), "model").status == "warning"
    (local / "config.json").write_text("{}")
    assert item(review(bench, two), "model").status == "ok"
    bench.write_text(bench.read_text().replace(str(local), "./none"))
    assert item(review(bench, two), "model").status == "blocker"


def test_a_local_framework_is_looked_for(bench: Path) -> None:
    bench.write_text(bench.read_text() + "  run_mode: local\n")
    framework = item(review(bench, machine(H200, H200)), "framework")
    assert framework.status in ("ok", "blocker")
    script = bench.parent / "bin" / "vllm"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    assert item(review(bench, machine(H200, H200), PATH=str(script.parent)), "framework").status == "ok"


def test_a_client_only_run_needs_no_gpu(bench: Path) -> None:
    bench.write_text(bench.read_text().replace("{TP", "{BENCHMARK_BASE_URL: 'http://x:1', TP"))
    result = review(bench, machine())
    assert "GPUs for TP 2" not in statuses(result)
    assert not result.blockers


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.hip").write_text("// kernel\n")
    (tmp_path / "k.py").write_text("x = 1\n")
    return tmp_path / "k.yaml"


def test_what_kernels_need(kernel: Path) -> None:
    kernel.write_text(
        "kernels:\n"
        "  - {id: a, type: hip, source_files: [a.hip], testcase_command: ./a,\n"
        "     compile_command: no-such-hipcc -o a a.hip}\n"
        "  - {id: b, type: cuda, source_files: [a.hip], compile_command: sh build.sh, testcase_command: ./b}\n"
        "  - {id: c, type: hip, source_files: [a.hip], testcase_command: ./missing}\n"
    )
    result = review(kernel, machine(H200))
    assert statuses(result) == {
        "config": "ok",
        "source a.hip": "ok",
        "compiler no-such-hipcc": "blocker",
        "testcase ./a": "ok",
        "AMD GPU for hip": "blocker",
        "compiler sh": "ok",
        "testcase ./b": "ok",
        "NVIDIA GPU for cuda": "ok",
        "testcase ./missing": "blocker",
        "profiler rocprof-compute": "warning",
        "profiler ncu": "ok",
        "disk under results": "ok",
    }
    assert item(review(kernel, machine(MI300)), "AMD GPU").status == "ok"


def test_interpreters(kernel: Path, tmp_path: Path) -> None:
    entry = (
        "  - {{id: a, type: {type}, source_files: [k.py], python: {python}, testcase_command: 'true', env: {env}}}\n"
    )
    kernel.write_text("kernels:\n" + entry.format(type="triton", python=sys.executable, env="{}"))
    result = review(kernel, machine())
    assert statuses(result)[f"interpreter {sys.executable}"] == "ok"
    assert statuses(result)["GPU for triton"] == "blocker"
    kernel.write_text("kernels:\n" + entry.format(type="triton", python="./none", env="{TRITON_INTERPRET: '1'}"))
    result = review(kernel, machine())
    assert statuses(result)[f"interpreter {tmp_path}/none"] == "blocker"
    assert statuses(result)["GPU for triton"] == "warning"
    kernel.write_text("kernels:\n" + entry.format(type="pytorch", python="/bin/sh", env="{}"))
    result = review(kernel, machine(MI300))
    assert statuses(result)["package torch"] == "unknown"
    assert statuses(result)["GPU for pytorch"] == "ok"


def test_the_container_environment_needs_docker(kernel: Path) -> None:
    kernel.write_text(
        "kernel: {type: cuda, source_files: [a.hip], testcase_command: 'true'}\nscheduler: {environment: container}\n"
    )
    silent = Containers(Tool("docker", Path("/usr/bin/docker")), False, reason="permission denied")
    assert item(review(kernel, machine(H200, containers=silent)), "docker").evidence == "permission denied"


def test_a_config_with_errors_is_not_reviewed(kernel: Path) -> None:
    kernel.write_text("kernel: {type: hip, source_files: [b.hip], testcase_command: ./t}\n")
    result = review(kernel, machine())
    assert result.has_errors
    assert result.items == ()
    framework = kernel.with_name("f.yaml")
    framework.write_text("logging: {level: INFO}\n")
    assert statuses(review(framework, machine())) == {"config": "ok"}


def test_this_machine_is_read(kernel: Path) -> None:
    kernel.write_text(
        "kernel: {type: cpp, source_files: [a.hip], compile_command: sh -c 'true', testcase_command: 'true'}\n"
    )
    result = review_config(kernel)
    assert result.machine is not None
    assert not result.blockers
