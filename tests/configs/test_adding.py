"""Candidates added to a kernel config: the entry, the copy, what stays as it is, what is refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magpie_tui.basics.errors import MachineError, MagpieTuiError, UserInputError
from magpie_tui.configs import adding, syntax
from magpie_tui.configs.adding import Added, add_candidate, check_id
from magpie_tui.configs.adding_kinds import Draft, Kind
from magpie_tui.configs.adding_text import texts_with_entry
from magpie_tui.configs.kernel import load_kernel_config
from magpie_tui.configs.positions import ListNode, MapNode
from magpie_tui.configs.schema import plain_value
from magpie_tui.configs.syntax import parse_document

MERGED = """\
# Above.
kernels:
  - &base   # the baseline
    id: plain
    type: cpp
    source_files: [k.cpp]
    kernel_name: k
    compile_options: [-O1]
    arguments: [{name: o, dtype: float32, shape: [8], role: out}]
    config_files: [table.txt]
    env: {TABLE: ./table.txt}

  - {<<: *base, id: "two", change: "flag: -O3", compile_options: [-O3]}   # behind

# Below.
performance: {timeout_seconds: 60}
"""
PROGRAM = """\
kernels:
- id: base
  type: cpp
  source_files: [src/k.cpp]   # the kernel
  compile_command: g++ -O2 src/k.cpp -o build/k
  testcase_command: [./build/k, --source, src/k.cpp]
