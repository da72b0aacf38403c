"""The terminal workbench that makes GPU kernels of LLM serving faster and proves it."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_LAZY = {
    "load_workspace": "magpie_tui.notebook",
    "load_trace": "magpie_tui.notebook",
    "load_report": "magpie_tui.notebook",
}


def __getattr__(name: str) -> Any:
    """Import the notebook helpers on first use, so that ``import magpie_tui`` stays light."""
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'magpie_tui' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(module), name)
