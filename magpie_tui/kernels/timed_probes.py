"""Checks of the gate that time the kernel, or see what it runs when it believes to be timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.kernels import checks
from magpie_tui.kernels.device_stamps import StampsError, read_dispatches
from magpie_tui.kernels.gate_context import GateContext
from magpie_tui.kernels.judges import InputSet
from magpie_tui.kernels.model import Fact, GateCheck
from magpie_tui.kernels.sessions import Message, Session
from magpie_tui.statistics.intervals import median


@dataclass(frozen=True, slots=True)
class Started:
    """What one call started.

    Attributes:
        names: Kernels on a GPU, operators of PyTorch on a CPU; in order.
        streams: How many streams of the device they ran on.
        triton: Names of the Triton kernels in the kernel's file.
        reason: Why nothing is known, else None.
    """

    names: tuple[str, ...] = ()
    streams: int = 0
    triton: tuple[str, ...] = ()
    reason: str | None = None


def _started(answer: Message, trace: Path) -> Started:
    """Read what a traced call answered or wrote."""
    triton = tuple(map(str, answer.get("triton") or ()))
    try:
        if answer.get("operators") is not None:
            return Started(tuple(map(str, answer["operators"])), 0, triton)
        dispatches = read_dispatches(trace)
    except StampsError as error:
        return Started(triton=triton, reason=str(error))
    finally:
        trace.unlink(missing_ok=True)
    # Copies that the harness makes to read results are not the kernel's.
    kernels = [item for item in dispatches if not item.name.startswith(("Memcpy", "Memset"))]
    streams = {item.stream for item in kernels}
    return Started(tuple(item.name for item in kernels), len(streams), triton)


def trace_checked_call(context: GateContext, session: Session) -> Started:
    """Trace a call as the gate makes them."""
    context.report("tracing a checked call")
    trace = context.judge.path("trace")
    request: Message = {"do": "traced_call", "inputs": str(context.inputs(0).path), "trace": str(trace)}
    return _started(context.ask(session, request, "under the profiler"), trace)


def trace_timed_call(context: GateContext, session: Session, inputs: Sequence[InputSet], windows: int) -> Started:
    """Run windows as timing does, then trace the call of one more."""
    trace = context.judge.path("trace")
    timeout_s = context.settings.timeout_s
    session.ask({"do": "sets", "inputs": [str(item.path) for item in inputs]}, timeout_s=timeout_s)
    session.run_windows(count=windows, repeats=4, keep={}, timeout_s=timeout_s)
    request: Message = {"do": "traced_windows", "count": 1, "repeats": 1, "keep": {}, "trace": str(trace)}
    marked = session.run_marked(request, timeout_s=timeout_s)
    return _started(marked.answer, trace)


def same_work(checked: Started, timed: Started) -> GateCheck:
    """G20: a timed call starts the same kernels as a checked one."""
    reason = checked.reason or timed.reason
    if reason is not None:
        return checks.check("G20", "not_run", reason)
    one, other = Counter(checked.names), Counter(timed.names)
    facts: dict[str, Fact] = {"checked": dict(one), "timed": dict(other)}
    if one != other:
        missing, more = one - other, other - one
        parts = [f"{what} {_counted(names)}" for what, names in (("lacks", missing), ("adds", more)) if names]
        return checks.check(
            "G20", "fail", f"a timed call does other work than a checked one: it {'; '.join(parts)}", **facts
        )
    if not one:
        return checks.check("G20", "pass", "neither starts anything that the profiler sees", **facts)
    return checks.check("G20", "pass", f"the same {sum(one.values())} kernels or operators in both", **facts)


def _counted(names: Counter[str]) -> str:
    shown = [f"{count} x {name[:60]}" for name, count in names.most_common(4)]
    return ", ".join(shown) + (", ..." if len(names) > 4 else "")


def identified(context: GateContext, started: Started | None, digests: dict[str, str]) -> GateCheck:
    """G1: the process runs the bytes that were hashed, and what it started belongs to it."""
    loaded = context.candidate.loaded.get("loaded") or {}
    digest, source = loaded.get("digest"), str(context.candidate.source)
    facts: dict[str, Fact] = {**digests}
    expected = digests.get(source)
    if digest is not None and expected is not None and digest != expected:
        return checks.check("G1", "fail", "the process loaded another source than the one that was hashed", **facts)
    if started is None or started.reason is not None:
        return checks.check("G1", "pass", "the source that was loaded, by SHA-256; no kernel names seen", **facts)
    names = list(dict.fromkeys(started.names))
    facts["kernels"] = list(names[:50])
    wanted = context.candidate.entry.kernel_name if context.candidate.raw is not None else None
    on_device = context.candidate.loaded.get("device") == "cuda"
    if on_device and wanted is not None and not any(wanted.split("<")[0].split("::")[-1] in name for name in names):
        return checks.check("G1", "fail", f"no kernel named {wanted} ran; seen: {', '.join(names[:3])}", **facts)
    if on_device and context.candidate.entry.type == "triton":
        if not names:
            return checks.check("G1", "fail", "no kernel ran at all", **facts)
        if started.triton and not any(known in name for known in started.triton for name in names):
            reason = f"none of its Triton kernels ran ({', '.join(started.triton)}); seen: {', '.join(names[:3])}"
            return checks.check("G1", "fail", reason, **facts)
    return checks.check("G1", "pass", "the source that was loaded, by SHA-256, and what one call started", **facts)


_LEAST_WORK_NS = {"cpu": 1_000_000, "cuda": 200_000}
"""Of the reference at the larger size: several times what a launch or a checksum of the inputs costs."""
_MOST_BYTES = {"cpu": 48_000_000, "cuda": 256_000_000}
_GROWTH = 4
_LEAST_GROWTH = 1.2
"""Below this a time has not been seen to grow."""
_LEAST_SAVED_NS = {"cpu": 200_000, "cuda": 30_000}


def growth(context: GateContext, session: Session) -> GateCheck:
    """G21: time follows the work, and is not saved on content that was there before."""
    if context.cases is not None:
        return checks.check("G21", "not_run", "the saved output fixes the sizes")
    context.report("timing two sizes")
    sizes = _two_sizes(context)
    if isinstance(sizes, str):
        return checks.check("G21", "not_run", sizes)
    old, small, large = sizes
    facts: dict[str, Fact] = {"extent": old, "sizes": [small, large]}
    problem: str | None = None
    # What looks wrong is measured once more: a busy machine is no proof. Each round has contents of its own.
    for fresh in ((1, 2), (3, 4)):
        numbers = [0, *(number for number in fresh if number < len(context.seeds))]
        if problem is not None and len(numbers) < 2:
            break
        measured = [_times_at(context, session, old, new, numbers) for new in (small, large)]
        if any(isinstance(item, str) for item in measured):
            return checks.check(
                "G21", "not_run", next(str(item) for item in measured if isinstance(item, str)), **facts
            )
        first, second = (item for item in measured if not isinstance(item, str))
        facts["kernel_us"] = [first.new_ns / 1e3, second.new_ns / 1e3]
        facts["seen_before_us"] = second.again_ns / 1e3
        facts["reference_us"] = [first.reference_ns / 1e3, second.reference_ns / 1e3]
        problem = _problem(context, first, second)
        if problem is None:
            grown = second.new_ns / max(1.0, first.new_ns)
            if grown < _LEAST_GROWTH and str(context.candidate.loaded.get("device")) == "cuda":
                hidden = (
                    f"{first.new_ns / 1e3:.0f} and {second.new_ns / 1e3:.0f} us: a launch hides the work at both sizes"
                )
                return checks.check("G21", "not_run", hidden, **facts)
            return checks.check(
                "G21", "pass", f"{grown:.2g} times as long for {large // small} times the work", **facts
            )
    return checks.check("G21", "fail", problem, **facts)


@dataclass(frozen=True, slots=True)
class _Times:
    new_ns: float
    again_ns: float
    always_saved: bool
    reference_ns: float


def _problem(context: GateContext, small: _Times, large: _Times) -> str | None:
    device = str(context.candidate.loaded.get("device"))
    saved = large.new_ns - large.again_ns
    if large.always_saved and saved > _LEAST_SAVED_NS.get(device, 200_000):
        return (
            f"content that it has seen before takes {large.again_ns / 1e3:.0f} us, new content "
            f"{large.new_ns / 1e3:.0f} us: it remembers results"
        )
    more = large.reference_ns - small.reference_ns
    # On a GPU a call that is hidden behind its launch cannot be seen to grow; the reference works in float64.
    telling = device != "cuda" or 0.02 * more > _LEAST_SAVED_NS["cuda"]
    if telling and large.reference_ns >= 2 * small.reference_ns and large.new_ns - small.new_ns < 0.02 * more:
        return (
            f"its time does not grow with the work: {small.new_ns / 1e3:.0f} and {large.new_ns / 1e3:.0f} us, the "
            f"reference {small.reference_ns / 1e3:.0f} and {large.reference_ns / 1e3:.0f} us"
        )
    return None


def _two_sizes(context: GateContext) -> tuple[int, int, int] | str:
    """Return the extent that is enlarged, and two sizes of which the larger is enough work; else why there are none."""
    base = context.inputs(0)
    known = context.judge.extents(base)["extents"]
    if not known:
        return "the inputs have no dimension that could grow"
    device = str(context.candidate.loaded.get("device"))
    why = "the reference takes no other size"
    largest = _MOST_BYTES.get(device, 48_000_000)
    for old in (known[-1], known[0]):
        new = int(old)
        size = base.size_bytes
        if size * _GROWTH > largest:
            # Large already: the task's own size, and a quarter of it.
            if new // _GROWTH and context.judge.accepts(base, "resized", old=int(old), new=new // _GROWTH):
                return int(old), new // _GROWTH, new
            continue
        while size * _GROWTH <= largest:
            new *= _GROWTH
            inputs, refused = context.judge.derive(base, "resized", old=int(old), new=new)
            if inputs is None:
                why = f"the reference takes no other size ({refused})"
                break
            size = max(size * 2, inputs.size_bytes)
            elapsed = float(context.judge.time(inputs)["ns"])
            context.judge.drop(inputs)
            if elapsed >= _LEAST_WORK_NS.get(device, 1_000_000):
                return int(old), new // _GROWTH, new
            why = "too little work to see time grow, at any size that fits"
    return why


def _times_at(context: GateContext, session: Session, old: int, new: int, numbers: Sequence[int]) -> _Times | str:
    """Time the kernel at one size, on contents from the seeds ``numbers``; the first of them is seen several times."""
    made: list[InputSet] = []
    for number in numbers:
        inputs, why = context.judge.derive(context.inputs(number), "resized", old=old, new=new)
        if inputs is None:
            return f"the reference takes no other size ({why})"
        made.append(inputs)
    if len(made) < 2:
        return "there is only one input"
    try:
        request: Message = {"do": "times", "inputs": [str(item.path) for item in made]}
        told = context.ask(session, request, f"an extent of {new} instead of {old}")
        reference_ns = float(context.judge.time(made[0])["ns"])
    finally:
        context.judge.drop(*made)
    new_ns, again_ns = told["new_ns"], told["again_ns"]
    always = all(seen * 1.6 < fresh for fresh, seen in zip(new_ns, again_ns, strict=True))
    return _Times(median([float(x) for x in new_ns]), median([float(x) for x in again_ns]), always, reference_ns)
