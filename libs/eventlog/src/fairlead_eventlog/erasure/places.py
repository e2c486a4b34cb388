"""Where the streams hold data of a session or a tenant, as subjects. Pure: a test keeps the lists complete."""

from typing import Final, NamedTuple

from fairlead_eventlog.streams import (
    APPROVALS,
    ATTACHMENT_BUCKET,
    ATTACHMENTS,
    DEAD,
    EVENTS,
    HOOK_STATES,
    JOBS,
    MESSAGES,
    ORIGINS,
    OUTPUT_BUCKET,
    OUTPUTS,
    PROMPTS,
    RECEIPTS,
    REGISTRATIONS,
    SCHEDULES,
    SNAPSHOTS,
    SOURCES,
    TIMERS,
    TOOLS,
    TRANSFORMS,
    UNDELIVERED,
    WAKES,
    WEBHOOKS,
    log_stream,
)
from fairlead_schema import subjects
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import ROOT, SHARDS, Address


class StoredPlace(NamedTuple):
    """Some messages of one stream."""

    stream: str
    subject: str
    """It may have wildcards."""


class NamedIn(NamedTuple):
    """Messages of a stream that name a session or tenant in their subject or their body."""

    stream: str
    word: str


OF_TENANTS: Final = (
    APPROVALS,
    REGISTRATIONS,
    SOURCES,
    TRANSFORMS,
    WEBHOOKS,
    SCHEDULES,
    HOOK_STATES,
    UNDELIVERED,
)
"""Buckets whose keys begin with the tenant."""


def truth_of_session(at: Address) -> tuple[StoredPlace, StoredPlace]:
    """The log and the feed. Each keeps the last word of a purged session."""
    stream = log_stream(subjects.shard(at.session_id))
    return StoredPlace(stream, subjects.log(at)), StoredPlace(EVENTS.name, subjects.event(at, ">"))


def rest_of_session(at: Address) -> tuple[StoredPlace, ...]:
    """Everything else, in the order of removal: first what could begin work."""
    tenant, session = at
    return (
        StoredPlace(PROMPTS.name, subjects.prompt(at)),
        StoredPlace(TIMERS.name, subjects.timer(at)),
        StoredPlace(TIMERS.name, subjects.timer_due(at)),
        StoredPlace(WAKES.name, subjects.wake(at)),
        StoredPlace(TOOLS.name, subjects.tool(at, "*")),
        StoredPlace(RECEIPTS.name, f"{ROOT}.receipt.{tenant}.{session}.>"),
        StoredPlace(OUTPUTS.name, f"$O.{OUTPUT_BUCKET}.C.{tenant}.{session}.>"),
        StoredPlace(ATTACHMENTS.name, f"$O.{ATTACHMENT_BUCKET}.C.{tenant}.{session}.>"),
        StoredPlace(SNAPSHOTS.name, f"$KV.fairlead-snapshot.{tenant}.{session}"),
        StoredPlace(ORIGINS.name, f"$KV.fairlead-origin.{tenant}.{session}"),
    )


def rest_of_tenant(tenant: TenantId) -> tuple[StoredPlace, ...]:
    """What a tenant has besides its sessions, and what their removal may have left."""
    return (
        StoredPlace(PROMPTS.name, f"{ROOT}.prompt.{tenant}.*"),
        StoredPlace(TIMERS.name, f"{ROOT}.timer.{tenant}.*.*"),
        StoredPlace(TIMERS.name, f"{ROOT}.due.{tenant}.*.*"),
        StoredPlace(WAKES.name, f"{ROOT}.wake.{tenant}.*.*"),
        StoredPlace(TOOLS.name, f"{ROOT}.tool.*.{tenant}.*"),
        StoredPlace(JOBS.name, f"{ROOT}.job.{tenant}.>"),
        StoredPlace(RECEIPTS.name, f"{ROOT}.receipt.{tenant}.>"),
        StoredPlace(OUTPUTS.name, f"$O.{OUTPUT_BUCKET}.C.{tenant}.>"),
        StoredPlace(ATTACHMENTS.name, f"$O.{ATTACHMENT_BUCKET}.C.{tenant}.>"),
        StoredPlace(SNAPSHOTS.name, f"$KV.fairlead-snapshot.{tenant}.>"),
        StoredPlace(ORIGINS.name, f"$KV.fairlead-origin.{tenant}.>"),
        *(
            StoredPlace(spec.name, f"{spec.subjects[0].removesuffix('>')}{tenant}.>")
            for spec in OF_TENANTS
        ),
        # Nobody is left whose ids have to stay used.
        StoredPlace(MESSAGES.name, f"{ROOT}.message.{tenant}.*"),
    )


def mentions_of_session(at: Address) -> tuple[NamedIn, ...]:
    """Streams whose subjects do not name the session."""
    return NamedIn(DEAD.name, at.session_id), NamedIn(JOBS.name, at.session_id)


def logs_of_tenant(tenant: TenantId) -> tuple[StoredPlace, ...]:
    """The subjects of all sessions of a tenant."""
    return tuple(
        StoredPlace(log_stream(shard), f"{ROOT}.log.{tenant}.*.*") for shard in range(SHARDS)
    )
