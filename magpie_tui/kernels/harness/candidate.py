"""Serves one kernel: loads its file, calls it on inputs that the parent names, runs timed windows."""

from __future__ import annotations

import socket
import sys
import time
from typing import Any

from magpie_tui.kernels.harness import frames
from magpie_tui.kernels.harness.carry import read_value, write_value
from magpie_tui.kernels.harness.confine import Confinement
from magpie_tui.kernels.harness.device_time import DeviceTimer
from magpie_tui.kernels.harness.gating import GateRequests
from magpie_tui.kernels.harness.identities import import_watched, survey
from magpie_tui.kernels.harness.limits import (
    describe_error,
    keep_descendants,
    keep_freed_memory,
    limit_files,
    limit_memory,
)
from magpie_tui.kernels.harness.loading import (
    as_arguments,
    best_device,
    find_kernel,
    load_module,
    loaded_files,
    seed_generators,
    take_weights,
)
from magpie_tui.kernels.harness.raw_kernel import build, load_raw
from magpie_tui.kernels.harness.shaped import make_inputs

# Taken before any kernel's file is loaded, so that replacing the functions in their modules changes nothing here.
_clock = time.perf_counter_ns


def _copy_of(value: Any) -> Any:
    """Return ``value`` with every tensor copied to a new address, strides kept."""
    import torch

    if isinstance(value, torch.Tensor):
        if 0 in value.stride():
            return value.clone()
        copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
        return copy.copy_(value)
    if isinstance(value, tuple):
        return tuple(_copy_of(item) for item in value)
    if isinstance(value, list):
        return [_copy_of(item) for item in value]
    if isinstance(value, dict):
        return {key: _copy_of(item) for key, item in value.items()}
    return value


