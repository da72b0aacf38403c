"""``samples.jsonl`` read tolerantly, and sources compared as they are now."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.workspaces.samples import SAMPLES_NAME, read_samples
from magpie_tui.workspaces.source_difference import compare_sources, sources_of
from tests.tui.results_world import write_samples


def test_windows_are_times_a_call(tmp_path: Path) -> None:
    write_samples(tmp_path, blocks=2, windows=3)
    found = read_samples(tmp_path)
    assert found.reason is None and found.damaged_lines == 1
    of_a = found.kernels["A"]
    assert len(of_a.used_us) == 6 and of_a.warm_up == 2
    assert of_a.blocks == (0, 0, 0, 1, 1, 1)
    assert 48.0 <= min(of_a.used_us) <= max(of_a.used_us) < 49.0
    assert list(of_a.started_s) == sorted(of_a.started_s)


def test_a_missing_file_is_a_reason(tmp_path: Path) -> None:
    assert "there is no samples.jsonl" in str(read_samples(tmp_path).reason)
    (tmp_path / SAMPLES_NAME).mkdir()
    assert "cannot be read" in str(read_samples(tmp_path).reason)


@given(data=st.binary(max_size=400))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / SAMPLES_NAME).write_bytes(data)
        assert read_samples(Path(name)).reason is not None


def test_sources_are_compared_line_by_line(tmp_path: Path) -> None:
    old, new = tmp_path / "a.hip", tmp_path / "b.hip"
    old.write_text("one\ntwo\n", encoding="utf-8")
    new.write_text("one\nthree\n", encoding="utf-8")
    found = compare_sources([old], [new])
    assert (found.added, found.removed, found.notes) == (1, 1, ())
    assert "-two" in found.lines and "+three" in found.lines
    changed = compare_sources(
        [old], [new], {str(old): "0" * 64, str(new): hashlib.sha256(new.read_bytes()).hexdigest()}
    )
    assert changed.notes == (f"{old}: changed since the run; shown as it is now",)


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    here, binary = tmp_path / "a.hip", tmp_path / "b.so"
    here.write_text("x\n", encoding="utf-8")
    binary.write_bytes(b"\0elf")
    gone = tmp_path / "gone.hip"
    assert compare_sources([here], [gone]).notes == (f"{gone}: gone since the run",)
    assert "a binary file of 4 B" in compare_sources([here], [binary]).notes[0]
    assert "both use this file" in compare_sources([here], [here]).notes[0]
    assert "does not say which sources" in compare_sources([here], []).notes[0]
    assert compare_sources([], [here]).added == 1


def test_sources_come_from_config_or_record() -> None:
    config = {"kernels": [{"kernel_id": "a", "source_file_path": ["x.hip"], "working_dir": "/w"}]}
    assert sources_of("a", config) == (Path("/w/x.hip"),)
    assert sources_of("a", None, {"effective_config": config}) == (Path("/w/x.hip"),)
    assert sources_of("b", config) == ()
