"""Records the level and the incarnation of the log, and reads them for operators."""

from collections.abc import Callable

from fairlead_eventlog.errors import UnsafeChange
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.registers.log_status import JetStreamLogStatus
from fairlead_eventlog.status.log_status import Incarnation
from fairlead_eventlog.streams import SNAPSHOTS, WAKES, log_stream
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_schema.subjects import SHARDS


async def record_status(link: NatsLink, *, finalise: bool, progress: Callable[[str], None]) -> None:
    """Finalise the level if asked, and begin the first incarnation. Raises UnsafeChange."""
    status = JetStreamLogStatus(link)
    # An empty log has no older readers.
    is_empty = not any(await _last_positions(link))
    progress(await _record_level(status, finalise=finalise or is_empty))
    known = status.current.incarnation
    begun = known or await status.begin_incarnation(after=None)
    progress(f"incarnation {begun.id}: {'begun' if known is None else 'unchanged'}")


async def record_restore(address: NatsAddress) -> Incarnation:
    """Begin another incarnation, because the log was restored from a backup and ends there."""
    async with open_link(address, name="fairlead-provision") as link:
        status = JetStreamLogStatus(link)
        known = (await status.read()).incarnation
        # A snapshot, and the commit in a wake, may hold events that the restored log does not have.
        # The sweep wakes the sessions that have work.
        for stream in (SNAPSHOTS, WAKES):
            await link.api(f"STREAM.PURGE.{stream.name}")
        return await status.begin_incarnation(await _last_positions(link), after=known)


async def recorded_level(address: NatsAddress, *, timeout_s: float = 5.0) -> int:
    """The level of the log's format that was finalised."""
    async with open_link(address, name="fairlead-provision", timeout_s=timeout_s) as link:
        return (await JetStreamLogStatus(link).read()).level


async def _record_level(status: JetStreamLogStatus, *, finalise: bool) -> str:
    """Finalise the level of this release, if asked."""
    before = (await status.read()).level
    if finalise:
        await status.finalise(LEVEL_NEWEST)
    level = (await status.read()).level
    if level > LEVEL_NEWEST:
        line = (
            f"level {level} is finalised and this release knows {LEVEL_NEWEST}: install a newer one"
        )
        if finalise:
            raise UnsafeChange(f"format: {line}; nothing was changed")
        return f"format: {line}"
    if level < LEVEL_NEWEST:
        return (
            f"format: level {level}, this release has {LEVEL_NEWEST}: run `fairlead provision"
            " --finalise` when no older release will run again"
        )
    return f"format level {level}: {'unchanged' if level == before else 'finalised'}"


async def _last_positions(link: NatsLink) -> list[int]:
    """The last position of each shard of the log."""
    answers = [await link.api(f"STREAM.INFO.{log_stream(shard)}") for shard in range(SHARDS)]
    return [int(answer["state"]["last_seq"]) for answer in answers]
