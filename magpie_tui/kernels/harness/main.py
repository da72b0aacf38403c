"""Start of a child process: ``python main.py root FD`` or ``python main.py single FD``.

``root`` imports PyTorch once and then forks a fresh process for every session that the parent asks for; ``single`` is
itself the process of one session. The file is run by its path, under any interpreter, and makes the few modules beside
it importable without putting anything on ``sys.path`` that could hide a package of that interpreter.
"""

from __future__ import annotations

import os
import sys


def _make_importable() -> None:
    import types

    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    top = os.path.dirname(os.path.dirname(here))  # noqa: PTH120
    if sys.path and os.path.abspath(sys.path[0]) == here:  # noqa: PTH100
        del sys.path[0]
    for name, directory in (
        ("magpie_tui", top),
        ("magpie_tui.kernels", os.path.dirname(here)),  # noqa: PTH120
        ("magpie_tui.kernels.harness", here),
    ):
        module = types.ModuleType(name)
        module.__path__ = [directory]
        sys.modules[name] = module


if __name__ == "__main__":
    _make_importable()

    from magpie_tui.kernels.harness.serving import run_root, run_single

    {"root": run_root, "single": run_single}[sys.argv[1]](int(sys.argv[2]))
