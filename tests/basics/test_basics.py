"""The ground floor: printable text, strict JSON, atomic files, timestamped directories, units."""

from __future__ import annotations

import json
import math
import threading
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.basics import units
from magpie_tui.basics.errors import ExitCode, MachineError, UserInputError
from magpie_tui.basics.files import atomic_writer, create_timestamped_directory, write_json, write_text
from magpie_tui.basics.json_strict import dumps, loads, loads_tolerant
from magpie_tui.basics.paths import cache_directory, state_directory
from magpie_tui.basics.text import nearest, printable


@given(st.text())
def test_printable_text_never_steers_a_terminal(text: str) -> None:
    shown = printable(text)
    assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in shown)
    assert not any(unicodedata.bidirectional(c) in ("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI") for c in shown)


def test_printable_keeps_what_is_harmless() -> None:
    assert printable("gemm[m=16] µs 漢字 x[/b]") == "gemm[m=16] µs 漢字 x[/b]"
    assert printable("a\x1b[31mb\n") == "a\\x1b[31mb\\x0a"
    assert printable("a\nb\x1b", keep="\n") == "a\nb\\x1b"
    assert printable("\u202egnp.exe") == "\\u202egnp.exe"


def test_nearest_known_word() -> None:
    assert nearest("tracelense", ["tracelens", "gpu_monitor"]) == "tracelens"
    assert nearest("source-files", ["source_files"]) == "source_files"
    assert nearest("zzz", ["tracelens"]) is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [1.0, {"a": math.nan}]])
def test_strict_json_refuses_what_is_no_number(value: object) -> None:
    with pytest.raises(ValueError):
        dumps(value)


def test_strict_json_reads_strictly_and_tolerantly() -> None:
    with pytest.raises(ValueError):
        loads('{"a": NaN}')
    assert loads_tolerant('{"a": NaN, "b": -Infinity, "c": 1}') == {"a": None, "b": None, "c": 1}
    assert json.loads(dumps({"path": Path("/x"), "code": ExitCode.MACHINE, "rows": (1, 2.5)})) == {
        "path": "/x",
        "code": 3,
        "rows": [1, 2.5],
    }


def test_json_holds_nothing_that_steers_a_terminal_and_always_has_bytes(tmp_path: Path) -> None:
    value = {"k\x1b[31m": "\u202e\x9b\x7f\ud800 é 核"}
    for indent in (None, 2):
        text = dumps(value, indent=indent)
        assert printable(text, keep="\n") == text
        assert loads(text) == value
    write_text(tmp_path / "any", "\ud800 \udce9")  # the first has no form in UTF-8


def test_json_nested_too_deeply_is_no_accident() -> None:
    for parse in (loads, loads_tolerant):
        with pytest.raises(ValueError, match="deeply"):
            parse("[" * 100_000)


def test_numpy_scalars_become_plain_numbers() -> None:
    import numpy

    assert dumps([numpy.float32(0.5), numpy.int64(3), numpy.bool_(True)], indent=None) == "[0.5, 3, true]"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    write_json(target, {"a": 1})
    with pytest.raises(ZeroDivisionError), atomic_writer(target) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert json.loads(target.read_text()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [target]


def test_writing_where_nothing_can_be_written_is_the_machines_fault(tmp_path: Path) -> None:
    with pytest.raises(MachineError) as caught:
        write_text(tmp_path / "missing" / "file.txt", "x")
    assert caught.value.exit_code == 3
    assert caught.value.hint


def test_a_file_in_the_way_is_the_users_fault(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(UserInputError):
        create_timestamped_directory(tmp_path / "results", lambda stamp: f"compare_{stamp}")


def test_directories_made_in_the_same_second_are_distinct(tmp_path: Path) -> None:
    made: list[Path] = []

    def create() -> None:
        made.append(create_timestamped_directory(tmp_path, lambda stamp: f"compare_{stamp}", clock=lambda: 1e9))

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8
    assert all(path.is_dir() and path.is_absolute() for path in made)


def test_directories_of_the_xdg_specification() -> None:
    assert cache_directory({"HOME": "/h"}) == Path("/h/.cache/magpie-tui")
    assert cache_directory({"HOME": "/h", "XDG_CACHE_HOME": "/c"}) == Path("/c/magpie-tui")
    assert cache_directory({"HOME": "/h", "XDG_CACHE_HOME": "relative"}) == Path("/h/.cache/magpie-tui")
    assert state_directory({"HOME": "/h", "MAGPIE_TUI_STATE_DIR": "/s"}) == Path("/s")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (math.nan, "-"),
        (0.0000000591, "59.1 ns"),
        (0.0000591, "59.1 µs"),
        (0.00977, "9.77 ms"),
        (3.0, "3.00 s"),
        (185, "3 min 05 s"),
        (10920, "3 h 02 min"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert units.format_seconds(seconds) == text


def test_other_units() -> None:
    assert units.format_bytes(1.8e12) == "1.8 TB"
    assert units.format_bytes(512) == "512 B"
    assert units.format_bytes(None) == "-"
    assert units.format_clock(470) == "7:50"
    assert units.format_ratio_percent(1.031) == "+3.1 %"
    assert units.format_ratio_percent(None) == "-"


def test_error_says_where() -> None:
    error = UserInputError("unknown key", path="a.yaml", line=3, column=5, hint="remove it")
    assert str(error) == "a.yaml:3:5: unknown key"
