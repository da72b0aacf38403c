"""The checks of the correctness gate, each a small function from what was observed to pass, fail or not run.

The ids are those of the measurement method's gate. Nothing here talks to a process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from magpie_tui.basics.paths import real_path
from magpie_tui.basics.text import plural
from magpie_tui.kernels.harness.numbers import BIAS_LIMIT
from magpie_tui.kernels.model import CheckStatus, Fact, GateCheck
from magpie_tui.kernels.rights import Rights
from magpie_tui.kernels.settings import GateSettings
from magpie_tui.kernels.watching import Changed

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

SHORTENED = "left out by --quick"
NOT_ASKED_FOR = "it is run only when asked for (--strain)"
AFTER_TIMING = ("G14", "G18", "G24")
"""Checks that timing adds to."""


def check(identity: str, status: CheckStatus, reason: str | None = None, **facts: Fact) -> GateCheck:
    """Return a check under its title."""
    return GateCheck(identity, TITLES[identity], status, reason, facts)


def complete(checks: Iterable[GateCheck], reason: str, settings: GateSettings) -> tuple[GateCheck, ...]:
    """Return all checks in the gate's order; missing ones did not run because of ``reason``, or were not asked for."""
    known = {item.id: item for item in checks}
    return tuple(
        known.get(identity)
        or check(identity, "not_run", NOT_ASKED_FOR if identity == "G22" and not settings.strain else reason)
        for identity in ORDER
    )


def joined(before: GateCheck | None, after: GateCheck) -> GateCheck:
    """Return two findings of one check as one: a failure wins, then a pass; reasons and numbers of both are kept."""
    if before is None:
        return after
    order = ("fail", "pass", "not_run")
    first, _second = sorted((before, after), key=lambda item: order.index(item.status))
    if first.status == "fail":
        return first
    parts = [
        part
        for item in (before, after)
        if item.reason and (item.status == first.status or item is after)
        for part in item.reason.split("; ")
    ]
    text = "; ".join(dict.fromkeys(parts)) or None
    return GateCheck(first.id, first.title, first.status, text, {**before.facts, **after.facts})


def testcase_only(digests: Mapping[str, str]) -> tuple[GateCheck, ...]:
    """Return the gate of a kernel that only its own testcase judged: what that proves, and what could not run."""
    reason = "only the testcase judged this kernel: it proves what it tests and no more"
    found = {
        "G1": check(
            "G1", "not_run", "the sources are named by SHA-256, but not what the testcase loads", **dict(digests)
        ),
        "G23": check("G23", "pass", "a testcase that fails, crashes or takes too long is told apart"),
    }
    return tuple(found.get(identity) or check(identity, "not_run", reason) for identity in ORDER)


def attempts(tried: Sequence[Mapping[str, Fact]], rights: Rights | None) -> list[GateCheck]:
    """G2 and G19: what Python code of the kernel tried on files and processes that it must leave alone."""
    references = {str(path) for path in rights.references} if rights is not None else set()
    found = []
    for item in tried:
        what, path = str(item["what"]), str(item["path"])
        if what == "read" and path in references:
            found.append(check("G2", "fail", f"it tried to read the reference ({path})", path=path))
        else:
            found.append(check("G19", "fail", f"it tried to {what} what is not its own ({path})", path=path))
    return found


def confined(facts: Mapping[str, Fact], rights: Rights | None, *, same: bool) -> list[GateCheck]:
    """G19, and what there is to add to G2: which rights the kernel's process had.

    Args:
        facts: What the process said when its rights were taken, before the kernel was loaded.
        same: The harness and the files of others are what they were before.
    """
    if rights is None:
        return [check("G19", "not_run", "the kernel's process kept all rights of the user")]
    if not same:
        return [check("G19", "fail", "files of the harness or of another kernel changed while it ran")]
    version, readable = facts.get("landlock"), facts.get("readable")
    seen = [str(path) for path in rights.references if isinstance(readable, list) and str(real_path(path)) in readable]
    numbers: dict[str, Fact] = {"landlock": version, "signals": facts.get("signals"), "writable": facts.get("writable")}
    if rights.visible:
        reading = f"its source can be read by the kernel ({'; '.join(rights.visible.values())})"
    elif seen:
        reading = f"its source can be read by the kernel's native code ({facts.get('reason')})"
    else:
        reading = "its source cannot be read by the kernel"
    found = [check("G2", "pass", reading)]
    if version:
        kept = ", sends no signals to others" if facts.get("signals") else ""
        text = f"it writes to its own directory only{kept} (Landlock {version}); harness and results unchanged"
        return [*found, check("G19", "pass", text, **numbers)]
    text = f"{facts.get('reason')}: only Python code is held back; harness and files of others are unchanged"
    return [*found, check("G19", "not_run", text, **numbers)]


def untouched(changed: Changed) -> GateCheck:
    """G18: timers, synchronisation, allocation and the harness are what they were, read from outside."""
    if changed.reason is not None:
        return check("G18", "not_run", changed.reason)
    if changed.names:
        names = ", ".join(changed.names[:6])
        return check("G18", "fail", f"it replaced {names}", replaced=list(changed.names))
    return check("G18", "pass", f"{changed.watched} functions and names are the originals", watched=changed.watched)


def undeclared_nan(outputs: Sequence[Mapping[str, Fact]], *, declared: bool) -> GateCheck | None:
    """G10: a reference that gives NaN needs a declaration, since NaN could hide anything; None when all is well."""
    for item in outputs:
        count = item.get("nan")
        if isinstance(count, int) and count and not declared:
            return check(
                "G10",
                "fail",
                f"output{item['name']} of the reference is NaN at {plural(count, 'element')}; where that is meant, "
                "declare `equal_nan: true` under correctness: accordo:",
            )
    return None


