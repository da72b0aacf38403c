"""An environment in which ``vllm serve`` is the streaming server of these tests, with faults of an engine on order.

Run as a script it is that engine: it takes vLLM's arguments, those of the streaming server, and a few of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "examples" / "traces" / "h200_eager_rank-0.pt.trace.json.gz"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_environment(directory: Path, version: str = "0.32.0+cpu", *, old_profiler: bool = False) -> Path:
    """Make a virtual environment whose ``vllm`` is this file, as cheaply as can be.

    Args:
        old_profiler: It is of the time when a variable set up the profiler.
    """
    python = Path(sys.executable)
    site = directory / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    package = site / "vllm"
    (package / "config").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('the framework is never imported here')\n")
    if not old_profiler:
        (package / "config" / "profiler.py").write_text("")
    info = site / f"vllm-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
    model = directory / "tiny-model"
    model.mkdir()
    (model / "config.json").write_text('{"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 4096}')
    (directory / "bin").mkdir()
    (directory / "pyvenv.cfg").write_text(f"home = {python.resolve().parent}\ninclude-system-site-packages = false\n")
    (directory / "bin" / "python").symlink_to(python.resolve())
    script = directory / "bin" / "vllm"
    script.write_text(f'#!/bin/sh\nexec {python} -S -E {Path(__file__)} "$@"\n')
    script.chmod(0o755)
    return directory


def write_config(directory: Path, environment: Path, arguments: str = "", **changes: object) -> Path:
    """Write a small benchmark config for that environment; ``changes`` override keys, dotted by two underscores."""
    import yaml

    values: dict[str, object] = {
        "framework": "vllm",
        "model": str(environment / "tiny-model"),
        "precision": "auto",
        "run_mode": "local",
        "python": str(environment),
        "envs": {
            "TP": 1,
            "CONC": 2,
            "ISL": 8,
            "OSL": 4,
            "RANDOM_RANGE_RATIO": 1,
            "NUM_PROMPTS": 6,
            "PORT": free_port(),
            "EXTRA_VLLM_ARGS": f"--served-model-name tiny --ttft-ms 4 --tpot-ms 1 {arguments}",
        },
        "profiler": {"torch_profiler": {"enabled": False}, "tracelens": {"enabled": False}},
        "load": {"warmup_requests": 0},
        "timeout_seconds": 60,
    }
    for name, value in changes.items():
        place = values
        *parents, last = name.split("__")
        for parent in parents:
            below = place.setdefault(parent, {})
            assert isinstance(below, dict)
            place = below
        place[last] = value
    path = directory / "benchmark.yaml"
    path.write_text(yaml.safe_dump({"benchmark": values}))
    return path


def _taken(arguments: list[str], name: str) -> str | None:
    if name not in arguments:
        return None
    place = arguments.index(name)
    value = arguments[place + 1]
    del arguments[place : place + 2]
    return value


def _serve(arguments: list[str]) -> None:
    """Be the engine."""
    sys.path.insert(0, str(ROOT))
    from tests.serving import streaming_server

    profiler = json.loads(_taken(arguments, "--profiler-config") or "{}")
    place = profiler.get("torch_profiler_dir") or os.environ.get("VLLM_TORCH_PROFILER_DIR", "")
    fault = _taken(arguments, "--trace-fault")
    said_by = int(_taken(arguments, "--says-by") or 0)
    says = _taken(arguments, "--says")
    pid_file = _taken(arguments, "--pid-file")
    if pid_file is not None:
        Path(pid_file).write_text(str(os.getpid()))
    plain = streaming_server.other

    def other(server: streaming_server.Server, method: str, path: str) -> bytes:
        nonlocal place
        if path == "/start_profile" and method == "POST" and server.body:
            place = json.loads(server.body)["output_dir"]  # as SGLang is told it
        if path in ("/start_profile", "/stop_profile") and not place and server.options.flavour == "vllm":
            return plain(server, method, "/nothing")
        if path == "/stop_profile" and method == "POST":
            if fault == "hang":
                signal.pause()
            if fault == "disk-full":
                return _full(Path(place))
            if fault != "nothing":
                for rank in range(40 if fault == "many" else 1):
                    shutil.copy(TRACE, Path(place) / f"rank{rank}.1700000000.pt.trace.json.gz")
        return plain(server, method, path)

    def _full(directory: Path) -> bytes:
        """A trace that a full disk cuts short."""
        (directory / "rank0.1700000000.pt.trace.json.gz").write_bytes(TRACE.read_bytes()[:5000])
        try:
            with Path("/dev/full").open("wb", buffering=0) as disk:
                disk.write(b"x")
        except OSError as error:
            text = json.dumps({"error": f"OSError: {error}"}).encode()
            return streaming_server.head(500, "Internal Server Error", "application/json", len(text)) + text
        raise AssertionError("the disk that is always full was not")

    streaming_server.other = other
    if says is not None:
        answer = streaming_server.Answer.run

        async def run(self: streaming_server.Answer) -> bool:
            if said_by == 0 or self.wanted.number < said_by:
                print(says, flush=True)
            return await answer(self)

        streaming_server.Answer.run = run  # type: ignore[method-assign]
    streaming_server.run(arguments)


if __name__ == "__main__":
    _serve(sys.argv[1:])
