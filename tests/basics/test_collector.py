"""The garbage collector is paused, set apart and run only between keys; all in a process of its own."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import gc
from magpie_tui.basics.collector import AT_REST_S, RestfulCollector, pause_collecting, resume_collecting, set_apart
clock = [0.0]
collector = RestfulCollector(lambda: clock[0])
clock[0] = 100.0
set_apart(); resume_collecting()
assert not gc.get_freeze_count() and not collector.collect_at_rest(), "nobody paused: nothing is touched"
pause_collecting()
assert not gc.isenabled()
resume_collecting()
assert gc.isenabled() and gc.get_freeze_count() > 1000
kept = [[] for _ in range(50_000)]
assert gc.get_count()[2] > 3
collector.note_key()
assert not collector.collect_at_rest(), "somebody is at work"
clock[0] += AT_REST_S
assert collector.collect_at_rest() and not collector.collect_at_rest(), "once, and then there is nothing to find"
before = gc.get_freeze_count()
set_apart()
assert gc.get_freeze_count() > before
"""


def test_full_collections_wait_for_a_rest() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
