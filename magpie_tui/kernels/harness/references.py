"""What is true: a reference that is computed here, in float64 where that works, or outputs that were saved earlier."""

from __future__ import annotations

import copy
import os
import time
from typing import Any

from magpie_tui.kernels.harness.carry import write_value
from magpie_tui.kernels.harness.loading import (
    as_arguments,
    best_device,
    find_kernel,
    load_module,
    seed_generators,
    to_device,
)
from magpie_tui.kernels.harness.shaped import make_inputs


def doubled(value: Any) -> Any:
    """Return ``value`` with floating-point tensors as float64 (complex as complex128)."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            return value.to(torch.float64)
        return value.to(torch.complex128) if value.is_complex() else value
    if isinstance(value, (list, tuple)):
        return type(value)(doubled(item) for item in value)
    if isinstance(value, dict):
        return {key: doubled(item) for key, item in value.items()}
    return value


def copied(value: Any) -> Any:
    """Return ``value`` with every tensor copied, strides kept where memory is not shared inside the tensor."""
    import torch

    if isinstance(value, torch.Tensor):
        if 0 in value.stride():
            return value.clone()
        copy_ = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
        return copy_.copy_(value)
    if isinstance(value, (list, tuple)):
        return type(value)(copied(item) for item in value)
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value


def leaves(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """Return (place, tensor or number) for everything in ``value`` but None; a tuple counts as a list."""
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [leaf for index, item in enumerate(value) for leaf in leaves(item, f"{name}[{index}]")]
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in leaves(value[key], f"{name}[{key!r}]")]
    return [(name, value)]


def _in_double(model: Any) -> Any:
    """Return a copy of a module whose parameters are float64."""
    return copy.deepcopy(model).double()


class NoInputsError(Exception):
    """The reference's file makes no inputs."""


class ComputedReference:
    """A ``Model`` or function of a Python file."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.device = best_device()
        if request.get("init_path"):
            from magpie_tui.kernels.harness.carry import read_value

            request["init_values"] = as_arguments(read_value(request["init_path"]).value())
        self.module = load_module(request["source"], "reference_kernel")
        self.kernel = find_kernel(self.module, request, self.device)
        self._double: Any | None = None

    @property
    def makes_inputs(self) -> bool:
        """True when the file has a function that makes inputs."""
        return callable(getattr(self.module, self.request["get_inputs"], None))

    def facts(self) -> dict[str, Any]:
        """Return what the parent needs to know."""
        return {"makes_inputs": self.makes_inputs, "cases": None, "device": self.device}

    def make_inputs(self, seed: int, shape: dict[str, Any] | None = None) -> list[Any]:
        """Return new inputs, at a point of the shape grid if given, on the CPU or wherever the file makes them."""

        if not self.makes_inputs and not (shape or {}).get("tensors"):
            raise NoInputsError(f"the file has no function {self.request['get_inputs']!r}")
        seed_generators(seed)
        return make_inputs(getattr(self.module, self.request["get_inputs"], None), shape)

    def carry_out(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write constructor arguments and weights for the candidates to use."""
        import torch

        make = getattr(self.module, self.request["get_init_inputs"], None)
        if callable(make):
            seed_generators(self.request["seed"])
            write_value(request["init_path"], as_arguments(make()))
        model = self.kernel.model
        state = model.state_dict() if isinstance(model, torch.nn.Module) else {}
        write_value(request["state_path"], dict(state))
        return {"has_init": callable(make), "weights": len(state)}

    def native(self, arguments: list[Any], seed: int) -> tuple[Any, list[Any]]:
        """Return the outputs in the reference's own precision, and its inputs as they are afterwards."""
        import torch

        given = copied(to_device(arguments, self.device))
        seed_generators(seed)
        with torch.no_grad():
            return self.kernel.call(*given), given

    def timed(self, arguments: list[Any], seed: int) -> int:
        """Return the time of one call in ns, without the way of its inputs to the device: CPU time on a CPU."""
        import torch

        given = copied(to_device(arguments, self.device))
        on_gpu = self.device == "cuda"
        clock = time.perf_counter_ns if on_gpu else time.process_time_ns
        seed_generators(seed)
        with torch.no_grad():
            if on_gpu:
                torch.cuda.synchronize()
            started = clock()
            self.kernel.call(*given)
            if on_gpu:
                torch.cuda.synchronize()
            return clock() - started

    def exact(self, arguments: list[Any], seed: int) -> tuple[Any, list[Any]]:
        """Return the same in float64.

        Raises:
            Whatever the reference raises when it is asked for float64.
        """
        import torch

        if self._double is None:
            is_module = isinstance(self.kernel.model, torch.nn.Module)
            self._double = _in_double(self.kernel.model) if is_module else self.kernel.call
        given = doubled(copied(to_device(arguments, self.device)))
        seed_generators(seed)
        with torch.no_grad():
            return self._double(*given), given


class SavedReference:
    """Cases of inputs and outputs in a file.

    ``.pt`` holds ``{"inputs": […], "outputs": …}`` or a list of these; ``.npz`` holds one case, its arrays named
    ``input…`` and ``output…``.
    """

    device = "cpu"
    makes_inputs = True

    def __init__(self, request: dict[str, Any]) -> None:
        self.cases = _saved_cases(request["source"])
        self.device = best_device()

    def facts(self) -> dict[str, Any]:
        """Return what the parent needs to know."""
        return {"makes_inputs": True, "cases": len(self.cases), "device": self.device}

    def make_inputs(self, seed: int, shape: dict[str, Any] | None = None) -> list[Any]:
        """Return the inputs of case ``seed`` modulo the number of cases; saved cases have the shapes they have."""
        return as_arguments(self.cases[seed % len(self.cases)]["inputs"])

    def carry_out(self, request: dict[str, Any]) -> dict[str, Any]:
        """There is nothing to carry."""
        write_value(request["state_path"], {})
        return {"has_init": False, "weights": 0}

    def native(self, arguments: list[Any], seed: int) -> tuple[Any, list[Any]]:
        """Return the saved outputs."""
        return to_device(self.cases[seed % len(self.cases)]["outputs"], self.device), arguments

    exact = native


def _saved_cases(path: str) -> list[dict[str, Any]]:
    import torch

    if path.endswith(".npz"):
        import numpy

        with numpy.load(path) as archive:
            names = sorted(archive.files)
            found: Any = {
                part: [torch.from_numpy(archive[name]) for name in names if name.startswith(part[:-1])]
                for part in ("inputs", "outputs")
            }
    else:
        found = torch.load(path, map_location="cpu", weights_only=True)
    cases = found if isinstance(found, list) else [found]
    for case in cases:
        if not isinstance(case, dict) or not case.get("inputs") or case.get("outputs") is None:
            name = os.path.basename(path)  # noqa: PTH119
            raise ValueError(
                f"{name} must hold {{'inputs': [...], 'outputs': ...}} or a list of these: outputs without the inputs "
                "that they belong to prove nothing"
            )
    return cases
