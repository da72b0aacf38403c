"""A kernel without a host program as something that can be called on tensors.

Its arguments are declared: tensors with shapes, scalars with values, both as expressions in named dimensions. A name
that stands alone in the shape of an input takes its value from the tensor that is passed; so the same kernel serves
every shape. Outputs are allocated here and returned in the order of the arguments.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

from magpie_tui.basics.expressions import ExpressionError, evaluate, evaluate_whole
from magpie_tui.kernels.harness.device_code import DeviceFunction, compile_source, include_directories
from magpie_tui.kernels.harness.loading import LoadedKernel
from magpie_tui.kernels.harness.shaped import random_tensor

_SCALARS: dict[str, Any] = {
    "float64": ctypes.c_double,
    "float32": ctypes.c_float,
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "int16": ctypes.c_int16,
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
    "bool": ctypes.c_bool,
}


class WrongInputsError(Exception):
    """The tensors that were passed do not fit the declared arguments."""


class _Plan:
    """Everything about a launch that depends on the shapes only."""

    def __init__(self, outputs: dict[int, list[int]], scalars: dict[int, Any]) -> None:
        self.outputs = outputs
        self.scalars = scalars
        self.grid: list[int] = []
        self.block: list[int] = []
        self.shared_bytes = 0


class RawKernel:
    """Calls the kernel that a request describes.

    ``spec`` holds ``type`` (``cuda``, ``hip``, ``cpp``), ``binary`` (path), ``function`` (name in it), ``arguments``
    (name, dtype, role, shape or value), ``grid``, ``block``, ``shared_memory`` and ``names`` (dimensions with values
    that no input tells).
    """

    def __init__(self, spec: dict[str, Any], device: str) -> None:
        self._spec = spec
        self._device = device
        self._arguments: list[dict[str, Any]] = spec["arguments"]
        self._inputs = [item for item in self._arguments if item["role"] in ("in", "inout")]
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        self._function: Any = self._load_library() if spec["type"] == "cpp" else self._load_device()

    def _load_library(self) -> Any:
        function = getattr(ctypes.CDLL(self._spec["binary"]), self._spec["function"])
        function.restype = None
        return function

    def _load_device(self) -> DeviceFunction:
        import torch

        torch.zeros(1, device=self._device)  # makes the device's context current
        self._current_stream = torch.cuda.current_stream
        with open(self._spec["binary"], "rb") as file:  # noqa: PTH123
            code = file.read()
        return DeviceFunction(self._spec["type"], code, self._spec["function"])

    def make_inputs(self, **names: Any) -> list[Any]:
        """Return random tensors of the declared shapes for the named dimensions."""
        import torch

        known = {name: value for name, value in names.items() if isinstance(value, int)}
        made = []
        for item in self._inputs:
            extents = [evaluate_whole(part, known) for part in item["shape"]]
            made.append(random_tensor(extents, getattr(torch, item["dtype"])))
        return made

    def takes(self, inputs: tuple[Any, ...]) -> bool:
        """Say whether the dtypes of ``inputs`` are the declared ones."""
        declared = [item["dtype"] for item in self._inputs]
        return declared == [str(getattr(tensor, "dtype", "")).rpartition(".")[2] for tensor in inputs]

    def _names(self, inputs: tuple[Any, ...]) -> dict[str, int]:
        """Return the values of all dimensions, told by the shapes of ``inputs``."""
        if len(inputs) != len(self._inputs):
            wanted = ", ".join(item["name"] for item in self._inputs)
            raise WrongInputsError(f"{len(inputs)} inputs for {len(self._inputs)} declared ones ({wanted})")
        names: dict[str, int] = dict(self._spec.get("names") or {})
        for item, tensor in zip(self._inputs, inputs, strict=True):
            self._fits(item, tensor)
            for part, extent in zip(item["shape"], tensor.shape, strict=True):
                if isinstance(part, str) and part.isidentifier():
                    names[part] = int(extent)
        for item, tensor in zip(self._inputs, inputs, strict=True):
            wanted_shape = [evaluate_whole(part, names) for part in item["shape"]]
            if wanted_shape != list(tensor.shape):
                raise WrongInputsError(
                    f"{item['name']} has the shape {list(tensor.shape)}, declared is {wanted_shape} ({item['shape']})"
                )
        return names

    def _fits(self, item: dict[str, Any], tensor: Any) -> None:
        import torch

        if not isinstance(tensor, torch.Tensor):
            raise WrongInputsError(f"{item['name']} is of type {type(tensor).__name__}, declared is a tensor")
        dtype = str(tensor.dtype).rpartition(".")[2]
        if dtype != item["dtype"]:
            raise WrongInputsError(f"{item['name']} has dtype {dtype}, declared is {item['dtype']}")
        if tensor.dim() != len(item["shape"]):
            raise WrongInputsError(f"{item['name']} has {tensor.dim()} dimensions, declared are {item['shape']}")

    def _plan(self, inputs: tuple[Any, ...]) -> _Plan:
        names = self._names(inputs)
        outputs, scalars = {}, {}
        for index, item in enumerate(self._arguments):
            if item["role"] == "out":
                outputs[index] = [evaluate_whole(part, names) for part in item["shape"]]
            elif item["role"] == "scalar":
                scalars[index] = self._scalar(item, names)
        plan = _Plan(outputs, scalars)
        if self._spec["type"] != "cpp":
            plan.grid = _three([evaluate_whole(part, names, least=0) for part in self._spec["grid"]])
            plan.block = _three([evaluate_whole(part, names, least=0) for part in self._spec["block"]])
            plan.shared_bytes = evaluate_whole(self._spec.get("shared_memory") or 0, names)
            self._function.reserve(plan.shared_bytes)
        return plan

    def _scalar(self, item: dict[str, Any], names: dict[str, int]) -> Any:
        value = item["value"]
        if isinstance(value, str):
            value = evaluate(value, names)
        if item["dtype"] in ("float16", "bfloat16"):
            raise WrongInputsError(f"{item['name']}: a scalar of {item['dtype']} cannot be passed; use float32")
        kind = _SCALARS[item["dtype"]]
        if kind in (ctypes.c_double, ctypes.c_float):
            return kind(float(value))
        return kind(bool(value)) if kind is ctypes.c_bool else kind(evaluate_whole(value, names, least=-(1 << 63)))

    def __call__(self, *inputs: Any) -> Any:
        """Launch once on ``inputs``; returns the output, a tuple of several, or None when all are written in place."""
        import torch

        key = tuple(getattr(tensor, "shape", None) for tensor in inputs)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(inputs)
        outputs: list[Any] = []
        values: list[Any] = []
        kept: list[Any] = []  # copies must live until the kernel is queued
        given = iter(inputs)
        for index, item in enumerate(self._arguments):
            if item["role"] == "scalar":
                values.append(plan.scalars[index])
                continue
            if item["role"] == "out":
                tensor = torch.empty(plan.outputs[index], dtype=getattr(torch, item["dtype"]), device=self._device)
                outputs.append(tensor)
            else:
                tensor = next(given)
                if not tensor.is_contiguous():
                    if item["role"] == "inout":
                        raise WrongInputsError(f"{item['name']} is written in place and is not contiguous")
                    tensor = tensor.contiguous()
                    kept.append(tensor)
            values.append(ctypes.c_void_p(tensor.data_ptr()))
        self._launch(plan, values)
        return outputs[0] if len(outputs) == 1 else tuple(outputs) or None

    def _launch(self, plan: _Plan, values: list[Any]) -> None:
        if self._spec["type"] == "cpp":
            self._function(*values)
        elif all(plan.grid) and all(plan.block):  # an empty shape: there is nothing to do
            stream = self._current_stream().cuda_stream
            self._function.launch(plan.grid, plan.block, plan.shared_bytes, stream, values)

    def facts(self) -> dict[str, Any]:
        """Return what the driver knows of the loaded function; empty for a C++ function."""
        if self._spec["type"] == "cpp":
            return {}
        names = dict(self._spec.get("names") or {})
        try:
            threads = 1
            for part in self._spec["block"]:
                threads *= evaluate_whole(part, names, least=1)
            shared = evaluate_whole(self._spec.get("shared_memory") or 0, names)
        except ExpressionError:
            threads, shared = 0, 0
        found: dict[str, Any] = self._function.facts(threads or 256, shared)
        if not threads:
            found["blocks_per_processor"] = None
        found["threads"] = threads or None
        return found


def _three(values: list[int]) -> list[int]:
    return [*values, 1, 1, 1][:3]


class RawVariants:
    """A kernel that was compiled for several dtypes; which one is called follows from the inputs."""

    def __init__(self, specs: list[dict[str, Any]], device: str) -> None:
        self._kernels = [(spec, RawKernel(spec, device)) for spec in specs]
        self._chosen: dict[tuple[Any, ...], RawKernel] = {}

    def make_inputs(self, **names: Any) -> list[Any]:
        """Return random tensors for the named dimensions, of the dtypes that are named."""
        told = {name: str(value).rpartition(".")[2] for name, value in names.items()}
        for spec, kernel in self._kernels:
            if all(told.get(name, dtype) == dtype for name, dtype in spec["dtypes"].items()):
                return kernel.make_inputs(**names)
        raise WrongInputsError(f"the kernel was not compiled for {told}")

    def __call__(self, *inputs: Any) -> Any:
        """Call the kernel whose declared inputs have the dtypes of these; the first one says what is wrong else."""
        key = tuple(getattr(value, "dtype", None) for value in inputs)
        kernel = self._chosen.get(key)
        if kernel is None:
            fitting = (kernel for _spec, kernel in self._kernels if kernel.takes(inputs))
            kernel = self._chosen[key] = next(fitting, self._kernels[0][1])
        return kernel(*inputs)


class _Module:
    """Stands for the file of a raw kernel, whose only function makes inputs."""

    def __init__(self, kernel: RawKernel | RawVariants) -> None:
        self._kernel = kernel

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._kernel.make_inputs


def load_raw(spec: dict[str, Any], device: str) -> LoadedKernel:
    """Return the kernel of ``spec`` as something to call; its module makes inputs under any name."""
    where = "cpu" if spec["type"] == "cpp" else device
    others = spec.get("others") or []
    kernel = RawVariants([spec, *others], where) if others else RawKernel(spec, where)
    return LoadedKernel(_Module(kernel), kernel, None)


def device_options(kind: str, options: list[str], source: str) -> list[str]:
    """Return the compiler's options: those given, the device's architecture, C++17, line numbers, headers."""
    import torch

    found = list(options)
    if not any("gpu-architecture" in item or "offload-arch" in item or item.startswith("-arch") for item in options):
        if kind == "cuda":
            major, minor = torch.cuda.get_device_capability()
            found.append(f"--gpu-architecture=sm_{major}{minor}")
        else:
            found.append(f"--offload-arch={torch.cuda.get_device_properties(0).gcnArchName}")
    if not any("std=" in item for item in options):
        found.append("-std=c++17")
    if kind == "cuda":
        found.append("--generate-line-info")
    for place in [os.path.dirname(source), *include_directories(kind)]:  # noqa: PTH120
        found.append(f"-I{place}")
    return found


def build(request: dict[str, Any]) -> dict[str, Any]:
    """Compile a source for this device and write the binary; says what the compiler said, and what the driver knows."""
    kind, source = request["kind"], request["source"]
    with open(source, "rb") as file:  # noqa: PTH123
        text = file.read()
    options = device_options(kind, request["options"], source)
    compiled = compile_source(kind, text, source, request["function"], options)
    answer: dict[str, Any] = {"log": compiled.log, "options": options, "built": compiled.code is not None}
    if compiled.code is None:
        return answer
    temporary = f"{request['binary']}.part"
    with open(temporary, "wb") as file:  # noqa: PTH123
        file.write(compiled.code)
    os.replace(temporary, request["binary"])  # noqa: PTH105
    spec = {**request["spec"], "binary": request["binary"], "function": compiled.lowered}
    return {**answer, "function": compiled.lowered, "facts": RawKernel(spec, "cuda").facts()}
