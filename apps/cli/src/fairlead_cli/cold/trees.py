"""Moves sessions with their sub-agents: out to files, and back. Each run goes on where an earlier one stopped."""

from collections import deque
from pathlib import Path
from typing import NamedTuple

from fairlead_cli.cold.files import ColdFile, open_file, write_file
from fairlead_cli.cold.sessions import SessionRequests
from fairlead_cli.errors import CommandError
from fairlead_schema.errors import Conflict, SessionIsStored, SessionNotFound
from fairlead_schema.ids import SessionId


class MovedSession(NamedTuple):
    """One session of a tree, its file, and whether this run moved it."""

    session_id: SessionId
    file: ColdFile
    moved: bool


async def store_tree(
    requests: SessionRequests, root: SessionId, directory: Path
) -> list[MovedSession]:
    """Move a session and its sub-agents into files. The session goes first, so that nobody joins it.

    Raises Refused and CommandError. What is moved by then stays moved, and the next run goes on.
    """
    await _require_root(requests, root)
    moved: list[MovedSession] = []
    waiting = deque((root,))
    while waiting:
        session_id = waiting.popleft()
        session = await requests.find(session_id)
        if session is None:
            continue  # No worker has created this sub-agent, or somebody purged it.
        if session.stored is not None:
            file = open_file(directory, session_id, session.stored)
        else:
            file = await _store(requests, session_id, directory)
        moved.append(MovedSession(session_id, file, moved=session.stored is None))
        waiting.extend(file.children)
    return moved


async def restore_tree(
    requests: SessionRequests, root: SessionId, directory: Path
) -> list[MovedSession]:
    """Bring a session and its sub-agents back. All files are verified before the first event is written.

    The session comes last: until then its marker names the file that names its sub-agents.
    """
    if await requests.find(root) is None:
        raise SessionNotFound(root)
    files: dict[SessionId, ColdFile] = {}
    waiting = deque((root,))
    while waiting:
        session_id = waiting.popleft()
        session = await requests.find(session_id)
        if session is not None and session.stored is not None:
            files[session_id] = open_file(directory, session_id, session.stored)
            waiting.extend(files[session_id].children)
    for session_id, file in reversed(files.items()):
        await requests.restore(session_id, file)
    return [MovedSession(session_id, file, moved=True) for session_id, file in files.items()]


async def _store(requests: SessionRequests, session_id: SessionId, directory: Path) -> ColdFile:
    file = await write_file(
        directory, session_id, lambda export: requests.export(session_id, export)
    )
    try:
        await requests.store(session_id, file)
    except Conflict:
        # Ingest has refused the file, so no marker names it. After any other error one may.
        file.path.unlink(missing_ok=True)
        raise
    except SessionIsStored as stored:
        if stored.body.resource != file.path.name:
            file.path.unlink(missing_ok=True)
        raise
    return file


async def _require_root(requests: SessionRequests, session_id: SessionId) -> None:
    """Refuse a tree in which something is open, and a sub-agent whose parent may still ask it.

    The log decides about each session. This look comes first, so that no tree leaves in part.
    """
    session = await requests.find(session_id)
    if session is None:
        raise SessionNotFound(session_id)
    if session.stored is None and (busy := await requests.find_busy_child(session_id)):
        reason = f"The session cannot be stored, its sub-agent {busy.id} works or waits"
        raise Conflict(reason, session_id)
    parent = None if session.parent_id is None else await requests.find(session.parent_id)
    if parent is not None and parent.stored is None:
        raise CommandError(
            f"{session_id} is a sub-agent of {parent.id}, and goes with it: store {parent.id}"
        )
