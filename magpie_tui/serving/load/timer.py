"""Waking up on time: asyncio's own timers round up to a millisecond, the kernel's timer descriptors do not."""

from __future__ import annotations

import asyncio
import ctypes
import functools
import os
import time

_CLOCK_MONOTONIC = 1
_NONBLOCK_CLOEXEC = 0o4000 | 0o2000000
_ABSOLUTE = 1
_NS = 1_000_000_000


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


@functools.lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.timerfd_settime.argtypes = (
        ctypes.c_int,
        ctypes.c_int,
        ctypes.POINTER(_Itimerspec),
        ctypes.POINTER(_Itimerspec),
    )
    return library


class PreciseTimer:
    """Waits for moments of ``time.perf_counter_ns`` (CLOCK_MONOTONIC) to about 0.1 ms. For one waiter at a time.

    Where the kernel has no timer descriptors (not Linux) it falls back to the loop's own timers.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiter: asyncio.Future[None] | None = None
        try:
            self._descriptor = int(_library().timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK_CLOEXEC))
        except AttributeError:
            self._descriptor = -1
        if self._descriptor >= 0:
            loop.add_reader(self._descriptor, self._expired)

    @property
    def is_precise(self) -> bool:
        """True when the kernel wakes us."""
        return self._descriptor >= 0

    def _expired(self) -> None:
        try:
            os.read(self._descriptor, 8)
        except BlockingIOError:
            return
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait_until(self, when_ns: int) -> None:
        """Return at ``when_ns``, at once when it is past."""
        left_ns = when_ns - time.perf_counter_ns()
        if left_ns <= 0:
            return
        if self._descriptor < 0:
            await asyncio.sleep(left_ns / _NS)
            return
        value = _Itimerspec(_Timespec(0, 0), _Timespec(when_ns // _NS, when_ns % _NS))
        self._waiter = self._loop.create_future()
        if _library().timerfd_settime(self._descriptor, _ABSOLUTE, ctypes.byref(value), None) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"timerfd_settime: {os.strerror(number)}")
        try:
            await self._waiter
        finally:
            self._waiter = None

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
