"""An event log in memory: every port without a server, tested by the same contract suite."""

from fairlead_eventlog.backup.backup_register import MemoryBackupRegister
from fairlead_eventlog.condition.operations import MemoryOperations
from fairlead_eventlog.condition.self_description import MemorySelfDescription
from fairlead_eventlog.condition.stream_sizes import MemoryStreamSizes
from fairlead_eventlog.condition.waiting_work import MemoryWaitingWork
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.client_consumers import MemoryClientConsumers
from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_eventlog.memory.deltas import MemoryDeltas, MemoryOpenTexts
from fairlead_eventlog.memory.feed import MemoryFeed, MemoryFeedConsumers
from fairlead_eventlog.memory.liveness import MemoryLiveness
from fairlead_eventlog.memory.outputs import MemoryOutputs
from fairlead_eventlog.memory.registers import (
    MemoryApprovals,
    MemoryLogStatus,
    MemoryMessageIds,
    MemoryOrigins,
    MemoryReceipts,
    MemoryRecords,
    MemoryRegistrations,
    MemorySources,
)
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.memory.snapshots import MemorySnapshots
from fairlead_eventlog.memory.tenant_broadcasts import MemoryTenantBroadcasts
from fairlead_eventlog.memory.timers import MemoryTimers
from fairlead_eventlog.memory.wakes import MemoryWakes
from fairlead_eventlog.memory.work_queues import MemoryWorkQueues


def memory_eventlog() -> EventLog:
    """Every port, in memory."""
    status = MemoryLogStatus()
    log, deltas = MemoryLog(status), MemoryDeltas()
    feed = MemoryFeed()
    return EventLog(
        log=log,
        broadcasts=log,
        tenant_broadcasts=MemoryTenantBroadcasts(log, deltas),
        status=status,
        shards=log,
        wakes=MemoryWakes(),
        work=MemoryWorkQueues(),
        timers=MemoryTimers(),
        liveness=MemoryLiveness(),
        snapshots=MemorySnapshots(),
        message_ids=MemoryMessageIds(),
        origins=MemoryOrigins(),
        receipts=MemoryReceipts(),
        tool_registrations=MemoryRegistrations(),
        transforms=MemoryRegistrations(),
        sources=MemorySources(),
        deltas=deltas,
        open_texts=MemoryOpenTexts(),
        outputs=MemoryOutputs(),
        attachments=MemoryOutputs(),
        requests=MemoryRequests(),
        feed=feed,
        client_consumers=MemoryClientConsumers(),
        dead_letters=MemoryDeadLetters(),
        feed_consumers=MemoryFeedConsumers(feed),
        webhooks=MemoryRecords(),
        schedules=MemoryRecords(),
        hook_states=MemoryRecords(),
        undelivered=MemoryRecords(),
        approvals=MemoryApprovals(),
        stream_sizes=MemoryStreamSizes(),
        waiting_work=MemoryWaitingWork(),
        backups=MemoryBackupRegister(),
        operations=MemoryOperations(),
        self_description=MemorySelfDescription(),
        complaint=lambda: None,
    )
