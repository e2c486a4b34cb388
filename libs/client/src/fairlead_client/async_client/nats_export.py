"""Makes the file of an export from what the services give page by page over NATS."""

import time
from base64 import b64decode
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from importlib.metadata import version
from typing import Any, TypeAlias

from fairlead_client.nats_login import NatsLogin
from fairlead_schema.errors import SessionNotFound
from fairlead_schema.ids import SessionId
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_schema.transfer.lines import ExportHeader, ExportLines

Ask: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""Sends a verb with its body, and returns the data of the answer."""


async def export_session(
    ask: Ask, login: NatsLogin, session_id: SessionId, *, tree: bool
) -> AsyncGenerator[bytes, None]:
    """The pieces of the file. Raises SessionNotFound if the session itself does not exist."""
    page = await ask("transfer.page", {"sessionID": session_id})
    header = ExportHeader(
        level=LEVEL_NEWEST,
        release=version("fairlead-client"),
        scope="tree" if tree else "session",
        tenant=login.tenant,
        incarnation=page.get("log"),
        by=login.principal,
        at=time.time_ns() // 1_000_000,
    )
    lines = ExportLines(header)
    yield lines.first
    waiting = deque([session_id])
    while waiting:
        session, outputs = waiting.popleft(), dict[str, None]()
        yield lines.begin(session)
        while True:
            yield b"".join(lines.commit(commit.encode()) for commit in page["commits"])
            outputs |= dict.fromkeys(page["outputs"])
            waiting.extend(page["children"] if tree else ())
            if page.get("next") is None:
                break
            page = await ask("transfer.page", {"sessionID": session, "after": page["next"]})
        for output_id in outputs:
            async for line in _output_lines(ask, lines, session, output_id):
                yield line
        yield lines.seal()
        page = await _next_session(ask, waiting)
    yield lines.end()


async def _next_session(ask: Ask, waiting: deque[SessionId]) -> dict[str, Any]:
    """The first page of the next session that exists; the others are left out."""
    while waiting:
        try:
            page: dict[str, Any] = await ask("transfer.page", {"sessionID": waiting[0]})
        except SessionNotFound:
            waiting.popleft()
        else:
            return page
    return {}


async def _output_lines(
    ask: Ask, lines: ExportLines, session: SessionId, output_id: str
) -> AsyncGenerator[bytes, None]:
    """The lines of an output or an attachment; none if it is not stored any more."""
    first, size = 0, 1
    while first < size:
        named = {"sessionID": session, "id": output_id, "first": first}
        part = await ask("transfer.read", named)
        if part.get("mime") is None:
            return
        data, size = b64decode(part["data"]), part["bytes"]
        if first == 0:
            yield lines.output(output_id, part["mime"], size)
        if not data:
            return
        yield lines.chunk(data)
        first += len(data)
