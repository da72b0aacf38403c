"""One proof per action of the registry; see ``tests/tui/support.py``. A new module here is found by itself."""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
