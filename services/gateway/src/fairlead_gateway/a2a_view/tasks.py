"""Tasks of other agents: admits their messages, answers asks, follows and cancels."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeAlias

from a2a.types import GetTaskRequest, SendMessageRequest, StreamResponse, Task
from a2a.utils.errors import (
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict
from starlette.requests import ClientDisconnect

from fairlead_gateway.a2a_view.translation.message_input import (
    AskAnswer,
    answer_of,
    history_length_of,
    is_answer,
    prompt_of,
)
from fairlead_gateway.a2a_view.translation.task_ids import TaskRef, parse_task_id
from fairlead_gateway.a2a_view.translation.task_view import TaskTranslator
from fairlead_gateway.http.operation import ApiRequest
from fairlead_gateway.http.request_parser import SESSION_ID, EmptyInput
from fairlead_gateway.http.sse import auto_close
from fairlead_gateway.log.commands import send_command, send_session_command
from fairlead_gateway.log.envelopes import PUBLIC_AND_NOTICE, EnvelopeTranslator, read_envelopes
from fairlead_gateway.log.session_state import load_session
from fairlead_gateway.log.unreadable import find_end, find_start
from fairlead_gateway.turn_view.ask_replies import open_asks, reply_permission, reply_question
from fairlead_gateway.turn_view.derived_ids import derived_message_id, derived_session_id
from fairlead_gateway.turn_view.session_events import at_session
from fairlead_gateway.turn_view.turn_reader import read_turn
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.input import AdmitPrompt, CancelInput
from fairlead_schema.commands.session import CreateSession, SessionCommand
from fairlead_schema.errors import Conflict, MessageNotFound, SessionNotFound
from fairlead_schema.ids import SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import PromptInput, Receipt
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.subjects import Address
from fairlead_service.supervise import cancel_and_wait

Json: TypeAlias = dict[str, Any]
RpcRequest: TypeAlias = ApiRequest[EmptyInput, EmptyInput]

PROTOCOL = "a2a"


class Tasks:
    """The tasks that one caller may see: those of the sessions of its tenant."""

    def __init__(self, request: RpcRequest) -> None:
        self._request = request

    async def send(self, given: SendMessageRequest) -> Task:
        """Admit a message, and wait until its task is over or wants input."""
        translator, seq = await self._admit(given)
        if not given.configuration.return_immediately and not translator.progress.is_over:
            await self._await_end(translator, seq)
        return translator.task(history_length=history_length_of(given.configuration))

    async def stream(self, given: SendMessageRequest) -> AsyncGenerator[StreamResponse, None]:
        """Admit a message now. The answer is its task and then every update of it."""
        translator, seq = await self._admit(given)
        return self._follow(translator, seq)

    async def get(self, given: GetTaskRequest) -> Task:
        """A task as it is now. Raises TaskNotFoundError."""
        translator, _ = await self._load(given.id)
        return translator.task(history_length=history_length_of(given))

    async def subscribe(self, task_id: str) -> AsyncGenerator[StreamResponse, None]:
        """A task that runs, and then every update of it, without a gap and without a double."""
        translator, seq = await self._load(task_id)
        if translator.progress.is_over:
            raise UnsupportedOperationError("The task is over: get it instead")
        return self._follow(translator, seq)

    async def cancel(self, task_id: str) -> Task:
        """Withdraw the prompt, or interrupt the session that works on it. Raises A2AError."""
        translator, seq = await self._load(task_id)
        ref = translator.ref
        if translator.progress.is_over:
            raise TaskNotCancelableError("The task is over")
        if not await self._withdraw(ref):
            command = SessionCommand(session_id=ref.session_id)
            await send_session_command(self._request, "session.interrupt", command)
        await self._await_end(translator, seq, through_asks=True)
        return translator.task()

    async def _admit(self, given: SendMessageRequest) -> tuple[TaskTranslator, int]:
        message = given.message
        if not message.message_id:
            raise InvalidParamsError(
                "message.messageId is missing: a repeated message has the same"
            )
        metadata: Json = MessageToDict(message.metadata) | MessageToDict(given.metadata)
        if message.task_id:
            return await self._continue(given, metadata)
        prompt = prompt_of(message, metadata)
        session_id = await self._find_or_create(given, metadata)
        receipt = await self._prompt(session_id, message.message_id, prompt)
        ref = TaskRef(session_id, receipt.id, receipt.admitted_seq)
        return await self._load(ref.task_id)

    async def _continue(
        self, given: SendMessageRequest, metadata: Json
    ) -> tuple[TaskTranslator, int]:
        """A message to a task that is not over: an answer to what it asks, or a steer."""
        message = given.message
        translator, seq = await self._load(message.task_id)
        ref, progress = translator.ref, translator.progress
        if message.context_id and message.context_id != ref.session_id:
            raise InvalidParamsError("message.contextId is not the context of the task")
        if progress.is_over:
            text = "The task is over: send the message with its contextId alone"
            raise UnsupportedOperationError(text)
        asks = await open_asks(self._request, Address(self._request.tenant, ref.session_id))
        if asks or is_answer(message):
            answer = answer_of(message, asks)
            await self._answer(answer, asks[answer.request_id]["sessionID"])
            # What was asked is answered. The log tells everything that follows.
            progress.asks, progress.rested = {}, None
        else:
            await self._prompt(ref.session_id, message.message_id, prompt_of(message, metadata))
        return translator, seq

    async def _prompt(self, session_id: SessionId, foreign_id: str, prompt: PromptInput) -> Receipt:
        id_ = derived_message_id(self._request.tenant, PROTOCOL, session_id, foreign_id)
        command = AdmitPrompt(session_id=session_id, id=id_, prompt=prompt)
        return await send_command(self._request, "session.prompt", command, CommandAnswer[Receipt])

    async def _find_or_create(self, given: SendMessageRequest, metadata: Json) -> SessionId:
        """The session of a context. Without a context the first message of a caller makes one."""
        request, context = self._request, given.message.context_id
        if context:
            try:
                SESSION_ID.validate_python(context)
                await load_session(request.runtime, Address(request.tenant, context))
            except (ValueError, SessionNotFound):
                text = f"No context {context}: leave contextId out to begin one"
                raise InvalidParamsError(text) from None
            return context
        key = f"{request.principal.name}\0{given.message.message_id}"
        directory = metadata.get("directory")
        fields: Json = (
            {"location": LocationRef(directory=directory)} if isinstance(directory, str) else {}
        )
        command = CreateSession(id=derived_session_id(request.tenant, PROTOCOL, key), **fields)
        session = await send_command(request, "session.create", command, CommandAnswer[SessionInfo])
        return session.id

    async def _answer(self, answer: AskAnswer, session_id: SessionId) -> None:
        if answer.reply is not None:
            await reply_permission(
                self._request, session_id, answer.request_id, answer.reply, answer.message
            )
        else:
            await reply_question(self._request, session_id, answer.request_id, answer.answers)

    async def _withdraw(self, ref: TaskRef) -> bool:
        """Withdraw a prompt that the model has not seen. False: it has seen it."""
        command = CancelInput(session_id=ref.session_id, message_id=ref.message_id)
        try:
            await send_session_command(self._request, "session.cancel", command)
        except (Conflict, MessageNotFound):
            return False
        return True

    async def _load(self, task_id: str) -> tuple[TaskTranslator, int]:
        """A task from the log, and the last event that it has. Raises TaskNotFoundError."""
        ref = parse_task_id(task_id)
        if ref is None or ref.admitted_seq < 1:
            raise TaskNotFoundError(f"No task {task_id}")
        at, translator = Address(self._request.tenant, ref.session_id), TaskTranslator(ref)
        try:
            request = await at_session(self._request, at)
        except SessionNotFound:
            raise TaskNotFoundError(f"No task {task_id}") from None
        seq = after = ref.admitted_seq - 1
        if after >= request.head.seq:
            raise TaskNotFoundError(f"No task {task_id}")
        runtime = request.runtime
        envelopes = EnvelopeTranslator(at, runtime.read_model, visible=PUBLIC_AND_NOTICE)
        start, reach = await find_start(request, after), await find_end(request)
        log = runtime.nats().log
        events = read_envelopes(log, at, envelopes, start=start, after=after, reach=reach)
        async with auto_close(events):
            async for envelope in events:
                assert envelope.durable is not None, "the log has durable events alone"
                seq = envelope.durable.seq
                translator.progress.take(envelope.wire())
                translator.take(envelope.wire())
                if not translator.is_found:
                    raise TaskNotFoundError(f"No task {task_id}")
                if translator.progress.is_over:
                    break
        return translator, seq

    async def _follow(
        self, translator: TaskTranslator, seq: int
    ) -> AsyncGenerator[StreamResponse, None]:
        yield StreamResponse(task=translator.task())
        if translator.progress.is_over:
            return
        at = Address(self._request.tenant, translator.ref.session_id)
        turn = read_turn(self._request, at, translator.progress, after=seq)
        async with aclosing(turn) as events:
            async for event in events:
                for update in translator.take(event):
                    yield update
        yield translator.status_update()

    async def _await_end(
        self, translator: TaskTranslator, seq: int, *, through_asks: bool = False
    ) -> None:
        """Wait until a task is over or wants input, or until the process stops."""
        request = self._request
        at = Address(request.tenant, translator.ref.session_id)

        async def read() -> None:
            turn = read_turn(
                request,
                at,
                translator.progress,
                after=seq,
                through_asks=through_asks,
            )
            async with aclosing(turn) as events:
                async for event in events:
                    translator.take(event)

        # A wait holds as much of this process as a stream does.
        with request.runtime.limits.open_stream(request.principal.name):
            reading = asyncio.ensure_future(read())
            stopping: asyncio.Future[Any] = asyncio.ensure_future(request.runtime.shutdown.wait())
            leaving: asyncio.Future[Any] = asyncio.ensure_future(_wait_for_disconnect(request))
            all_: set[asyncio.Future[Any]] = {reading, stopping, leaving}
            try:
                await asyncio.wait(all_, return_when=asyncio.FIRST_COMPLETED)
                if reading.done():
                    reading.result()
                elif leaving.done():
                    raise ClientDisconnect
            finally:
                await cancel_and_wait(reading, stopping, leaving)


async def _wait_for_disconnect(request: RpcRequest) -> None:
    """Wait until nobody waits for the answer. The task goes on."""
    while (await request.http.receive())["type"] != "http.disconnect":
        pass
