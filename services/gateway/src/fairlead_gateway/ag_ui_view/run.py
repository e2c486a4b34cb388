"""One run: answers asks, admits the prompt, and streams the turn as events of AG-UI."""

from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeAlias

from ag_ui.core import (
    PROTOCOL_VERSION,
    BaseEvent,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunErrorEvent,
    RunStartedEvent,
    StateSnapshotEvent,
)
from ag_ui.core.types import ResumeEntry
from ag_ui.encoder import EventEncoder

from fairlead_gateway.ag_ui_view.run_body import RunBody
from fairlead_gateway.ag_ui_view.translation.run_ends import end_of
from fairlead_gateway.ag_ui_view.translation.run_events import RunTranslator
from fairlead_gateway.ag_ui_view.translation.run_input import (
    delivery_of,
    directory_of,
    parse_input,
    permission_reply,
    prompt_of,
    question_answers,
)
from fairlead_gateway.ag_ui_view.translation.snapshots import view_messages, view_state
from fairlead_gateway.http.answers import wire_error
from fairlead_gateway.http.operation import ApiRequest
from fairlead_gateway.http.request_parser import SESSION_ID, EmptyInput
from fairlead_gateway.http.sse import EventStream, FrameQueue, SlowClient
from fairlead_gateway.log.commands import send_command
from fairlead_gateway.log.session_state import load_session
from fairlead_gateway.routes.events.replay import event_stream
from fairlead_gateway.turn_view.ask_replies import (
    is_permission,
    open_asks,
    reply_permission,
    reply_question,
)
from fairlead_gateway.turn_view.derived_ids import derived_message_id, derived_session_id
from fairlead_gateway.turn_view.turn_progress import TurnProgress
from fairlead_gateway.turn_view.turn_reader import begin_at, read_turn
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.input import AdmitPrompt
from fairlead_schema.commands.session import CreateSession
from fairlead_schema.errors import PermissionNotFound, QuestionNotFound
from fairlead_schema.ids import SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.message import Message
from fairlead_schema.prompt import Receipt
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.subjects import Address
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.info import info
from fairlead_session.state.session import Session

Json: TypeAlias = dict[str, Any]
RunRequest: TypeAlias = ApiRequest[EmptyInput, RunBody]

