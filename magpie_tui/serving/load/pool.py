"""Connections opened before they are needed, so that opening them is no part of any latency."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import ssl
import time
from collections import deque
from urllib.parse import urlsplit

from magpie_tui.serving.load.connection import Connection

CONNECT_TIMEOUT_S = 30.0
_NUMBER = re.compile(r"\[Errno (\d+)\]")


class CannotConnectError(Exception):
    """No connection could be opened; the text is the reason, for people."""


class ConnectionPool:
    """Keeps ``spare`` idle connections open, and hands them out, the freshest first.

    Attributes:
        connect_times_s: Time that each connection took to open.
        lost_idle: Idle connections that the server closed.
    """

    def __init__(self, base_url: str, spare: int) -> None:
        url = urlsplit(base_url)
        self._host = url.hostname or ""
        self._tls = ssl.create_default_context() if url.scheme == "https" else None
        self._port = url.port or (443 if self._tls else 80)
        self._spare = spare
        self._idle: deque[Connection] = deque()
        self._busy: set[Connection] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._closed = False
        self.connect_times_s: list[float] = []
        self.lost_idle = 0

    async def open_one(self) -> Connection:
        """Open a connection.

        Raises:
            CannotConnectError: Refused, unreachable, or no answer in 30 s.
        """
        loop = asyncio.get_running_loop()
        began = time.perf_counter()
        try:
            _, connection = await asyncio.wait_for(
                loop.create_connection(lambda: Connection(self._lost), self._host, self._port, ssl=self._tls),
                CONNECT_TIMEOUT_S,
            )
        except asyncio.TimeoutError:
            raise CannotConnectError(f"cannot connect: no answer in {CONNECT_TIMEOUT_S:g} s") from None
        except OSError as error:
            raise CannotConnectError(f"cannot connect: {_reason(error)}") from None
        connection.connect_s = time.perf_counter() - began
        self.connect_times_s.append(connection.connect_s)
        return connection

    async def fill(self) -> None:
        """Open connections until ``spare`` are idle.

        Raises:
            CannotConnectError: The first of them could not be opened.
        """
        if self._idle or self._spare < 1:
            return
        self._idle.append(await self.open_one())
        for _ in range(self._spare - 1):
            try:
                self._idle.append(await self.open_one())
            except CannotConnectError:
                return  # what there is serves; requests that find none say why

    def take(self) -> Connection | None:
        """Return an idle connection that is still open; None when there is none."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                self._busy.add(connection)
                return connection
        return None

    async def take_or_open(self) -> tuple[Connection, float | None]:
        """Return a connection, and the time that opening took where it had to be opened now.

        Raises:
            CannotConnectError: It could not be opened.
        """
        connection = self.take()
        if connection is not None:
            return connection, None
        connection = await self.open_one()
        self._busy.add(connection)
        return connection, connection.connect_s

    def give_back(self, connection: Connection) -> None:
        """A request on it is over."""
        self._busy.discard(connection)
        if connection.is_open and not self._closed:
            self._idle.append(connection)

    def refill(self, wanted: int) -> None:
        """Open connections in the background until ``wanted`` are idle or being opened."""
        for _ in range(wanted - len(self._idle) - len(self._opening)):
            task = asyncio.ensure_future(self._open_idle())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open_idle(self) -> None:
        with contextlib.suppress(CannotConnectError):
            self.give_back(await self.open_one())

    def _lost(self, connection: Connection) -> None:
        with contextlib.suppress(ValueError):
            self._idle.remove(connection)
            self.lost_idle += 0 if self._closed else 1
        self._busy.discard(connection)

    def close(self) -> None:
        """Close all connections, and end what is under way on them."""
        self._closed = True
        for task in self._opening:
            task.cancel()
        for connection in (*self._idle, *self._busy):
            connection.close()
        self._idle.clear()


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    # asyncio joins the reasons of several addresses, and leaves only their text.
    several = _NUMBER.search(str(error))
    number = error.errno or (int(several[1]) if several else None)
    return os.strerror(number) if number and number > 0 else (error.strerror or str(error))
