"""What differs between the two clients: pauses, locks, cancellation, values that need waiting, readers of other threads."""

import socket
import time
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from inspect import isawaitable
from threading import Lock
from typing import TypeVar

import httpx

__all__ = ["Lock", "UnfinishedWork", "break_off", "resolve", "sleep"]

Value = TypeVar("Value")


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def resolve(value: Value | Awaitable[Value]) -> Value:
    """The value. Raises TypeError for one that only an asynchronous caller could wait for."""
    if isawaitable(value):
        if isinstance(value, Coroutine):
            value.close()
        raise TypeError("the token comes from an async function: use AsyncFairlead")
    return value


class UnfinishedWork:
    """Work that is done at once: nobody cancels a thread."""

    def finish(self, outcome: Value, undo: object = None) -> Value:  # noqa: ARG002 - of the other client
        """The outcome."""
        return outcome

    def close(self) -> None:
        """Nothing goes on."""


def break_off(response: httpx.Response) -> None:
    """Wake whoever reads a response whose client is closed: a closed socket does not wake another thread."""
    stream = response.extensions.get("network_stream")
    connected = None if stream is None else stream.get_extra_info("socket")
    if connected is not None:
        with suppress(OSError):
            socket.socket.shutdown(connected, socket.SHUT_RDWR)
