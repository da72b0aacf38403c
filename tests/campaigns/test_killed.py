"""A campaign that is killed at every step, and at every point of each, ends with the same report."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("killed_walk.py")


def plain(report: str, root: Path) -> str:
    """The report without what differs between two walks of any kind: when it was, and where its files lie."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", report.replace(str(root), "ROOT"))
    return re.sub(r"attempts/(\w+)-\d+", r"attempts/\1", text)


def test_the_report_is_the_same(tmp_path: Path) -> None:
    roots = (tmp_path / "whole", tmp_path / "killed")
    walks = [
        subprocess.Popen(
            [sys.executable, PROGRAM, root, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for root, more in zip(roots, ((), ("--kill",)), strict=True)
    ]
    (whole, said), (killed, told) = (walk.communicate() for walk in walks)
    assert [walk.returncode for walk in walks] == [0, 0], said + told
    assert said.splitlines()[-1] == "killed 0"
    # Four points in each of the twelve things to do: nine steps, of which the twin, the candidates and the last one
    # begin with a config.
    assert told.splitlines()[-1] == "killed 48"
    assert "mm_kernel" in whole and "patch: tile.diff" in whole
    assert plain(killed, roots[1]) == plain(whole, roots[0])
