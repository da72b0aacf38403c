"""Options declared once: parsing, formatting, command lines, JSON schema."""

from __future__ import annotations

import shlex

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.options import (
    OptionSpec,
    OptionValue,
    check_values,
    command_words,
    format_option,
    json_schema,
    parse_option,
    read_words,
    summary,
)

SPECS = (
    OptionSpec("kernels", (), "paths", "Kernel sources.", metavar="KERNEL"),
    OptionSpec("baseline", ("--baseline",), "integer", "Index.", minimum=0, required=True),
    OptionSpec("tolerance", ("--tolerance",), "number", "Allowed error.", default=1e-3, minimum=0, maximum=1),
    OptionSpec("environment", ("--environment", "-e"), "choice", "Where.", default="local", choices=("local", "ray")),
    OptionSpec("categories", ("--categories",), "texts", "Only these."),
    OptionSpec("quick", ("--quick",), "flag", "A first look.", default=False),
    OptionSpec("gate", ("--gate",), "flag", "Check first.", default=True, negative_flag="--no-gate"),
    OptionSpec("label", ("--label",), "text", "A name."),
)
BY_NAME = {spec.name: spec for spec in SPECS}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("kernels", "a.hip 'b c.hip'", ("a.hip", "b c.hip")),
        ("baseline", " 2 ", 2),
        ("tolerance", "0.5", 0.5),
        ("tolerance", "", 1e-3),
        ("environment", "ray", "ray"),
        ("quick", "yes", True),
        ("gate", "off", False),
        ("label", "  ", None),
    ],
)
def test_fields_are_parsed(name: str, text: str, value: OptionValue) -> None:
    assert parse_option(BY_NAME[name], text) == value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("baseline", "", "--baseline is needed"),
        ("baseline", "x", "--baseline: 'x' is not a whole number of at least 0"),
        ("baseline", "-1", "--baseline: -1 is not a whole number of at least 0"),
        ("baseline", "1.5", "'1.5' is not a whole number"),
        ("tolerance", "2", "--tolerance: 2 is not a number from 0 to 1"),
        ("tolerance", "nan", "nan is not a number from 0 to 1"),
        ("environment", "rya", "'rya' is not a choice"),
        ("kernels", "'open", "KERNEL: no closing quotation"),
        ("quick", "maybe", "neither yes nor no"),
    ],
)
def test_wrong_fields_are_told(name: str, text: str, message: str) -> None:
    with pytest.raises(UserInputError) as caught:
        parse_option(BY_NAME[name], text)
    assert message in caught.value.message and caught.value.key == name


def test_choice_names_the_nearest() -> None:
    with pytest.raises(UserInputError) as caught:
        parse_option(BY_NAME["environment"], "loca")
    assert caught.value.hint == "did you mean local?"


def test_command_line_leaves_defaults_out() -> None:
    values: dict[str, OptionValue] = {
        "kernels": ("a b.hip",),
        "baseline": 0,
        "tolerance": 1e-3,
        "environment": "ray",
        "quick": True,
        "gate": False,
        "categories": ("x", "y"),
    }
    words = command_words(SPECS, values, ("magpie-tui", "compare"))
    assert shlex.join(words) == (
        "magpie-tui compare 'a b.hip' --baseline 0 --environment ray --categories x y --quick --no-gate"
    )


def test_argument_with_a_dash_is_kept_apart() -> None:
    assert command_words(SPECS, {"kernels": ("-x.hip",), "quick": True}, ("c",)) == ("c", "--quick", "--", "-x.hip")


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("'a b.hip' --baseline 2 --categories x y --quick", {"kernels": ("a b.hip",), "baseline": 2}),
        ("--categories x --quick --categories y --baseline=2 -- 'a b.hip'", {"kernels": ("a b.hip",), "baseline": 2}),
        ("-eray --quick --no-gate --categories x y", {"environment": "ray", "gate": False}),
        ("--categories x y --environment ray --quick --gate", {"environment": "ray", "gate": True}),
    ],
)
def test_words_are_read_back(words: str, values: dict[str, OptionValue]) -> None:
    read = read_words(SPECS, shlex.split(words))
    assert read == {**values, "categories": ("x", "y"), "quick": True}
    assert read_words(SPECS, command_words(SPECS, read, ())) == {
        name: value for name, value in read.items() if value != BY_NAME[name].default
    }


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--quik"], "no option --quik"),
        (["--baseline"], "lacks its value"),
        (["--baseline", "x"], "not a whole number"),
        (["-x"], "no option -x"),
    ],
)
def test_words_that_mean_nothing_are_refused(words: list[str], says: str) -> None:
    with pytest.raises(UserInputError, match=says):
        read_words(SPECS, words)
    with pytest.raises(UserInputError, match="is no option"):
        read_words([BY_NAME["quick"]], ["stray"])


def test_unknown_option_is_refused() -> None:
    with pytest.raises(UserInputError, match="there is no option 'speed'"):
        command_words(SPECS, {"speed": 1}, ())


def test_all_problems_of_a_form_at_once() -> None:
    values, problems = check_values(SPECS, {"baseline": "x", "tolerance": "9", "label": "ok"})
    assert values["label"] == "ok" and set(problems) == {"baseline", "tolerance"}
    assert summary(problems).startswith("2 problems: --baseline")
    assert summary({}) == ""


def test_schema_accepts_what_the_form_gives() -> None:
    schema = json_schema(SPECS, "compare")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"baseline": 0, "kernels": ["a"], "quick": True, "tolerance": 0.5}, schema)
    for wrong in ({}, {"baseline": -1}, {"baseline": 0, "environment": "moon"}, {"baseline": 0, "speed": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_impossible_declarations_are_refused() -> None:
    with pytest.raises(ValueError, match="needs choices"):
        OptionSpec("a", ("--a",), "choice", "x")
    with pytest.raises(ValueError, match="switch it off"):
        OptionSpec("a", ("--a",), "flag", "x", default=True)


@given(st.lists(st.text(min_size=1).filter(lambda text: text.strip() == text), max_size=4))
def test_several_values_survive_a_form_field(texts: list[str]) -> None:
    spec = BY_NAME["categories"]
    assert parse_option(spec, format_option(spec, tuple(texts))) == (tuple(texts) or None)


@given(st.integers(0, 10**9), st.floats(0, 1, allow_nan=False), st.booleans())
def test_values_survive_a_form_field(baseline: int, tolerance: float, quick: bool) -> None:
    values: dict[str, OptionValue] = {"baseline": baseline, "tolerance": tolerance, "quick": quick}
    for name, value in values.items():
        assert parse_option(BY_NAME[name], format_option(BY_NAME[name], value)) == value
