"""Kernels in the twins of both arms: was the new one used, what could it bring, what takes the time now?"""

from __future__ import annotations

from collections.abc import Sequence

from magpie_tui.basics.units import format_percent
from magpie_tui.serving.verdict_model import (
    KernelChange,
    KernelShare,
    KernelView,
    Plausibility,
    ProofOfUse,
    ServedRun,
)
from magpie_tui.statistics.intervals import Interval

PLAUSIBLE_FACTOR = 1.5
_SHOWN = 12
_SLOWER = 1.10
_WORTH_NAMING_PERCENT = 1.0


def _matching(run: ServedRun | None, kernel: str) -> list[KernelShare]:
    return [] if run is None else [item for item in run.kernels if kernel.lower() in item.name.lower()]


def proof_of_use(
    kernel: str | None, twin_a: ServedRun | None, twin_b: ServedRun | None, runs: Sequence[ServedRun]
) -> ProofOfUse:
    """Say whether the declared kernel is in B's trace and not in A's."""
    if kernel is None:
        return ProofOfUse("not_applicable", "no kernel change is declared")
    if runs and all(run.facts.get("devices") == "CPU" for run in runs):
        return ProofOfUse("not_applicable", "the engine runs on a CPU, where no kernel is seen", kernel)
    for arm, twin in (("A", twin_a), ("B", twin_b)):
        if twin is None:
            return ProofOfUse("not_observed", f"there is no profiled twin of {arm}", kernel)
        if not twin.kernels:
            return ProofOfUse("not_observed", f"the trace of {arm}'s twin has no kernels", kernel)
    in_a, in_b = _matching(twin_a, kernel), _matching(twin_b, kernel)
    if not in_b:
        return ProofOfUse("not_observed", f"no kernel of B's trace is called {kernel!r}", kernel)
    if in_a:
        return ProofOfUse("not_observed", f"{kernel!r} is in the trace of A too", kernel)
    calls = sum(item.calls or 0 for item in in_b)
    return ProofOfUse("observed", f"{kernel!r} was called {calls:,} times in B's trace and never in A's", kernel)


def plausibility(
    replaces: str | None, ratio: float | None, twin_a: ServedRun | None, observed: Interval | None
) -> Plausibility:
    """Compare the gain with Amdahl's law: 1 / (1 - f + f / s) - 1.

    Args:
        replaces: Part of the name of the kernel in A that the new one takes the place of; its share is f.
        ratio: s, confirmed by a comparison of the two kernels.
        observed: Interval of the primary metric's ratio.
    """
    share = _share(replaces, twin_a)
    if replaces is None:
        return Plausibility(None, ratio, None, None, "no replaced kernel is declared, so nothing can be expected")
    if share is None or ratio is None:
        lacking = "the kernel's share of the baseline's time" if share is None else "its confirmed ratio"
        return Plausibility(share, ratio, None, None, f"what to expect cannot be told without {lacking}")
    expected = 1.0 / (1.0 - share + share / ratio) - 1.0
    text = (
        f"{format_percent(share)} of device time, {ratio:.2f} times faster: {format_percent(expected, signed=True)} "
        "are to be expected"
    )
    if observed is None or observed.low is None:
        return Plausibility(share, ratio, expected, None, text)
    lower = observed.low - 1.0
    holds = lower <= PLAUSIBLE_FACTOR * max(expected, 0.0)
    if not holds:
        text += f", and even the lower bound is {format_percent(lower, signed=True)}: look for another difference"
    return Plausibility(share, ratio, expected, holds, text)


def _share(kernel: str | None, twin: ServedRun | None) -> float | None:
    if kernel is None or twin is None:
        return None
    known = [item.percent for item in _matching(twin, kernel) if item.percent is not None]
    return sum(known) / 100 if known else None


def kernel_view(twin_a: ServedRun | None, twin_b: ServedRun | None) -> KernelView:
    """Return the kernels of both twins side by side."""
    if twin_a is None or twin_b is None:
        return KernelView(reason="there are no profiled twins of both arms")
    before, after = _by_name(twin_a), _by_name(twin_b)
    if not before or not after:
        return KernelView(reason="a twin has no kernels in its trace")
    names = sorted(dict.fromkeys((*before, *after)), key=lambda name: -_largest(before.get(name), after.get(name)))
    changes = [
        KernelChange(
            name,
            _percent(before.get(name)),
            _percent(after.get(name)),
            _per_call(before.get(name)),
            _per_call(after.get(name)),
        )
        for name in names
    ]
    first_before, first_after = next(iter(before)), next(iter(after))
    regressions = tuple(
        item.name
        for item in changes
        if item.before_us
        and item.after_us
        and item.after_us > _SLOWER * item.before_us
        and (item.after_percent or 0.0) >= _WORTH_NAMING_PERCENT
    )
    return KernelView(tuple(changes[:_SHOWN]), first_after if first_after != first_before else None, regressions)


def _by_name(run: ServedRun) -> dict[str, KernelShare]:
    ordered = sorted(run.kernels, key=lambda item: -(item.percent or 0.0))
    return {item.name: item for item in ordered}


def _largest(first: KernelShare | None, second: KernelShare | None) -> float:
    return max((item.percent or 0.0) for item in (first, second) if item is not None)


def _percent(item: KernelShare | None) -> float | None:
    return None if item is None else item.percent


def _per_call(item: KernelShare | None) -> float | None:
    return None if item is None else item.per_call_us
