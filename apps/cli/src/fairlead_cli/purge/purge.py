"""Performs a purge: last words first, then the projector erases, then everything else goes.

Each step finds what an earlier run left, so a purge that was cut off is run again.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from fairlead_cli.errors import CommandError
from fairlead_cli.purge.plan import PurgePlan
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.erasure.eraser import (
    count_messages,
    find_letters_of_tenant,
    find_mentions,
    remove_at,
    remove_messages,
)
from fairlead_eventlog.erasure.places import (
    StoredPlace,
    mentions_of_session,
    rest_of_session,
    rest_of_tenant,
    truth_of_session,
)
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.ports import START
from fairlead_eventlog.service_command import send_service_command
from fairlead_eventlog.streams import DEAD
from fairlead_schema import subjects
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import Refused
from fairlead_schema.subjects import Address

BY: Final = "service:purge"
"""The audit lines of ingest name this command."""
TIMEOUT_S: Final = 15.0
POLL_S: Final = 0.2

Progress = Callable[[str], None]


async def purge(
    link: NatsLink, eventlog: EventLog, plan: PurgePlan, *, wait_s: float, progress: Progress
) -> None:
    """Remove everything of a plan. Raises CommandError, LogError; then run it again."""
    if plan.whole_tenant:
        # Schedules would make new sessions meanwhile.
        await _send(eventlog, subjects.api(plan.tenant, "hook.purge"), {})
    for at in plan.sessions:
        if await eventlog.log.end(at) != START:
            command = SessionCommand(session_id=at.session_id)
            await _send(eventlog, subjects.api(at.tenant, "session.delete"), command.wire())
            progress(f"{at.session_id}: purged")
    await _wait_until_erased(link, plan.sessions, wait_s)
    for at in plan.sessions:
        await _remove_rest(link, eventlog, at)
    if plan.whole_tenant:
        await _remove_all(link, rest_of_tenant(plan.tenant))
        await remove_at(link, DEAD.name, await find_letters_of_tenant(link, plan.tenant))
    else:
        for at in plan.sessions:
            for named in mentions_of_session(at):
                await remove_at(link, named.stream, await find_mentions(link, named))


async def _send(eventlog: EventLog, subject: str, command: object) -> None:
    try:
        await send_service_command(eventlog.requests, subject, command, timeout_s=TIMEOUT_S, by=BY)
    except Refused as refused:
        raise CommandError(f"{subject} was refused: {refused}") from refused
    except LogError as error:
        raise CommandError(
            f"ingest does not answer ({error}): start it, and run the same command again"
        ) from error


async def _wait_until_erased(link: NatsLink, sessions: Iterable[Address], wait_s: float) -> None:
    """Wait for the projector and the feed. They keep the last word of each session alone."""
    deadline = time.monotonic() + wait_s
    for at in sessions:
        for place in truth_of_session(at):
            while await count_messages(link, place) > 1:
                if time.monotonic() > deadline:
                    raise CommandError(
                        f"the projector has not erased {at.session_id} from {place.stream} yet: see"
                        " whether it and Postgres run, and run the same command again"
                    )
                await asyncio.sleep(POLL_S)


async def _remove_rest(link: NatsLink, eventlog: EventLog, at: Address) -> None:
    # The names of outputs are behind their chunks, so these go first, together.
    await eventlog.outputs.remove_all(at)
    await eventlog.attachments.remove_all(at)
    await _remove_all(link, rest_of_session(at))


async def _remove_all(link: NatsLink, places: Iterable[StoredPlace]) -> None:
    for place in places:
        await remove_messages(link, place)
