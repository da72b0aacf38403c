"""Compile caches that could hide a change: found where the servers use them, renamed, and put back as they were."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.campaigns import caches_aside, edit
from magpie_tui.campaigns.caches import Cache, CacheList, list_caches
from magpie_tui.campaigns.caches_aside import is_due, move_aside, read_moved, restore, still_aside
from magpie_tui.campaigns.detail import step_detail
from magpie_tui.campaigns.model import Campaign
from magpie_tui.campaigns.report_writing import bundle_of, report_texts
from magpie_tui.campaigns.side_by_side import side_by_side
from magpie_tui.campaigns.state import view_campaign
from tests.cli.kernel_helpers import follow_schema

CONFIG = """\
benchmark:
  framework: vllm
  model: Qwen/Qwen3-0.6B
  run_mode: {mode}
  python: {python}
  envs: {{TP: 1, CONC: 4, ISL: 16, OSL: 16{more}}}
"""


@dataclass(frozen=True)
class Place:
    """A user's home with caches, an environment with AITER built into it, and a campaign."""

    root: Path
    campaign: Campaign
    environment: dict[str, str]

    @property
    def home(self) -> Path:
        return self.root / "home"

    def found(self) -> CacheList:
        return list_caches(self.campaign, self.environment)

    def config(self, name: str, more: str = "", mode: str = "local") -> Path:
        path = self.root / f"{name}.yaml"
        path.write_text(CONFIG.format(mode=mode, python=self.root / "venv", more=more))
        return path


def filled(path: Path, text: str = "old") -> Path:
    path.mkdir(parents=True)
    (path / "built").write_text(text)
    return path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    jit = filled(tmp_path / "venv" / "aiter" / "jit" / "build").parent
    (jit / "module_norm.so").write_text("old")
    (jit / "core.py").write_text("")
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\necho {jit.parent / '__init__.py'}\n")
    python.chmod(0o755)
    (tmp_path / "tmp").mkdir()
    environment = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), "USER": "ada", "PATH": os.defpath}
    filled(tmp_path / "tmp" / "torchinductor_ada")
    filled(tmp_path / "home" / ".triton" / "cache")
    for name in ("torch_compile_cache", "modelinfos"):
        filled(tmp_path / "home" / ".cache" / "vllm" / name)
    place = Place(tmp_path, edit.new_campaign(tmp_path / "c", template="full"), environment)
    campaign = edit.set_file(place.campaign, "baseline", place.config("clean"))
    own = filled(tmp_path / "own triton")
    campaign = edit.set_file(campaign, "optimized", place.config("optimized", f", TRITON_CACHE_DIR: '{own}'"))
    return Place(tmp_path, campaign, environment)


def by_path(found: CacheList) -> dict[Path, Cache]:
    return {cache.path: cache for cache in found.there}


def test_each_side_has_the_caches_of_its_own_environment(place: Place) -> None:
    found = by_path(place.found())
    jit = place.root / "venv" / "aiter" / "jit"
    assert {path: cache.arms for path, cache in found.items()} == {
        place.root / "tmp" / "torchinductor_ada": ("A", "B"),
        place.home / ".triton" / "cache": ("A",),
        place.root / "own triton": ("B",),
        place.home / ".cache" / "vllm" / "torch_compile_cache": ("A", "B"),
        jit / "build": ("A", "B"),
        jit / "module_norm.so": ("A", "B"),
    }
    assert found[jit / "module_norm.so"].is_shared_by_name
    assert not found[place.root / "own triton"].is_shared_by_name
    assert (found[jit / "build"].bytes, found[jit / "build"].files) == (3, 1)
    assert not [cache.against for cache in found.values() if cache.against]