def own_memory(told: Mapping[str, Fact], allowed: Fact, *, in_place: bool, where: str) -> GateCheck:
    """G6: outputs lie in memory of their own, as far as the reference's do."""
    earlier, aliases = told["earlier"], told["aliases"]
    if isinstance(earlier, list) and earlier:
        return check("G6", "fail", f"{earlier[0]} lies in the memory of an output of an earlier call ({where})")
    permitted = allowed if isinstance(allowed, list) else []
    for pair in aliases if isinstance(aliases, list) else []:
        if isinstance(pair, list) and pair not in permitted and not (in_place and str(pair[1]).startswith("input")):
            return check("G6", "fail", f"{pair[0]} shares memory with {pair[1]} ({where})")
    return check("G6", "pass", "in memory of their own, earlier outputs kept alive")


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


def _apart(got: Fact, expected: Fact) -> tuple[str, str]:
    """Both values with as many digits as show that they differ; at least three."""
    if not isinstance(got, (int, float)) or not isinstance(expected, (int, float)):
        return str(got), str(expected)
    texts = ((f"{got:.{digits}g}", f"{expected:.{digits}g}") for digits in range(3, 18))
    return next(((first, second) for first, second in texts if first != second), (repr(got), repr(expected)))


def describe_deviation(item: Mapping[str, Fact]) -> str:
    """Say how far an output is off: maximum errors, the worst element, the tolerance."""
    found, tolerance = item["deviation"], item["tolerance"]
    if not isinstance(found, dict) or not isinstance(tolerance, dict):
        return "no numbers"
    parts = [f"output{item['name']}: max abs error {_number(found['max_abs'])}"]
    if found.get("max_rel") is not None:
        parts.append(f"max rel error {_number(found['max_rel'])}")
    got, expected = _apart(found["got"], found["expected"])
    parts.append(f"at {found['position']}: {got} instead of {expected}, allowed {_number(found['allowed'])}")
    if found.get("over"):
        parts.append(f"{found['over']} of {found['compared']} elements beyond the bound")
    else:
        for name, what in (("bias", "mean error"), ("gain", "common factor")):
            share = found.get(name)
            if isinstance(share, float) and share > BIAS_LIMIT:
                parts.append(f"{what} {_number(share)} of the mean bound, a bias")
    parts.append(f"tolerance {bounds_text(tolerance)}")
    return ", ".join(parts)


def bounds_text(tolerance: Mapping[str, Fact]) -> str:
    """Return a tolerance in words, such as ``rtol 0.0001, scale 1e-05``."""
    bounds = [f"{name} {_number(tolerance[name])}" for name in ("rtol", "scale", "atol") if tolerance[name]]
    factor = tolerance.get("factor")
    if bounds and isinstance(factor, (int, float)) and factor > 1:
        bounds.append(f"widened {factor:.2g} times by the reference's own rounding")
    return ", ".join(bounds) if bounds else "exact"


def numeric(outputs: Sequence[Mapping[str, Fact]], where: str) -> GateCheck:
    """G9: every element within the bound and no bias."""
    for item in outputs:
        if not item["within"]:
            found = item["deviation"]
            return check(
                "G9", "fail", f"{describe_deviation(item)} ({where})", deviation=found, tolerance=item["tolerance"]
            )
    share = worst_share(outputs)
    tolerances = [item["tolerance"] for item in outputs]
    shown = dict.fromkeys(bounds_text(item) for item in tolerances if isinstance(item, dict))
    text = f"tolerance {' / '.join(shown)}"
    if share is not None:
        text = f"largest error {share:.2g} of the bound, {text}"
    return check("G9", "pass", text, worst_share_of_bound=share, tolerance=tolerances)


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
    seeds: int, settings: GateSettings, ran: Sequence[str], skipped: Sequence[str], cases: int | None
) -> GateCheck:
    """G11: enough random seeds, and the structured values that are legal for the reference."""
    facts: dict[str, Fact] = {"seeds": seeds, "structures": list(ran), "not_legal": list(skipped)}
    if cases is not None:
        return check("G11", "not_run", f"the saved output fixes the inputs ({plural(cases, 'case')})", **facts)
    text = f"{plural(seeds, 'random seed')}; {', '.join(ran) if ran else 'no structured values'}"
    if skipped:
        text += f"; the reference is not exact for {', '.join(skipped)}"
    if settings.quick:
        text += "; fewer seeds because of --quick"
    return check("G11", "pass", text, **facts)


def repeatable(digests: Sequence[str], deterministic: bool | None, wrong: GateCheck | None) -> GateCheck:
    """G13: equal content gives equal bits, unless declared otherwise; ``wrong`` is a result beyond the bound."""
    different = [index for index, digest in enumerate(digests) if digest != digests[0]]
    if not different:
        return check("G13", "pass", f"{plural(len(digests), 'call')}, equal bits")
    text = f"call {different[0] + 1} of {len(digests)} on equal inputs gave other bits than the first"
    if wrong is not None:
        return check("G13", "fail", f"declared not deterministic, and not within the bound: {wrong.reason}")
    if deterministic is False:
        return check("G13", "pass", f"{text}; declared not deterministic, and within the bound")
    return check("G13", "fail", f"{text}; declare `deterministic: false` if that is meant")
