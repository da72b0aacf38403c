"""Program that keeps the tree of one child: ``python -I -S guard.py DESCRIPTOR``.

It gets what to start through the channel, says when it runs and how it ended, and ends the tree when it is told to or
when the channel or its starter ends. Nothing of the command or its environment shows in the list of processes.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # Isolated from the environment and from the working directory; only this program's own package is added.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100,PTH120

from magpie_tui.processes.frames import FrameReader, Value, send
from magpie_tui.processes.keeper import Keeper
from magpie_tui.processes.spawn import NotStartedError


def read_order(control: int) -> dict[str, Value] | None:
    """Return the first message, None when the starter ended before it was complete."""
    frames = FrameReader()
    while (order := frames.next()) is None:
        if frames.at_end:
            return None
        frames.read_from(control)
    return order


def strings(value: Value) -> list[str]:
    """Return ``value`` as a list of strings."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def string_map(value: Value) -> dict[str, str]:
    """Return ``value`` as a mapping of strings."""
    return {key: item for key, item in value.items() if isinstance(item, str)} if isinstance(value, dict) else {}


def number(value: Value, default: float) -> float:
    """Return ``value`` as a number."""
    return float(value) if isinstance(value, (int, float)) else default


def main(control: int) -> int:
    """Keep one tree and return the exit status of this program."""
    os.set_inheritable(control, False)
    order = read_order(control)
    if order is None:
        return 0
    close = order["close"]
    keeper = Keeper(
        control=control,
        starter=int(number(order["starter"], 0)),
        bound=True,
        grace_s=number(order["grace_s"], 5.0),
    )
    try:
        pid = keeper.start(
            strings(order["argv"]),
            cwd=str(order["cwd"]),
            environment=string_map(order["environment"]),
            close=[item for item in close if isinstance(item, int)] if isinstance(close, list) else [],
        )
    except NotStartedError as error:
        send(control, {"not_started": str(error)})
        return 0
    send(control, {"pid": pid, "start_ticks": keeper.first_start_ticks})
    outcome = keeper.wait()
    send(
        control,
        {
            "exit_code": outcome.exit_code,
            "signal": outcome.signal,
            "wall_s": outcome.wall_s,
            "stopped_by": outcome.stopped_by,
            "signalled": outcome.signalled,
            "killed": outcome.killed,
            "first_killed": outcome.first_killed,
            "remaining": list(outcome.remaining),
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
