"""What opening the app imports: no other face, nothing heavy before the first paint."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("pandas", "numpy", "pyarrow", "torch", "yaml", "rich.traceback", "rich.markdown", "pygments", "watchfiles")


def _modules(program: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_app_does_not_import_the_command_line_nor_anything_heavy() -> None:
    modules = _modules("import magpie_tui.tui.app")
    assert [name for name in modules if name.startswith("magpie_tui.cli")] == []
    assert sorted(set(HEAVY) & modules) == []


def test_rooms_below_are_imported_when_they_are_asked() -> None:
    modules = _modules("import magpie_tui.tui.app, magpie_tui.tui.live_services")
    rooms = ("machine", "runs", "workspaces", "configs", "kernels", "traces")
    assert [name for name in modules if name.startswith(tuple(f"magpie_tui.{room}" for room in rooms))] == []


def test_registry_is_light() -> None:
    assert "textual" not in _modules("from magpie_tui.tui.actions import registry; registry()")
