"""The test behind a source: which file uses the kernel, how it is run, which function in it is the reference."""

from __future__ import annotations

import re
from collections.abc import Sequence

from magpie_tui.sources.index import SourceIndex
from magpie_tui.sources.model import TestMatch
from magpie_tui.sources.repositories import interpreter_of

_BASELINES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("eager_fn", re.compile(r"run_torch\w*")),
    ("eager_fn", re.compile(r"ref_\w+|\w+_ref|reference\w*|ref\w*_impl")),
    ("eager_fn", re.compile(r"torch_\w+|\w+_torch|pytorch_\w+")),
    ("eager_fn", re.compile(r"naive_\w+|\w+_naive|native_\w+|\w+_native")),
    ("perftest_wrapper", re.compile(r"check_\w*allclose\w*")),
    ("inline_in_test", re.compile(r"test_\w+")),
)
_EMPTY_WORDS = frozenset({"test", "tests", "kernel", "kernels", "triton", "ops", "op", "fwd", "d", "the", "of"})
_COMMON_STEMS = frozenset({"kernel", "kernels", "utils", "common", "ops", "main", "__init__", "init"})
_MOST_TESTS = 40
"""A word that more tests mention than this says nothing about which one tests the kernel."""


def find_test(index: SourceIndex, symbols: Sequence[str], stem: str | None) -> TestMatch | None:
    """Return the test that fits best.

    Args:
        index: Of the repository in which the source lies.
        symbols: Names that a test would use: the kernel, functions around it.
        stem: Name of the source file without its suffix.
    """
    scores: dict[str, tuple[float, str]] = {}
    for symbol in symbols:
        paths = index.tests_with(symbol)
        if 0 < len(paths) <= _MOST_TESTS:
            for path in paths:
                _add(scores, path, 3.0 / len(paths) ** 0.5, f"mentions {symbol}")
    if stem and stem not in _COMMON_STEMS:
        for path in index.tests_with(stem):
            _add(scores, path, 1.0, f"mentions {stem}")
    wanted = _words(" ".join((*symbols[:1], stem or "")))
    for path in scores:
        name = path.rpartition("/")[2].removesuffix(".py")
        words = _words(name)
        shared = words & wanted
        if shared:
            _add(scores, path, 3.0 * len(shared) / len(words | wanted), f"is named after {' '.join(sorted(shared))}")
    if not scores:
        return None
    best = max(sorted(scores), key=lambda path: scores[path][0])
    functions = index.functions_of(best)
    baseline, kind = _baseline(functions)
    repository = index.repository
    command = (interpreter_of(repository), "-m", "pytest", str(repository.root / best), "-v")
    return TestMatch(repository, best, command, scores[best][1], baseline, kind)


def _words(text: str) -> frozenset[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower()
    return frozenset(re.findall(r"[a-z]+", spaced)) - _EMPTY_WORDS


def _add(scores: dict[str, tuple[float, str]], path: str, score: float, reason: str) -> None:
    before, reasons = scores.get(path, (0.0, ""))
    name = path.rpartition("/")[2]
    bonus = 1.0 if name.startswith("test_") and not reasons else 0.0
    scores[path] = (before + score + bonus, f"{reasons}; {reason}" if reasons else reason)


def _baseline(functions: Sequence[str]) -> tuple[str | None, str]:
    for kind, pattern in _BASELINES:
        for function in functions:
            if pattern.fullmatch(function) and not (kind == "eager_fn" and function.startswith("test_")):
                return function, kind
    return None, "none"
