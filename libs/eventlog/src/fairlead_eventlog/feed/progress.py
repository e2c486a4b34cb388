"""How far the public feed has come with a session."""

from fairlead_eventlog.connection import EventLog
from fairlead_schema import subjects
from fairlead_schema.subjects import Address


async def has_passed(eventlog: EventLog, at: Address, position: int) -> bool:
    """Whether the feed has all public events of a session up to a position, and keeps them after a crash.

    A publisher stores which sessions it holds before it moves its checkpoint forwards. After a restore
    of the log it moves its checkpoint back before it notes the log. So both sides of the state count.
    """
    shard = subjects.shard(at.session_id)
    before, _revision = await eventlog.feed.checkpoint(shard)
    state, _revision = await eventlog.feed.state(shard)
    after, _revision = await eventlog.feed.checkpoint(shard)
    current = eventlog.status.current.incarnation
    is_restored = current is not None and state.incarnation not in {None, current.id}
    return min(before, after) >= position and at not in state.held and not is_restored