class CandidateServer(GateRequests):
    """One kernel in its own process; the parent drives it request by request."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._source: str | None = None
        self._confinement: Confinement | None = None
        self._sets: list[list[Any]] = []
        self._cursor = 0
        self._rotation = 0
        self._old: list[Any] = []
        self._timer: DeviceTimer | None = None
        self._result: Any = None
        self._previous: Any = None

    def serve(self) -> None:
        """Answer requests until the parent hangs up."""
        reader = frames.FrameReader()
        while True:
            request = frames.receive(self._connection, reader)
            if request is None:
                return
            try:
                answer = getattr(self, f"_do_{request['do']}")(request)
            # Whatever a kernel raises, SystemExit included, is its result and is told to the parent.
            except BaseException as error:
                answer = describe_error(error, self._source)
            if self._confinement is not None and self._confinement.attempts:
                answer = {**answer, "attempts": list(self._confinement.attempts)}
            frames.send(self._connection, answer)

    def _do_confine(self, request: dict[str, Any]) -> dict[str, Any]:
        """Give up rights, for good; the first request of a session."""
        self._confinement = Confinement(request)
        return self._confinement.facts

    def _do_survey(self, request: dict[str, Any]) -> dict[str, Any]:
        """Say where the functions lie that must stay as they are; asked before the kernel is loaded."""
        import_watched()
        return survey()

    def _do_load(self, request: dict[str, Any]) -> dict[str, Any]:
        import torch

        if request.get("threads"):
            torch.set_num_threads(request["threads"])
        self._source = request["source"]
        self._device = "cpu" if (request.get("raw") or {}).get("type") == "cpp" else best_device()
        if self._device == "cpu":  # GPU drivers map far more than they use
            limit_memory(request.get("memory_bytes"))
        limit_files(request.get("file_bytes"))
        keep_descendants()
        allocator = keep_freed_memory() if request.get("keep_memory") and self._device == "cpu" else None
        if self._device == "cuda":
            self._timer = DeviceTimer(lambda message: frames.send(self._connection, message), self._fresh_arguments)
        if request.get("init_path"):
            request["init_values"] = as_arguments(read_value(request["init_path"]).value())
        if request.get("raw"):
            self._kernel = load_raw(request["raw"], self._device)
        else:
            module = load_module(request["source"], "kernel_under_test")
            self._kernel = find_kernel(module, request, self._device)
        if request.get("state_path"):
            take_weights(self._kernel, read_value(request["state_path"]).value())
        return {
            "device": self._device,
            "device_name": torch.cuda.get_device_name(0) if self._device == "cuda" else None,
            "devices": torch.cuda.device_count() if self._device == "cuda" else 0,
            "weights": self._kernel.weights,
            "torch": torch.__version__,
            "python": sys.version.split()[0],
            "threads": torch.get_num_threads(),
            "loaded": loaded_files(request["source"], self._kernel.module),
            "caches": self._timer.facts() if self._timer else None,
            "allocator": allocator,
        }

    def _do_build(self, request: dict[str, Any]) -> dict[str, Any]:
        """Compile a kernel without a host program; see ``raw_kernel.build``."""
        self._source = request["source"]
        return build(request)

    def _do_own_inputs(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write inputs made by the kernel's own file (used when the reference's file makes none)."""

        if self._kernel is None:
            raise RuntimeError("no kernel is loaded")
        make, shape = getattr(self._kernel.module, request["get_inputs"], None), request.get("shape")
        if not callable(make) and not (shape or {}).get("tensors"):
            raise AttributeError(f"the file has no function {request['get_inputs']!r}")
        seed_generators(request["seed"])
        return {"bytes": write_value(request["path"], make_inputs(make, shape))}

    def _do_sets(self, request: dict[str, Any]) -> dict[str, Any]:
        """Load the input sets of a timed block."""
        self._sets = [as_arguments(read_value(path).value(self._device)) for path in request["inputs"]]
        self._rotation = max(len(self._sets), request.get("rotation") or 0)
        prepared = self._timer.prepare(request.get("flush_bytes")) if self._timer else {}
        return {"rotation": self._rotation, **prepared}

    def _fresh_arguments(self, repeats: int) -> tuple[list[int], list[list[Any]]]:
        """Copy the input sets of the next window to new addresses; returns which sets, and the copies.

        There are as many copies as the rotation asks for, several of one set where there are fewer sets.
        """
        count = min(self._rotation, repeats)
        which = [(self._cursor + step) % len(self._sets) for step in range(count)]
        self._cursor += count
        copies = [_copy_of(self._sets[index]) for index in which]
        # The copies of the window before are let go only now, so that the new ones cannot lie where they lay.
        self._old = copies
        return which, copies

    def _do_windows(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run timed windows; each is bracketed by two marks on the socket, which the parent stamps itself."""
        import torch

        if self._kernel is None:
            raise RuntimeError("no kernel is loaded")
        repeats, call, synchronize = request["repeats"], self._kernel.call, self._synchronize
        keep = {int(window): paths for window, paths in request["keep"].items()}
        start_mark = frames.encode({"mark": "start"})
        kept: dict[str, list[int]] = {}
        for window in range(request["count"]):
            which, copies = self._fresh_arguments(repeats)
            count = len(copies)
            result = previous = None
            with torch.no_grad():
                synchronize()
                self._connection.sendall(start_mark)
                started = _clock()
                for step in range(repeats):
                    previous = result
                    result = call(*copies[step % count])
                synchronize()
                ended = _clock()
            frames.send(self._connection, {"mark": "end", "started": started, "ended": ended})
            if window in keep:
                paths = keep[window]
                write_value(paths[-1], {"outputs": result, "inputs_after": []})
                kept[str(window)] = [which[(repeats - 1) % count]]
                if len(paths) > 1 and repeats > 1:
                    write_value(paths[0], {"outputs": previous, "inputs_after": []})
                    kept[str(window)].insert(0, which[(repeats - 2) % count])
        return {"kept": kept}

    def _ready_timer(self) -> tuple[DeviceTimer, Any]:
        if self._kernel is None:
            raise RuntimeError("no kernel is loaded")
        if self._timer is None:
            raise RuntimeError("there is no GPU to time on")
        return self._timer, self._kernel.call

    def _do_device_windows(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run windows on the GPU by the method named: ``traced``, ``paired`` or ``replayed``."""
        timer, call = self._ready_timer()
        paths = {int(window): path for window, path in request["keep"].items()}
        kept: dict[str, list[int]] = {}

        def keep(window: int, result: Any, which: list[int]) -> None:
            if window in paths:
                write_value(paths[window][-1], {"outputs": result, "inputs_after": []})
                kept[str(window)] = which

        if request["method"] == "replayed":
            timer.replayed(request, keep)
        elif request["method"] == "paired":
            timer.paired(call, request, keep)
        else:
            timer.traced(call, request, keep)
        return {"kept": kept}

    def _do_empty_pairs(self, request: dict[str, Any]) -> dict[str, Any]:
        """Measure what an event pair shows with nothing in it."""
        timer, _call = self._ready_timer()
        return {"shown_ns": timer.empty_pairs(request["count"])}

    def _do_capture(self, request: dict[str, Any]) -> dict[str, Any]:
        """Capture a graph for each input set, and trace one replay."""
        timer, call = self._ready_timer()
        answer = timer.capture(call, request["count"])
        timer.trace_replay(request["trace"])
        return answer
