"""``trace ceilings``: what is measured in a child, kept, listed and refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest

from tests.cli.in_process import run_main
from tests.cli.kernel_helpers import skip_without_torch

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``magpie-tui trace ceilings``."""
    return run_main("trace", "ceilings", *arguments)


@pytest.mark.torch
def test_measured_rates_become_ceilings_of_the_device() -> None:
    skip_without_torch()
    done = run("--device", "cpu", "--seconds", "0.01", "--size-mb", "8", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    jsonschema.validate(found, json.loads((SCHEMAS / "trace_ceilings.schema.json").read_text("utf-8")))
    rates = {item["what"]: item for item in found["measurements"]}
    assert rates["copy"]["best_per_s"] >= rates["copy"]["median_per_s"] > 1e7
    assert found["ceilings"]["peaks"]["matrix_fp32"] == pytest.approx(rates["matrix_fp32"]["best_per_s"])
    known = json.loads(run("--list", "--json").stdout)
    jsonschema.validate(known, json.loads((SCHEMAS / "ceilings.schema.json").read_text("utf-8")))
    assert known["ceilings"][0]["kind"] == "measured" and len(known["ceilings"]) > 20
    listed = run("--list", "--format", "csv")
    assert listed.returncode == 0
    first, second = listed.stdout.splitlines()[:2]
    assert first.startswith("device,kind,GB/s") and ",measured," in second


def test_a_python_without_torch_is_this_machines_lack(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n")
    fake.chmod(0o755)
    done = run("--python", str(fake))
    assert done.returncode == 3 and "has no torch" in done.stderr and "hint:" in done.stderr
    assert run("--device", "tpu").returncode == 2
