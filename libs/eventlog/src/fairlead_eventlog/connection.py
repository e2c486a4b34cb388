"""All ports of one connection to the log's servers."""

from collections.abc import Callable
from dataclasses import dataclass

from fairlead_eventlog.backup.backup_register import BackupRegister
from fairlead_eventlog.condition.operations import OperationsReader
from fairlead_eventlog.condition.self_description import SelfDescription
from fairlead_eventlog.condition.stream_sizes import StreamSizes
from fairlead_eventlog.condition.waiting_work import WaitingWork
from fairlead_eventlog.feed.consumer_ports import FeedConsumers
from fairlead_eventlog.ports import (
    ClientConsumers,
    DeadLetters,
    Deltas,
    Feed,
    Requests,
    SessionLog,
    ShardLog,
    Timers,
    Wakes,
    WorkQueue,
)
from fairlead_eventlog.process_life import Liveness
from fairlead_eventlog.register_ports import (
    Approvals,
    MessageRegister,
    Origins,
    OutputStore,
    Receipts,
    Records,
    Registrations,
    Snapshots,
    SourceRegister,
)
from fairlead_eventlog.replicas.commit_hint import CommitBroadcasts
from fairlead_eventlog.replicas.open_texts import OpenTextsPort
from fairlead_eventlog.replicas.tenant_broadcasts import TenantBroadcasts
from fairlead_eventlog.status.log_status import LogStatusRegister


@dataclass(frozen=True, slots=True)
class EventLog:
    """All ports, over NATS or in memory."""

    log: SessionLog
    broadcasts: CommitBroadcasts
    tenant_broadcasts: TenantBroadcasts
    status: LogStatusRegister
    shards: ShardLog
    wakes: Wakes
    work: WorkQueue
    timers: Timers
    liveness: Liveness
    snapshots: Snapshots
    message_ids: MessageRegister
    origins: Origins
    receipts: Receipts
    sources: SourceRegister
    tool_registrations: Registrations
    transforms: Registrations
    deltas: Deltas
    open_texts: OpenTextsPort
    outputs: OutputStore
    attachments: OutputStore
    """Attachments of prompts, by the names of `object_name`: kept as long as their sessions."""
    requests: Requests
    feed: Feed
    client_consumers: ClientConsumers
    dead_letters: DeadLetters
    feed_consumers: FeedConsumers
    webhooks: Records
    schedules: Records
    hook_states: Records
    """What the hooks service notes of webhooks and schedules, by their ids."""
    undelivered: Records
    """Deliveries that were given up, as `<webhook>.<delivery>`."""
    approvals: Approvals
    stream_sizes: StreamSizes
    waiting_work: WaitingWork
    backups: BackupRegister
    operations: OperationsReader
    self_description: SelfDescription
    complaint: Callable[[], str | None]
    """Why the servers cannot be reached now, if so."""
