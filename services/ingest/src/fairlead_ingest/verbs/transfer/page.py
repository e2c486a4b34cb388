"""`transfer.page`: the commits of a session as the log stores them."""

from typing import Final

from fairlead_eventlog.ports import START
from fairlead_ingest.command_context import ContextDep
from fairlead_ingest.existing_session import check_in_log
from fairlead_schema.commands.transfer import CommitsRead, ReadCommits
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_session.transfer.events import is_marker
from fairlead_session.transfer.named import CommitNames, named_by_commit

PAGE_BYTES: Final = 256 * 1024
"""A page ends after so many bytes: as text inside of JSON they may become twice as many."""


async def read_page(context: ContextDep, tenant: TenantParam, command: ReadCommits) -> CommitsRead:
    """Some commits after a position. Raises SessionNotFound, SessionIsStored."""
    at = Address(tenant, command.session_id)
    end = await context.eventlog.log.end(at)
    if end == START:
        raise SessionNotFound(at.session_id)
    if end.seq == 0:
        check_in_log((await context.load_readable(at)).versioned.state)
    commits: list[str] = []
    names: list[CommitNames] = []
    size, position, next_ = 0, command.after, None
    async for entry in context.eventlog.shards.session_entries(at, after=command.after):
        if is_marker(entry.payload):
            continue  # An earlier restore left it. It is no event of the session.
        if commits and (len(commits) == command.limit or size + len(entry.payload) > PAGE_BYTES):
            next_ = position
            break
        try:
            commits.append(entry.payload.decode())
        except UnicodeDecodeError as error:
            reason = f"The commit at position {entry.position} is no text: {error}"
            raise ServiceUnavailable(reason, service="session.log", kind="Unreadable") from error
        names.append(named_by_commit(at.session_id, entry.payload))
        size, position = size + len(entry.payload), entry.position
    incarnation = context.eventlog.status.current.incarnation
    return CommitsRead(
        session_id=at.session_id,
        commits=tuple(commits),
        next=next_,
        outputs=tuple(dict.fromkeys(id_ for named in names for id_ in named.outputs)),
        children=tuple(id_ for named in names for id_ in named.children),
        log=None if incarnation is None else incarnation.id,
    )
