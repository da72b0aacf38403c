"""A kernel's name → its source, with a confidence that has reasons, and the places that were not taken."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from magpie_tui.sources.facts import facts_of
from magpie_tui.sources.families import FAMILIES
from magpie_tui.sources.index import SourceIndex
from magpie_tui.sources.known_places import known_place
from magpie_tui.sources.model import Definition, KernelFacts, Loser, Repository, SourceMatch, SourceReport
from magpie_tui.sources.repositories import public_url
from magpie_tui.sources.tests_of import find_test
from magpie_tui.sources.triton_kin import triton_kin

_WITHOUT_SOURCE = {
    "annotation": "a range that the program annotated, no kernel",
    "copy": "a copy of the runtime or the copy engine: fewer or larger copies are the candidate",
    "fill": "a fill of the runtime: there is no source to edit",
    "cublas": "cuBLAS is closed: the shape, the layout and the algorithm choice are the candidates",
    "cudnn": "cuDNN is closed: the algorithm choice is the candidate",
    "nccl": "a collective: its algorithm and protocol are chosen by NCCL's or RCCL's settings",
}
_MOST_LOSERS = 8
_SHORTEST_PREFIX = 8
_COMMON_WORDS = frozenset(
    {
        "kernel",
        "fwd",
        "bwd",
        "forward",
        "backward",
        "attn",
        "add",
        "mul",
        "copy",
        "fill",
        "reduce",
        "softmax",
        "norm",
        "fused",
        "main",
        "gemm",
        "matmul",
    }
)


class SourceFinder:
    """Searches the indexes of some repositories. Use as a context manager.

    Args:
        repositories: What to search; the first of a kind wins where everything else is equal.
        inductor_cache: Directory of generated code; None for where PyTorch puts it.
        index_directory: Where the indexes are kept; None for the cache directory.
    """

    def __init__(
        self,
        repositories: Sequence[Repository],
        *,
        inductor_cache: Path | None = None,
        index_directory: Path | None = None,
    ) -> None:
        generated = inductor_cache if inductor_cache is not None else default_inductor_cache()
        found = list(repositories)
        if generated.is_dir():
            found.append(Repository("inductor-cache", generated))
        self.repositories = tuple(found)
        self._stack = contextlib.ExitStack()
        self._indexes = [
            self._stack.enter_context(SourceIndex(repository, directory=index_directory)) for repository in found
        ]

    def __enter__(self) -> SourceFinder:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def update(self, on_progress: Callable[[Repository, int, int], None] | None = None) -> None:
        """Bring all indexes up to date."""
        for index in self._indexes:
            tell = None if on_progress is None else functools.partial(on_progress, index.repository)
            index.update(on_progress=tell)

    def find(self, name: str, near: Sequence[str] = ()) -> SourceReport:
        """Say everything about one kernel name. Never guesses: without a match the report says why.

        Args:
            near: Names around the kernel (the operator that launched it): their words decide between equal places.
        """
        facts = facts_of(name)
        searched = self.repositories
        if facts.family in _WITHOUT_SOURCE:
            return SourceReport(facts, None, _WITHOUT_SOURCE[facts.family], searched=searched)
        source = self._defined(facts, near)
        reason = None
        if source is None:
            source, reason = self._known(facts)
        test = None
        if source is not None and source.file is not None:
            index = self._index_of(source)
            if index is not None:
                symbols = list(dict.fromkeys((facts.symbol, *_around(facts.symbol))))
                test = find_test(index, symbols, Path(source.path).stem)
        return SourceReport(facts, source, reason, test, triton_kin(self._indexes, facts), searched)

    def _index_of(self, source: SourceMatch) -> SourceIndex | None:
        for index in self._indexes:
            if source.file is not None and source.file.is_relative_to(index.repository.root):
                return index
        return None

    def _defined(self, facts: KernelFacts, near: Sequence[str]) -> SourceMatch | None:
        for symbol, exact in _symbols(facts):
            found = _one_a_file(self._definitions(symbol, _kinds(facts.family)))
            if found:
                return _choose(facts, symbol, found, near, exact=exact)
        return None

    def _definitions(self, symbol: str, kinds: Iterable[str]) -> list[Definition]:
        return [found for index in self._indexes for found in index.definitions(symbol, kinds=kinds)]

    def _known(self, facts: KernelFacts) -> tuple[SourceMatch | None, str]:
        place = known_place(facts)
        if place is None:
            where = "; ".join(str(repository.root) for repository in self.repositories) or "nothing was given to search"
            library = FAMILIES[facts.family].library
            return None, f"no definition of {facts.symbol} ({library}) in: {where}"
        match = SourceMatch(
            place.repository,
            place.path,
            "low",
            (place.note, "the place is known from the name, the definition was not seen"),
            url=public_url(place.repository, place.path),
        )
        for repository in self.repositories:
            file = repository.root / place.path
            if repository.key == place.repository and file.exists():
                reasons = (place.note, "the file is there; the definition was not searched in it")
                match = SourceMatch(
                    place.repository, place.path, "medium", reasons, file=file, variable=repository.variable,
                    url=match.url,
                )  # fmt: skip
        return match, "the definition itself was not found"


def default_inductor_cache() -> Path:
    """Return where PyTorch keeps the code that it generates."""
    given = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if given:
        return Path(given)
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or "root"
    return Path(tempfile.gettempdir()) / f"torchinductor_{user}"


def _kinds(family: str) -> tuple[str, ...]:
    if family in {"triton", "inductor"}:
        return ("triton",)
    return ("global", "functor") if family == "aten" else ("global",)


def _symbols(facts: KernelFacts) -> list[tuple[str, bool]]:
    """Names to look for, the most telling first; False marks a part of the name only."""
    if facts.family == "aten":
        functor = facts.facts.get("functor")
        # A functor says which kernel it is where the function is one of ATen's generic loops.
        generic = "elementwise" in facts.symbol or "reduce" in facts.symbol
        return [(functor, True), (facts.symbol, True)] if functor and generic else [(facts.symbol, True)]
    if facts.family not in {"triton", "unknown"}:
        return [(facts.symbol, True)]
    names: list[tuple[str, bool]] = [(facts.plain, True)]
    if facts.symbol != facts.plain:
        names.append((facts.symbol, False))
    parts = facts.symbol.split("_")
    for count in range(len(parts) - 1, 1, -1):
        prefix = "_".join(parts[:count])
        if len(prefix) >= _SHORTEST_PREFIX:
            names.append((prefix, False))
    return names


def _one_a_file(found: list[Definition]) -> list[Definition]:
    """Keep the first definition of each file: further ones are branches of the preprocessor or overloads."""
    seen: dict[Path, Definition] = {}
    for one in found:
        seen.setdefault(one.file, one)
    return list(seen.values())


def _around(symbol: str) -> list[str]:
    """Names of functions that usually call a kernel of this name."""
    bare = symbol.strip("_")
    cut = re.sub(r"_?(?:kernel|fwd|2d|3d|impl)\Z", "", bare)
    return [name for name in (bare, cut) if len(name) > 4]


def _choose(
    facts: KernelFacts, symbol: str, found: list[Definition], near: Sequence[str], *, exact: bool
) -> SourceMatch:
    home = FAMILIES[facts.family].repository
    scope = facts.function.rpartition("::")[0]
    ranked = sorted(found, key=lambda one: _rank(one, home, scope), reverse=True)
    best = ranked[0]
    equals = [one for one in ranked if _rank(one, home, scope) == _rank(best, home, scope)]
    shared = frozenset[str]()
    if len(equals) > 1:
        equals, shared = _nearest(equals, near)
        best = equals[0]
        ranked = [best, *(one for one in ranked if one is not best)]
    reasons = [f"defines {symbol}" if exact else f"defines {symbol}, the beginning of the name"]
    in_scope = bool(scope) and _ends_alike(best.scope, scope)
    at_home = home is not None and best.repository.key == home
    if in_scope:
        reasons.append(f"in namespace {best.scope}")
    if at_home:
        reasons.append(f"in {home}, where {FAMILIES[facts.family].library} lies")
    if shared:
        reasons.append(f"its path shares {' '.join(sorted(shared))} with the operator that launched it")
    if len(equals) > 1:
        reasons.append(f"{len(equals)} definitions are equally likely")
    elif len(found) == 1:
        reasons.append("the only definition")
    confidence = _confidence(facts, symbol, exact=exact, alone=len(equals) == 1, in_scope=in_scope, at_home=at_home)
    if shared and confidence == "high":
        confidence = "medium"  # a word decided, not the name
    if home is not None and not at_home and confidence == "high":
        confidence = "medium"  # projects copy kernels from each other, with their names and namespaces
        reasons.append(f"lies in {best.repository.key}, not in {home}: it may be a copy")
    if exact and best.kind == "global" and best.scope and not scope:
        confidence = "low"  # what the compiler writes down has the namespace
        reasons.append(f"the name has no namespace, the definition lies in {best.scope}")
    losers = tuple(
        Loser(f"{one.file}:{one.line}", _why_not(one, best, home, scope)) for one in ranked[1 : 1 + _MOST_LOSERS]
    )
    path = best.path
    return SourceMatch(
        best.repository.key,
        path,
        confidence,
        tuple(reasons),
        file=best.file,
        line=best.line,
        variable=best.repository.variable,
        losers=losers,
        url=None if best.repository.installed else public_url(best.repository.key, path),
    )


def _nearest(equals: list[Definition], near: Sequence[str]) -> tuple[list[Definition], frozenset[str]]:
    """Keep the one place whose path shares most words with names around the kernel; all of them where none stands out.

    Words that every place shares decide nothing.
    """
    wanted = frozenset(word for name in near for word in _path_words(name))
    common = frozenset.intersection(*(_path_words(one.path) for one in equals))
    scored = sorted(((_path_words(one.path) & wanted) - common for one in equals), key=len, reverse=True)
    if not scored[0] or len(scored[0]) == len(scored[1]):
        return equals, frozenset()
    return [one for one in equals if (_path_words(one.path) & wanted) - common == scored[0]], scored[0]


def _path_words(text: str) -> frozenset[str]:
    return frozenset(word for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 2)


def _rank(one: Definition, home: str | None, scope: str) -> tuple[bool, bool, bool]:
    return (
        bool(scope) and _ends_alike(one.scope, scope),
        home is not None and one.repository.key == home,
        not _is_aside(one.path),
    )


def _is_aside(path: str) -> bool:
    """Tell whether a file is a test, an example or a benchmark rather than the product."""
    return any(word in path.lower() for word in ("test", "example", "benchmark", "tutorial", "third_party", "/old/"))


def _ends_alike(found: str, wanted: str) -> bool:
    """Tell whether two namespaces agree as far as both are known."""
    if not found or not wanted:
        return False
    first, second = found.split("::"), wanted.split("::")
    shorter = min(len(first), len(second))
    return first[-shorter:] == second[-shorter:]


def _confidence(facts: KernelFacts, symbol: str, *, exact: bool, alone: bool, in_scope: bool, at_home: bool) -> str:
    if not alone:
        return "low"
    if not exact:
        return "medium" if facts.family == "triton" and len(symbol) >= 12 else "low"
    words = [word for word in symbol.lower().split("_") if word]
    telling = len([word for word in words if word not in _COMMON_WORDS and len(word) > 2]) >= 2
    scope = facts.function.rpartition("::")[0]
    if scope:
        return "high" if in_scope else "medium"
    return "high" if at_home or telling else "medium"


def _why_not(one: Definition, best: Definition, home: str | None, scope: str) -> str:
    if scope and _ends_alike(best.scope, scope) and not _ends_alike(one.scope, scope):
        return f"namespace {one.scope or '(none)'} is not {scope}"
    if home is not None and best.repository.key == home and one.repository.key != home:
        return f"lies in {one.repository.key}, not in {home}"
    if _is_aside(one.path) and not _is_aside(best.path):
        return "a test, example or copy"
    return "equally likely"
