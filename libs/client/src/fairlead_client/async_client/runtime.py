"""What differs between the two clients: pauses, locks, values that may need waiting, and readers of other threads."""

import asyncio
from asyncio import Lock
from collections.abc import Awaitable
from inspect import isawaitable
from typing import TypeVar

import httpx

__all__ = ["Lock", "break_off", "resolve", "sleep"]

Value = TypeVar("Value")


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def resolve(value: Value | Awaitable[Value]) -> Value:
    """The value, or what it becomes."""
    if isawaitable(value):
        return await value
    return value


def break_off(response: httpx.Response) -> None:
    """Wake whoever reads a response whose client is closed: a task notices by itself."""