"""


def _write(directory: Path, text: str, name: str = "compare.yaml") -> Path:
    for file in ("k.cpp", "src/k.cpp", "table.txt"):
        (directory / file).parent.mkdir(exist_ok=True)
        (directory / file).write_text(f"// {file}\n", encoding="utf-8")
    path = directory / name
    path.write_bytes(text.encode("utf-8"))
    return path


def _add(path: Path, kind: Kind = "source", value: str | None = None, *, base: str = "0", id: str = "new") -> Added:
    return add_candidate(path, Draft(base, id, kind, value), caller_directory=path.parent)


def _files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def test_an_entry_is_written_as_its_neighbours_are_and_the_rest_stays(tmp_path: Path) -> None:
    path = _write(tmp_path, MERGED)
    added = _add(path)
    entry = "\n  - {<<: *base, id: new, change: 'source: k_new.cpp', source_files: [k_new.cpp]}\n"
    behind = "# behind\n"
    assert path.read_text(encoding="utf-8") == MERGED.replace(behind, behind + entry)
    assert (added.line, added.copy, added.notes) == (15, tmp_path / "k_new.cpp", ())
    assert (tmp_path / "k_new.cpp").read_bytes() == (tmp_path / "k.cpp").read_bytes()
    new = load_kernel_config(path, caller_directory=tmp_path).kernels[-1]
    assert (new.id, new.kernel_name, new.compile_options) == ("new", "k", ("-O1",))


def test_one_made_from_a_merged_entry_keeps_what_that_changes(tmp_path: Path) -> None:
    path = _write(tmp_path, MERGED)
    added = _add(path, "environment", "A=b c", base="two")
    new = load_kernel_config(path, caller_directory=tmp_path).kernels[-1]
    assert new.compile_options == ("-O3",) and new.env == {"TABLE": "./table.txt", "A": "b c"}
    assert added.change == "flag: -O3; environment: A=b c" and added.copy is None
    assert path.read_text(encoding="utf-8").count("arguments") == 1, "what is merged is not written twice"


def test_flags_and_tuning_files(tmp_path: Path) -> None:
    path = _write(tmp_path, MERGED)
    _add(path, "flag", "-O3 '-DT=a b'", id="flagged")
    added = _add(path, "file", id="tuned")
    flagged, tuned = load_kernel_config(path, caller_directory=tmp_path).kernels[-2:]
    assert flagged.compile_options == ("-O1", "-O3", "-DT=a b")
    assert tuned.config_files == (tmp_path / "table_tuned.txt",) == (added.copy,)
    assert tuned.env == {"TABLE": "./table_tuned.txt"} and added.notes == ()


def test_commands_build_and_test_the_copy(tmp_path: Path) -> None:
    path = _write(tmp_path, PROGRAM)
    _add(path)
    _add(path, "flag", "-O3", id="fast")
    copied, flagged = load_kernel_config(path, caller_directory=tmp_path).kernels[-2:]
    assert copied.source_files == (tmp_path / "src/k_new.cpp",)
    assert copied.compile_commands == (("g++", "-O2", "src/k_new.cpp", "-o", "build/k_new"),)
    assert copied.testcase_commands == (("./build/k_new", "--source", "src/k_new.cpp"),)
    assert flagged.compile_commands == (("g++", "-O2", "src/k.cpp", "-o", "build/k_fast", "-O3"),)
    assert flagged.testcase_commands[0][0] == "./build/k_fast"
    text = path.read_text(encoding="utf-8")
    assert text.startswith(PROGRAM) and "\n- id: new\n  change:" in text


def test_what_cannot_be_rewritten_is_said(tmp_path: Path) -> None:
    shell = PROGRAM.replace("g++ -O2 src/k.cpp -o build/k", "[bash, -c, 'cd src && ./build.sh']")
    path = _write(tmp_path, shell)
    notes = _add(path).notes
    assert "compile_command does not name k.cpp" in notes[0] and "no -o" in notes[1]
    with pytest.raises(UserInputError, match="runs bash"):
        _add(path, "flag", "-O3", id="other")


def test_a_config_of_one_kernel_gets_a_list(tmp_path: Path) -> None:
    text = "kernel:\n  id: one\n  type: pytorch\n  source_files: [k.cpp]\n"
    path = _write(tmp_path, text)
    _add(path)
    assert [entry.id for entry in load_kernel_config(path, caller_directory=tmp_path).kernels] == ["one", "new"]
    assert path.read_text(encoding="utf-8").startswith(text + "\nkernels:\n  - id: new\n")


def test_marks_line_ends_links_and_permissions_stay(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + MERGED.replace("\n", "\r\n").encode()
    path = _write(tmp_path, "", "real.yaml")
    path.write_bytes(data)
    path.chmod(0o640)
    link = tmp_path / "compare.yaml"
    link.symlink_to(path)
    _add(link)
    new = path.read_bytes()
    assert link.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert new.startswith(b"\xef\xbb\xbf# Above.\r\n") and new.count(b"\n") == new.count(b"\r\n")


@pytest.mark.parametrize(
    ("draft", "says"),
    [
        (Draft("0", "two"), "a kernel two already"),
        (Draft("0", "--"), "needs a letter"),
        (Draft("0", "7"), "reads like an index"),
        (Draft("nobody", "new"), "no kernel nobody"),
        (Draft("0", "new", "environment", "=x"), "NAME=VALUE"),
        (Draft("0", "new", "environment", "TABLE=./table.txt"), "there already"),
        (Draft("0", "new", "flag"), "which flag"),
        (Draft("0", "new", "flag", "'"), "no closing"),
        (Draft("0", "new", "file", "other.txt"), "not among its config_files"),
        (Draft("0", "taken"), "such a file already"),
    ],
)
def test_what_is_refused_changes_nothing(tmp_path: Path, draft: Draft, says: str) -> None:
    path = _write(tmp_path, MERGED)
    (tmp_path / "k_taken.cpp").write_text("mine\n", encoding="utf-8")
    before = _files(tmp_path)
    with pytest.raises(UserInputError, match=says):
        add_candidate(path, draft, caller_directory=tmp_path)
    assert path.read_text(encoding="utf-8") == MERGED and _files(tmp_path) == before
    assert (tmp_path / "k_taken.cpp").read_text(encoding="utf-8") == "mine\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kernels: [{id: a, type: pytorch, source_files: [k.cpp]}]\n", "by hand"),
        ("{kernel: {id: a, type: pytorch, source_files: [k.cpp]}}\n", "by hand"),
        ("kernels: [\n", "problem"),
        ("kernels:\n- {kernel_id: a, kernel_type: PYTORCH, source_file_path: [k.cpp]}\n", "snapshot"),
    ],
)
def test_forms_that_no_entry_can_be_added_to(tmp_path: Path, text: str, says: str) -> None:
    path = _write(tmp_path, text)
    before = _files(tmp_path)
    with pytest.raises(UserInputError, match=says):
        _add(path)
    assert path.read_text(encoding="utf-8") == text and _files(tmp_path) == before


def test_a_copy_does_not_outlive_a_config_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _write(tmp_path, MERGED)

    def full(path: Path, data: bytes) -> None:
        raise MachineError("cannot write: No space left on device", path=path)

    monkeypatch.setattr(adding, "rewrite_bytes", full)
    with pytest.raises(MachineError):
        _add(path)
    assert not (tmp_path / "k_new.cpp").exists() and path.read_text(encoding="utf-8") == MERGED


def test_a_config_that_may_not_be_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _write(tmp_path, MERGED)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(MachineError, match="may not be written"):
        _add(path)
    assert not (tmp_path / "k_new.cpp").exists()


def test_a_config_that_somebody_changes_meanwhile_is_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _write(tmp_path, MERGED)
    read = syntax.read_config

    def changed_after(path: Path) -> bytes:
        data = read(path)
        path.write_text("kernels: theirs\n", encoding="utf-8")
        return data

    monkeypatch.setattr(adding, "read_config", changed_after)
    with pytest.raises(UserInputError, match="changed meanwhile"):
        _add(path)
    assert path.read_text(encoding="utf-8") == "kernels: theirs\n" and not (tmp_path / "k_new.cpp").exists()


_SCALARS = st.one_of(st.text(max_size=12), st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False))


@settings(max_examples=40)
@given(values=st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), _SCALARS | st.tuples(_SCALARS, _SCALARS)))
def test_any_values_are_read_as_they_were_written(values: dict[str, object]) -> None:
    text = "kernels:\n  # one\n  - id: a\n    note: x # y\n"
    root = parse_document(text.encode(), Path("k.yaml")).root
    assert isinstance(root, MapNode)
    kernels = root.get("kernels")
    assert kernels is not None and isinstance(kernels.value, ListNode)
    base = kernels.value.items[0]
    assert isinstance(base, MapNode)
    wanted = {"id": "a", "note": "x", **values}
    new = next(texts_with_entry(text, root, base, wanted))  # type: ignore[arg-type]
    assert new.startswith(text)
    read = parse_document(new.encode(), Path("k.yaml"))
    assert read.root is not None and read.problems == ()
    assert plain_value(read.root) == {"kernels": ({"id": "a", "note": "x"}, wanted)}


def test_ids_that_nobody_could_type() -> None:
    for text in ("", " ", "a\tb", "x" * 81, "-O3", "0"):
        with pytest.raises(MagpieTuiError):
            check_id(text, [])
    check_id("KV tile 512, 4 waves", ["A"])
