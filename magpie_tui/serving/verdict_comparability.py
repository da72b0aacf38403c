"""Do both arms agree on everything that was not to be changed?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from magpie_tui.basics.units import format_percent
from magpie_tui.serving.verdict_model import Comparability, Difference, Fact, Pair, ServedRun

LENGTH_TOLERANCE = 0.01
"""Measured input and output lengths may differ by 1 %."""
CACHE_TOLERANCE = 0.02
"""Hit rates of the prefix cache may differ by two points."""
_LENGTHS = ("measured.input_mean", "measured.output_mean")
_CACHE = "measured.cache_hit_rate"
_POLICY = "server.cache_policy"
_CLEAN_CACHES = frozenset({"fresh server", "reset"})

_LOAD_ENVS = frozenset(
    {"CONC", "ISL", "OSL", "RANDOM_RANGE_RATIO", "NUM_PROMPTS", "REQUEST_RATE", "MAX_MODEL_LEN", "TP", "PP_SIZE"}
)
_PRIVATE_ENVS = frozenset({"PORT", "HF_TOKEN", "HF_HOME", "BENCHMARK_BASE_URL"})


def declared_changes(a: Mapping[str, Fact], b: Mapping[str, Fact]) -> tuple[str, ...]:
    """Return the facts that two configs change on purpose: server arguments, environment, image, and nothing else.

    The load, the model, the precision and the parallelism are never taken for the change under test; whoever tests
    them declares them by name.
    """
    found: dict[str, None] = {}
    for key in dict.fromkeys((*a, *b)):
        if a.get(key) == b.get(key):
            continue
        name = key.removeprefix("envs.")
        if key.startswith("envs.EXTRA_") and key.endswith("_ARGS"):
            found["server.arguments"] = None
        elif key == "docker_image":
            found |= dict.fromkeys(("engine.image", "engine.version"))
        elif key.startswith("envs.") and name not in _LOAD_ENVS | _PRIVATE_ENVS:
            found |= dict.fromkeys(("server.environment", key))
        elif key in ("python", "serving.python", "serving_python"):
            found["engine.version"] = None
    return tuple(found)


def compare_arms(pairs: Sequence[Pair], changes: Sequence[str]) -> Comparability:
    """Return every difference between the arms, pair by pair."""
    found: dict[str, Difference] = {}
    unknown: dict[str, None] = {}
    for pair in pairs:
        for name in dict.fromkeys((*pair.a.facts, *pair.b.facts)):
            a, b = pair.a.facts.get(name), pair.b.facts.get(name)
            if a is None or b is None:
                if a is not b:
                    unknown[f"{name} is told by one arm only"] = None
                continue
            if _agree(name, a, b):
                continue
            before = found.get(name)
            numbers = (*(before.pairs if before else ()), pair.number)
            first = before or Difference(name, a, b, ())
            declared = any(fnmatchcase(name, pattern) for pattern in changes)
            cause = "cache_state" if name in (_CACHE, _POLICY) else ""
            found[name] = Difference(name, first.a, first.b, numbers, declared, cause)
    silent = [run for pair in pairs for run in (pair.a, pair.b) if not run.facts]
    if silent:
        unknown["the results tell nothing of model, server and load: whether they may be compared is not known"] = None
    return Comparability(
        tuple(found.values()),
        tuple(unknown),
        (cache_text(pairs), *_shared_text(pairs), *_drift_within_arms(pairs, changes)),
    )


def _agree(name: str, a: Fact, b: Fact) -> bool:
    if name in _LENGTHS and isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) <= LENGTH_TOLERANCE * max(abs(a), abs(b))
    if name == _CACHE and isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) <= CACHE_TOLERANCE
    if name == _POLICY:
        return a == b or {a, b} <= _CLEAN_CACHES
    return a == b


def cache_text(pairs: Sequence[Pair]) -> str:
    """Say what is known of the prefix cache."""
    rates = [run.facts.get(_CACHE) for pair in pairs for run in (pair.a, pair.b)]
    known = [rate for rate in rates if isinstance(rate, (int, float))]
    if not known:
        return "no cache metric is readable: whether a warm prefix cache helped one arm is not known"
    if len(known) < len(rates):
        return f"the cache hit rate is known of {len(known)} of {len(rates)} runs only"
    low, high = format_percent(min(known)), format_percent(max(known))
    return f"prefix cache hits {low} to {high} over all runs"


def _shared_text(pairs: Sequence[Pair]) -> list[str]:
    """Say how many runs used a server that another run had used before; nothing where none did."""
    policies = [run.facts.get(_POLICY) for pair in pairs for run in (pair.a, pair.b)]
    reset, kept = policies.count("reset"), policies.count("kept")
    if not reset + kept:
        return []
    emptied = f"its prefix cache was emptied before {reset} of them"
    return [f"{reset + kept} of {len(policies)} runs used a server that was running before; {emptied}"]


def _drift_within_arms(pairs: Sequence[Pair], changes: Sequence[str]) -> list[str]:
    """Say which facts changed from pair to pair inside one arm; seeds do by design."""
    notes = []
    for arm, runs in (("A", [pair.a for pair in pairs]), ("B", [pair.b for pair in pairs])):
        for name in _changing(runs):
            if not any(fnmatchcase(name, pattern) for pattern in changes):
                notes.append(f"{name} is not the same in all runs of {arm}")
    return notes


def _changing(runs: Sequence[ServedRun]) -> list[str]:
    names = dict.fromkeys(name for run in runs for name in run.facts)
    found = []
    for name in names:
        if name in ("load.seed", _CACHE, _POLICY, *_LENGTHS):
            continue
        values = {str(run.facts.get(name)) for run in runs if run.facts.get(name) is not None}
        if len(values) > 1:
            found.append(name)
    return found
