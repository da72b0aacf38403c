"""Program that watches one run: ``python -I -S supervisor.py CHANNEL LOCK``.

It gets what to start through the channel, keeps the process tree, and writes ``status.json`` at every change. A
detached one outlives its starter; any other ends its tree as soon as the starter ends, however that ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys

if __name__ == "__main__":
    # Isolated from the environment and from the working directory; only this program's own package is added.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100,PTH120

from magpie_tui.processes import procfs
from magpie_tui.processes.frames import Value, send
from magpie_tui.processes.guard import number, read_order, string_map, strings
from magpie_tui.processes.keeper import Keeper, Outcome, StopOrder
from magpie_tui.processes.spawn import NotStartedError
from magpie_tui.runs import layout
from magpie_tui.runs.status_file import Json, create_reserve, identity, utc_now, write_status

_LONGEST_EVENT_BYTES = 1 << 16
_MAY_RELEASE = ("benchmark",)
"""Kinds of runs that may leave something behind; what judges kernels never does."""


class Supervisor:
    """Watches one run and writes its state.

    Args:
        order: What to start; made by ``launch``.
        control: The channel to the starter.
    """

    def __init__(self, order: dict[str, Value], control: int) -> None:
        self._order = order
        self._control = control
        self._directory = str(order["directory"])
        status = json.loads(str(order["status"]))
        self._status: dict[str, Json] = dict(status)
        codes = order["done_exit_codes"]
        self._done_exit_codes = codes if isinstance(codes, list) else [0]
        self._grace_s = number(order["grace_s"], 5.0)
        self._kills_before = procfs.out_of_memory_kills()

    def run(self) -> None:
        """Start the worker, wait for its end, write everything down."""
        create_reserve(self._directory)
        self._supervise()
        for name in (layout.RESERVE, layout.STOP_REQUEST):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._directory, name))  # noqa: PTH108,PTH118

    def _supervise(self) -> None:
        bound = not self._order["detached"]
        keeper = Keeper(
            control=self._control,
            starter=int(number(self._order["starter"], 0)),
            bound=bound,
            grace_s=self._grace_s,
            asked_by_signal=self._read_stop_request,
            on_stop=self._note_stop,
            released=self._read_released if self._status["kind"] in _MAY_RELEASE else None,
        )
        self._status["supervisor"] = identity(os.getpid())
        self._write()
        try:
            worker = keeper.start(
                strings(self._order["argv"]),
                cwd=str(self._order["cwd"]),
                environment=string_map(self._order["environment"]),
                close=[],
            )
        except NotStartedError as error:
            self._status.update(state="failed", reason=str(error), ended_at=utc_now())
            self._write()
            send(self._control, {"failed": str(error)})
            return
        self._status.update(worker=identity(worker), started_at=utc_now())
        if not keeper.is_stopping:
            self._status["state"] = "running"
        self._write()
        send(self._control, {"running": True})
        self._finish(keeper.wait())

    def _write(self) -> None:
        write_status(self._directory, self._status)

    def _read_stop_request(self) -> StopOrder:
        """Return who asked by a signal; with a request file it says, without one it was the bare signal."""
        path = os.path.join(self._directory, layout.STOP_REQUEST)  # noqa: PTH118
        try:
            with open(path, encoding="utf-8") as file:  # noqa: PTH123
                request = json.load(file)
            os.unlink(path)  # noqa: PTH108
            return StopOrder(str(request["by"]), float(request["grace_s"]))
        except (OSError, ValueError, KeyError, TypeError):
            return StopOrder("a signal to its supervisor", self._grace_s)

    def _read_released(self) -> frozenset[tuple[int, int]]:
        """Return pid and start time of what outlives the run."""
        path = os.path.join(self._directory, layout.RELEASED)  # noqa: PTH118
        try:
            with open(path, encoding="utf-8") as file:  # noqa: PTH123
                return frozenset((int(item["pid"]), int(item["start_ticks"])) for item in json.load(file))
        except (OSError, ValueError, KeyError, TypeError):
            return frozenset()

    def _note_stop(self, order: StopOrder) -> None:
        self._status["stop"] = {"by": order.by, "requested_at": utc_now(), "grace_s": order.grace_s}
        self._status["state"] = "stopping"
        self._write()

    def _finish(self, outcome: Outcome) -> None:
        """Write the last state."""
        status = self._status
        status.update(exit_code=outcome.exit_code, signal=outcome.signal, ended_at=utc_now())
        status["workspace"] = find_workspace(self._directory)
        status["remaining_processes"] = list(outcome.remaining)
        # All of the tree was waited for by its parents, the last of which is this process.
        cost = resource.getrusage(resource.RUSAGE_CHILDREN)
        status.update(cpu_s=round(cost.ru_utime + cost.ru_stime, 3), peak_bytes=cost.ru_maxrss * 1024)
        stop = status["stop"]
        if outcome.stopped_by is not None and isinstance(stop, dict):
            stop.update(processes_ended=outcome.signalled, processes_killed=outcome.killed)
            status.update(state="stopped", reason=f"stopped by {outcome.stopped_by}")
        else:
            # It ended by itself; what it left behind was ended then.
            status["stop"] = None
            status["leftover_processes"] = outcome.signalled
            done = outcome.exit_code is not None and outcome.exit_code in self._done_exit_codes
            status.update(state="ended" if done else "failed", reason=None if done else self._why_failed(outcome))
        if outcome.remaining:
            pids = ", ".join(map(str, outcome.remaining))
            status["reason"] = f"{status['reason'] or 'ended'}; SIGKILL did not end pid {pids}: it hangs in the kernel"
        self._write()

    def _why_failed(self, outcome: Outcome) -> str:
        if outcome.signal is None:
            return f"exit {outcome.exit_code}"
        name = signal_name(outcome.signal)
        if outcome.signal != signal.SIGKILL:
            return f"ended by {name}, which we did not send"
        kills = procfs.out_of_memory_kills()
        if kills is None or self._kills_before is None:
            return f"ended by {name}, which we did not send: perhaps the machine ran out of memory"
        if kills > self._kills_before:
            return (
                f"ended by {name}, which we did not send; the kernel killed {kills - self._kills_before} "
                "for want of memory on this machine meanwhile"
            )
        return f"ended by {name}, which we did not send; no process was killed for want of memory meanwhile"


def signal_name(value: int) -> str:
    """Return ``SIGSEGV`` for 11, ``signal 40`` for one without a name."""
    try:
        return signal.Signals(value).name
    except ValueError:
        return f"signal {value}"


def find_workspace(directory: str) -> str | None:
    """Return the workspace that the events of a run named last, None when none did."""
    found: str | None = None
    try:
        with open(os.path.join(directory, layout.EVENTS), "rb") as file:  # noqa: PTH118,PTH123
            while line := file.readline(_LONGEST_EVENT_BYTES):
                if b'"workspace"' not in line:
                    continue
                with contextlib.suppress(ValueError, AttributeError):
                    workspace = json.loads(line).get("workspace")
                    found = workspace if isinstance(workspace, str) else found
    except OSError:
        pass
    return found


def main(control: int, lock: int) -> int:
    """Watch one run and return the exit status of this program.

    Args:
        control: Descriptor of the channel to the starter.
        lock: Descriptor of the run's lock, which stays open, and so held, until this process ends.
    """
    os.set_inheritable(control, False)
    os.set_inheritable(lock, False)
    order = read_order(control)
    if order is None:
        return 0
    if order["detached"] and os.fork() != 0:
        # The starter waits for this process; the other one is nobody's child any more.
        os._exit(0)
    Supervisor(order, control).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
