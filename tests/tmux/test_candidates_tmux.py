"""A candidate is added and edited in a real terminal, which the editor gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tmux.conftest import OpenTerminal
from tests.tui.proofs.candidates import startable
from tests.tui.results_world import write_results

pytestmark = pytest.mark.tmux


def test_a_candidate_is_added_and_edited(open_terminal: OpenTerminal, tmp_path: Path) -> None:
    place = tmp_path / "work"
    config = startable(write_results(place))
    editor = tmp_path / "edit.sh"
    editor.write_text('#!/bin/sh\necho "editing $*"\nread answer\necho "int tile = $answer;" > "$1"\n')
    editor.chmod(0o755)
    terminal = open_terminal(environment={"EDITOR": str(editor)})
    terminal.start_app()
    terminal.press("4")
    terminal.wait_for("A leads alone")
    terminal.press("A")
    terminal.wait_for("Add a candidate")
    terminal.press("n", "e", "w")
    terminal.wait_for("config add compare.yaml --id new --from A")
    terminal.press("C-s")
    terminal.wait_for("Open A_new.hip in the editor?")
    terminal.press("Down", "Enter")
    terminal.wait_for("editing ")
    assert terminal.show("#{alternate_on}") == "0"
    terminal.press("1", "0", "2", "4", "Enter")
    terminal.wait_for("new is A_new.hip: R compares again")
    assert (place / "results" / "sources" / "A_new.hip").read_text() == "int tile = 1024;\n"
    assert "  - id: new\n    change: 'source: A_new.hip'\n" in config.read_text()
    terminal.press("E")
    terminal.wait_for("editing ")
    terminal.press("6", "4", "Enter")
    terminal.wait_for("A is A.hip: R compares again")
    assert (place / "results" / "sources" / "A.hip").read_text() == "int tile = 64;\n"
    terminal.press("C-q")
    terminal.wait_sane(0)
