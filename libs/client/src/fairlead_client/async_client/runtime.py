"""What differs between the two clients: pauses, locks, cancellation, values that need waiting, readers of other threads."""

import asyncio
from asyncio import Lock
from collections.abc import Awaitable, Callable, Coroutine
from inspect import isawaitable
from typing import Any, TypeVar

import httpx

from fairlead_client.errors import ClientClosed

__all__ = ["AsyncUnfinishedWork", "Lock", "break_off", "resolve", "sleep"]

Value = TypeVar("Value")


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def resolve(value: Value | Awaitable[Value]) -> Value:
    """The value, or what it becomes."""
    if isawaitable(value):
        return await value
    return value


class AsyncUnfinishedWork:
    """Work that goes on when its caller is cancelled, until it is done or the client is closed.

    httpx and nats-py leave connections behind, or break them, if they are cancelled in the middle.
    """

    def __init__(self) -> None:
        self._tasks = set[asyncio.Future[Any]]()

    async def finish(
        self,
        work: Awaitable[Value],
        undo: Callable[[Value], Coroutine[Any, Any, object]] | None = None,
    ) -> Value:
        """The outcome of some work. If the caller is cancelled, `undo` gets it instead.

        Raises ClientClosed if the client is closed meanwhile.
        """
        task = asyncio.ensure_future(work)
        self._keep(task)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if task.cancelled() and caller is not None and not caller.cancelling():
                raise ClientClosed from None
            if undo is not None:
                self._keep(asyncio.ensure_future(_undo(task, undo)))
            raise

    async def aclose(self) -> None:
        """End what still goes on."""
        while self._tasks:
            tasks = tuple(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def _keep(self, task: "asyncio.Future[Any]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Future[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # Perhaps its caller has left.


async def _undo(
    task: "asyncio.Future[Value]", undo: Callable[[Value], Coroutine[Any, Any, object]]
) -> None:
    await asyncio.wait({task})
    if not task.cancelled() and task.exception() is None:
        await undo(task.result())


def break_off(response: httpx.Response) -> None:
    """Wake whoever reads a response whose client is closed: a task notices by itself."""
