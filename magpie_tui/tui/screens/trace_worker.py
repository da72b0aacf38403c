"""The process that reads traces for the app: takes questions, tells how far it is, sends back reports.

Started as ``python -m magpie_tui.tui.screens.trace_worker``. Gigabytes and their arrays stay out of the app, which
never waits for them and can end this process at any moment; it ends by itself when its standard input closes.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import sys
import threading
import time
from typing import IO

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.tui.screens.trace_query import Reading, Refusal, Reply, TraceQuery, answer

LENGTH = struct.Struct("<Q")
"""Length of the pickled object that follows."""
NEWS_INTERVAL_S = 0.2
NICENESS = 5
"""The screen goes first where there are few cores."""
Question = tuple[int, TraceQuery]


def send(stream: IO[bytes], value: object) -> None:
    """Write one object."""
    payload = pickle.dumps(value, protocol=5)
    stream.write(LENGTH.pack(len(payload)) + payload)
    stream.flush()


def receive(stream: IO[bytes]) -> object | None:
    """Wait for one object; None when the other side is gone."""
    head = stream.read(LENGTH.size)
    if len(head) != LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    payload = stream.read(length)
    return pickle.loads(payload) if len(payload) == length else None


class Answering:
    """Answers questions one after the other; a newer one makes an older one pointless.

    Args:
        questions: Filled by another thread.
        replies: Where the answers go.
    """

    def __init__(self, questions: queue.Queue[Question], replies: IO[bytes]) -> None:
        self._questions = questions
        self._replies = replies
        self._told_at = 0.0

    def answer_next(self) -> None:
        """Wait for a question and answer it."""
        from magpie_tui.traces.reader import ReadingCancelled

        number, query = self._questions.get()
        try:
            reply = self._work_out(number, query)
        except ReadingCancelled:
            return
        send(self._replies, reply)

    def _work_out(self, number: int, query: TraceQuery) -> Reply:
        import traceback

        from magpie_tui.traces.each import Progress
        from magpie_tui.traces.each import Reading as TraceReading
        from magpie_tui.traces.reader import ReadingCancelled

        def tell(progress: Progress) -> None:
            now = time.monotonic()
            if now - self._told_at >= NEWS_INTERVAL_S or progress.done_bytes >= progress.total_bytes:
                self._told_at = now
                send(self._replies, Reading(number, progress.done_bytes, progress.total_bytes))

        reading = TraceReading(query.salvage, tell, lambda: not self._questions.empty())
        try:
            return answer(query, number, reading)
        except ReadingCancelled:
            raise
        except MagpieTuiError as error:
            return Refusal(number, error.message, error.hint or "", error.path)
        except MemoryError:
            return Refusal(number, "the memory of this machine is not enough for this trace")
        except Exception as error:  # the app shows it and offers its details
            return Refusal(number, f"{type(error).__name__}: {error}", details=traceback.format_exc())


def _take_questions(requests: IO[bytes], questions: queue.Queue[Question]) -> None:
    while (question := receive(requests)) is not None:
        assert isinstance(question, tuple)
        questions.put(question)
    os._exit(0)


def main() -> None:
    """Answer until the app is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    questions: queue.Queue[Question] = queue.Queue()
    threading.Thread(target=_take_questions, args=(sys.stdin.buffer, questions), daemon=True).start()
    answering = Answering(questions, sys.stdout.buffer)
    try:
        while True:
            answering.answer_next()
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
