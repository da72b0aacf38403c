"""The thread that reads keys never keeps the process after everything else is over."""

from __future__ import annotations

import subprocess
import sys

LEFT_ALONE = """
import threading
from magpie_tui.tui.driver import InputEnd

end = InputEnd()

def wait():
    while not end.is_set():
        end.wait(0.01)

threading.Thread(target=wait, name="textual-input").start()
"""
NOTHING_TO_READ = """
import select, sys
from magpie_tui.tui.terminal import let_go_of_terminal

let_go_of_terminal()
readable, _, _ = select.select([0], [], [], 0)
sys.exit(len(readable))
"""


def test_a_process_whose_input_thread_nobody_ends_is_over_all_the_same() -> None:
    assert subprocess.run([sys.executable, "-c", LEFT_ALONE], timeout=60, check=False).returncode == 0


def test_after_a_hang_up_there_is_nothing_to_read() -> None:
    assert subprocess.run([sys.executable, "-c", NOTHING_TO_READ], timeout=60, check=False).returncode == 0
