"""What a verification found: one check a stated value, and the tools that make them."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from magpie_tui.basics.json_strict import to_plain
from magpie_tui.workspaces.values import as_mapping

_CLOSE = 1e-9
"""Relative difference below which two numbers are the same: the last digits depend on the order of additions."""
_CHUNK = 1 << 20


class CheckState(str, Enum):
    """What became of one check."""

    OK = "ok"
    DIFFERS = "differs"
    CANNOT = "cannot"


@dataclass(frozen=True, slots=True)
class Check:
    """One stated value, or several that stand together and agree.

    Attributes:
        file: Path relative to what was given.
        key: Place in the file.
        stated, recomputed: Values that differ; None for those that agree, whose number is in ``values``.
        values: How many values agree.
        reason: Why it cannot be checked.
    """

    file: str
    key: str
    state: CheckState
    stated: object = None
    recomputed: object = None
    values: int = 1
    reason: str | None = None

    def below(self, directory: str) -> Check:
        """Return the check as seen from a directory above."""
        return replace(self, file=f"{directory}/{self.file}" if directory else self.file)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "file": self.file,
            "key": self.key,
            "state": self.state.value,
            "stated": to_plain(self.stated),
            "recomputed": to_plain(self.recomputed),
            "values": self.values if self.state is CheckState.OK else None,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Verification:
    """All checks of a workspace, an experiment, a campaign or a bundle."""

    path: Path
    kind: str
    checks: tuple[Check, ...]

    @property
    def counts(self) -> Mapping[CheckState, int]:
        """Number of checks by state."""
        return Counter(check.state for check in self.checks)

    @property
    def differing(self) -> tuple[Check, ...]:
        """What is not as it is stated."""
        return tuple(check for check in self.checks if check.state is CheckState.DIFFERS)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        counts = self.counts
        return {
            "path": str(self.path),
            "kind": self.kind,
            "verified": not self.differing and counts.get(CheckState.OK, 0) > 0,
            "counts": {state.value: counts.get(state, 0) for state in CheckState},
            "checks": [check.to_json() for check in self.checks],
        }


@dataclass(frozen=True, slots=True)
class Originals:
    """What files of a bundle were before secrets and home paths were taken out.

    Attributes:
        digests: Absolute path of a file that was changed → SHA-256 of what it was.
    """

    digests: Mapping[Path, str] = field(default_factory=dict)


def agrees(stated: object, computed: object) -> bool:
    """True when both are the same, but for the last digits of a number."""
    numbers = (int, float)
    if isinstance(stated, bool) or isinstance(computed, bool):
        return stated is computed
    if isinstance(stated, numbers) and isinstance(computed, numbers):
        return math.isclose(stated, computed, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return stated == computed


def compared(file: str, key: str, stated: object, computed: object, *, skip: Sequence[str] = ()) -> Iterator[Check]:
    """Compare two trees leaf by leaf; one check for all leaves that agree, one for each that does not.

    Args:
        skip: Names of keys that are not compared, at any depth: paths and times of this machine.
    """
    good = 0
    for place, one, other in _leaves(key, to_plain(stated), to_plain(computed), frozenset(skip)):
        if agrees(one, other):
            good += 1
        else:
            yield Check(file, place, CheckState.DIFFERS, one, other)
    if good:
        yield Check(file, key, CheckState.OK, values=good)


_GONE = object()


def _leaves(key: str, one: object, other: object, skip: frozenset[str]) -> Iterator[tuple[str, object, object]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys([*one, *other]):
            if name not in skip:
                place = f"{key}.{name}" if key else str(name)
                yield from _leaves(place, one.get(name, _GONE), other.get(name, _GONE), skip)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _leaves(f"{key}[{index}]", left, right, skip)
    else:
        yield key, None if one is _GONE else one, None if other is _GONE else other


def cannot(file: str, key: str, reason: str) -> Check:
    """Return a check that could not be made."""
    return Check(file, key, CheckState.CANNOT, reason=reason)


def sha256_of(path: Path) -> str | None:
    """Return the SHA-256 of a file; None where it cannot be read."""
    found = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
    except OSError:
        return None
    return found.hexdigest()


def section(value: object, *keys: str) -> Mapping[str, object]:
    """Return an object inside a tree; an empty one where it is not there."""
    for key in keys:
        value = as_mapping(value).get(key)
    return as_mapping(value)
