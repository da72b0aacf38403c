"""``--engine magpie``: the installed upstream is run on the config, and its report is read by what it proves.

Upstream needs a GPU; a stand-in with its command line takes its place.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.kernel_helpers import magpie, write_config
from tests.runs.upstream_stand_in import install


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the stand-in and name it."""
    script = install(tmp_path / "upstream")
    monkeypatch.setenv("MAGPIE_TUI_UPSTREAM", str(script))
    return script


def entry(name: str) -> dict[str, object]:
    """Return a kernel entry in upstream's form."""
    return {"id": name, "type": "hip", "compile_command": ["true"], "testcase_command": ["true"]}


@pytest.mark.usefixtures("upstream")
def test_upstreams_report_decides_by_what_it_proves(tmp_path: Path) -> None:
    good = write_config(tmp_path, entry("good"))
    done = magpie("analyze", "-k", good, "--engine", "magpie", "-o", "out", cwd=tmp_path)
    assert done.status == 0, done
    assert done.workspace.parent == tmp_path / "out"
    assert "proves:" in done.stdout
    bad = write_config(tmp_path, entry("bad"))
    done = magpie("analyze", "-k", bad, "--engine", "magpie", "--quick", "-o", "out2", cwd=tmp_path)
    assert done.status == 1, "upstream itself exits 0 after a failed build"
    assert "does not know --quick" in done.stderr


@pytest.mark.usefixtures("upstream")
def test_compare_and_json(tmp_path: Path) -> None:
    config = write_config(tmp_path, entry("good"), entry("also_good"))
    done = magpie("compare", "-k", config, "--engine", "magpie", "--json", "-o", "out", cwd=tmp_path)
    assert done.status == 0, done
    assert json.loads(done.stdout)["mode"] == "compare"


def test_without_upstream_nothing_is_created(tmp_path: Path) -> None:
    config = write_config(tmp_path, entry("good"))
    environment = {"PATH": "/nowhere", "MAGPIE_TUI_UPSTREAM": ""}
    done = magpie("analyze", "-k", config, "--engine", "magpie", "-o", "out", cwd=tmp_path, env=environment)
    assert (done.status, done.stdout) == (3, "")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("upstream")
def test_a_missing_gpu_is_the_machines_fault(tmp_path: Path) -> None:
    config = write_config(tmp_path, entry("good"))
    environment = {"STAND_IN": "no_gpu"}
    done = magpie("analyze", "-k", config, "--engine", "magpie", "-o", "out", cwd=tmp_path, env=environment)
    assert done.status == 3
    assert "needs a GPU" in done.stderr


def test_tracelens_judges_no_kernels(tmp_path: Path) -> None:
    done = magpie("analyze", "-k", write_config(tmp_path, entry("k")), "--engine", "tracelens", cwd=tmp_path)
    assert done.status == 2
