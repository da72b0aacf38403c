"""The checks of the correctness gate, each a small function from what was observed to pass, fail or not run.

The ids are those of the measurement method's gate. Nothing here talks to a process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from magpie_tui.basics.text import plural
from magpie_tui.kernels.model import CheckStatus, Fact, GateCheck

TITLES: dict[str, str] = {
    "G1": "both arms identified by what was loaded",
    "G2": "reference computed in another process",
    "G3": "the check can fail",
    "G4": "reference finite, and follows its inputs",
    "G5": "shape, dtype, device, strides, plain tensors",
    "G6": "output shares no memory with inputs or earlier outputs",
    "G7": "poisoned buffers and guard bytes",
    "G8": "inputs unchanged",
    "G9": "error within the bound, no bias",
    "G10": "NaN and Inf in the same places",
    "G11": "random seeds and structured values",
    "G12": "other shapes",
    "G13": "equal bits on equal inputs",
    "G14": "still right after many calls, and when timed",
    "G15": "same content at a new address and the reverse",
    "G16": "device-wide synchronisation, threads counted",
    "G17": "launch errors and limits",
    "G18": "timers are the originals; clocks agree",
    "G19": "no write access to harness and results",
    "G20": "same kernels when timed as when checked",
    "G21": "time grows with the problem",
    "G22": "other device index, full memory",
    "G23": "failures of our own checks kept apart",
    "G24": "implausible speed-ups repeated with a second method",
}
ORDER: tuple[str, ...] = tuple(TITLES)

NOT_IN_THIS_VERSION = "this version does not run it"


def check(identity: str, status: CheckStatus, reason: str | None = None, **facts: Fact) -> GateCheck:
    """Return a check under its title."""
    return GateCheck(identity, TITLES[identity], status, reason, facts)


def complete(checks: Iterable[GateCheck], reason: str) -> tuple[GateCheck, ...]:
    """Return all checks in the gate's order; missing ones did not run because of ``reason`` or the version."""
    known = {item.id: item for item in checks}
    later = {"G6", "G7", "G12", "G15", "G16", "G17", "G19", "G20", "G21", "G22"}
    return tuple(
        known.get(identity) or check(identity, "not_run", NOT_IN_THIS_VERSION if identity in later else reason)
        for identity in ORDER
    )


def testcase_only(passed: bool) -> tuple[GateCheck, ...]:
    """Return the gate of a kernel that only its own testcase judged."""
    reason = "only the testcase judged this kernel: it proves what it tests and no more"
    return tuple(check(identity, "not_run", reason) for identity in ORDER if identity not in ("G23", "G24"))


def identified(digests: Mapping[str, str]) -> GateCheck:
    """G1: what was loaded is named by the hash of its content, taken before and after."""
    return check("G1", "pass", "sources named by SHA-256", **dict(digests))


def reference_apart(answer: Mapping[str, Fact], title: str) -> GateCheck:
    """G2: the reference ran in its own process, in float64 or, with the reason, in its own precision."""
    note = answer.get("note")
    reason = f"{title}, in {'float64' if answer['precision'] == 'float64' else 'its own precision'}"
    return check("G2", "pass", f"{reason}: {note}" if note else reason, precision=answer["precision"])


def discriminating(outputs: Sequence[Mapping[str, Fact]]) -> GateCheck:
    """G3: the bound refuses zeros, a constant, permuted and scaled values, for every output."""
    accepted = {f"output{item['name']}": item["accepted"] for item in outputs if item["elements"] and item["accepted"]}
    tolerances = [item["tolerance"] for item in outputs]
    if not outputs or all(not item["elements"] for item in outputs):
        return check("G3", "fail", "tolerance_not_discriminating: the reference has no output that could be compared")
    if accepted:
        words = "; ".join(f"{name}: {', '.join(map(str, names or []))}" for name, names in _lists(accepted))
        return check(
            "G3",
            "fail",
            f"tolerance_not_discriminating: wrong results would pass at this tolerance ({words})",
            accepted=dict(accepted),
            tolerance=tolerances,
        )
    return check("G3", "pass", "zeros, a constant, permuted and scaled values are refused", tolerance=tolerances)


def _lists(values: Mapping[str, Fact]) -> Iterable[tuple[str, list[Fact]]]:
    return ((name, value) for name, value in values.items() if isinstance(value, list))


def reference_follows(
    outputs: Sequence[Mapping[str, Fact]], varies: Mapping[str, Fact] | None, *, saved: bool
) -> GateCheck:
    """G4: the reference is finite somewhere in every output and changes when any one input changes."""
    for item in outputs:
        if item["elements"] and not item["finite"]:
            return check("G4", "fail", f"output{item['name']} of the reference holds no finite value")
    if saved or varies is None:
        return check("G4", "not_run", "saved outputs cannot be computed again for other inputs")
    ignored, tried = varies["ignored"], varies["tried"]
    if isinstance(ignored, list) and ignored:
        names = ", ".join(f"input{name}" for name in ignored)
        return check("G4", "fail", f"the reference's output does not change with {names}", ignored=ignored)
    if not tried:
        return check("G4", "fail", "the reference has no tensor among its inputs that could be varied")
    return check("G4", "pass", f"{plural(len(tried), 'input')} varied" if isinstance(tried, list) else None)


