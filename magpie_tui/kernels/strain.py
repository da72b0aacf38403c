"""G22: the kernel on another device index, and with memory nearly full. Run only when asked for."""

from __future__ import annotations

from dataclasses import replace

from magpie_tui.kernels import checks
from magpie_tui.kernels.gate_context import GateContext, deviation_of
from magpie_tui.kernels.model import Fact, GateCheck
from magpie_tui.kernels.sessions import Message, SessionFailedError

_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def strained(context: GateContext) -> GateCheck:
    """Run the kernel with little memory left, and on the last device of this machine instead of the first."""
    full, full_fails = _full_memory(context)
    if full_fails:
        return checks.check("G22", "fail", full)
    index, index_fails = _other_index(context)
    facts: dict[str, Fact] = {"memory": full, "device": index}
    if index_fails:
        return checks.check("G22", "fail", index, **facts)
    return checks.check("G22", "pass", f"{full}; {index}", **facts)


def _full_memory(context: GateContext) -> tuple[str, bool]:
    """Return what happened with memory nearly full, and whether it is a fault; lack of memory is none."""
    inputs = context.inputs(0)
    outputs = context.judge.path("outputs")
    with context.candidate.open(context.judge, log="strain", gate=True) as session:
        context.call(session, inputs, "before memory is filled")
        filling: Message = {"do": "fill_memory", "spare": 4 * inputs.size_bytes + (64 << 20)}
        try:
            told = context.ask(session, filling, "filling memory")
        except SessionFailedError as error:
            return f"memory could not be filled: {error.reason}", False
        request: Message = {"do": "call", "inputs": str(inputs.path), "outputs": str(outputs)}
        try:
            context.ask(session, request, "memory nearly full")
        except SessionFailedError as error:
            if error.word == "resource":
                return "with memory nearly full it says that it lacks memory", False
            return f"with memory nearly full: {error.reason}", True
    # The memory is free again by now: the reference may need some to compare.
    wrong = deviation_of(context.judge.check(inputs, outputs), "memory nearly full")
    if wrong is not None:
        return str(wrong.reason), True
    return f"right with {int(told['left']) >> 20} MiB of memory left", False


def _other_index(context: GateContext) -> tuple[str, bool]:
    count = context.candidate.loaded.get("devices")
    if not isinstance(count, int) or count < 2:
        return "no second device here", False
    last = str(count - 1)
    other = replace(
        context.candidate, harness=context.candidate.harness.with_environment({name: last for name in _VISIBLE})
    )
    inputs = context.inputs(0)
    try:
        with other.open(context.judge, log="strain", gate=True) as session:
            _told, answer = context.call(session, inputs, f"device {last}")
    except SessionFailedError as error:
        return f"with only device {last} visible: {error.reason}", True
    finally:
        other.harness.close()
    wrong = deviation_of(answer, f"only device {last} visible")
    return (f"right with only device {last} visible", False) if wrong is None else (str(wrong.reason), True)
