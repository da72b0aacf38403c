"""What is known about a kernel from its name, and what a search for its source found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CONFIDENCES = ("high", "medium", "low")
"""How far a match can be trusted; every match says why."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What a kernel's name says by itself.

    Attributes:
        name: As in the trace.
        plain: Demangled, without compiler suffixes.
        function: Qualified function without template arguments and parameters; for generated kernels the part of the
            name that does not differ between variants.
        family: Who wrote or generated it: one of ``families.FAMILIES``.
        category: What it does: one of ``categories.CATEGORIES``. Template arguments never decide it.
        facts: Details parsed from the name (data types, tile sizes, transposes, …), in the order of the name.
    """

    name: str
    plain: str
    function: str
    family: str
    category: str
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def symbol(self) -> str:
        """The unqualified function name that a source file would define."""
        return self.function.rpartition("::")[2]


@dataclass(frozen=True, slots=True)
class Repository:
    """A checkout or an installed package that can be searched.

    Attributes:
        key: ``vllm``, ``aiter``, ``pytorch``, …; the directory's name where it is none that we know.
        root: Absolute directory.
        installed: It is a package of a Python environment, not a checkout.
    """

    key: str
    root: Path
    installed: bool = False

    @property
    def variable(self) -> str:
        """Name under which upstream's tables write the directory: ``$VLLM_DIR``."""
        letters = "".join(letter if letter.isalnum() else "_" for letter in self.key.upper())
        return f"${letters}_DIR"


@dataclass(frozen=True, slots=True)
class Definition:
    """A function that a source file defines.

    Attributes:
        symbol: Unqualified name.
        kind: ``triton`` (a jit function), ``global`` (``__global__``), ``function`` (Python, in tests).
        line: First line of the definition, from 1.
        scope: Namespaces around it, ``::`` between them; empty if there is none.
    """

    repository: Repository
    path: str
    symbol: str
    kind: str
    line: int
    scope: str = ""

    @property
    def file(self) -> Path:
        """Absolute path."""
        return self.repository.root / self.path


@dataclass(frozen=True, slots=True)
class Loser:
    """A place that was considered and not taken, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class TestMatch:
    """A test that uses the kernel or the function around it.

    Attributes:
        command: Words of a command that runs it from any directory.
        baseline: Name of the reference implementation in it; None where none is recognised.
        baseline_kind: Upstream's words: ``eager_fn``, ``perftest_wrapper``, ``inline_in_test``, ``none``.
    """

    __test__ = False

    repository: Repository
    path: str
    command: tuple[str, ...]
    reason: str
    baseline: str | None = None
    baseline_kind: str = "none"

    @property
    def file(self) -> Path:
        """Absolute path."""
        return self.repository.root / self.path


@dataclass(frozen=True, slots=True)
class SourceMatch:
    """Where a kernel's source is, or should be.

    Attributes:
        repository: Key of the repository.
        file: Absolute path; None where the place is only known, not seen on this machine.
        path: Path inside the repository.
        line: Line of the definition; None where the file as a whole is meant.
        confidence: One of ``CONFIDENCES``.
        reasons: Why it is believed.
        losers: Other places and why they were not taken.
        url: Where it lies publicly; None where unknown.
    """

    repository: str
    path: str
    confidence: str
    reasons: tuple[str, ...]
    file: Path | None = None
    line: int | None = None
    variable: str | None = None
    losers: tuple[Loser, ...] = ()
    url: str | None = None


@dataclass(frozen=True, slots=True)
class SourceReport:
    """Everything about one kernel name.

    Attributes:
        source: None where there is none; ``reason`` then says why.
        reason: Why there is no source, or why it is not certain.
        triton: A Triton kernel of the same category whose name shares its rare words, if one was found.
        searched: Directories that were searched.
    """

    facts: KernelFacts
    source: SourceMatch | None
    reason: str | None
    test: TestMatch | None = None
    triton: Definition | None = None
    searched: tuple[Repository, ...] = ()