def form(wrong: Sequence[str], where: str) -> GateCheck:
    """G5: outputs have the form of the reference's."""
    if wrong:
        return check("G5", "fail", f"{'; '.join(wrong)} ({where})")
    return check("G5", "pass")


def inputs_unchanged(mutated: Sequence[str] | None, where: str) -> GateCheck:
    """G8: inputs equal their copies bit by bit; ``None`` when the kernel is declared in-place."""
    if mutated is None:
        return check("G8", "not_run", "declared in_place: the changed inputs are compared as outputs")
    if mutated:
        return check("G8", "fail", f"{', '.join(f'input{name}' for name in mutated)} changed by the call ({where})")
    return check("G8", "pass")


def _number(value: Fact) -> str:
    return f"{value:.3g}" if isinstance(value, (int, float)) else str(value)


def describe_deviation(item: Mapping[str, Fact]) -> str:
    """Say how far an output is off: maximum errors, the worst element, the tolerance."""
    found, tolerance = item["deviation"], item["tolerance"]
    if not isinstance(found, dict) or not isinstance(tolerance, dict):
        return "no numbers"
    parts = [f"output{item['name']}: max abs error {_number(found['max_abs'])}"]
    if found.get("max_rel") is not None:
        parts.append(f"max rel error {_number(found['max_rel'])}")
    parts.append(
        f"at {found['position']}: {_number(found['got'])} instead of {_number(found['expected'])}, "
        f"allowed {_number(found['allowed'])}"
    )
    if found.get("over"):
        parts.append(f"{found['over']} of {found['compared']} elements beyond the bound")
    elif isinstance(found.get("bias"), float):
        parts.append(f"mean error {_number(found['bias'])} of the mean bound, a bias")
    bounds = [f"{name} {_number(tolerance[name])}" for name in ("rtol", "scale", "atol") if tolerance[name]]
    parts.append(f"tolerance {', '.join(bounds) if bounds else 'exact'}")
    return ", ".join(parts)


def numeric(outputs: Sequence[Mapping[str, Fact]], where: str) -> GateCheck:
    """G9: every element within the bound and no bias."""
    for item in outputs:
        if not item["within"]:
            found = item["deviation"]
            return check(
                "G9", "fail", f"{describe_deviation(item)} ({where})", deviation=found, tolerance=item["tolerance"]
            )
    return check("G9", "pass", worst_share_of_bound=worst_share(outputs))


def worst_share(outputs: Sequence[Mapping[str, Fact]]) -> float | None:
    """Largest deviation / bound over the outputs; None when nothing was compared."""
    shares = [
        found["worst"]
        for item in outputs
        if isinstance(found := item["deviation"], dict) and found.get("worst") is not None
    ]
    numbers = [share for share in shares if isinstance(share, (int, float))]
    return max(numbers) if numbers else None


def nonfinite(outputs: Sequence[Mapping[str, Fact]], where: str) -> GateCheck:
    """G10: NaN, +Inf and -Inf stand where the reference has them."""
    for item in outputs:
        found = item["nonfinite"]
        if isinstance(found, dict) and found["count"]:
            return check(
                "G10",
                "fail",
                f"output{item['name']}: NaN or Inf differ at {plural(int(str(found['count'])), 'element')}, first at "
                f"{found['position']}: {found['got']} instead of {found['expected']} ({where})",
            )
    return check("G10", "pass")


def seeds_and_values(
    seeds: int, wanted: int, ran: Sequence[str], skipped: Sequence[str], cases: int | None
) -> GateCheck:
    """G11: enough random seeds, and the structured values that are legal for the reference."""
    facts: dict[str, Fact] = {"seeds": seeds, "structures": list(ran), "not_legal": list(skipped)}
    if cases is not None:
        return check("G11", "not_run", f"the saved output fixes the inputs ({plural(cases, 'case')})", **facts)
    text = f"{plural(seeds, 'random seed')}; {', '.join(ran) if ran else 'no structured values'}"
    if skipped:
        text += f"; the reference is not finite for {', '.join(skipped)}"
    return check("G11", "pass" if seeds >= wanted else "not_run", text, **facts)


def repeatable(digests: Sequence[str], deterministic: bool | None) -> GateCheck:
    """G13: calls on equal content give equal bits, unless declared otherwise."""
    different = [index for index, digest in enumerate(digests) if digest != digests[0]]
    if not different:
        return check("G13", "pass", f"{plural(len(digests), 'call')}, equal bits")
    text = f"call {different[0] + 1} of {len(digests)} on equal inputs gave other bits than the first"
    if deterministic is False:
        return check("G13", "pass", f"{text}; declared not deterministic, each call is within the bound")
    return check("G13", "fail", f"{text}; declare `deterministic: false` if that is meant")
