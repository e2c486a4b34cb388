"""Moves the sessions of a pool to others: each when it rests, or at once."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from fairlead_cli.pools.sessions import PooledSession, read_sessions
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.connect import connect_over
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.service_command import send_service_command
from fairlead_schema import subjects
from fairlead_schema.errors import Conflict, Refused, SessionNotFound
from fairlead_schema.subjects import Address
from fairlead_schema.tools.pool_rules import PoolRules
from fairlead_service.config.configuration import Config
from fairlead_service.locations import choose_pool

PAUSE_S: Final = 2.0
TIMEOUT_S: Final = 10.0


@dataclass(slots=True)
class DrainReport:
    """What a drain has done: the new pool of each moved session, and why others stay."""

    moved: dict[Address, str] = field(default_factory=dict)
    busy: dict[Address, str] = field(default_factory=dict)
    """These work, or wait for a person. A later round or drain moves them."""
    refused: dict[Address, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PoolDrain:
    """The drain of one pool. Without a target the rules choose for each session.

    It waits until a session rests, and a running call ends where it is. With `now` it interrupts
    what runs, and the session goes on in its new pool.
    """

    config: Config
    pools: PoolRules
    source: str
    target: str | None = None
    now: bool = False

    async def run(
        self,
        link: NatsLink,
        wait_s: float,
        on_moved: Callable[[Address, str], None],
        on_round: Callable[[DrainReport, float], None] | None = None,
    ) -> DrainReport:
        """Move sessions until none is left, or until the time is over. Raises LogError, CommandError."""
        report, deadline = DrainReport(), time.monotonic() + wait_s
        async with connect_over(link) as eventlog:
            while True:
                report.busy = {}
                for session in await asyncio.to_thread(read_sessions, self.config):
                    if self._belongs(session) and session.at not in report.refused:
                        await self._move(eventlog, session, report, on_moved)
                left_s = deadline - time.monotonic()
                if not report.busy or left_s < 0:
                    return report
                if on_round is not None:
                    on_round(report, left_s)
                await asyncio.sleep(PAUSE_S)

    def _belongs(self, session: PooledSession) -> bool:
        return (session.pool or self.pools.default) == self.source

    async def _move(
        self,
        eventlog: EventLog,
        session: PooledSession,
        report: DrainReport,
        on_moved: Callable[[Address, str], None],
    ) -> None:
        at = session.at
        target = self.target or choose_pool(self.pools, at.tenant, session.directory)
        if at in report.moved:
            # The read models have not seen the move yet.
            return
        if target == self.source:
            reason = f"the rules keep it in {self.source}: change them first, or name --to"
            report.refused[at] = reason
            return
        manner = {"resume": True} if self.now else {"atRest": True}
        command = {"sessionID": at.session_id, "pool": target, **manner}
        subject = subjects.api(at.tenant, "session.move")
        try:
            await send_service_command(eventlog.requests, subject, command, timeout_s=TIMEOUT_S)
        except SessionNotFound:
            return
        except Conflict as conflict:
            report.busy[at] = str(conflict)
        except Refused as refusal:
            report.refused[at] = str(refusal)
        except LogError as error:
            # Ingest starts again, or a shard has no leader: the next round asks again.
            report.busy[at] = str(error)
        else:
            report.moved[at] = target
            on_moved(at, target)
