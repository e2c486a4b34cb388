"""Times calls of a tool that does nothing: its whole turn, and from call to settlement."""

import asyncio
import json
import time
from pathlib import Path
from typing import Final, Protocol

from fairlead_cli.bench.admissions import create_sessions, send_command
from fairlead_cli.bench.measurement import Timing, summarise
from fairlead_cli.bench.turns import TURN_S, open_listener
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_schema import subjects
from fairlead_schema.events import ExecutionReleased, ToolCalled, ToolFailed, ToolSucceeded
from fairlead_schema.events.event import Event
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address

# The probe tools are on, and every call is permitted.
CONFIGURATION: Final = """
tools.probes = true

[[agent.build.permissions]]
action = "*"
resource = "*"
effect = "allow"
"""


def write_config(directory: Path, *, more: str = "") -> Path:
    """Write a configuration whose agent may call the probe tools, with more of it before that."""
    path = directory / "bench.toml"
    location = f"[location]\ndefault = {json.dumps(str(directory))}\n"
    path.write_text(f"{more}\n{CONFIGURATION}\n{location}")
    return path


async def time_calls(
    url: str, nats: NatsAddress, eventlog: EventLog, *, each: int
) -> tuple[Timing, Timing]:
    """Whole turns with one call each, over HTTP; and the time from a call to its settlement.

    The second listens to the log and does not decode commits, because a client that decodes events
    during the call would take processor time from the services.
    """
    return await _time_turns(url, eventlog, each), await _time_settlements(nats, eventlog, each)


def _prompt(number: int) -> str:
    # Each call has its own key, because a repeated call would be stopped.
    args = json.dumps({"key": f"k{number}"})
    return f"[[sim: tool=probe_pure args='{args}' ; answer=done]]"


async def _time_turns(url: str, eventlog: EventLog, each: int) -> Timing:
    (session,) = await create_sessions(eventlog, 1)
    durations: list[float] = []
    async with open_listener(url, session) as listener:
        for number in range(-2, each):
            start = time.perf_counter()
            await listener.take_turn(_prompt(number))
            async with asyncio.timeout(TURN_S):
                end = await listener.turn_ends.get()
            if number >= 0:
                durations.append(end - start)
    return summarise(durations, sum(durations))


async def _time_settlements(nats: NatsAddress, eventlog: EventLog, each: int) -> Timing:
    (session,) = await create_sessions(eventlog, 1)
    durations: list[float] = []
    async with open_link(nats, name="fairlead-bench") as link:
        timer = CallTimer()
        await link.client.subscribe(
            subjects.commit(Address(DEFAULT_TENANT, session)), cb=timer.on_commit
        )
        for number in range(-2, each):
            body = {"sessionID": session, "prompt": {"text": _prompt(number)}}
            await send_command(eventlog, "session.prompt", body)
            async with asyncio.timeout(TURN_S):
                duration = await timer.durations.get()
            if number >= 0:
                durations.append(duration)
    return summarise(durations, sum(durations))


class CommitMessage(Protocol):
    """The part of a NATS message that the timer needs."""

    data: bytes


class CallTimer:
    """Times calls by the commits of a session, and queues each duration when the session rests."""

    def __init__(self) -> None:
        self.durations: asyncio.Queue[float] = asyncio.Queue()
        self._call_time = self._duration = 0.0

    async def on_commit(self, msg: CommitMessage) -> None:
        now, commit = time.perf_counter(), msg.data
        if _contains(ToolFailed, commit):
            raise RuntimeError(commit.decode())
        if _contains(ToolCalled, commit):
            self._call_time = now
        if _contains(ToolSucceeded, commit):
            self._duration = now - self._call_time
        if _contains(ExecutionReleased, commit):
            self.durations.put_nowait(self._duration)


def _contains(kind: type[Event], commit: bytes) -> bool:
    return f'"type":"{kind.type}"'.encode() in commit
