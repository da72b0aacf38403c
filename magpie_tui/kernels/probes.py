"""Checks that call the kernel under special circumstances: memory, addresses, shapes, what goes on after."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from magpie_tui.basics.text import plural
from magpie_tui.kernels import checks
from magpie_tui.kernels.gate_context import GateContext, deviation_of
from magpie_tui.kernels.harness.guarding import GUARDS
from magpie_tui.kernels.judges import InputSet
from magpie_tui.kernels.model import Fact, GateCheck
from magpie_tui.kernels.sessions import Message, Session, SessionFailedError
from magpie_tui.kernels.watching import running_threads, thread_times


def memory_shows(context: GateContext, session: Session, inputs: InputSet) -> str | None:
    """Say how the outputs depend on memory that is none of the kernel's inputs; None when they do not."""

    def filled(pattern: str) -> object:
        return _shown(context, *context.call(session, inputs, f"memory filled with {pattern}", poison=pattern))

    def guarded(pattern: str) -> object:
        return _shown(context, *context.call(session, inputs, f"guard bytes of {pattern}", guard=pattern))

    if _follows(filled, context.candidate.poisons):
        return "the outputs change with what memory held before: it reads or leaves elements that it never wrote"
    try:
        beyond = _follows(guarded, tuple(GUARDS))
    except SessionFailedError as error:
        if not _raised(error):
            raise
        return None
    return "the outputs change with what lies around its buffers: it reads beyond them" if beyond else None


def _shown(context: GateContext, told: Message, answer: Message) -> object:
    """Return what must not depend on memory: all bits, or being right where bits may differ from call to call."""
    if context.candidate.entry.deterministic is False:
        return deviation_of(answer, "") is None
    return str(told["digest"])


def _follows(call: Callable[[str], object], patterns: Sequence[str]) -> bool:
    """True when what a call shows is another thing with another pattern, and the same one each time it is back.

    What differs from call to call for reasons of its own (races, states that drift) does not come back with a pattern.
    """
    first = {pattern: call(pattern) for pattern in patterns}
    if len(set(first.values())) <= 1:
        return False
    return all(call(pattern) == first[pattern] for pattern in (*reversed(patterns), *patterns))


def poisoned(context: GateContext, session: Session) -> GateCheck:
    """G7: right when new memory holds NaN or large numbers, nothing written or read beyond the buffers."""
    context.report("filling memory, guarding buffers")
    inputs = context.inputs(0)
    candidate = context.candidate
    for pattern in candidate.poisons:
        _told, answer = context.call(session, inputs, f"memory filled with {pattern}", poison=pattern)
        wrong = deviation_of(answer, f"new memory filled with {pattern}")
        if wrong is not None:
            return checks.check("G7", "fail", f"wrong when memory is filled beforehand: {wrong.reason}")
    guards = _guard_bytes(context, session)
    if guards is not None and guards.status == "fail":
        return guards
    facts: dict[str, Fact] = {"patterns": list(candidate.poisons), "guards": guards is None}
    if not candidate.poisons:
        return checks.check("G7", "not_run", "memory cannot be filled beforehand here", **facts)
    note = f"; guard bytes not run: {guards.reason}" if guards is not None else ", guard bytes intact"
    return checks.check("G7", "pass", f"memory filled with {' and '.join(candidate.poisons)}{note}", **facts)


def _guard_bytes(context: GateContext, session: Session) -> GateCheck | None:
    """Call with guard bytes around inputs and allocations; None when all is well, not_run when it cannot be called."""
    inputs = context.inputs(min(1, context.count - 1))
    shown = set()
    for pattern in GUARDS:
        where = f"buffers with guard bytes of {pattern} around them"
        try:
            told, answer = context.call(session, inputs, where, guard=pattern)
        except SessionFailedError as error:
            if not _raised(error):
                raise
            return checks.check("G7", "not_run", error.reason)
        if told["broken"]:
            return checks.check("G7", "fail", f"it wrote beyond its buffers: {'; '.join(told['broken'][:4])}")
        wrong = deviation_of(answer, where)
        if wrong is not None:
            return checks.check("G7", "fail", f"it reads beyond its buffers, or what it never wrote: {wrong.reason}")
        shown.add(_shown(context, told, answer))
    found = memory_shows(context, session, inputs) if len(shown) > 1 else None
    return None if found is None else checks.check("G7", "fail", f"{found} (within the tolerance)")


def _raised(error: SessionFailedError) -> bool:
    """True when a kernel cannot be called in this way, rather than ends by it."""
    return error.word == "crashed" and "raised" in error.reason


