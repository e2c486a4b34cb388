"""What the gateway says of sessions to cold storage, and what it is asked to do with them."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, Final

from fairlead_cli.cold.files import ColdFile
from fairlead_cli.errors import CommandError
from fairlead_cli.exports.transfer_requests import download_export, upload_export
from fairlead_client.answers.answer_models import data_of
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_schema.commands.session_status import SessionOverview
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.ids import SessionId
from fairlead_schema.session_info import SessionInfo

POLL_S: Final = 0.05
PAGE: Final = 200


class SessionRequests:
    """The requests of cold storage over one connection."""

    def __init__(self, connection: AsyncHttpConnection, *, wait_s: float) -> None:
        self._connection = connection
        self._wait_s = wait_s

    async def find(self, session_id: SessionId) -> SessionInfo | None:
        """The session as the read models have it; None if it does not exist."""
        try:
            answer = await self._connection.request(
                "GET", f"/api/session/{session_id}", is_repeatable=True
            )
        except SessionNotFound:
            return None
        return SessionInfo.model_validate(data_of(answer))

    async def export(self, session_id: SessionId, file: Any) -> None:  # noqa: ANN401 - a binary file
        """Write the export of a session."""
        path = f"/api/session/{session_id}/export"
        await download_export(self._connection, path, file.write)

    async def store(self, session_id: SessionId, file: ColdFile) -> None:
        """Let the events of a session leave the log, and wait until they have.

        A session that changed in the last minute waits for the public feed.
        """
        deadline = time.monotonic() + self._wait_s
        while True:
            try:
                await self._connection.request(
                    "POST",
                    f"/api/session/{session_id}/store",
                    is_repeatable=True,
                    json=file.stored.wire(),
                )
                break
            except ServiceUnavailable:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(POLL_S)
        await self._wait(session_id, is_stored=True)

    async def restore(self, session_id: SessionId, file: ColdFile) -> None:
        """Bring the events of a file back, and wait until lists show it."""
        await upload_export(self._connection, file.path, {"restore": "true"})
        await self._wait(session_id, is_stored=False)

    async def roots(self, *, before: int) -> AsyncIterator[SessionInfo]:
        """The sessions in the log that nobody has changed since a time, oldest first.

        A sub-agent goes with its parent. One whose parent is stored stayed behind when a run stopped.
        """
        stored: set[SessionId] = set()
        async for session in self._list({"order": "asc"}):
            if session.time.created >= before:
                return
            if session.stored is not None:
                stored.add(session.id)
            elif session.time.updated < before and (
                session.parent_id is None or session.parent_id in stored
            ):
                yield session

    async def find_busy_child(self, root: SessionId) -> SessionOverview | None:
        """A session below another one that has something open, as far as the read models know."""
        waiting = [root]
        while waiting:
            async for child in self._list({"parentID": waiting.pop()}):
                status = child.status
                if child.stored is None and (status.owner or status.pending or status.asks):
                    return child
                waiting.append(child.id)
        return None

    async def _list(self, filters: dict[str, str]) -> AsyncIterator[SessionOverview]:
        """The sessions that a filter names, archived ones too."""
        params = {"limit": str(PAGE), "archived": "true", **filters}
        while True:
            answer = await self._connection.request(
                "GET", "/api/session/overview", is_repeatable=True, params=params
            )
            for one in answer["data"]:
                yield SessionOverview.model_validate(one)
            cursor = answer["cursor"].get("next")
            if not answer["data"] or cursor is None:
                return
            params = {"limit": str(PAGE), "cursor": cursor}

    async def _wait(self, session_id: SessionId, *, is_stored: bool) -> None:
        """Wait for the projector, which erases the log and changes the rows. Raises CommandError."""
        deadline = time.monotonic() + self._wait_s
        while True:
            session = await self.find(session_id)
            if session is None or (session.stored is not None) == is_stored:
                return
            if time.monotonic() > deadline:
                raise CommandError(
                    f"the projector has not read {session_id} so far: nothing is lost, it goes on"
                    " by itself. See whether it and Postgres run"
                )
            await asyncio.sleep(POLL_S)
