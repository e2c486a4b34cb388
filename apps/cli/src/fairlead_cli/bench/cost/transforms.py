"""Measures what a transform adds to a turn: a service over NATS that changes nothing."""

import json
from statistics import median
from typing import Any, Final, Protocol

from fairlead_cli.bench.admissions import create_sessions, send_command
from fairlead_cli.bench.measurement import ROUNDS
from fairlead_cli.bench.turns import Listener, open_listener
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_schema.identity.nats_address import NatsAddress

ADDED_MS: Final = "turn with a transform, added ms"
_NAME: Final = "bench/nothing"
_SUBJECT: Final = "fairlead.app.default.bench"
_TRANSFORM: Final[dict[str, Any]] = {
    "name": _NAME,
    "version": "1",
    "subject": _SUBJECT,
    "parts": ["system", "messages", "parameters"],
    "onFailure": "closed",
}


class TransformQuestion(Protocol):
    """The part of a NATS message that the service needs."""

    data: bytes

    async def respond(self, data: bytes) -> None: ...


class TransformService:
    """Answers every question that it changes nothing, and counts them."""

    def __init__(self) -> None:
        self.questions = 0

    async def answer(self, question: TransformQuestion) -> None:
        json.loads(question.data)
        self.questions += 1
        await question.respond(b'{"data":null}')


async def measure_transforms(
    url: str, client: NatsAddress, eventlog: EventLog, *, each: int
) -> dict[str, float]:
    """The p50 of turns with a transform by that of turns without, timed in turn."""
    (session,) = await create_sessions(eventlog, 1)
    service, added, asked = TransformService(), list[float](), 0
    async with (
        open_link(client, name="fairlead-bench-transform") as link,
        open_listener(url, session) as listener,
    ):
        await link.client.subscribe(_SUBJECT, cb=service.answer)
        count = max(10, each // 2)
        await _time(listener, count)
        for _ in range(ROUNDS):
            without = await _time(listener, count)
            await send_command(eventlog, "transform.register", _TRANSFORM)
            # The first turn reads the registration anew.
            await listener.take_turn("warm")
            before = service.questions
            added.append(await _time(listener, count) - without)
            asked += service.questions - before
            await send_command(eventlog, "transform.remove", {"name": _NAME})
            await listener.take_turn("warm")
    if asked != ROUNDS * count:
        raise RuntimeError(f"{asked} of {ROUNDS * count} timed turns asked the transform")
    return {ADDED_MS: median(added) * 1000}


async def _time(listener: Listener, count: int) -> float:
    """The median of so many turns, in seconds."""
    return median([await listener.take_turn(f"turn {number}") for number in range(count)])