def addresses(context: GateContext, session: Session) -> GateCheck:
    """G15: new content at an old address counts, and so does old content at a new one."""
    context.report("same content elsewhere, other content in its place")
    first = context.inputs(0)
    rounds = [("other content", context.inputs(1))] if context.count > 1 else []
    touched = context.judge.derive(first, "touched")[0] if context.cases is None else None
    if touched is not None:
        rounds.append(("one element changed", touched))
    if not rounds:
        return checks.check("G15", "not_run", "there is only one input")
    for what, second in rounds:
        paths = [context.judge.path("outputs") for _ in range(3)]
        request: Message = {"do": "addresses", "inputs": [str(first.path), str(second.path)]}
        try:
            context.ask(session, {**request, "outputs": [str(path) for path in paths]}, "new content, old address")
        except SessionFailedError as error:
            # Inputs of other shapes cannot be put in the place of the first ones.
            if error.word == "crashed" and "must match the size" in error.reason:
                continue
            raise
        order = (first, second, first)
        places = ("first call", f"{what} at the same addresses", "the first content at new addresses")
        for inputs, path, place in zip(order, paths, places, strict=True):
            wrong = deviation_of(context.judge.check(inputs, path), place)
            if wrong is not None:
                return checks.check("G15", "fail", f"it answers from what it saw before: {wrong.reason}")
    if touched is not None:
        context.judge.drop(touched)
    return checks.check("G15", "pass", f"{' and '.join(what for what, _inputs in rounds)} at the same addresses")


LOOK_EVERY_S = 0.004
LATE_WORK_NS = 5_000_000
"""CPU time that new threads may use after a call has returned."""
LONGEST_POOL_WAIT_S = 0.02
"""The threads of a pool wait actively for more work, about 5 ms each, before they rest."""