def test_what_must_stay_says_why(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    values = f", TRITON_CACHE_DIR: '{place.home}', TORCHINDUCTOR_CACHE_DIR: '{place.home / '.cache' / 'vllm'}'"
    edit.set_file(place.campaign, "optimized", place.config("optimized", values))
    found = by_path(place.found())
    assert "it holds the home directory" in found[place.home].against
    assert f"it goes with {place.home / '.cache' / 'vllm'}" in [cache.against for cache in found.values()]
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert "another user" in by_path(place.found())[place.root / "tmp" / "torchinductor_ada"].against
    assert place.found().to_move == ()


def test_containers_and_missing_configs_are_said(place: Place) -> None:
    place.config("optimized", mode="docker")
    (place.root / "clean.yaml").write_text("benchmark: [")
    found = place.found()
    assert found.caches == ()
    assert "cannot be read" in found.notes[0]
    assert "made anew for each run" in found.notes[1]


@pytest.mark.parametrize(
    ("kind", "more", "holds", "words"),
    [
        ("environment", ", MY_KERNEL: 1", True, "B is selected by envs.MY_KERNEL"),
        ("patch", "", False, "the two configs are the same"),
        ("image", ", MY_KERNEL: 1", False, "an image has to be selected by docker_image"),
        ("none", "", True, "nothing is installed"),
    ],
)
def test_both_sides_stay_installed_or_it_is_said(place: Place, kind: str, more: str, holds: bool, words: str) -> None:
    assert side_by_side(place.campaign).holds is None
    place.config("optimized", more)
    campaign = edit.set_integration(place.campaign, kind, "as told")
    found = side_by_side(campaign)
    assert found.holds is holds
    assert words in found.text
    view = next(view for view in view_campaign(campaign) if view.key == "integrate")
    assert step_detail(campaign, view).installed == (found.text,)


def test_the_report_says_how_it_was_installed_and_what_was_moved(place: Place) -> None:
    campaign = edit.set_integration(place.campaign, "environment", "MY_KERNEL=1")
    move_aside(campaign, place.found())
    told = report_texts(campaign.directory)
    assert "## Integration" in told.md and "B is selected by envs.TRITON_CACHE_DIR" in told.md
    assert told.md.count("not yet") == 6
    bundle_of(told, place.root / "b.tar.gz")
    with tarfile.open(place.root / "b.tar.gz") as archive:
        assert "c/caches.json" in archive.getnames()


def test_moved_aside_once_and_back_as_it_was(place: Place) -> None:
    assert is_due(place.campaign)
    moved = move_aside(place.campaign, place.found())
    assert len(moved) == 6
    assert not is_due(place.campaign)
    assert place.found().there == ()
    inductor = place.root / "tmp" / "torchinductor_ada"
    aside = next(item.aside for item in moved if item.path == inductor)
    assert (aside / "built").read_text() == "old"
    assert "--restore" in aside.with_name(aside.name + ".note.txt").read_text()
    assert (place.home / ".cache" / "vllm" / "modelinfos" / "built").is_file()
    assert (place.root / "venv" / "aiter" / "jit" / "core.py").is_file()
    follow_schema(json.loads((place.campaign.directory / "caches.json").read_text()), "caches")

    filled(inductor, "new")  # what the experiment built is kept too
    place.config("optimized", ", SEED: 3")  # another integration: caches are due again
    assert is_due(place.campaign)
    back = restore(place.campaign)
    assert len(back) == 6
    assert (inductor / "built").read_text() == "old"
    newer = next(item.newer for item in back if item.path == inductor)
    assert newer is not None
    assert (newer / "built").read_text() == "new"
    assert not list(place.root.rglob("*.note.txt"))
    assert restore(place.campaign) == ()
    follow_schema(json.loads((place.campaign.directory / "caches.json").read_text()), "caches")


def test_of_two_moves_of_one_place_the_first_content_comes_back(place: Place) -> None:
    triton = place.home / ".triton" / "cache"
    move_aside(place.campaign, place.found())
    filled(triton, "between")
    move_aside(place.campaign, place.found())
    filled(triton, "last")
    restore(place.campaign)
    assert (triton / "built").read_text() == "old"
    assert sorted((path / "built").read_text() for path in triton.parent.glob("cache.newer*")) == ["between", "last"]


def test_an_end_at_any_rename_loses_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {
        path: (path / "built").read_text() if path.is_dir() else path.read_text() for path in by_path(place.found())
    }
    real = caches_aside._rename
    left = [3]

    def rename(path: Path, to: Path) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        real(path, to)

    monkeypatch.setattr(caches_aside, "_rename", rename)
    with pytest.raises(KeyboardInterrupt):
        move_aside(place.campaign, place.found())
    monkeypatch.undo()
    assert len(read_moved(place.campaign)) == 3
    restore(place.campaign)
    assert still_aside(read_moved(place.campaign)) == ()
    after = by_path(place.found())
    assert {path: (path / "built").read_text() if path.is_dir() else path.read_text() for path in after} == before


def test_what_cannot_be_renamed_does_not_hold_the_others_back(place: Place) -> None:
    found = place.found()
    shutil.rmtree(place.root / "own triton")
    with pytest.raises(MachineError, match="cannot be renamed"):
        move_aside(place.campaign, found)
    lost = next(item for item in read_moved(place.campaign) if item.aside.is_dir())
    shutil.rmtree(lost.aside)
    with pytest.raises(UserInputError, match="not there any more: 1 cache"):
        restore(place.campaign)
    assert still_aside(read_moved(place.campaign)) == (lost,)


@pytest.mark.parametrize(
    ("path", "aside"),
    [("../etc", "../etc.aside-1"), ("/a/b", "/c/b.aside-1"), ("/a/b", "/a/other"), ("/", "/.aside-1")],
)
def test_nothing_is_renamed_that_this_program_did_not_rename(place: Place, path: str, aside: str) -> None:
    record = place.campaign.directory / caches_aside.RECORD_NAME
    record.write_text(json.dumps({"moved": [{"tool": "x", "path": path, "aside": aside}]}))
    with pytest.raises(UserInputError, match="do not fit"):
        restore(place.campaign)
