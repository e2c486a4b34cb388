"""What differs between the two clients: how to pause, and how to get a value that may need waiting."""

import asyncio
from collections.abc import Awaitable
from inspect import isawaitable
from typing import TypeVar

Value = TypeVar("Value")


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def resolve(value: Value | Awaitable[Value]) -> Value:
    """The value, or what it becomes."""
    if isawaitable(value):
        return await value
    return value