def after_the_call(context: GateContext, session: Session, threads_before: set[int]) -> GateCheck:
    """G16: when the call has returned, its outputs are there and nobody works on."""
    context.report("looking at what goes on after a call")
    late: list[int] = []
    facts: dict[str, Fact] = {"threads_before": len(threads_before)}
    for attempt in range(context.settings.holds):
        told = context.ask(session, {"do": "hold", "inputs": str(context.inputs(0).path)}, "one call, then waiting")
        _let_pools_rest(session.pid, threads_before)
        before = thread_times(session.pid)
        after = _watch_threads(session.pid, context.settings.hold_s, threads_before)
        released = context.ask(session, {"do": "release"}, "one call, then waiting")
        facts["threads_after"] = len(after)
        if told["taken"] != released["digest"]:
            return checks.check("G16", "fail", "its outputs change after the call has returned", **facts)
        new = {thread: used for thread, used in after.items() if thread not in threads_before}
        used = sum(value - before.get(thread, 0) for thread, value in new.items())
        if context.candidate.loaded.get("device") == "cuda":
            # A thread may be gone before anybody looks: the interpreter goes from thread to thread at each of the
            # operations that copy the results. On a CPU these operations use PyTorch's own pool.
            used += int(told["others_ns"])
        late.append(used)
        facts["late_cpu_ms"] = max(late) / 1e6
        unjoined = float(told["call_ns"]) - float(told["stream_ns"])
        if attempt and unjoined > max(50_000.0, 0.5 * float(told["stream_ns"])):
            reason = f"{unjoined / 1e3:.0f} us of its work run beside the caller's stream, which does not wait for it"
            return checks.check("G16", "fail", reason, **facts)
    # The middle one of three: a pool that was just made bigger may be busy once.
    usual = sorted(late)[len(late) // 2] if late else 0
    if usual > LATE_WORK_NS:
        reason = f"threads that it started use {usual / 1e6:.0f} ms of CPU time after a call has returned"
        return checks.check("G16", "fail", reason, **facts)
    if not late:
        return checks.check("G16", "not_run", "not asked for")
    started = int(str(facts["threads_after"])) - len(threads_before)
    note = f", {plural(started, 'thread')} started" if started > 0 else ""
    return checks.check("G16", "pass", f"outputs stay as they are, nobody works on{note}", **facts)


def _let_pools_rest(pid: int, known: set[int]) -> None:
    """Wait until no thread that is not ``known`` wants to run, ``LONGEST_POOL_WAIT_S`` at most."""
    started = time.monotonic()
    while running_threads(pid) - known and time.monotonic() - started < LONGEST_POOL_WAIT_S:
        time.sleep(LOOK_EVERY_S / 4)


def _watch_threads(pid: int, duration_s: float, known: set[int]) -> dict[int, int]:
    """Return the CPU time of every thread that is seen within a time, threads that end in between included.

    While a thread that is not ``known`` wants to run, it lasts up to ten times as long: CPUs may be busy.
    """
    seen: dict[int, int] = {}
    started = time.monotonic()
    while True:
        seen |= thread_times(pid)
        elapsed = time.monotonic() - started
        if elapsed >= duration_s and (elapsed >= 10 * duration_s or not running_threads(pid) - known):
            return seen
        time.sleep(LOOK_EVERY_S)


REFUSALS = ("ValueError", "AssertionError", "NotImplementedError", "TypeError", "WrongInputsError", "ExpressionError")
_WORDS_OF_A_REFUSAL = ("contiguous", "multiple of", "divisible", "not support", "unsupported", "aligned")


def is_refusal(reason: str, *, zero_size: bool = False) -> bool:
    """True when a kernel said plainly that it does not take an input, rather than failing on it.

    Args:
        reason: What its process raised.
        zero_size: Only an exception made for it counts; the checks of extensions (``must be contiguous``) as well.
    """
    if not reason.startswith("it raised "):
        return False
    text = reason[len("it raised ") :]
    if text.startswith(REFUSALS):
        return True
    return text.startswith("RuntimeError") and not zero_size and any(word in text for word in _WORDS_OF_A_REFUSAL)


LARGE_INPUTS = 64_000_000
"""Bytes above which fewer other shapes are tried: each goes through files and float64."""


def _variants(context: GateContext) -> list[tuple[str, str, int, int]]:
    """Return (name, how, old, new) of the other shapes and layouts to try."""
    base = context.inputs(0)
    known = context.judge.extents(base)
    found: list[tuple[str, str, int, int]] = []
    for extent in known["extents"]:
        for new in (extent + 1, extent - 1, 1, 0):
            if new == extent or (new < extent and known["indices"]) or (new == 0 and extent not in known["leading"]):
                continue
            what = "zero" if new == 0 else str(new)
            found.append((f"{what} instead of {extent}", "resized", int(extent), int(new)))
    found = list(dict.fromkeys(found))
    # The last dimensions come first, and each with its ragged sizes before its ends.
    limit = context.settings.variants if base.size_bytes <= LARGE_INPUTS else min(4, context.settings.variants)
    found = found[:limit]
    return [("inputs that are not contiguous", "relaid", 0, 0), *found]


def shapes(context: GateContext, session: Session) -> GateCheck:
    """G12: other shapes and layouts that the reference takes are right, or are plainly refused."""
    if context.cases is not None:
        return checks.check("G12", "not_run", "the saved output fixes the shapes")
    ran: list[str] = []
    refused: list[str] = []
    outside: list[str] = []
    base = context.inputs(0)
    for name, how, old, new in _variants(context) if context.settings.variants else []:
        context.report(f"shapes: {name}")
        inputs, why = context.judge.derive(base, how, old=old, new=new)
        if inputs is None:
            outside.append(f"{name} ({why})")
            continue
        zero_size = how == "resized" and new == 0
        try:
            _told, answer = context.call(session, inputs, name, any_strides=how == "relaid")
        except SessionFailedError as error:
            reason = error.reason.removesuffix(f" ({name})")
            if error.word == "crashed" and is_refusal(reason, zero_size=zero_size):
                refused.append(name)
                continue
            if error.word == "resource":
                raise
            return checks.check("G12", "fail", f"{name}, which the reference takes: {reason}", tried=[*ran, *refused])
        finally:
            context.judge.drop(inputs)
        # Which strides PyTorch gives an output for inputs with others is habit, and no contract.
        wrong = deviation_of(answer, name)
        if wrong is not None:
            return checks.check("G12", "fail", f"wrong for other inputs of its task: {wrong.reason}", tried=list(ran))
        ran.append(name)
    facts: dict[str, Fact] = {"ran": list(ran), "refused": list(refused), "outside": list(outside)}
    if not ran:
        reason = f"it refuses all {len(refused)} of them" if refused else "the reference takes no other shapes"
        return checks.check("G12", "not_run", reason, **facts)
    text = f"{plural(len(ran), 'variant')} right"
    if len(context.points) > 1:
        facts["declared"] = [point.id for point in context.points]
        text += f", and {plural(len(context.points), 'declared shape')}"
    if refused:
        text += f"; refused: {', '.join(refused)}"
    return checks.check("G12", "pass", text, **facts)


def launches(context: GateContext, session: Session) -> GateCheck:
    """G17: no launch of the kernel's has failed silently."""
    if context.candidate.loaded.get("device") != "cuda":
        return checks.check("G17", "not_run", "nothing is launched on a device")
    if not context.ask(session, {"do": "launch_error"}, "launch errors")["asked"]:
        return checks.check("G17", "not_run", "the runtime's last error cannot be asked for here")
    return checks.check("G17", "pass", "no launch error pending after any call; errors of the device end the process")
