"""Command strings: split by shell rules, once, with everything reported that only a shell could do."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.configs.commands import check_tokens, shell_script_start, split_command
from magpie_tui.configs.variables import expand


def codes(text: str) -> list[str]:
    return [fault.code for fault in split_command(text).faults]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("hipcc -O3 a.hip -o a", ("hipcc", "-O3", "a.hip", "-o", "a")),
        (
            """x --name "my model" --j '{"a": "b c", "n": [1, 2]}'""",
            ("x", "--name", "my model", "--j", '{"a": "b c", "n": [1, 2]}'),
        ),
        ("a '' b", ("a", "", "b")),
        (r"a b\ c \"d", ("a", "b c", '"d')),
        ("a \\\n  b", ("a", "b")),
        ('a "x\\"y\\z"', ("a", 'x"y\\z')),
        ("  ", ()),
        ("a '&&' \"|\"", ("a", "&&", "|")),
    ],
)
def test_splitting(text: str, tokens: tuple[str, ...]) -> None:
    split = split_command(text)
    assert (split.tokens, split.faults) == (tokens, ())


@pytest.mark.parametrize(
    ("text", "code", "offset"),
    [
        ("make && ./t", "shell-operator", 5),
        ("a | b", "shell-operator", 2),
        ("a > out", "shell-operator", 2),
        ("a 2>&1", "shell-operator", 3),
        ("a;b", "shell-operator", 1),
        ("a $(date)", "shell-operator", 2),
        ("a `date`", "shell-operator", 2),
        ("a\nb", "shell-operator", 1),
        ("a 'b", "unbalanced-quote", 2),
        ('a "b', "unbalanced-quote", 2),
        ("a b \\", "trailing-backslash", 4),
        ("a \\ b", "trailing-backslash", 2),
        ("cd x", "shell-builtin", 0),
        ("A=1 ./t", "shell-assignment", 0),
        ("a *.hip", "glob", 2),
        ("a ~/x", "tilde", 2),
    ],
)
def test_what_needs_a_shell_is_reported_at_its_place(text: str, code: str, offset: int) -> None:
    assert (code, offset) in [(fault.code, fault.offset) for fault in split_command(text).faults]


@given(st.text(alphabet="ab '\"\\-=/.{}[]:,\t", max_size=40))
def test_agrees_with_the_standard_library(text: str) -> None:
    split = split_command(text)
    try:
        expected = shlex.split(text)
    except ValueError:
        assert split.faults
        return
    if not [fault for fault in split.faults if fault.code in ("trailing-backslash", "unbalanced-quote")]:
        # In double quotes shlex keeps a backslash before ` and $, which do not occur here.
        assert list(split.tokens) == expected


@given(st.lists(st.text(min_size=1, max_size=12).filter(lambda item: "\0" not in item), min_size=1, max_size=6))
def test_a_quoted_vector_survives(tokens: list[str]) -> None:
    split = split_command(shlex.join(["program", *tokens]))
    assert split.tokens == ("program", *tokens)
    assert not split.faults


@given(st.text(max_size=60))
def test_never_raises(text: str) -> None:
    split = split_command(text)
    assert all(0 <= fault.offset <= len(text) for fault in split.faults)
    assert len(split.tokens) == len(split.offsets)


def test_lists_are_passed_on_with_warnings() -> None:
    assert [fault.code for fault in check_tokens(("make", "&&", "./t"))] == ["operator-argument"]
    assert [fault.code for fault in check_tokens(("hipcc -O3 a.hip",))] == ["program-with-spaces"]
    assert [fault.code for fault in check_tokens(("", "a"))] == ["empty-program"]
    assert check_tokens(("bash", "-lc", "make && ./t")) == ()
    assert check_tokens(("bash", "-c", "x", "&&")) == ()


def test_shell_scripts_are_recognised() -> None:
    assert shell_script_start(("bash", "-lc", "echo $x")) == 2
    assert shell_script_start(("env", "A=1", "/bin/sh", "-e", "-c", "echo $x")) == 5
    assert shell_script_start(("bash", "run.sh", "$x")) is None
    assert shell_script_start(("./t", "-c", "$x")) is None


def test_variables() -> None:
    expansion = expand("$A/${B}/$C/${D:-x}/$1/$$/~", {"A": "a", "B": "$A"})
    assert expansion.text == "a/$A/$C/${D:-x}/$1/$$/~"
    assert (expansion.used, expansion.unset, expansion.malformed) == (("A", "B"), ("C",), ("${D:-x}",))
