"""Starting again what a workspace says, confirming candidates alone, and choosing kernels with ``--only``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.options import OptionValue
from magpie_tui.cli.group import add_global_options
from magpie_tui.configs.kernel_model import Reference
from magpie_tui.kernels.again import GLOBAL_OPTIONS, check_again, confirming, how_again, started_alike, why_not
from magpie_tui.kernels.options import Request, compare_request
from magpie_tui.runs.model import RunState
from magpie_tui.workspaces.detail import WorkspaceDetail, show_workspace
from tests.cli.in_process import run_main
from tests.tui.support import make_run

CONFIG = """\
kernels:
- {id: base, type: pytorch, source_files: [k.py]}
- {id: a, type: pytorch, source_files: [k.py]}
- {id: b, type: pytorch, source_files: [k.py], shapes: [{n: 1}, {n: 2}]}
- {id: twice, type: pytorch, source_files: [k.py]}
- {id: twice, type: pytorch, source_files: [k.py]}
"""
PROGRAM = "/opt/bin/magpie-tui"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a config, its source and a workspace that is not written yet."""
    (tmp_path / "k.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "k.py").write_text("pass\n", encoding="utf-8")
    (tmp_path / "results" / "compare_20261202_093300").mkdir(parents=True)
    return tmp_path


def _workspace(place: Path, line: str | None, *, sha256: str = "0" * 64) -> WorkspaceDetail:
    workspace = place / "results" / "compare_20261202_093300"
    files = [{"path": "k.yaml", "sha256": sha256}]
    record = {"working_directory": str(place), "config_files": files, "command_line": [PROGRAM, *(line or "").split()]}
    if line is not None:
        (workspace / "record.json").write_text(json.dumps(record), encoding="utf-8")
    return show_workspace(workspace)


def test_the_same_command_goes_beside_the_old_results(place: Path) -> None:
    line = "-v --engine builtin compare -k k.yaml --quick -o elsewhere --seed 7 --json --detach --fail-on slower"
    again = how_again(_workspace(place, line))
    words = "--engine builtin compare --kernel-config k.yaml --output-dir results --quick --fail-on slower --seed 7"
    assert again.words == tuple(words.split()) and again.config == place / "k.yaml"
    assert (again.label, again.engine, again.directory, again.changed()) == ("k", "builtin", place, True)
    alone = confirming(again, "base", ["b"])
    expected = "--engine builtin compare --kernel-config k.yaml --baseline base --output-dir results --quick --only b"
    assert alone.words == tuple(expected.split()), "no seed: it draws a fresh one"


def test_sources_and_analyses_are_started_again_too(place: Path) -> None:
    again = how_again(_workspace(place, "analyze k.py --type triton --testcase true"))
    assert again.words[:2] == ("analyze", "k.py") and (again.label, again.config) == ("k", None)
    assert check_again(again) is None
    with pytest.raises(UserInputError, match="nothing to confirm"):
        confirming(again, "base", ["a"])
    (place / "k.py").unlink()
    with pytest.raises(UserInputError, match="its source is gone"):
        check_again(again)


def test_a_workspace_without_a_record_has_the_command_of_its_run(place: Path) -> None:
    command = ("python", "-m", "magpie_tui", "--engine", "magpie", "compare", "-k", "k.yaml")
    run = replace(make_run("20261202_093300_aaaa", RunState.running, "k"), command=command, cwd=place)
    again = how_again(_workspace(place, None), run)
    assert again.words == ("--engine", "magpie", "compare", "--kernel-config", "k.yaml", "--output-dir", "results")
    assert again.engine == "magpie" and not again.changed()
    assert started_alike(again, [run]) is None
    same = replace(run, command=("python", "magpie-tui", *again.words))
    assert started_alike(again, [run, same]) is same
    assert started_alike(again, [replace(same, state=RunState.ended)]) is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (None, "nothing here says how it was started"),
        ("compare -k <redacted>", "held a secret"),
        ("campaign next compare", "started by magpie-tui campaign"),
        ("compare -k k.yaml --newer-than-us 1", "not understood: there is no option --newer-than-us"),
        ("compare -k gone.yaml", "its config is gone"),
        ("compare gone.hip k.py", "its source is gone"),
    ],
)
def test_what_cannot_be_started_again_says_why(place: Path, line: str | None, says: str) -> None:
    with pytest.raises(UserInputError) as caught:
        how_again(_workspace(place, line))
    assert says in caught.value.message
    path = caught.value.path
    assert why_not(caught.value) == (f"{caught.value.message}: {path}" if path else caught.value.message)


def test_a_directory_that_is_gone_and_a_config_that_broke(place: Path) -> None:
    again = how_again(_workspace(place, "compare -k k.yaml"))
    with pytest.raises(UserInputError, match="no kernel of the id nobody"):
        confirming(again, "base", ["nobody"])
    with pytest.raises(UserInputError, match="several kernels of the id twice"):
        confirming(again, "base", ["twice"])
    (place / "k.yaml").write_text("kernels: [\n", encoding="utf-8")
    with pytest.raises(UserInputError, match="has errors now") as caught:
        check_again(again)
    assert caught.value.path == place / "k.yaml" and caught.value.line
    with pytest.raises(UserInputError, match="directory it was started in is gone"):
        check_again(replace(again, directory=place / "away"))


def test_global_options_are_those_of_the_command_line() -> None:
    command = click.Command("x")
    add_global_options(command)
    names = {tuple(option.opts) for option in command.params}
    assert {spec.flags for spec in GLOBAL_OPTIONS} == {tuple(sorted(item, key=len, reverse=True)) for item in names}


# --only


def _request(place: Path, *only: str, baseline: str = "0") -> Request:
    values: dict[str, OptionValue] = {"kernel_config": str(place / "k.yaml"), "baseline": baseline, "only": only}
    return compare_request(values)


def test_only_some_kernels_are_compared(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    request = _request(place, "a")
    assert [entry.id for entry in request.config.kernels] == ["base", "a"] and request.baseline == 0
    assert request.config.kernels[0].shapes == ({"n": 1}, {"n": 2}), "shapes hold for all, wherever they are written"
    request = _request(place, "1", "base", baseline="b")
    assert [entry.id for entry in request.config.kernels] == ["base", "a", "b"] and request.baseline == 2
    assert not request.config.kernels[0].shapes
    assert len(_request(place).config.kernels) == len(_request(place, "").config.kernels) == 5


def test_only_says_what_is_missing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    for only, says in (("nobody", "there is no such kernel"), ("base", "baseline alone"), ("twice", "several kernels")):
        with pytest.raises(UserInputError, match=says):
            _request(place, only)
    text = CONFIG.replace("id: a,", "id: a, reference: b,")
    (place / "k.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserInputError, match="leaves out b, the reference of a"):
        _request(place, "a")
    reference = _request(place, "a", "b").config.kernels[1].reference
    assert isinstance(reference, Reference) and reference.entry_id == "b"


def test_the_command_knows_only(place: Path) -> None:
    done = run_main("compare", "-k", "k.yaml", "--only", "a", "nobody", cwd=place)
    assert done.returncode == 2 and "--only nobody: there is no such kernel" in done.stderr
    assert not (place / "results" / ".magpie-tui").exists(), "nothing was started"
