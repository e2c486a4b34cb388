"""A thread with an event loop, in which a synchronous client keeps what only asyncio can do."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, TypeVar

from fairlead_client.errors import ClientClosed

Value = TypeVar("Value")


class LoopThread:
    """Runs coroutines for other threads until it is closed."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        # The collector of garbage may close a stream while this thread holds the lock already.
        self._lock = threading.RLock()
        self._is_closed = False
        self._left: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """The outcome of a coroutine. If the caller is interrupted, the coroutine is cancelled.

        Raises ClientClosed, also in a thread that waits while another one closes the client.
        """
        future = self._begin(work)
        try:
            return future.result()
        except CancelledError:
            raise ClientClosed from None
        finally:
            future.cancel()

    def finish(self, work: Coroutine[Any, Any, object]) -> None:
        """Run a coroutine to its end. A closed thread has ended what the coroutine would end."""
        if threading.current_thread() is self._thread:
            # The collector of garbage closes a stream in this thread, which cannot wait for itself.
            task = self._loop.create_task(work)
            self._left.add(task)
            task.add_done_callback(self._left.discard)
            return
        with suppress(ClientClosed):
            self.run(work)

    def close(self, last: Coroutine[Any, Any, object]) -> None:
        """Run the last coroutine, cancel the others, and end the thread. A second call does nothing."""
        with self._lock:
            if self._is_closed:
                last.close()
                return
            ending = self._begin(last)
            self._is_closed = True
        try:
            ending.result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _serve(self) -> None:
        """Run the loop until it is stopped, and leave nothing in it."""
        self._loop.run_forever()
        self._loop.run_until_complete(_end_tasks())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        # A thread that was woken has perhaps dropped a stream, and the loop closes it.
        self._loop.run_until_complete(_end_tasks())
        self._loop.close()

    def _begin(self, work: Coroutine[Any, Any, Value]) -> "Future[Value]":
        with self._lock:
            if self._is_closed:
                work.close()
                raise ClientClosed
            return asyncio.run_coroutine_threadsafe(work, self._loop)


async def _end_tasks() -> None:
    """End everything that runs in the loop, and what comes of it."""
    await asyncio.sleep(0)
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in others:
            task.cancel()
        await asyncio.wait(others)
