"""Looks up the addresses of names that somebody else chose, each in a thread of its own.

The event loop's own look-up shares a handful of threads. A few names whose server never answers would hold
all of them, and nobody could be reached any more.
"""

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any, Final, TypeAlias

LOOKUPS_MAX: Final = 256
"""How many names are looked up at once. A name that stalls is one of them, however many ask for it."""

Find: TypeAlias = Callable[..., list[tuple[Any, ...]]]


class TooManyLookups(OSError):
    """So many names stall that none can be looked up now."""


class NameLookups:
    """The look-ups of a process. Whoever asks for a name that is looked up already waits for the same answer."""

    def __init__(self, find: Find = socket.getaddrinfo) -> None:
        self.find = find
        self._lock = Lock()
        self._running: dict[str, Future[list[str]]] = {}

    async def find_addresses(self, host: str) -> list[str]:
        """The addresses of a name. Raises OSError and UnicodeError."""
        return await asyncio.wrap_future(self._start(host))

    def _start(self, host: str) -> Future[list[str]]:
        with self._lock:
            running = self._running.get(host)
            if running is not None:
                return running
            if len(self._running) >= LOOKUPS_MAX:
                raise TooManyLookups
            future: Future[list[str]] = Future()
            future.set_running_or_notify_cancel()  # Who stops waiting cancels it for nobody else.
            # A daemon: a process that ends does not wait for a server that never answers.
            Thread(target=self._look_up, args=(host, future), daemon=True, name="lookup").start()
            self._running[host] = future
            return future

    def _look_up(self, host: str, future: Future[list[str]]) -> None:
        try:
            infos = self.find(host, None, type=socket.SOCK_STREAM)
        except Exception as error:  # noqa: BLE001 - each caller gets it
            self._forget(host)
            future.set_exception(error)
        else:
            self._forget(host)
            future.set_result([str(info[4][0]) for info in infos])

    def _forget(self, host: str) -> None:
        with self._lock:
            del self._running[host]


LOOKUPS: Final = NameLookups()
