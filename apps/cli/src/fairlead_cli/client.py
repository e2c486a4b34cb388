"""A small client of the HTTP API, for the commands and for tests."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
from pydantic import ValidationError

from fairlead_cli.errors import CommandError, ServerRefused, Unreachable
from fairlead_cli.event_stream import CONNECTED, StreamEvent, follow_stream, parse_events
from fairlead_llm.sse import FrameTooLarge
from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.input import ShellReceipt
from fairlead_schema.commands.quota import TenantUsageReport
from fairlead_schema.errors import WireError
from fairlead_schema.events.revert import RevertState
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.permission import PermissionRequest, QuestionRequest, Reply
from fairlead_schema.prompt import Delivery, PromptOptions, Receipt
from fairlead_schema.public_events import EventEnvelope
from fairlead_schema.session_info import SessionInfo

TIMEOUT_S: Final = 30.0
CONNECT_S: Final = 5.0
REVERT_S: Final = 90.0
# A live stream is silent for at most one heartbeat, so three mean that it is dead.
LOG_HEADER: Final = "fairlead-log"
SILENCE_S: Final = 45.0
PIECE_BYTES: Final = 256 * 1024


class Client:
    """Sessions over HTTP. Raises Unreachable without an answer, ServerRefused on an HTTP error."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def create(
        self,
        *,
        session_id: SessionId | None = None,
        agent: str | None = None,
        model: ModelRef | None = None,
        directory: str | None = None,
    ) -> SessionInfo:
        """Create a session, or return the existing session with this id."""
        body = {
            "id": session_id,
            "agent": agent,
            "model": model.wire() if model else None,
            "location": {"directory": directory} if directory else None,
        }
        fields = {key: value for key, value in body.items() if value is not None}
        return SessionInfo.model_validate(await self._data("POST", "/api/session", json=fields))

    async def session(self, session_id: SessionId) -> SessionInfo:
        """One session, from the read model."""
        return SessionInfo.model_validate(await self._data("GET", f"/api/session/{session_id}"))

    async def sessions(self, *, limit: int = 50, search: str | None = None) -> list[SessionInfo]:
        """The newest sessions."""
        query = {"limit": limit} | ({"search": search} if search else {})
        items = await self._data("GET", "/api/session", params=query)
        return [SessionInfo.model_validate(item) for item in items]

    async def prompt(
        self,
        session_id: SessionId,
        text: str,
        *,
        message_id: MessageId | None = None,
        delivery: Delivery = "steer",
        options: PromptOptions | None = None,
    ) -> Receipt:
        """Admit one prompt. An exact retry with the same id gets the same receipt."""
        id_field = {} if message_id is None else {"id": message_id}
        own = {} if options is None else options.wire()
        body = {**id_field, "prompt": {"text": text, **own}, "delivery": delivery}
        path = f"/api/session/{session_id}/prompt"
        return Receipt.model_validate(await self._data("POST", path, json=body))

    async def shell(
        self, session_id: SessionId, command: str, *, message_id: MessageId | None = None
    ) -> ShellReceipt:
        """Ask for a command of a person. An exact retry with the same id gets the same receipt."""
        body = {"command": command} | ({} if message_id is None else {"id": message_id})
        path = f"/api/session/{session_id}/shell"
        return ShellReceipt.model_validate(await self._data("POST", path, json=body))

    async def explain(self, session_id: SessionId) -> dict[str, Any]:
        """Why a session works or rests."""
        explanation: dict[str, Any] = await self._data("GET", f"/api/session/{session_id}/explain")
        return explanation

    async def tenant_usage(self) -> TenantUsageReport:
        """The quotas of the caller's tenant, and what is used of each."""
        return TenantUsageReport.model_validate(await self._data("GET", "/api/tenant/usage"))

    async def interrupt(self, session_id: SessionId) -> None:
        """Stop the active drain and keep the inbox. An idle session does not change."""
        await self._send("POST", f"/api/session/{session_id}/interrupt")

    async def resume(self, session_id: SessionId) -> None:
        """Run at least one turn, or join the turn that already runs."""
        await self._send("POST", f"/api/session/{session_id}/resume")

    async def cancel(self, session_id: SessionId, message_id: MessageId) -> None:
        """Withdraw one pending input."""
        await self._send("DELETE", f"/api/session/{session_id}/input/{message_id}")

    async def rename(self, session_id: SessionId, title: str) -> None:
        """Give a session a title that no model changes."""
        await self._send("PATCH", f"/api/session/{session_id}", json={"title": title})

    async def permissions(self) -> list[PermissionRequest]:
        """The permission requests that wait for a reply, of all sessions."""
        items = await self._data("GET", "/api/permission/request")
        return [PermissionRequest.model_validate(item) for item in items]

    async def questions(self) -> list[QuestionRequest]:
        """The questions that wait for an answer, of all sessions."""
        items = await self._data("GET", "/api/question/request")
        return [QuestionRequest.model_validate(item) for item in items]

    async def reply(self, request: PermissionRequest, reply: Reply, message: str | None) -> None:
        """Permit once or always, or reject. The model reads the message of a rejection."""
        path = f"/api/session/{request.session_id}/permission/{request.id}/reply"
        body = {"reply": reply} | ({"message": message} if message else {})
        await self._send("POST", path, json=body)

    async def answer(self, request: QuestionRequest, answers: list[list[str]] | None) -> None:
        """Answer a question; None rejects it."""
        path = f"/api/session/{request.session_id}/question/{request.id}"
        if answers is None:
            await self._send("POST", f"{path}/reject")
        else:
            await self._send("POST", f"{path}/reply", json={"answers": answers})

    async def messages(self, session_id: SessionId) -> list[dict[str, Any]]:
        """The first messages of a session, oldest first."""
        path = f"/api/session/{session_id}/message"
        items = await self._data("GET", path, params={"order": "asc", "limit": 200})
        return list(items)

    async def active_messages(self, session_id: SessionId) -> list[dict[str, Any]]:
        """The messages since the last compaction, oldest first."""
        return list(await self._data("GET", f"/api/session/{session_id}/context"))

    async def stage_revert(
        self, session_id: SessionId, message_id: MessageId, *, files: bool
    ) -> RevertState:
        """Go back to a message, and change files back."""
        body = {"messageID": message_id, "files": files}
        path = f"/api/session/{session_id}/revert/stage"
        state = await self._data("POST", path, json=body, timeout=REVERT_S)
        return RevertState.model_validate(state)

    async def clear_revert(self, session_id: SessionId) -> None:
        """Undo the staged revert."""
        await self._send("POST", f"/api/session/{session_id}/revert/clear", timeout=REVERT_S)

    async def history(
        self, session_id: SessionId, *, after: int = 0
    ) -> AsyncGenerator[EventEnvelope, None]:
        """Every public event after a seq that is in the log now."""
        more = True
        while more:
            query = {"after": after, "limit": 100}
            page = await self._json("GET", f"/api/session/{session_id}/history", params=query)
            for item in page["data"]:
                envelope = EventEnvelope.model_validate(item)
                assert envelope.durable is not None, "history is durable"
                after = envelope.durable.seq
                yield envelope
            more = page["hasMore"]

    def follow(
        self,
        session_id: SessionId,
        *,
        after: int | None = None,
        live: bool = False,
        on_reconnect: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[StreamEvent, None]:
        """Events after a seq, then new events as they come; `live` adds deltas. It does not end.

        Raises ServerRefused if the log was restored from a backup in between.
        """
        path = f"/api/session/{session_id}/{'stream' if live else 'event'}"
        cursor: dict[str, str] = {}
        return follow_stream(
            lambda seq: self._open_stream(path, seq, cursor), after=after, on_reconnect=on_reconnect
        )

    async def _open_stream(
        self, path: str, after: int | None, cursor: dict[str, str]
    ) -> AsyncGenerator[StreamEvent, None]:
        """Open a stream after a seq. `cursor` keeps the incarnation of the log that sent the seq."""
        headers = {"accept": "text/event-stream"}
        if after is not None:
            headers["last-event-id"] = str(after)
        timeout = httpx.Timeout(TIMEOUT_S, connect=CONNECT_S, read=SILENCE_S)
        try:
            async with self._http.stream(
                "GET", path, params=cursor, headers=headers, timeout=timeout
            ) as response:
                if response.status_code == httpx.codes.SERVICE_UNAVAILABLE:
                    raise Unreachable(str(response.url))
                if response.is_error:
                    await response.aread()
                    raise refusal_error(response)
                if LOG_HEADER in response.headers:
                    cursor["log"] = response.headers[LOG_HEADER]
                yield CONNECTED
                async with aclosing(parse_events(response.aiter_bytes())) as events:
                    async for event in events:
                        yield event
        except httpx.TransportError as error:
            raise Unreachable(str(self._http.base_url)) from error
        except FrameTooLarge as error:
            raise CommandError(f"{path} sent an event that is too large to read") from error

    async def download(self, path: str, query: dict[str, str]) -> AsyncGenerator[bytes, None]:
        """The pieces of a file. It is complete only with its own last line."""
        timeout = httpx.Timeout(TIMEOUT_S, connect=CONNECT_S, read=SILENCE_S)
        try:
            async with self._http.stream("GET", path, params=query, timeout=timeout) as response:
                if response.is_error:
                    await response.aread()
                    raise refusal_error(response)
                async for piece in response.aiter_bytes():
                    yield piece
        except httpx.TransportError as error:
            raise Unreachable(str(self._http.base_url)) from error

    async def upload_export(self, file: Path, query: dict[str, str]) -> dict[str, Any]:
        """Import an exported file. The answer comes when everything is written."""
        report: dict[str, Any] = await self._data(
            "POST",
            "/api/session/import",
            params=query,
            content=_read_pieces(file),
            headers={"content-type": "application/octet-stream"},
            timeout=httpx.Timeout(TIMEOUT_S, connect=CONNECT_S, read=None),
        )
        return report

    async def _data(self, method: str, path: str, **options: Any) -> Any:  # noqa: ANN401
        return (await self._json(method, path, **options))["data"]

    async def _json(self, method: str, path: str, **options: Any) -> Any:  # noqa: ANN401
        return (await self._send(method, path, **options)).json()

    async def _send(self, method: str, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401
        try:
            response = await self._http.request(method, path, **options)
        except httpx.TransportError as error:
            raise Unreachable(str(self._http.base_url)) from error
        if response.is_error:
            raise refusal_error(response)
        return response


async def _read_pieces(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as pieces:
        while piece := pieces.read(PIECE_BYTES):
            yield piece


@asynccontextmanager
async def open_client(base_url: str, token: str | None = None) -> AsyncIterator[Client]:
    """A client for the length of a block, with the caller's key or token."""
    timeout = httpx.Timeout(TIMEOUT_S, connect=CONNECT_S)
    headers = None if token is None else {"authorization": f"Bearer {token}"}
    # As everywhere in Fairlead: no variable of the environment names a proxy.
    async with httpx.AsyncClient(
        base_url=base_url, timeout=timeout, trust_env=False, headers=headers
    ) as http:
        yield Client(http)


def refusal_error(response: httpx.Response) -> ServerRefused:
    """The error of a response: the message of our error body, else the start of the text."""
    try:
        message = WireError.model_validate_json(response.content).message
        if response.status_code == httpx.codes.UNAUTHORIZED:
            message += " (name a key with --token or $FAIRLEAD_TOKEN)"
        return ServerRefused(response.status_code, message)
    except ValidationError:
        return ServerRefused(response.status_code, response.text[:200] or response.reason_phrase)