PROTOCOL = "ag-ui"
ENCODER = EventEncoder()


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run whose input is in the log."""

    given: RunAgentInput
    at: Address
    receipt: Receipt | None
    """None: the run has no prompt. It goes on with what the session does."""
    unknown_interrupts: tuple[str, ...] = ()


async def start_run(request: RunRequest) -> StartedRun:
    """Put the input of a run into the log, once. Raises InvalidRequest, SessionNotFound, Conflict."""
    given = parse_input(request.body.raw())
    prompt = prompt_of(given)
    at = await _find_or_create(request, given, may_create=prompt is not None)
    unknown = tuple(await _answer_asks(request, at, given))
    # A run that answers repeats the message of the run before.
    if prompt is None or given.resume:
        return StartedRun(given, at, None, unknown)
    command = AdmitPrompt(
        session_id=at.session_id,
        id=derived_message_id(request.tenant, PROTOCOL, at.session_id, given.run_id),
        prompt=prompt,
        delivery=delivery_of(given),
    )
    receipt = await send_command(request, "session.prompt", command, CommandAnswer[Receipt])
    return StartedRun(given, at, receipt)


def stream_run(request: RunRequest, run: StartedRun) -> EventStream:
    """The events of a run, from its start to its end."""

    async def put_events(frames: FrameQueue) -> None:
        try:
            await _put_run(request, run, frames)
        except SlowClient:
            raise
        except Exception as error:  # noqa: BLE001 - the end of a run says why
            refusal = wire_error(error, request="POST /ag-ui")
            await _put(frames, [RunErrorEvent(message=refusal.message, code=refusal.tag)])
        # The stream ends when its client has everything.
        frames.close()
        await request.runtime.shutdown.wait()

    farewell = RunErrorEvent(
        message="The gateway stops: run again with the same runId", code="ServiceUnavailableError"
    )
    return event_stream(request, put_events, farewell=_encode(farewell), tells_failure=False)


async def _put_run(request: RunRequest, run: StartedRun, frames: FrameQueue) -> None:
    at, names = run.at, _names(run)
    session = await load_session(request.runtime, at)
    own, rests = None if run.receipt is None else run.receipt.id, is_at_rest(session)
    # A turn that is over is told again from its prompt on. One that runs goes on from here.
    before = run.receipt.admitted_seq if rests and run.receipt is not None else None
    messages = _messages_before(session, run, before)
    state = StateSnapshotEvent(snapshot=view_state(session, info(session)))
    await _put(frames, [_start_event(run), state, _snapshot(messages, run)])
    is_promoted = own is not None and session.transcript.find(own) is not None
    progress = TurnProgress(own, is_promoted=is_promoted and before is None)
    if before is None:
        begin_at(progress, session)
    if progress.is_over:
        await _put(frames, [end_of(progress, **names)])
        return
    after = session.seq if before is None else before
    translator = RunTranslator(known_messages=_ids_of_known(messages, session, run))
    async with aclosing(read_turn(request, at, progress, after=after)) as events:
        async for event in events:
            await _put(frames, translator.take(event))
    await _put(frames, [*translator.close(), end_of(progress, **names)])


def _messages_before(session: Session, run: StartedRun, before: int | None) -> list[Message]:
    """The messages that a run begins with, but for its own prompt."""
    own = None if run.receipt is None else run.receipt.id
    lines = session.transcript.lines
    shown = [line.message for line in lines if before is None or line.seq < before]
    return [message for message in shown if message.id != own]


def _snapshot(messages: Iterable[Message], run: StartedRun) -> MessagesSnapshotEvent:
    viewed = view_messages(messages, run.at.session_id)
    if run.receipt is not None:
        # The front end has its prompt under another id. The snapshot takes the place of it.
        prompt = run.given.messages[-1].model_copy(update={"id": run.receipt.id})
        viewed.append(prompt)
    return MessagesSnapshotEvent(messages=viewed)


def _ids_of_known(messages: Iterable[Message], session: Session, run: StartedRun) -> frozenset[str]:
    """The messages of which nothing is said again: all but an answer that is being written."""
    newest = session.transcript.open_assistant()
    shown = {one.id for one in messages if newest is None or one.id != newest.id}
    return frozenset(shown | ({run.receipt.id} if run.receipt is not None else set()))


def _start_event(run: StartedRun) -> RunStartedEvent:
    unknown = {"unknownInterrupts": list(run.unknown_interrupts)}
    return RunStartedEvent(
        **_names(run),
        protocol_version=PROTOCOL_VERSION,
        metadata={"fairlead": unknown} if run.unknown_interrupts else None,
    )


def _names(run: StartedRun) -> Json:
    return {"thread_id": run.given.thread_id, "run_id": run.given.run_id}


async def _find_or_create(
    request: RunRequest, given: RunAgentInput, *, may_create: bool
) -> Address:
    """The session of a thread. The id of a session names it; any other thread gets one of its own."""
    thread = given.thread_id
    try:
        at = Address(request.tenant, SESSION_ID.validate_python(thread))
        may_create = False
    except ValueError:
        at = Address(request.tenant, derived_session_id(request.tenant, PROTOCOL, thread))
    if may_create:
        directory = directory_of(given)
        fields: Json = {} if directory is None else {"location": LocationRef(directory=directory)}
        command = CreateSession(id=at.session_id, **fields)
        await send_command(request, "session.create", command, CommandAnswer[SessionInfo])
    else:
        await load_session(request.runtime, at)
    return at


async def _answer_asks(request: RunRequest, at: Address, given: RunAgentInput) -> list[str]:
    """Answer what the run before asked. The asks that were not there: somebody else was first."""
    if not given.resume:
        return []
    waiting, unknown = await open_asks(request, at), list[str]()
    for entry in given.resume:
        session_id = waiting.get(entry.interrupt_id, {}).get("sessionID", at.session_id)
        try:
            await _answer_ask(request, session_id, entry)
        except (PermissionNotFound, QuestionNotFound):
            unknown.append(entry.interrupt_id)
    return unknown


async def _answer_ask(request: RunRequest, session_id: SessionId, entry: ResumeEntry) -> None:
    if is_permission(entry.interrupt_id):
        reply = permission_reply(entry)
        await reply_permission(request, session_id, entry.interrupt_id, *reply)
    else:
        answers = question_answers(entry)
        await reply_question(request, session_id, entry.interrupt_id, answers)


def _encode(event: BaseEvent) -> bytes:
    return ENCODER.encode(event).encode()


async def _put(frames: FrameQueue, events: Iterable[BaseEvent]) -> None:
    for event in events:
        await frames.put(_encode(event))
