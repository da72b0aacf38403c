"""The short way to the full-screen app, past the parser of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpie_tui.cli.entry import _app_options


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], (None, True)),
        (["--root", "here"], (Path("here"), True)),
        (["--root=here", "--no-mouse"], (Path("here"), False)),
        (["--no-mouse"], (None, False)),
        (["--root"], None),
        (["--root", "--help"], None),
        (["--root", "here", "runs", "list"], None),
        (["--version"], None),
        (["-v"], None),
    ],
)
def test_only_the_options_of_the_app_go_the_short_way(
    arguments: list[str], expected: tuple[Path | None, bool] | None
) -> None:
    assert _app_options(arguments) == expected
