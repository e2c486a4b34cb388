"""Reads whole session logs, as a reader does that must miss nothing."""

from fairlead_eventlog.ports import START, Head, SessionLog, StoredCommit
from fairlead_schema.subjects import Address


async def read_all(
    log: SessionLog, at: Address, *, after: Head = START
) -> tuple[StoredCommit, ...]:
    """Every commit after a head, up to the end that the leader has now."""
    commits: list[StoredCommit] = []
    reach, more = await log.last_commit_position(at), True
    while more:
        page = await log.read(at, after=after, reach=reach)
        commits += page.commits
        after, more = (page.commits[-1].head if page.commits else after), page.more
    return tuple(commits)
