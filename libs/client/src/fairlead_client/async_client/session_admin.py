"""Commands to whole sessions, and what can be read of them without following."""

from collections.abc import AsyncGenerator
from typing import Any

from fairlead_client.answers.answer_models import data_of, dict_of, list_of, read_as, read_each
from fairlead_client.async_client.transport import AsyncSessionTransport
from fairlead_client.message_ids import mint_session_id
from fairlead_client.prompt_input import AnyModel, AnySession, model_of, session_id_of
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.permission import PermissionRequest, QuestionRequest
from fairlead_schema.prompt import Receipt
from fairlead_schema.session_info import SessionInfo


class AsyncSessionAdmin:
    """Creates, lists, changes and stops sessions."""

    def __init__(self, transport: AsyncSessionTransport) -> None:
        self._transport = transport

    async def create(
        self,
        *,
        id: SessionId | None = None,  # noqa: A002 - the name on the wire
        agent: str | None = None,
        model: AnyModel | None = None,
        directory: str | None = None,
        parent: AnySession | None = None,
    ) -> SessionInfo:
        """Create a session, once. For an id that exists: the session that has it."""
        fields = {
            "id": id or mint_session_id(),
            "agent": agent,
            "model": None if model is None else model_of(model),
            "location": None if directory is None else {"directory": directory},
            "parentID": None if parent is None else session_id_of(parent),
        }
        body = {key: value for key, value in fields.items() if value is not None}
        return read_as(SessionInfo, await self._transport.send("session.create", body))

    async def get(self, session: AnySession) -> SessionInfo:
        """One session as it is now."""
        return read_as(SessionInfo, await self._send("session.get", session))

    async def sessions(self, *, limit: int = 50, search: str | None = None) -> list[SessionInfo]:
        """The newest sessions."""
        params = {"limit": limit} | ({} if search is None else {"search": search})
        page = await self._transport.request("GET", "/api/session", params=params)
        return read_each(SessionInfo, data_of(page))

    async def messages(self, session: AnySession) -> AsyncGenerator[dict[str, Any], None]:
        """The transcript, oldest first, in the form of the API."""
        path = f"/api/session/{session_id_of(session)}/message"
        params: dict[str, Any] = {"order": "asc", "limit": 200}
        while True:
            page = await self._transport.request("GET", path, params=params)
            messages = list_of(page)
            for message in messages:
                yield message
            cursor = (page.get("cursor") or {}).get("next")
            if not messages or cursor is None:
                return
            params = {"cursor": cursor}

    async def explain(self, session: AnySession) -> dict[str, Any]:
        """Why a session works or rests: `state`, `code`, `reason` and `next`."""
        return dict_of(await self._send("session.explain", session))

    async def pending(self, session: AnySession) -> list[Receipt]:
        """The inputs that are admitted and that the model has not seen, in their order."""
        inputs = await self._send("session.pending", session)
        return read_each(Receipt, inputs)

    async def cancel(self, session: AnySession, message_id: MessageId) -> None:
        """Withdraw one pending input."""
        await self._send("session.cancel", session, messageID=message_id)

    async def interrupt(self, session: AnySession) -> None:
        """Stop the running work and keep the inbox. A session at rest does not change."""
        await self._send("session.interrupt", session)

    async def resume(self, session: AnySession) -> None:
        """Run at least one turn, or join the turn that already runs."""
        await self._send("session.resume", session)

    async def compact(self, session: AnySession) -> None:
        """Replace the history by a summary."""
        await self._send("session.compact", session)

    async def erase(self, session: AnySession) -> None:
        """Delete a session and everything of it, for ever. Whoever follows it is told."""
        await self._send("session.delete", session)

    async def switch_model(self, session: AnySession, model: AnyModel) -> None:
        """Use another model for later turns."""
        await self._send("session.model", session, model=model_of(model))

    async def switch_agent(self, session: AnySession, agent: str) -> None:
        """Use another agent for later turns."""
        await self._send("session.agent", session, agent=agent)

    async def permissions(self, session: AnySession | None = None) -> list[PermissionRequest]:
        """The permission requests that wait for a reply, of one session or of all."""
        items = await self._asks("permission", session)
        return read_each(PermissionRequest, items)

    async def questions(self, session: AnySession | None = None) -> list[QuestionRequest]:
        """The questions that wait for an answer, of one session or of all."""
        items = await self._asks("question", session)
        return read_each(QuestionRequest, items)

    def export(self, session: AnySession, *, tree: bool = False) -> AsyncGenerator[bytes, None]:
        """The pieces of a file with everything of a session; `tree` adds its sub-agents."""
        return self._transport.export(session_id_of(session), tree=tree)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        json: object = None,
        content: bytes | None = None,
    ) -> Any:  # noqa: ANN401 - any JSON
        """Any other operation of the HTTP API: its JSON, or None."""
        return await self._transport.request(
            method, path, params=params, json=json, content=content
        )

    async def _asks(self, kind: str, session: AnySession | None) -> Any:  # noqa: ANN401 - any JSON
        if session is not None:
            return await self._send(f"{kind}.list", session)
        return data_of(await self._transport.request("GET", f"/api/{kind}/request"))

    async def _send(self, verb: str, session: AnySession, **fields: object) -> Any:  # noqa: ANN401
        return await self._transport.send(verb, {"sessionID": session_id_of(session), **fields})
