"""YAML as YAML: places, doubled keys, tabs, aliases, and files that are no configs."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.configs.check import check_document
from magpie_tui.configs.positions import MAX_PROBLEMS, Document, MapNode, Scalar, errors_of
from magpie_tui.configs.scalars import describe
from magpie_tui.configs.schema import plain_value
from magpie_tui.configs.syntax import MAX_BYTES, load_document, parse_document


def parse(text: str | bytes) -> Document:
    return parse_document(text.encode() if isinstance(text, str) else text, Path("a.yaml"))


def codes(document: Document) -> list[tuple[str, int, int]]:
    return [(problem.code, problem.line, problem.column) for problem in document.problems]


def values(document: Document) -> object:
    assert document.root is not None
    return plain_value(document.root)


def test_values_and_places() -> None:
    document = parse("a: 1\nb:\n  - x\n  - {c: 2.5}\n")
    assert values(document) == {"a": 1, "b": ("x", {"c": 2.5})}
    assert isinstance(document.root, MapNode)
    entry = document.root.get("b")
    assert entry is not None
    assert (entry.key_node.line, entry.key_node.column) == (2, 1)
    assert (entry.value.line, entry.value.column) == (3, 3)
    assert document.problems == ()


def test_a_doubled_key_names_both_lines() -> None:
    document = parse("m:\n  CONC: 32\n  x: 1\n  CONC: 64\n")
    assert codes(document) == [("duplicate-key", 4, 3)]
    assert "in line 2 and in line 4" in document.problems[0].message
    assert values(document) == {"m": {"CONC": 64, "x": 1}}


def test_tabs_are_reported_and_the_rest_is_read() -> None:
    document = parse("a:\n\tb: 1\n\tc: 2\n\tb: 3\nd: 4\n")
    assert codes(document) == [
        ("tab-indentation", 2, 1),
        ("tab-indentation", 3, 1),
        ("tab-indentation", 4, 1),
        ("duplicate-key", 4, 2),
    ]
    assert values(document) == {"a": {"b": 3, "c": 2}, "d": 4}


def test_a_tab_after_blanks_has_its_own_column() -> None:
    document = parse("a:\n  b: 1\n  \tc: 2\n")
    assert ("tab-indentation", 3, 3) in codes(document)


def test_a_tab_after_folded_text_does_not_become_part_of_it() -> None:
    document = parse("a:\n  text: >-\n    one two\n\tb: 2\n")
    assert ("tab-indentation", 4, 1) in codes(document)
    assert values(document) == {"a": {"text": "one two", "b": 2}}


def test_tabs_inside_values_and_blocks_are_no_problem() -> None:
    document = parse("a: 'x\ty'\nb: |\n  one\n  \ttwo\nc: 1 # comment\there\n")
    assert document.problems == ()
    assert values(document) == {"a": "x\ty", "b": "one\n\ttwo\n", "c": 1}


def test_a_tab_elsewhere_is_told_apart() -> None:
    document = parse("a: 1\t# comment\n")
    assert codes(document) == [("yaml-syntax", 1, 5)]
    assert document.problems[0].hint is not None
    assert "tab between" in document.problems[0].hint


def test_merges_are_effective_and_own_keys_win() -> None:
    document = parse("base: &base {ISL: 1024, OSL: 512}\nrun:\n  <<: *base\n  ISL: 2048\n")
    assert document.problems == ()
    assert values(document) == {"base": {"ISL": 1024, "OSL": 512}, "run": {"ISL": 2048, "OSL": 512}}
    assert isinstance(document.root, MapNode)
    base, run = document.root.entries
    assert base.value.aliased
    assert isinstance(run.value, MapNode)
    assert [entry.merged for entry in run.value.entries if entry.key == "OSL"] == [True]


def test_a_key_that_only_holds_an_anchor_is_no_unknown_key() -> None:
    text = (
        "common: &common {TP: 1, CONC: 1}\n"
        "benchmark:\n  sizes: &sizes {ISL: 8, OSL: 8}\n  unused: &unused {ISL: 9}\n  model: a/b\n"
        "  envs: {<<: [*common, *sizes], ISL: 16}\n"
    )
    check = check_document(parse(text))
    assert [problem.message for problem in check.errors] == ["unknown key unused"]
    assert isinstance(check.config, BenchmarkConfig)
    assert check.config.envs == {"TP": "1", "CONC": "1", "ISL": "16", "OSL": "8"}


def test_of_several_merges_the_first_wins() -> None:
    document = parse("a: &a {x: 1}\nb: &b {x: 2, y: 3}\nc: {<<: [*a, *b]}\n")
    assert values(document) == {"a": {"x": 1}, "b": {"x": 2, "y": 3}, "c": {"x": 1, "y": 3}}


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("a: *b\n", "unknown-alias", 1, 4),
        ("a: &a [*a]\n", "recursive-alias", 1, 8),
        ("a: &x 1\nb: &x 2\n", "duplicate-anchor", 2, 4),
        ("a: {<<: 3}\n", "bad-merge", 1, 9),
        ("? [1]\n: 2\n", "bad-key", 1, 3),
        ("on: 1\n", "bad-key", 1, 1),
        ("a: !!python/object:os.system {}\n", "unknown-tag", 1, 4),
        ("a: !mine 3\n", "unknown-tag", 1, 4),
        ("a: 2024-13-45\n", "bad-value", 1, 4),
        ("a: 1\n---\nb: 2\n", "several-documents", 2, 1),
        ("a: [1, 2\nb: 3\n", "yaml-syntax", 2, 2),
        ('a: "x\nb: 3\n', "yaml-syntax", 1, 4),
        ("a: b: c\n", "yaml-syntax", 1, 5),
        ("a: @x\n", "yaml-syntax", 1, 4),
    ],
)
def test_problems_of_yaml(text: str, code: str, line: int, column: int) -> None:
    assert (code, line, column) in codes(parse(text))


def test_several_syntax_errors_are_found_in_one_go() -> None:
    document = parse("a: b: c\nb: 1\nc:\n  - @x\nd: 2\nd: 3\n")
    assert [item[:2] for item in codes(document)] == [("yaml-syntax", 1), ("yaml-syntax", 4), ("duplicate-key", 6)]
    assert document.recovered


def test_neighbouring_syntax_errors_are_told_apart() -> None:
    assert [item[1] for item in codes(parse("a: b: c\nd: e: f\ng: 1\n"))] == [1, 2]


def test_a_file_full_of_problems_is_cut_short() -> None:
    document = parse("a:\n" + "\tb: 1\n" * 5_000)
    assert MAX_PROBLEMS < len(document.problems) <= 2 * (MAX_PROBLEMS + 1)
    assert "too-many-problems" in {problem.code for problem in document.problems}


def test_recovery_leaves_out_what_is_indented_below_the_damage() -> None:
    document = parse("a: b: c\n  d: 1\n  d: 2\ne: 3\n")
    assert values(document) == {"e": 3}
    assert [item[0] for item in codes(document)] == ["yaml-syntax"]


def test_depth_and_aliases_are_bounded() -> None:
    assert codes(parse("[" * 100_000)) == [("too-deep", 1, 41)]
    assert parse("- " * 5_000 + "x\n").root is None
    bomb = "b0: &b0 [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"b{level}: &b{level} [{','.join([f'*b{level - 1}'] * 10)}]\n" for level in range(1, 9)
    )
    assert [item[0] for item in codes(parse(bomb))] == ["too-many-values"]


@pytest.mark.parametrize("data", [b"", b"# only a comment\n", b"---\n...\n", b"\xef\xbb\xbf"])
def test_empty_files_have_no_root_and_no_syntax_problem(data: bytes) -> None:
    document = parse(data)
    assert (document.root, document.problems) == (None, ()) or isinstance(document.root, Scalar)


def test_encodings() -> None:
    assert codes(parse(b"a: 1\nb: x\xff\n")) == [("not-utf8", 2, 5)]
    assert codes(parse(b"\x7fELF\x00\x00")) == [("binary-file", 1, 1)]
    assert codes(parse(b"a: x\x1b[31m\n")) == [("control-character", 1, 5)]
    assert values(parse("a: \u00e9\n".encode("utf-16"))) == {"a": "\u00e9"}
    assert values(parse(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")) == {"a": 1, "b": 2}
    assert codes(parse(b"a: 1\n" * (MAX_BYTES // 4))) == [("too-large", 1, 1)]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match="no such config"):
        load_document(tmp_path / "none.yaml")
    with pytest.raises(UserInputError, match="directory"):
        load_document(tmp_path)
    with pytest.raises(UserInputError):
        load_document(tmp_path / ("x" * 5000))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no", "false (YAML reads no as false)"),
        ("true", "true"),
        ("08", "leading zero"),
        ("010", "whole number 8 (YAML reads 010 as an octal number)"),
        ("1e3", "a number with an exponent needs a dot, 1.0e+3"),
        ("1.5e3", "the exponent needs a sign, 1.5e+3"),
        ("12:30", "whole number 750 (YAML reads 12:30 as a base-60 number)"),
        ("2024-01-02", "date 2024-01-02"),
        ("eight", "text 'eight'"),
        ("'8'", "text '8' in quotes"),
        ("~", "nothing (YAML reads ~ as null)"),
        ("", "nothing (null)"),
        ("[1]", "a list"),
        ("{a: 1}", "a mapping"),
        ("7", "whole number 7"),
        ("0.5", "number 0.5"),
    ],
)
def test_what_yaml_made_of_a_word(text: str, words: str) -> None:
    document = parse(f"a: {text}\n")
    assert isinstance(document.root, MapNode)
    assert words in describe(document.root.entries[0].value)


def test_a_number_longer_than_python_prints_is_no_crash() -> None:
    document = parse(f"a: {'9' * 6000}\n")
    assert errors_of(document.problems) or isinstance(document.root, MapNode)
