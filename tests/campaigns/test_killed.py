"""A campaign that is killed at every step, and at every point of each, ends with the same report."""

from __future__ import annotations

import json
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
    done = subprocess.run([sys.executable, PROGRAM, *roots], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    whole, killed = json.loads(done.stdout)
    # Four points in each of the twelve things to do: nine steps, of which the twin, the candidates and the last one
    # begin with a config.
    assert (whole["killed"], killed["killed"]) == (0, 48)
    assert "mm_kernel" in whole["report"] and "patch: tile.diff" in whole["report"]
    assert plain(killed["report"], roots[1]) == plain(whole["report"], roots[0])
