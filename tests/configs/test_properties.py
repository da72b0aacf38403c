"""Whatever stands in a file: problems, never a traceback, and always the same ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.text import printable
from magpie_tui.configs.benchmark_fields import BENCHMARK_FIELDS
from magpie_tui.configs.check import CONFIG_KINDS, ConfigKind, check_document
from magpie_tui.configs.display import check_summary, checks_json
from magpie_tui.configs.effective import effective_of
from magpie_tui.configs.framework_fields import FRAMEWORK_FIELDS
from magpie_tui.configs.kernel_fields import ENTRY_FIELDS
from magpie_tui.configs.schema import plain_value
from magpie_tui.configs.syntax import parse_document

PATH = Path("random.yaml")
KEYS = sorted({item.key for fields in (ENTRY_FIELDS, BENCHMARK_FIELDS, FRAMEWORK_FIELDS) for item in fields})
WORDS = [
    *KEYS,
    "kernels",
    "benchmark",
    "TP",
    "CONC",
    "enabled",
    "no",
    "08",
    "1e3",
    "12:30",
    "~",
    "$HOME",
    "${X}",
    "a && b",
    "'",
    '"',
]
PIECES = st.sampled_from(
    [
        "- ",
        ": ",
        ":\n",
        "\n",
        "  ",
        "    ",
        "\t",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "&a ",
        "*a",
        "<<: ",
        "!!str ",
        "|\n",
        ">-\n",
        "#",
        "---\n",
        "\\",
        *WORDS,
    ]
)
YAMLISH = st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=60).map("".join)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(WORDS),
    st.dates(),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), inner, max_size=5),
    ),
    max_leaves=25,
)


def run(data: bytes, kind: ConfigKind | None) -> None:
    """Check bytes as a config, and what follows from a good one."""
    check = check_document(parse_document(data, PATH), environment={"HOME": "/home/me"}, kind=kind)
    for problem in check.problems:
        assert problem.line >= 1 and problem.column >= 1
        assert problem.text == printable(problem.text)
    checks_json([check])
    check_summary(check)
    if check.config is not None and not check.errors:
        effective_of(check, environment={})


@settings(max_examples=100, deadline=None)
@given(YAMLISH, st.sampled_from([None, *CONFIG_KINDS]))
def test_random_text_gives_problems_only(text: str, kind: ConfigKind | None) -> None:
    run(text.encode("utf-8", "surrogatepass"), kind)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_give_problems_only(data: bytes) -> None:
    run(data, None)


@settings(max_examples=60, deadline=None)
@given(TREES, st.sampled_from(CONFIG_KINDS))
def test_any_tree_under_any_key_gives_problems_only(tree: object, kind: ConfigKind) -> None:
    top = {"kernel": {"kernels": [tree]}, "benchmark": {"benchmark": tree}, "framework": {"performance": tree}}[kind]
    run(yaml.safe_dump(top, allow_unicode=True).encode("utf-8", "surrogatepass"), kind)


@settings(max_examples=40, deadline=None)
@given(
    st.recursive(
        st.one_of(st.booleans(), st.integers(-(10**9), 10**9), st.text(max_size=10), st.none()),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
        max_leaves=12,
    )
)
def test_values_are_those_of_the_usual_loader(tree: object) -> None:
    text = yaml.safe_dump(tree, allow_unicode=False)
    document = parse_document(text.encode(), PATH)
    assert document.root is not None
    if not document.problems:
        assert _lists(plain_value(document.root)) == yaml.safe_load(text)


def _lists(value: object) -> object:
    if isinstance(value, tuple):
        return [_lists(item) for item in value]
    return {key: _lists(item) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("kind", CONFIG_KINDS)
def test_loading_random_files_raises_input_errors_only(kind: ConfigKind, tmp_path: Path) -> None:
    from magpie_tui.configs.benchmark import load_benchmark_config
    from magpie_tui.configs.framework import load_framework_config
    from magpie_tui.configs.kernel import load_kernel_config

    loaders: dict[ConfigKind, Callable[[Path], object]] = {
        "kernel": load_kernel_config,
        "benchmark": load_benchmark_config,
        "framework": load_framework_config,
    }
    path = tmp_path / "x.yaml"
    for text in (
        "[",
        "a: [",
        "\x00",
        "kernels: [[[",
        "benchmark: *x",
        "- - - -",
        "%YAML 9.9\n---\n",
        "? {}",
        "&a *a",
        "a: !!float x",
    ):
        path.write_text(text)
        with pytest.raises(UserInputError):
            loaders[kind](path)
