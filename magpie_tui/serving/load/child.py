"""The load process: reads its plan from a descriptor, tells progress on it, leaves its result in a directory.

It is a process of its own so that nothing else shares its interpreter: no other threads, no screen, no log reader;
the garbage collector is frozen. When the other end of the descriptor closes, it gives up.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path

import msgspec

from magpie_tui.basics.errors import ExitCode, MagpieTuiError, UserInputError
from magpie_tui.serving.load.driver import LoadDriver
from magpie_tui.serving.load.files import decode_plan, write_result
from magpie_tui.serving.load.model import LoadPlan, LoadResult

PROGRESS_SECONDS = 0.5
STOP = b"stop"
PLAN_FLAG = "--plan"


async def _load(driver: LoadDriver, channel: socket.socket) -> LoadResult:
    loop = asyncio.get_running_loop()
    channel.setblocking(False)

    def ordered() -> None:
        try:
            order = channel.recv(64)
        except BlockingIOError:
            return
        loop.remove_reader(channel)
        driver.stop("cancelled by the user" if order == STOP else "its starter is gone")

    def told() -> None:
        try:
            channel.send(msgspec.json.encode(driver.progress()) + b"\n")
        except OSError:
            return  # a slow or absent reader costs progress, never time
        timers.append(loop.call_later(PROGRESS_SECONDS, told))

    timers: list[asyncio.TimerHandle] = []
    loop.add_reader(channel, ordered)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, driver.stop, "interrupted")
    timers.append(loop.call_later(PROGRESS_SECONDS, told))
    try:
        return await driver.run()
    finally:
        timers[-1].cancel()
        loop.remove_reader(channel)


def main(arguments: list[str]) -> int:
    """Run the plan that comes through a descriptor.

    Args:
        arguments: The descriptor, the directory for the result, and the CPUs to run on (parted by commas; empty: any);
            or ``--plan``, a file with a plan, and the directory: the same load by hand, with ``OPENAI_API_KEY`` where
            the server wants a key.

    Returns:
        0 when the result is written, whatever it says; otherwise the status of the error told on stderr.
    """
    by_hand = arguments[0] == PLAN_FLAG
    if by_hand:
        channel, _reader = socket.socketpair()
        directory = Path(arguments[2])
    else:
        channel, _reader = socket.socket(fileno=int(arguments[0])), None
        directory = Path(arguments[1])
        if arguments[2]:
            os.sched_setaffinity(0, {int(cpu) for cpu in arguments[2].split(",")})
    try:
        plan = _plan_of_file(Path(arguments[1])) if by_hand else decode_plan(_read_plan(channel))
        driver = LoadDriver(plan)
        gc.collect()
        gc.freeze()
        gc.disable()
        result = asyncio.run(_load(driver, channel))
        write_result(directory, result)
    except MagpieTuiError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return ExitCode.OK


def _plan_of_file(path: Path) -> LoadPlan:
    """Read a plan that was written beside a run; its headers, which may hold a key, are not in it.

    Raises:
        UserInputError: It cannot be read.
    """
    try:
        plan = decode_plan(path.read_bytes())
    except OSError as error:
        raise UserInputError(f"the plan cannot be read: {error.strerror}", path=path) from error
    key = os.environ.get("OPENAI_API_KEY")
    return replace(plan, headers={**plan.headers, "Authorization": f"Bearer {key}"}) if key else plan


def _read_plan(channel: socket.socket) -> bytes:
    """Read the plan up to its line feed."""
    data = b""
    while not data.endswith(b"\n"):
        piece = channel.recv(1 << 16)
        if not piece:
            break
        data += piece
    return data


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
