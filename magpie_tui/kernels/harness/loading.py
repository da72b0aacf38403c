"""Loads a kernel's file in the child and finds in it what can be called."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

from magpie_tui.kernels.harness.carry import on_device


class NothingToCallError(Exception):
    """The file loads, but holds nothing that could be called."""


class FreshLoader(importlib.machinery.SourceFileLoader):
    """Compiles the bytes that it reads, never a cached file, and remembers what they were.

    Attributes:
        digest: SHA-256 of the source that runs; None before it was read.
    """

    digest: str | None = None

    def get_code(self, fullname: str) -> Any:
        """Return the code of the file as it is now."""
        path = self.get_filename(fullname)
        data = self.get_data(path)
        self.digest = hashlib.sha256(data).hexdigest()
        return self.source_to_code(data, path)


_BEFORE: dict[str, int] = {}


def remember_modules() -> None:
    """Remember which modules are there, to tell them from those that a kernel brings.

    Called before sessions are forked: to ask PyTorch's thousand modules for their files takes longer than to load most
    kernels.
    """
    _BEFORE.update((name, id(item)) for name, item in list(sys.modules.items()))


def loaded_files(source: str, module: Any) -> dict[str, Any]:
    """Return the digest of a kernel's file as it was loaded, and the other files of its directory that came with it."""
    directory = os.path.dirname(os.path.abspath(source)) + os.sep  # noqa: PTH100, PTH120
    new = [item for name, item in list(sys.modules.items()) if _BEFORE.get(name) != id(item)]
    files = {str(getattr(item, "__file__", None) or "") for item in new}
    others = sorted(path for path in files if path.startswith(directory) and path != os.path.abspath(source))  # noqa: PTH100
    return {"digest": getattr(getattr(module, "__loader__", None), "digest", None), "files": others[:200]}


def load_module(source: str, name: str) -> Any:
    """Import the file ``source`` under ``name``; its own directory is importable, as for a script."""
    directory = os.path.dirname(os.path.abspath(source))  # noqa: PTH100, PTH120 - start-up time in the child
    if directory not in sys.path:
        sys.path.insert(0, directory)
    spec = importlib.util.spec_from_file_location(name, source, loader=FreshLoader(name, source))
    if spec is None or spec.loader is None or not source.endswith(".py"):
        raise NothingToCallError(f"{source} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def best_device() -> str:
    """``cuda`` when PyTorch sees a GPU (of either vendor), else ``cpu``."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def seed_generators(seed: int) -> None:
    """Seed as ``torch.manual_seed`` does.

    Without a GPU that one writes the stack down for every kind of GPU that may still appear, which takes milliseconds.
    """
    import torch

    if torch.cuda.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def to_device(value: Any, device: str) -> Any:
    """Return ``value`` with every tensor in it on ``device``, strides kept."""
    import torch

    if isinstance(value, torch.Tensor):
        return on_device(value, device)
    if isinstance(value, tuple):
        return tuple(to_device(item, device) for item in value)
    if isinstance(value, list):
        return [to_device(item, device) for item in value]
    if isinstance(value, dict):
        return {key: to_device(item, device) for key, item in value.items()}
    return value


def as_arguments(value: Any) -> list[Any]:
    """Return what ``get_inputs`` returned as a list of positional arguments."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


class LoadedKernel:
    """A kernel that can be called: ``Model(*init)`` or a function of the file.

    Attributes:
        module: The imported file.
        call: Takes the inputs, returns the outputs.
        model: The instance of ``Model``, or None for a function.
        weights: How its weights were set: ``none``, ``seed`` or ``reference``.
    """

    def __init__(self, module: Any, call: Any, model: Any | None) -> None:
        self.module = module
        self.call = call
        self.model = model
        self.weights = "none"


def find_kernel(module: Any, request: dict[str, Any], device: str) -> LoadedKernel:
    """Build the kernel that ``request`` names.

    ``function`` names a function or class; without it the class ``Model`` is taken. ``init_values`` are constructor
    arguments for a file that has no function of its own for them.

    Raises:
        NothingToCallError: There is no such thing.
    """
    import torch

    name = request.get("function") or "Model"
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise NothingToCallError(f"the file has no {name!r}")
    if not isinstance(found, type):
        if not callable(found):
            raise NothingToCallError(f"{name!r} is of type {type(found).__name__} and cannot be called")
        return LoadedKernel(module, found, None)
    seed_generators(request["seed"])
    own_init = getattr(module, request["get_init_inputs"], None)
    values = as_arguments(own_init()) if callable(own_init) else request.get("init_values") or []
    seed_generators(request["seed"])
    model = found(*to_device(values, device))
    if isinstance(model, torch.nn.Module):
        model = model.to(device).eval()
    elif not callable(model):
        raise NothingToCallError(f"objects of the class {name!r} cannot be called")
    kernel = LoadedKernel(module, model, model)
    if isinstance(model, torch.nn.Module) and model.state_dict():
        kernel.weights = "seed"
    return kernel


def take_weights(kernel: LoadedKernel, state: dict[str, Any]) -> None:
    """Give the kernel the reference's weights where names and shapes agree; otherwise the equal seed has to do."""
    import torch

    if not isinstance(kernel.model, torch.nn.Module) or not state:
        return
    own = kernel.model.state_dict()
    if own.keys() == state.keys() and all(own[name].shape == state[name].shape for name in own):
        kernel.model.load_state_dict(state)
        kernel.weights = "reference"
