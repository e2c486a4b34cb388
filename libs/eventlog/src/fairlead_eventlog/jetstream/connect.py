"""Connects to NATS and provides every port over that one connection."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fairlead_eventlog.backup.backup_register import JetStreamBackupRegister
from fairlead_eventlog.condition.operations import JetStreamOperations
from fairlead_eventlog.condition.self_description import NatsSelfDescription
from fairlead_eventlog.condition.stream_sizes import JetStreamStreamSizes
from fairlead_eventlog.condition.waiting_work import JetStreamWaitingWork
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.deltas import NatsDeltas
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.liveness import NatsLiveness
from fairlead_eventlog.jetstream.local_requests import LocalRequests
from fairlead_eventlog.jetstream.open_texts import NatsOpenTexts
from fairlead_eventlog.jetstream.registers.approvals import JetStreamApprovals
from fairlead_eventlog.jetstream.registers.log_status import JetStreamLogStatus
from fairlead_eventlog.jetstream.registers.message_ids import JetStreamMessageIds
from fairlead_eventlog.jetstream.registers.origins import JetStreamOrigins
from fairlead_eventlog.jetstream.registers.receipts import JetStreamReceipts
from fairlead_eventlog.jetstream.registers.records import JetStreamRecords
from fairlead_eventlog.jetstream.registers.registrations import (
    tool_registrations,
    transform_registrations,
)
from fairlead_eventlog.jetstream.registers.snapshots import JetStreamSnapshots
from fairlead_eventlog.jetstream.registers.sources import JetStreamSources
from fairlead_eventlog.jetstream.requests import NatsRequests
from fairlead_eventlog.jetstream.streams.client_consumers import JetStreamClientConsumers
from fairlead_eventlog.jetstream.streams.commit_broadcasts import NatsCommitBroadcasts
from fairlead_eventlog.jetstream.streams.dead_letters import JetStreamDeadLetters
from fairlead_eventlog.jetstream.streams.feed import JetStreamFeed
from fairlead_eventlog.jetstream.streams.feed_consumers import JetStreamFeedConsumers
from fairlead_eventlog.jetstream.streams.outputs import JetStreamOutputs
from fairlead_eventlog.jetstream.streams.patient_append import PATIENCE_S
from fairlead_eventlog.jetstream.streams.session_log import JetStreamLog
from fairlead_eventlog.jetstream.streams.shards import JetStreamShards
from fairlead_eventlog.jetstream.streams.timers import JetStreamTimers
from fairlead_eventlog.jetstream.streams.wakes import JetStreamWakes
from fairlead_eventlog.jetstream.streams.work_queues import JetStreamWorkQueues
from fairlead_eventlog.jetstream.tenant_broadcasts import NatsTenantBroadcasts
from fairlead_eventlog.streams import (
    ATTACHMENT_BUCKET,
    HOOK_STATES,
    SCHEDULES,
    UNDELIVERED,
    WEBHOOKS,
)
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.subjects import SCHEDULES_CHANGED, WEBHOOKS_CHANGED


@asynccontextmanager
async def connect(
    address: NatsAddress,
    *,
    name: str,
    timeout_s: float = 5.0,
    append_patience_s: float = PATIENCE_S,
    local: LocalRequests | None = None,
) -> AsyncIterator[EventLog]:
    """Every port over one connection.

    An append is repeated for `append_patience_s`, so that it outlives the election of a leader.
    With `local`, other parts of this process answer requests without NATS.
    """
    async with (
        open_link(address, name=name, timeout_s=timeout_s) as link,
        connect_over(link, append_patience_s=append_patience_s, local=local) as eventlog,
    ):
        yield eventlog


@asynccontextmanager
async def connect_over(
    link: NatsLink, *, append_patience_s: float = PATIENCE_S, local: LocalRequests | None = None
) -> AsyncIterator[EventLog]:
    """Every port over a link that is open, as `connect` does it."""
    status = JetStreamLogStatus(link)
    async with status.keep_reading():
        yield open_ports(link, status, append_patience_s=append_patience_s, local=local)


def open_ports(
    link: NatsLink,
    status: JetStreamLogStatus,
    *,
    append_patience_s: float = PATIENCE_S,
    local: LocalRequests | None = None,
) -> EventLog:
    """Every port over a connection."""
    return EventLog(
        log=JetStreamLog(link, status, append_patience_s=append_patience_s),
        broadcasts=NatsCommitBroadcasts(link),
        tenant_broadcasts=NatsTenantBroadcasts(link),
        status=status,
        shards=JetStreamShards(link),
        wakes=JetStreamWakes(link),
        work=JetStreamWorkQueues(link),
        timers=JetStreamTimers(link),
        liveness=NatsLiveness(link),
        snapshots=JetStreamSnapshots(link),
        message_ids=JetStreamMessageIds(link),
        origins=JetStreamOrigins(link),
        receipts=JetStreamReceipts(link),
        tool_registrations=tool_registrations(link),
        transforms=transform_registrations(link),
        sources=JetStreamSources(link),
        deltas=NatsDeltas(link),
        open_texts=NatsOpenTexts(link),
        outputs=JetStreamOutputs(link),
        attachments=JetStreamOutputs(link, ATTACHMENT_BUCKET),
        requests=NatsRequests(link, local),
        feed=JetStreamFeed(link),
        client_consumers=JetStreamClientConsumers(link),
        dead_letters=JetStreamDeadLetters(link),
        feed_consumers=JetStreamFeedConsumers(link),
        webhooks=JetStreamRecords(link, WEBHOOKS, WEBHOOKS_CHANGED),
        schedules=JetStreamRecords(link, SCHEDULES, SCHEDULES_CHANGED),
        hook_states=JetStreamRecords(link, HOOK_STATES, None),
        undelivered=JetStreamRecords(link, UNDELIVERED, None),
        approvals=JetStreamApprovals(link),
        stream_sizes=JetStreamStreamSizes(link),
        waiting_work=JetStreamWaitingWork(link),
        backups=JetStreamBackupRegister(link),
        operations=JetStreamOperations(link),
        self_description=NatsSelfDescription(link),
        complaint=link.complaint,
    )
