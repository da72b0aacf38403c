"""A real vLLM on the CPU, its environment built when it is not there yet; one clean run and one twin for all tests."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from magpie_tui.serving.benchmark import run_clean, run_profiled
from magpie_tui.serving.model import RunOutcome, RunRequest
from tests.process_helpers import TOKEN_VARIABLE
from tests.serving.fake_engine import free_port

if not os.environ.get("MAGPIE_TUI_REAL_ENGINE"):
    # They take minutes and 2.5 GB: only `make test-serving` asks for them.
    collect_ignore_glob = ["test_*.py"]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "serving"
REQUESTS = 48


def _example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Served:
    """Two runs of one config: without and with the profiler."""

    clean: RunOutcome
    twin: RunOutcome
    token: str


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Run both, once."""
    made = subprocess.run(
        [sys.executable, EXAMPLES / "make_env.py"], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
    )
    environment, model = map(Path, made.stdout.split())
    directory = tmp_path_factory.mktemp("serving")
    _few, config = _example("make_configs").write(
        environment, model, directory / "configs", requests=REQUESTS, port=free_port()
    )
    token = f"serving-{os.getpid()}"
    os.environ[TOKEN_VARIABLE] = token
    try:
        workspaces = [directory / name for name in ("clean", "twin")]
        for workspace in workspaces:
            workspace.mkdir()
        clean = run_clean(RunRequest(config), workspaces[0])
        twin = run_profiled(RunRequest(config), workspaces[1])
    finally:
        del os.environ[TOKEN_VARIABLE]
    yield Served(clean, twin, token)
