"""The sessions of one editor: each verb as a few calls of the Python client."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from acp import RequestError, schema
from acp.interfaces import Client

from fairlead_cli.acp.ask_watcher import AskWatcher
from fairlead_cli.acp.editor_asks import EditorAsks
from fairlead_cli.acp.open_session import OpenSession, SessionClosed
from fairlead_cli.acp.protocol_errors import INTERNAL, NOT_FOUND, protocol_errors
from fairlead_cli.acp.translation.prompt_blocks import PromptBlock, join_blocks
from fairlead_cli.acp.translation.session_options import SessionOptions
from fairlead_cli.acp.translation.updates import UpdateTranslator, model_name
from fairlead_client import AsyncFairlead, ClientError, Refused
from fairlead_client.local_stack import Gateway
from fairlead_schema.session_info import SessionInfo

log = logging.getLogger(__name__)

PAGE: Final = 50
REOPENED: Final = "The session was opened again while the prompt was under way: the prompt goes on"


class EditorSessions:
    """Holds what an editor has open. Every failure is raised as RequestError."""

    def __init__(self, gateway: Gateway, editor: Client, *, has_forms: bool) -> None:
        self._fairlead = AsyncFairlead(gateway.url, token=gateway.token)
        self._editor = editor
        self._has_forms = has_forms
        self._open: dict[str, OpenSession] = {}

    async def aclose(self) -> None:
        """Leave every session. They go on."""
        for session in self._open.values():
            await session.close(SessionClosed())
        await self._fairlead.aclose()

    async def create(self, directory: str) -> OpenSession:
        with protocol_errors():
            info = await self._fairlead.create(directory=directory)
            return await self._enter(info, shown=False)

    async def reopen(self, session_id: str, *, shown: bool) -> OpenSession:
        """Go on with a session. `shown`: the editor gets it from its beginning."""
        with protocol_errors():
            info = await self._fairlead.get(session_id)
            before = self._open.pop(session_id, None)
            if before is not None:
                await before.close(RequestError(INTERNAL, REOPENED))
            return await self._enter(info, shown=shown)

    async def close(self, session_id: str) -> None:
        """Cancel the prompts of this editor, and leave the session."""
        session = self.find(session_id)
        with protocol_errors():
            if session.has_prompts:
                await session.cancel()
        await session.close(SessionClosed())
        self._open.pop(session_id, None)

    def find(self, session_id: str) -> OpenSession:
        session = self._open.get(session_id)
        if session is None:
            text = f"No open session {session_id}: create, load or resume it first"
            raise RequestError(NOT_FOUND, text, {"sessionId": session_id})
        return session

    async def list_page(
        self, directory: str | None, cursor: str | None
    ) -> schema.ListSessionsResponse:
        params: dict[str, Any] = {"cursor": cursor} if cursor else {"limit": PAGE}
        if directory and not cursor:
            params["directory"] = directory
        with protocol_errors():
            page = await self._fairlead.request("GET", "/api/session", params=params)
        return schema.ListSessionsResponse(
            sessions=[_describe_session(SessionInfo.model_validate(item)) for item in page["data"]],
            next_cursor=(page.get("cursor") or {}).get("next"),
        )

    async def switch_agent(self, session_id: str, agent: str) -> None:
        self.find(session_id)
        with protocol_errors():
            await self._fairlead.switch_agent(session_id, agent)

    async def switch_model(self, session_id: str, model: str) -> None:
        options = self.find(session_id).translator.options
        with protocol_errors():
            await self._fairlead.switch_model(session_id, model)
        options.model = model

    async def prompt(self, session_id: str, blocks: Sequence[PromptBlock]) -> schema.PromptResponse:
        """Admit a prompt. One that comes while the session works steers it."""
        session, joined = self.find(session_id), join_blocks(blocks)
        with protocol_errors():
            return await session.prompt(joined)

    async def cancel(self, session_id: str) -> None:
        with protocol_errors():
            await self.find(session_id).cancel()

    async def _enter(self, info: SessionInfo, *, shown: bool) -> OpenSession:
        options = await self._load_options(info)
        translator = UpdateTranslator(info.location.directory, options)
        asks = EditorAsks(self._fairlead, self._editor, info.id, has_forms=self._has_forms)
        watcher = AskWatcher(self._fairlead, asks)
        session = OpenSession(self._fairlead, self._editor, info.id, translator, watcher)
        await session.replay(shown=shown)
        self._open[info.id] = session
        session.follow()
        return session

    async def _load_options(self, info: SessionInfo) -> SessionOptions:
        agents, models, commands = await asyncio.gather(
            self._fairlead.agents(), self._fairlead.models(), self._load_commands(info)
        )
        return SessionOptions(
            agents=agents,
            models=models,
            commands=commands,
            agent=info.agent or "",
            model="" if info.model is None else model_name(info.model.wire()),
        )

    async def _load_commands(self, info: SessionInfo) -> list[dict[str, Any]]:
        """The slash commands of a location. A session works without them."""
        try:
            return await self._fairlead.commands(directory=info.location.directory)
        except (Refused, ClientError) as error:
            log.warning("no slash commands are shown: %s", error)
            return []


def _describe_session(info: SessionInfo) -> schema.SessionInfo:
    return schema.SessionInfo(
        session_id=info.id,
        cwd=info.location.directory,
        title=info.title,
        updated_at=datetime.fromtimestamp(info.time.updated / 1000, UTC).isoformat(),
    )
