"""Calls: what a tool that does nothing adds to the turn that calls it."""

import asyncio
import json
import time
from pathlib import Path
from typing import Final, Protocol

from fairlead_cli.bench.admissions import ask, sessions
from fairlead_cli.bench.measure import Timing, timing
from fairlead_cli.bench.turns import TURN_S, listening
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import open_link
from fairlead_schema import subjects
from fairlead_schema.events import ExecutionReleased, ToolCalled, ToolFailed, ToolSucceeded
from fairlead_schema.events.event import Event
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address

# The probes are there, and nobody is asked.
CONFIGURATION: Final = """
[tools]
probes = true

[[agent.build.permissions]]
action = "*"
resource = "*"
effect = "allow"
"""


def configured(place: Path) -> Path:
    """A configuration whose model may call a tool that does nothing."""
    path = place / "bench.toml"
    location = f"[location]\ndefault = {json.dumps(str(place))}\n"
    path.write_text(f"{CONFIGURATION}\n{location}")
    return path


async def calls(url: str, nats: str, eventlog: EventLog, *, each: int) -> tuple[Timing, Timing]:
    """Turns with one call each, whole and over HTTP; and from a call to its settlement.

    The second is heard on the log alone, and not even read: whoever follows a session and decodes
    its events while a call runs takes one of two cores from it.
    """
    return await _whole(url, eventlog, each), await _settled(nats, eventlog, each)


def _prompt(number: int) -> str:
    # A new key each time: the same call again and again would be stopped.
    args = json.dumps({"key": f"k{number}"})
    return f"[[sim: tool=probe_pure args='{args}' ; answer=done]]"


async def _whole(url: str, eventlog: EventLog, each: int) -> Timing:
    (session,) = await sessions(eventlog, 1)
    whole: list[float] = []
    async with listening(url, session) as listener:
        for number in range(-2, each):
            began = time.perf_counter()
            await listener.take(_prompt(number))
            async with asyncio.timeout(TURN_S):
                ended = await listener.ended.get()
            if number >= 0:
                whole.append(ended - began)
    return timing(whole, sum(whole))


async def _settled(nats: str, eventlog: EventLog, each: int) -> Timing:
    (session,) = await sessions(eventlog, 1)
    added: list[float] = []
    async with open_link(nats, name="fairlead-bench") as link:
        ear = Ear()
        await link.client.subscribe(subjects.commit(Address(DEFAULT_TENANT, session)), cb=ear.hear)
        for number in range(-2, each):
            body = {"sessionID": session, "prompt": {"text": _prompt(number)}}
            await ask(eventlog, "session.prompt", body)
            async with asyncio.timeout(TURN_S):
                took = await ear.settled.get()
            if number >= 0:
                added.append(took)
    return timing(added, sum(added))


class Message(Protocol):
    """What goes by."""

    data: bytes


class Ear:
    """Hears commits go by, and tells how long each call took once its session rests."""

    def __init__(self) -> None:
        self.settled: asyncio.Queue[float] = asyncio.Queue()
        self._called = self._took = 0.0

    async def hear(self, msg: Message) -> None:
        now, commit = time.perf_counter(), msg.data
        if _told(ToolFailed, commit):
            raise RuntimeError(commit.decode())
        if _told(ToolCalled, commit):
            self._called = now
        if _told(ToolSucceeded, commit):
            self._took = now - self._called
        if _told(ExecutionReleased, commit):
            self.settled.put_nowait(self._took)


def _told(kind: type[Event], commit: bytes) -> bool:
    return f'"type":"{kind.type}"'.encode() in commit
