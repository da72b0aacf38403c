"""Start of a child process: ``python main.py root FD``, ``python main.py single FD``, ``python main.py compiler KIND``.

``root`` imports PyTorch once and then forks a fresh process for every session that the parent asks for; ``single`` is
itself the process of one session; ``compiler`` exits 0 when the run-time compiler of ``cuda`` or ``hip`` is there;
``once FILE`` calls a kernel as the file says, for a profiler to watch. The file is run by its path, under any
interpreter, and makes the few modules beside it importable without putting anything on ``sys.path`` that could hide a
package of that interpreter.
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

    if sys.argv[1] == "compiler":
        from magpie_tui.kernels.harness.device_code import has_compiler

        sys.exit(0 if has_compiler(sys.argv[2]) else 1)
    elif sys.argv[1] == "once":
        from magpie_tui.kernels.harness.profiled import run_once

        run_once(sys.argv[2])
    else:
        from magpie_tui.kernels.harness.serving import run_root, run_single

        {"root": run_root, "single": run_single}[sys.argv[1]](int(sys.argv[2]))
