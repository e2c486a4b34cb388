"""The client: sessions, prompts and answers, events, and what people decide."""

import ssl
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack, overload

from pydantic import BaseModel, ValidationError

from fairlead_client.answers.answer_models import read_as
from fairlead_client.async_client.answer_stream import await_answer
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_client.async_client.http_transport import AsyncHttpTransport
from fairlead_client.async_client.transport import AsyncSessionTransport
from fairlead_client.async_client.workspace import AsyncWorkspace
from fairlead_client.credentials import TokenSource
from fairlead_client.deadline import UNLIMITED, Deadline
from fairlead_client.errors import AnswerMisfit
from fairlead_client.local_stack import STATE, find_gateway
from fairlead_client.nats_login import NatsLogin, find_login
from fairlead_client.prompt_answer import PromptAnswer
from fairlead_client.prompt_input import (
    AnySession,
    PromptFields,
    admission_of,
    prompt_of,
    session_id_of,
)
from fairlead_client.received_event import ReceivedEvent
from fairlead_schema.ids import MessageId
from fairlead_schema.permission import PermissionRequest, QuestionRequest, Reply
from fairlead_schema.prompt import Delivery, Receipt

Output = TypeVar("Output", bound=BaseModel)
PATIENCE_S: Final = 30.0


class AsyncFairlead(AsyncWorkspace):
    """Sessions of one server, for one caller.

    Every method repeats a command until it has an answer, for at most `patience_s`, if a repeat is safe.
    Raises `Refused` (docs/errors.md) if the server says no, and `ClientError` otherwise.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: TokenSource | None = None,
        patience_s: float | None = PATIENCE_S,
        state: Path = STATE,
        tls: ssl.SSLContext | None = None,
        transport: AsyncSessionTransport | None = None,
    ) -> None:
        """Without an address: `$FAIRLEAD_HTTP`, else the stack that runs on this machine.

        Without a token: `$FAIRLEAD_TOKEN`, else the key of that stack. None as patience means for ever.
        `tls` says whom to trust; without it the authorities of `$FAIRLEAD_HTTP_TLS_CA`, else the public ones.
        """
        if transport is None:
            gateway = find_gateway(url, token, state=state)
            transport = AsyncHttpTransport(
                AsyncHttpConnection(gateway.url, gateway.token, patience_s=patience_s, tls=tls)
            )
        super().__init__(transport)

    @classmethod
    def over_nats(
        cls,
        login: NatsLogin | None = None,
        *,
        patience_s: float | None = PATIENCE_S,
        state: Path = STATE,
    ) -> Self:
        """The same client over NATS, for services that have no HTTP: needs `fairlead-client[nats]`.

        Without a login: `$FAIRLEAD_NATS_URL` with its variables, else the stack that runs on this machine.
        """
        # Only this client loads what it needs for NATS.
        from fairlead_client.async_client.nats_connection import AsyncTenantLink  # noqa: PLC0415
        from fairlead_client.async_client.nats_transport import AsyncNatsTransport  # noqa: PLC0415

        link = AsyncTenantLink(login or find_login(state=state))
        return cls(transport=AsyncNatsTransport(link, patience_s=patience_s))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def prompt(
        self,
        session: AnySession,
        text: str,
        *,
        id: MessageId | None = None,  # noqa: A002 - the name on the wire
        delivery: Delivery = "steer",
        resume: bool = True,
        schema: dict[str, Any] | type[BaseModel] | None = None,
        **fields: Unpack[PromptFields],
    ) -> Receipt:
        """Admit one prompt, once: it is repeated under one id until there is a receipt.

        Give an id if another process may have to repeat the prompt.
        """
        prompt = prompt_of(text, fields, schema)
        return await self._admit(
            admission_of(session, prompt, id, delivery=delivery, resume=resume)
        )

    async def steer(
        self, session: AnySession, text: str, *, turn: MessageId | None = None
    ) -> Receipt:
        """Tell a model that works something. With a turn: only while the model writes that message."""
        only_during = {} if turn is None else {"expectedTurn": turn}
        prompt = prompt_of(text, {})
        return await self._admit(
            admission_of(session, prompt, None, delivery="steer", **only_during)
        )

    @overload
    async def ask(
        self,
        session: AnySession,
        text: str,
        *,
        schema: None = None,
        id: MessageId | None = None,
        delivery: Delivery = "steer",
        timeout_s: float | None = None,
        **fields: Unpack[PromptFields],
    ) -> PromptAnswer: ...

    @overload
    async def ask(
        self,
        session: AnySession,
        text: str,
        *,
        schema: type[Output],
        id: MessageId | None = None,
        delivery: Delivery = "steer",
        timeout_s: float | None = None,
        **fields: Unpack[PromptFields],
    ) -> Output: ...

    @overload
    async def ask(
        self,
        session: AnySession,
        text: str,
        *,
        schema: dict[str, Any],
        id: MessageId | None = None,
        delivery: Delivery = "steer",
        timeout_s: float | None = None,
        **fields: Unpack[PromptFields],
    ) -> dict[str, Any]: ...

    async def ask(
        self,
        session: AnySession,
        text: str,
        *,
        schema: type[BaseModel] | dict[str, Any] | None = None,
        id: MessageId | None = None,  # noqa: A002 - the name on the wire
        delivery: Delivery = "steer",
        timeout_s: float | None = None,
        **fields: Unpack[PromptFields],
    ) -> PromptAnswer | BaseModel | dict[str, Any]:
        """Prompt, and wait for the answer, however long it takes. With a schema: the object that fits.

        It waits through restarts and for people who are asked. Raises PromptFailed, PromptWithdrawn,
        PromptUnanswered, AnswerMisfit, NotInTime. The session goes on whatever is raised.
        """
        deadline = Deadline("the answer", timeout_s)
        prompt = prompt_of(text, fields, schema)
        receipt = await self._admit(admission_of(session, prompt, id, delivery=delivery), deadline)
        answer = await await_answer(self._transport, receipt, deadline)
        if schema is None:
            return answer
        if answer.value is None:
            raise AnswerMisfit("the server did not judge it", answer.text)
        if isinstance(schema, dict):
            return answer.value
        try:
            return schema.model_validate(answer.value)
        except ValidationError as error:
            raise AnswerMisfit(str(error), answer.text) from error

    async def _admit(self, admission: dict[str, Any], deadline: Deadline = UNLIMITED) -> Receipt:
        sent = await self._transport.send("session.prompt", admission, deadline=deadline)
        return read_as(Receipt, sent)

    async def answer_of(
        self,
        receipt: Receipt,
        *,
        timeout_s: float | None = None,
        on_event: Callable[[ReceivedEvent], None] | None = None,
    ) -> PromptAnswer:
        """Wait for the answer to a prompt that was admitted. Raises as `ask` does.

        `on_event` gets every event and fragment since the prompt, to show the answer as it comes.
        """
        deadline = Deadline("the answer", timeout_s)
        return await await_answer(self._transport, receipt, deadline, on_event)

    def events(
        self, session: AnySession, *, after: int = 0, with_notices: bool = False
    ) -> AsyncGenerator[ReceivedEvent, None]:
        """Every event after a seq that is in the log now, once and in order.

        Notices are for clients that know Fairlead: asks and their answers, interrupts, recoveries.
        """
        return self._transport.read(session_id_of(session), after=after, with_notices=with_notices)

    async def follow(
        self, session: AnySession, *, after: int | None = None, live: bool = True
    ) -> AsyncGenerator[ReceivedEvent, None]:
        """Every event after a seq, and new ones as they come; `live` adds notices and fragments.

        It resumes by itself, without a gap and without a double, and does not end. Raises SessionNotFound
        when the session is erased, and CursorExpired when the log was restored from a backup.
        """
        stream = self._transport.follow(
            session_id_of(session),
            after=after,
            with_notices=live,
            deadline=Deadline("the stream", None),
        )
        async with aclosing(stream):
            async for event in stream:
                if event is not None:
                    yield event

    async def approve(
        self, request: PermissionRequest, reply: Reply = "once", *, message: str | None = None
    ) -> None:
        """Permit `once` or `always`, or `reject`. The model reads the message of a rejection."""
        body = {
            "sessionID": request.session_id,
            "requestID": request.id,
            "reply": reply,
            **({} if message is None else {"message": message}),
        }
        await self._transport.send("permission.reply", body)

    async def answer(
        self, request: QuestionRequest, answers: Sequence[Sequence[str]] | None
    ) -> None:
        """Answer each question with labels or free text. None dismisses them: the session stops."""
        body: dict[str, Any] = {"sessionID": request.session_id, "requestID": request.id}
        if answers is None:
            await self._transport.send("question.reject", body)
        else:
            body["answers"] = [list(labels) for labels in answers]
            await self._transport.send("question.reply", body)

    async def wait(self, session: AnySession, *, timeout_s: float | None = None) -> None:
        """Wait until the session rests. Raises NotInTime."""
        await self._transport.wait(session_id_of(session), Deadline("the work", timeout_s))
