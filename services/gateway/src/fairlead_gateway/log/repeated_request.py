"""Sends a command again while nobody answers, because the ingest that got it may stand still (D4)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

from fairlead_eventlog.errors import LogError, LogUnavailable, NoResponders
from fairlead_schema import subjects
from fairlead_schema.identity.verbs import VERBS
from fairlead_schema.ids import TenantId
from fairlead_service.supervise import cancel_and_wait

Send: TypeAlias = Callable[[str, float], Awaitable[bytes]]
"""Sends the command to a subject and waits so long for its answer. Raises LogError."""


class Try(NamedTuple):
    """When a try begins, as a part of the caller's time, and whether it asks every ingest."""

    after: float
    asks_every: bool = False


TRIES: Final = (Try(0.0), Try(0.1), Try(0.3, asks_every=True))
"""A queue of NATS picks an ingest at random, perhaps one that stands still. The last try asks all."""


async def send_until_answered(
    send: Send, tenant: TenantId, verb: str, *, timeout_s: float, keyed: bool = False
) -> bytes:
    """The first answer to a command, which is sent up to three times if the verb is repeatable.

    A key makes every command repeatable, but only repeatable verbs have a door to every ingest.
    Raises NoResponders if nobody serves the verb, and LogUnavailable if nobody answers in time.
    """
    tries = TRIES if VERBS[verb].repeatable else TRIES[: 2 if keyed else 1]
    running: set[asyncio.Task[bytes]] = set()
    failures: list[LogError] = []
    clock = asyncio.get_running_loop().time
    began = clock()
    try:
        for number, attempt in enumerate(tries, start=1):
            subject = _subject(tenant, verb, attempt)
            left_s = timeout_s * (1 - attempt.after)
            running.add(asyncio.ensure_future(send(subject, left_s)))
            until = timeout_s if number == len(tries) else timeout_s * tries[number].after
            answer = await _first_answer(running, failures, began + until, clock)
            if answer is not None:
                return answer
            if isinstance(failures[0] if failures else None, NoResponders):
                break
        raise failures[0] if failures else LogUnavailable(f"nobody answered {verb} in time")
    finally:
        await cancel_and_wait(*running)


def _subject(tenant: TenantId, verb: str, attempt: Try) -> str:
    return (subjects.every_server if attempt.asks_every else subjects.api)(tenant, verb)


async def _first_answer(
    running: set[asyncio.Task[bytes]],
    failures: list[LogError],
    until: float,
    clock: Callable[[], float],
) -> bytes | None:
    """The first answer of the tries under way; None if all of them failed, or at a time."""
    while running:
        done, _ = await asyncio.wait(
            running, timeout=max(0.0, until - clock()), return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            return None
        for task in done:
            running.discard(task)
            error = task.exception()
            if error is None:
                return task.result()
            if not isinstance(error, LogError):
                raise error
            failures.append(error)
    return None
