"""What a terminal is sent when a run has ended."""

from __future__ import annotations

import pytest

from magpie_tui.tui.alerts import BELL, notification


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "xterm-256color"}, "\x1b]9;it ended\x07\x07"),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/x"}, "\x1bPtmux;\x1b\x1b]9;it ended\x07\x1b\\\x07"),
        ({"TERM": "linux"}, BELL),
        ({"TERM": "screen", "STY": "1.pts"}, BELL),
    ],
)
def test_the_notification_suits_the_terminal(environment: dict[str, str], expected: str) -> None:
    assert notification("it ended", environment) == expected


def test_a_name_cannot_end_the_notification_early() -> None:
    sent = notification("gemm\x07\x1b[2J\u202e" + "x" * 5_000, {"TERM": "xterm"})
    assert sent.count("\x07") == 2 and sent.count("\x1b") == 1 and len(sent) < 250
