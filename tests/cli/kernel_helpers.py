"""Runs analyze and compare and reads what they leave."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import run_main
from tests.conftest import PROJECT_ROOT

EXAMPLES = PROJECT_ROOT / "examples"


def skip_without_torch() -> None:
    """Skip a test whose kernels need PyTorch; it is not imported here, which would take seconds."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")


def follow_schema(value: object, name: str) -> None:
    """Fail when a value does not follow the published schema of its name."""
    import jsonschema

    schema = json.loads((PROJECT_ROOT / "docs" / "schemas" / f"{name}.schema.json").read_text())
    jsonschema.validate(value, schema)


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def workspace(self) -> Path:
        """The directory that the last line names."""
        last = self.stdout.splitlines()[-1]
        assert last.startswith("Workspace: "), self
        return Path(last.removeprefix("Workspace: "))

    def report(self, mode: str) -> Any:
        """The report in the workspace; it and the record follow their schemas."""
        report = json.loads((self.workspace / f"{mode}_report.json").read_text())
        follow_schema(report, f"{mode}_report")
        follow_schema(json.loads((self.workspace / "record.json").read_text()), "record")
        return report


def magpie(*arguments: object, cwd: Path, env: Mapping[str, str | None] | None = None) -> Finished:
    """Run ``magpie-tui`` to its end: its starter in this process, the run that it starts in one of its own."""
    return _finished(run_main(*arguments, cwd=cwd, env={"PYTHONPATH": str(PROJECT_ROOT), **(env or {})}))


def magpie_process(*arguments: object, cwd: Path, env: Mapping[str, str] | None = None) -> Finished:
    """Run ``magpie-tui`` to its end, all of it in processes of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "magpie_tui", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT), **(env or {})},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return _finished(done)


def _finished(done: subprocess.CompletedProcess[str]) -> Finished:
    assert "Traceback" not in done.stderr or "RuntimeError: GPU check failed" in done.stderr, done.stderr
    return Finished(done.returncode, done.stdout, done.stderr)


def write_config(directory: Path, *entries: Mapping[str, object]) -> Path:
    """Write a kernel config (JSON is YAML)."""
    path = directory / "kernels.yaml"
    path.write_text(json.dumps({"kernels": list(entries)}))
    return path
