"""One provider turn: a streamed request, durable starts and ends, live deltas in between."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import httpx

from fairlead_eventlog.port import Deltas
from fairlead_llm.http import stream
from fairlead_runner.ledger import Ledger
from fairlead_runner.voices import Speaker
from fairlead_schema.events import SessionEvent
from fairlead_schema.ids import RunnerId
from fairlead_schema.provider import ProviderFailure
from fairlead_session import request
from fairlead_session.calls import ProtocolViolation
from fairlead_session.publication import Publication
from fairlead_session.settlement import hand_over
from fairlead_session.state import Attempt

LINGER_S: Final = 0.002

TurnEnd: TypeAlias = Literal["answered", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended, and the events that say so and are not written yet."""

    end: TurnEnd
    events: tuple[SessionEvent, ...]


class Facts:
    """Writes what happens while it happens: one commit at a time, everything waiting in the next."""

    def __init__(self, ledger: Ledger, runner: RunnerId, generation: int) -> None:
        self._ledger = ledger
        self._runner = runner
        self._generation = generation
        self._waiting: list[SessionEvent] = []
        self._writing: asyncio.Task[None] | None = None
        self._settling = False

    def put(self, events: tuple[SessionEvent, ...]) -> None:
        """Write these soon. Raises what an earlier write raised."""
        if self._writing is not None and self._writing.done():
            self._writing.result()
            self._writing = None
        self._waiting.extend(events)
        if self._waiting and self._writing is None:
            self._writing = asyncio.create_task(self._write())

    async def settle(self) -> tuple[SessionEvent, ...]:
        """Let the write under way finish; the answer is what no write has taken."""
        self._settling = True
        if self._writing is not None:
            await self._writing
        rest, self._waiting = tuple(self._waiting), []
        return rest

    async def _write(self) -> None:
        # A quick answer is often whole by now: then one commit tells all of it.
        await asyncio.sleep(LINGER_S)
        while self._waiting and not self._settling:
            events, self._waiting = tuple(self._waiting), []
            await self._ledger.insist(events, self._runner, self._generation)


async def perform(
    ledger: Ledger,
    attempt: Attempt,
    speaker: Speaker,
    *,
    client: httpx.AsyncClient,
    deltas: Deltas,
    runner: RunnerId,
) -> Outcome:
    """Call the provider once and publish what it says. Raises Fenced."""
    asked = request.build(ledger.durable, speaker.voice)
    publication = Publication(
        attempt.assistant_message_id, attempt.agent, attempt.model, speaker.price
    )
    facts = Facts(ledger, runner, attempt.generation)
    end: TurnEnd = "answered"
    try:
        async with aclosing(stream(client, speaker.endpoint, asked)) as answer:
            async for event in answer:
                events, delta = publication.receive(event)
                if events:
                    facts.put(events)
                if delta is not None:
                    await deltas.send(ledger.at, delta)
                if isinstance(event, ProviderFailure) and not event.in_stream:
                    end = "failed"
    except ProtocolViolation as violation:
        facts.put(publication.receive(ProviderFailure("malformed-stream", str(violation)))[0])
        end = "failed"
    except asyncio.CancelledError:
        # The grace time is over: keep what was said, and leave the turn to whoever comes next.
        said = (*await facts.settle(), *publication.interrupt())
        await ledger.insist((*said, hand_over(attempt)), runner, attempt.generation)
        raise
    facts.put(publication.complete())
    return Outcome(end, await facts.settle())
