"""The requests of the correctness gate that a kernel's process answers: calls under different circumstances.

What is compared is written to files that the parent named; what this process says about itself is cross-checked where
that can be done from outside, and the threat model says where it cannot.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from magpie_tui.kernels.harness.aliasing import EarlierOutputs, shared
from magpie_tui.kernels.harness.carry import digest_of, read_value, write_value
from magpie_tui.kernels.harness.guarding import Guards, Poison, guarded_allocations
from magpie_tui.kernels.harness.limits import limit_memory
from magpie_tui.kernels.harness.loading import LoadedKernel, as_arguments, best_device
from magpie_tui.kernels.harness.references import copied
from magpie_tui.kernels.harness.tracing import operators_of, triton_names, write_kernel_trace

_clock = time.perf_counter_ns
_cpu_clock = time.process_time_ns
_own_cpu_clock = time.thread_time_ns
_sleep = time.sleep
_QUIET_SHARE = 0.1
_LONGEST_UNREST_NS = 500_000_000
_LAUNCH_ERRORS = (("libcudart.so", "cudaPeekAtLastError"), ("libamdhip64.so", "hipPeekAtLastError"))


def _guarded(value: Any, guards: Guards, name: str = "input") -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return guards.around(name, value, keep=True)
    if isinstance(value, (list, tuple)):
        return type(value)(_guarded(item, guards, f"{name}[{index}]") for index, item in enumerate(value))
    if isinstance(value, dict):
        return {key: _guarded(item, guards, f"{name}[{key!r}]") for key, item in value.items()}
    return value


def _let_pools_rest() -> None:
    """Wait until no other thread of this process uses or wants a CPU, half a second at most.

    The threads of a pool go on looking for work, 5 ms each, when they have read the inputs: a call must not be blamed.
    """
    started = seen = _clock()
    used = _cpu_clock() - _own_cpu_clock()
    while seen - started < _LONGEST_UNREST_NS:
        _sleep(0.002)
        before, used_before, seen = seen, used, _clock()
        used = _cpu_clock() - _own_cpu_clock()
        if used - used_before < _QUIET_SHARE * (seen - before) and not _others_run():
            return


def _others_run() -> bool:
    """True when another thread of this process runs or waits for a CPU."""
    own = str(threading.get_native_id())
    for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 - names of a virtual directory
        with contextlib.suppress(OSError, IndexError):  # it may have ended meanwhile
            with open(f"/proc/self/task/{thread}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                state = file.read().rpartition(")")[2].split()[0]
            if thread != own and state == "R":
                return True
    return False


def _launch_error_reader() -> Any:
    """Return a function that tells the runtime's last launch error without clearing it, or None."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123
        loaded = {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/")}
    for library, name in _LAUNCH_ERRORS:
        for path in sorted(loaded):
            if library in path:
                with contextlib.suppress(OSError, AttributeError):
                    return getattr(ctypes.CDLL(path), name)
    return None


class LaunchFailedError(Exception):
    """A launch failed, and the kernel's code did not look."""


_SMALLEST_FILLING = 8 << 20


def _fill_device(spare: int) -> list[Any]:
    """Take device memory until about ``spare`` bytes are left, and return what was taken."""
    import torch

    # Blocks that the allocator keeps from earlier calls are free for the next one: they are given back first.
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    taken: list[Any] = []
    size = torch.cuda.mem_get_info()[0] - spare
    while size >= _SMALLEST_FILLING:
        try:
            taken.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        except torch.cuda.OutOfMemoryError:
            size //= 2
        else:
            size = min(size, torch.cuda.mem_get_info()[0] - spare)
    return taken


def _no_error() -> int:
    return 0


class GateRequests:
    """Answers the gate; the server that loads and calls the kernel is built on it."""

    def __init__(self) -> None:
        self._kernel: LoadedKernel | None = None
        self._device = "cpu"
        self._earlier = EarlierOutputs()
        self._poison: Poison | None = None
        self._held: tuple[Any, list[Any]] | None = None
        self._launch_error: Any | None = None

    def _call(self, arguments: list[Any]) -> Any:
        import torch

        if self._kernel is None:
            raise RuntimeError("no kernel is loaded")
        with torch.no_grad():
            outputs = self._kernel.call(*arguments)
        if self._device == "cuda":
            self._look_for_launch_errors()
        return outputs

    def _look_for_launch_errors(self) -> None:
        """Raise what a launch left behind in the runtime; whoever asks next would take the blame for it.

        Raises:
            LaunchFailedError: An error is pending.
        """
        if self._launch_error is None:
            self._launch_error = _launch_error_reader() or _no_error
        number = int(self._launch_error())
        if number:
            raise LaunchFailedError(f"error {number} of the runtime is pending after the call")

    def _synchronize(self) -> None:
        if self._device == "cuda":
            import torch

            torch.cuda.synchronize()

    def _read(self, path: str) -> list[Any]:
        return as_arguments(read_value(path).value(self._device))

    def _do_poison(self, request: dict[str, Any]) -> dict[str, Any]:
        """Find out which patterns work here; asked before the kernel is loaded."""
        self._device = request.get("device") or best_device()
        self._poison = Poison(self._device)
        return {"patterns": list(self._poison.patterns)}

    def _do_call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call once; outputs, and the inputs as they are afterwards, go to the named file.

        ``poison`` names a pattern for new memory, ``guard`` one for guard bytes around inputs and allocations.
        """
        arguments = self._read(request["inputs"])
        guards = Guards(request["guard"]) if request.get("guard") else None
        if guards is not None:
            arguments = [_guarded(item, guards, f"input[{index}]") for index, item in enumerate(arguments)]
        pattern = request.get("poison")
        with contextlib.ExitStack() as stack:
            if pattern and self._poison is not None:
                stack.enter_context(self._poison.filled(pattern))
            if guards is not None:
                stack.enter_context(guarded_allocations(guards))
            outputs = self._call(arguments)
            self._synchronize()
        answer: dict[str, Any] = {
            "aliases": shared(outputs, arguments),
            "earlier": self._earlier.overlapping(outputs),
            "digest": digest_of([outputs, arguments]),
            "broken": guards.broken() if guards is not None else [],
        }
        if request.get("outputs"):
            write_value(request["outputs"], {"outputs": outputs, "inputs_after": arguments})
        self._earlier.keep(outputs, arguments)
        return answer

    def _do_launch_error(self, request: dict[str, Any]) -> dict[str, Any]:
        """Say whether the runtime can be asked for launch errors, as every call of the gate does."""
        return {"asked": self._launch_error not in (None, _no_error)}

    def _do_fill_memory(self, request: dict[str, Any]) -> dict[str, Any]:
        """Leave about ``spare`` bytes of memory to the kernel, for good; returns how much is left."""
        import torch

        if self._device == "cuda":
            self._held = (_fill_device(int(request["spare"])), [])
            return {"left": torch.cuda.mem_get_info()[0]}
        with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123
            used = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmData:"))
        limit_memory(used + int(request["spare"]))
        return {"left": int(request["spare"])}

    def _do_repeat(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call several times on the same content; one digest of the output bytes a call.

        Outputs whose digest differs from the first are written to ``keep``, as far as there are paths.
        """
        carried = read_value(request["inputs"])
        digests: list[str] = []
        paths = list(request.get("keep") or [])
        kept = []
        for _ in range(request["count"]):
            arguments = as_arguments(copied(carried.value(self._device)))
            outputs = self._call(arguments)
            self._synchronize()
            digests.append(digest_of([outputs, arguments]))
            if digests[-1] != digests[0] and paths:
                kept.append(paths.pop(0))
                write_value(kept[-1], {"outputs": outputs, "inputs_after": arguments})
        return {"digests": digests, "kept": kept}

    def _do_many(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call many times over rotating inputs; the outputs of the calls named in ``keep`` are written."""
        sets = [self._read(path) for path in request["inputs"]]
        keep = {int(call): path for call, path in request["keep"].items()}
        for call in range(request["count"]):
            arguments = copied(sets[call % len(sets)])
            outputs = self._call(arguments)
            if call in keep:
                self._synchronize()
                write_value(keep[call], {"outputs": outputs, "inputs_after": arguments})
        return {}

    def _do_addresses(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call on one content, on another content in the same tensors, and on the first content elsewhere.

        ``inputs`` names the files of two contents of equal shapes, ``outputs`` those for the three results.
        """
        first, second = (self._read(path) for path in request["inputs"])
        arguments, elsewhere = copied(first), copied(first)
        for given, path in ((arguments, 0), (None, 1), (elsewhere, 2)):
            if given is None:
                _overwrite(arguments, second)
                given = arguments
            outputs = self._call(given)
            self._synchronize()
            write_value(request["outputs"][path], {"outputs": outputs, "inputs_after": given})
        return {}

    def _do_hold(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call, and keep the result until ``release``: whoever works on now is seen from outside.

        Returns what was taken at once, the times until the caller's stream and until the device were done, and the CPU
        time that all other threads used between the end of the call and the answer.
        """
        arguments = self._read(request["inputs"])
        self._synchronize()
        pattern = self._poison.patterns[0] if self._poison is not None and self._poison.patterns else None
        with self._poison.filled(pattern) if self._poison is not None else contextlib.nullcontext():
            # An old result in the new one's memory must not stand in for work that is still to be done.
            _let_pools_rest()
            started = _clock()
            outputs = self._call(arguments)
            others_ns = _own_cpu_clock() - _cpu_clock()
        # What a caller does next: the same stream, without waiting for others.
        taken = copied([outputs, arguments])
        if self._device == "cuda":
            import torch

            torch.cuda.current_stream().synchronize()
        stream_ended = _clock()
        self._synchronize()
        ended = _clock()
        self._held = (outputs, arguments)
        return {
            "taken": digest_of(taken),
            "call_ns": ended - started,
            "stream_ns": stream_ended - started,
            "others_ns": others_ns + _cpu_clock() - _own_cpu_clock(),
        }

    def _do_release(self, request: dict[str, Any]) -> dict[str, Any]:
        """Say what the held result looks like now."""
        if self._held is None:
            raise RuntimeError("nothing is held")
        outputs, arguments = self._held
        self._held = None
        return {"digest": digest_of([outputs, arguments])}

    def _do_traced_call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer ``call`` with the profiler around the kernel's own call, see ``_traced``."""
        return self._traced(self._do_call, request)

    def _do_windows(self, request: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def _do_traced_windows(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer ``windows`` with the profiler around the kernel's own calls, see ``_traced``."""
        return self._traced(self._do_windows, request)

    def _traced(self, answer_to: Callable[[dict[str, Any]], dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request by the code that always answers it, with a profiler around each call of the kernel.

        Returns operator names on a CPU; on a GPU the trace is written to ``trace``.
        """
        if self._kernel is None:
            raise RuntimeError("no kernel is loaded")
        kernel, call = self._kernel, self._kernel.call
        names: list[str] | None = None if self._device == "cuda" else []

        def traced(*given: Any) -> Any:
            results: list[Any] = []
            if names is None:
                write_kernel_trace(lambda: results.append(call(*given)), request["trace"])
            else:
                names.extend(operators_of(lambda: results.append(call(*given))))
            return results[0]

        kernel.call = traced
        try:
            answer = answer_to(request)
        finally:
            kernel.call = call
        return {**answer, "operators": names, "triton": triton_names(kernel.module)}

    def _do_times(self, request: dict[str, Any]) -> dict[str, Any]:
        """Time single calls: on each file of ``inputs`` in turn, and in between on the first one's content again.

        Returns ns of each call on new content, and of each call on content that was there before: CPU time of the whole
        process on a CPU, which others' load disturbs least, elapsed time on a GPU.
        """
        sets = [self._read(path) for path in request["inputs"]]
        for _ in range(2):
            self._timed(sets[0])
        new, again = [], []
        for arguments in sets[1:]:
            new.append(self._timed(arguments))
            again.append(self._timed(sets[0]))
        return {"new_ns": new, "again_ns": again}

    def _timed(self, arguments: list[Any]) -> int:
        given = copied(arguments)
        clock = _clock if self._device == "cuda" else _cpu_clock
        self._synchronize()
        started = clock()
        self._call(given)
        self._synchronize()
        return clock() - started


def _overwrite(targets: Any, sources: Any) -> None:
    """Copy the content of tensors into tensors of equal shapes."""
    import torch

    if isinstance(targets, torch.Tensor):
        targets.copy_(sources)
    elif isinstance(targets, (list, tuple)):
        for target, source in zip(targets, sources, strict=True):
            _overwrite(target, source)
    elif isinstance(targets, dict):
        for key, target in targets.items():
            _overwrite(target, sources[key])
