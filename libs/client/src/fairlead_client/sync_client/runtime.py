"""What differs between the two clients: how to pause, and how to get a value that may need waiting."""

import time
from collections.abc import Awaitable, Coroutine
from inspect import isawaitable
from typing import TypeVar

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
