"""What a purge would remove: the sessions, and the messages of each stream."""

from collections import Counter
from dataclasses import dataclass, field

from fairlead_cli.errors import CommandError
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.erasure.eraser import (
    count_messages,
    find_letters_of_tenant,
    find_mentions,
    sessions_of_tenant,
)
from fairlead_eventlog.erasure.places import (
    StoredPlace,
    mentions_of_session,
    rest_of_session,
    rest_of_tenant,
    truth_of_session,
)
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.ports import START
from fairlead_eventlog.streams import DEAD
from fairlead_schema.ids import SessionId, TenantId
from fairlead_schema.subjects import Address
from fairlead_session.transfer.named import named_by_commit


@dataclass(frozen=True)
class PurgePlan:
    """The sessions of a purge, and what the streams hold of them."""

    tenant: TenantId
    sessions: tuple[Address, ...]
    whole_tenant: bool
    messages: Counter[str] = field(default_factory=Counter)
    """By stream."""
    alive: int = 0
    """Sessions that are not purged yet."""

    @property
    def word(self) -> str:
        """What somebody has to type to let it happen."""
        return self.tenant if self.whole_tenant else self.sessions[0].session_id


async def plan_tenant(link: NatsLink, eventlog: EventLog, tenant: TenantId) -> PurgePlan:
    """Everything of a tenant. Raises CommandError if nothing of it is stored."""
    sessions = tuple(await sessions_of_tenant(link, tenant))
    plan = await _count(link, eventlog, PurgePlan(tenant, sessions, whole_tenant=True))
    for place in rest_of_tenant(tenant):
        plan.messages[place.stream] += await count_messages(link, place)
    plan.messages[DEAD.name] = len(await find_letters_of_tenant(link, tenant))
    if not sessions and not plan.messages.total():
        raise CommandError(f"nothing of tenant {tenant} is stored: check its name")
    return plan


async def plan_session(link: NatsLink, eventlog: EventLog, at: Address, *, tree: bool) -> PurgePlan:
    """One session, perhaps with its sub-agents. Raises CommandError if the log does not know it."""
    sessions = [at, *(await _children(eventlog, at) if tree else ())]
    plan = await _count(link, eventlog, PurgePlan(at.tenant, tuple(sessions), whole_tenant=False))
    if not plan.messages.total():
        raise CommandError(f"the log holds no session {at.session_id} of tenant {at.tenant}")
    return plan


async def _count(link: NatsLink, eventlog: EventLog, plan: PurgePlan) -> PurgePlan:
    alive = 0
    for at in plan.sessions:
        alive += await eventlog.log.end(at) != START
        places: tuple[StoredPlace, ...] = truth_of_session(at)
        if not plan.whole_tenant:
            places += rest_of_session(at)
            for named in mentions_of_session(at):
                plan.messages[named.stream] += len(await find_mentions(link, named))
        for place in places:
            plan.messages[place.stream] += await count_messages(link, place)
    return PurgePlan(plan.tenant, plan.sessions, plan.whole_tenant, plan.messages, alive)


async def _children(eventlog: EventLog, root: Address) -> list[Address]:
    """The sessions of all sub-agents below a session, as far as their logs still name them."""
    found: dict[SessionId, None] = {}
    waiting = [root.session_id]
    while waiting:
        session_id = waiting.pop()
        entries = eventlog.shards.session_entries(Address(root.tenant, session_id), after=0)
        async for entry in entries:
            for child in named_by_commit(session_id, entry.payload).children:
                at = Address(root.tenant, child)
                if child not in found and await eventlog.log.last_commit_position(at):
                    found[child] = None
                    waiting.append(child)
    return [Address(root.tenant, child) for child in found]
