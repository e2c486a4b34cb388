"""Turns for the terminal client: prompts that are answered at rest, and what changes a session's course."""

from typing import Any, TypeAlias

from pydantic import Field
from starlette.responses import Response

from fairlead_gateway.http.answers import empty_answer
from fairlead_gateway.http.operation import AnyOperation, ApiRequest
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import send_command, send_session_command
from fairlead_gateway.log.session_state import load_session
from fairlead_gateway.opencode_view.prompt_parts import PartInput, join_parts
from fairlead_gateway.opencode_view.routes.view_operation import (
    ViewQuery,
    json_answer,
    view_operation,
)
from fairlead_gateway.opencode_view.translation.messages import view_messages
from fairlead_gateway.opencode_view.translation.sessions import setting_of, view_folded
from fairlead_gateway.opencode_view.turn_wait import TurnWait
from fairlead_gateway.opencode_view.view_hubs import ViewHubs
from fairlead_gateway.routes.sessions.revert import wait_for_revert
from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.input import AdmitPrompt, CancelInput, RequestShell, ShellReceipt
from fairlead_schema.commands.revert import RevertReached, StageRevert
from fairlead_schema.commands.session import SeqReached, SessionCommand, SwitchAgent, SwitchModel
from fairlead_schema.ids import MessageId
from fairlead_schema.message import AssistantMessage, CompactionMessage, UserMessage
from fairlead_schema.model import InputModel
from fairlead_schema.prompt import PromptInput, Receipt
from fairlead_service import ids
from fairlead_session.state.session import Session

Json: TypeAlias = dict[str, Any]


class PromptModel(InputModel):
    provider_id: str
    model_id: str


class PartsBody(InputModel):
    parts: tuple[PartInput, ...]
    message_id: MessageId | None = None
    agent: str | None = None
    model: PromptModel | None = None
    variant: str | None = None

    @property
    def by_program(self) -> bool:
        """Whether `run` sent the prompt. The terminal always names the agent and the model."""
        return self.agent is None or self.model is None


class TypedCommandBody(InputModel):
    command: str
    arguments: str = ""
    parts: tuple[PartInput, ...] = ()
    message_id: MessageId | None = None
    agent: str | None = None
    model: str | None = None

    @property
    def by_program(self) -> bool:
        """As for a prompt."""
        return self.agent is None or self.model is None


class ViewShellBody(InputModel):
    command: str = Field(min_length=1, max_length=100_000)


class ViewRevertBody(InputModel):
    message_id: MessageId


class TurnRoutes:
    """The routes of turns. A held request waits at the hub of its tenant."""

    def __init__(self, hubs: ViewHubs) -> None:
        self._hubs = hubs

    def operations(self) -> tuple[AnyOperation, ...]:
        def post(
            name: str,
            respond: Any,  # noqa: ANN401 - each with its own body
            body: type[InputModel] = EmptyInput,
        ) -> AnyOperation:
            path = f"/session/{{sessionID}}/{name}"
            return view_operation(
                "POST", path, respond, scope="session:write", body=body, commands=True
            )

        return (
            post("message", self._prompt, PartsBody),
            post("prompt_async", self._prompt_async, PartsBody),
            post("command", self._command, TypedCommandBody),
            post("shell", self._shell, ViewShellBody),
            post("abort", self._abort),
            post("summarize", self._compact),
            post("revert", self._revert, ViewRevertBody),
            post("unrevert", self._unrevert),
        )

    async def _prompt(self, request: ApiRequest[ViewQuery, PartsBody]) -> Response:
        """Admit the prompt, and answer when the session rests: the client ends with this answer."""
        id_ = request.body.message_id or ids.message_id()
        async with TurnWait(self._hubs, request).hold(id_) as wait:
            await _prepare(request, await wait.session(), request.body)
            prompt = join_parts(request.body.parts, expand=False)
            seq = await _admit(request, prompt, id_)
            by_program = request.body.by_program
            return _answer(request, await wait.until_rest(seq, by_program=by_program))

    async def _prompt_async(self, request: ApiRequest[ViewQuery, PartsBody]) -> Response:
        session = await load_session(request.runtime, request.at)
        await _prepare(request, session, request.body)
        prompt = join_parts(request.body.parts, expand=False)
        await _admit(request, prompt, request.body.message_id or ids.message_id())
        return empty_answer()

    async def _command(self, request: ApiRequest[ViewQuery, TypedCommandBody]) -> Response:
        """A command is a prompt that ingest expands."""
        body = request.body
        id_ = body.message_id or ids.message_id()
        async with TurnWait(self._hubs, request).hold(id_) as wait:
            await _prepare(request, await wait.session(), None)
            typed = PartInput(type="text", text=f"/{body.command} {body.arguments}".rstrip())
            prompt = join_parts((typed, *body.parts), expand=True)
            seq = await _admit(request, prompt, id_)
            return _answer(request, await wait.until_rest(seq, by_program=body.by_program))

    async def _shell(self, request: ApiRequest[ViewQuery, ViewShellBody]) -> Response:
        id_ = ids.message_id()
        async with TurnWait(self._hubs, request).hold(id_) as wait:
            command = RequestShell(
                session_id=request.at.session_id, minted_id=id_, command=request.body.command
            )
            receipt = await send_command(
                request, "session.shell", command, CommandAnswer[ShellReceipt]
            )
            return _answer(request, await wait.until_rest(receipt.admitted_seq))

    async def _abort(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        """Stop the work. A client that stops a session at rest has missed the end of its turn."""
        await send_session_command(request, "session.interrupt", _session_command(request))
        if (hub := self._hubs.peek(request.tenant)) is not None:
            await hub.repeat(request.at)
        return json_answer(body=True)

    async def _compact(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        async with TurnWait(self._hubs, request).hold(ids.message_id()) as wait:
            reached = await send_command(
                request, "session.compact", _session_command(request), CommandAnswer[SeqReached]
            )
            await wait.until_rest(reached.seq)
        return json_answer(body=True)

    async def _revert(self, request: ApiRequest[ViewQuery, ViewRevertBody]) -> Response:
        """The client names the first message that goes. Our boundary is the message before it, if any."""
        session = await load_session(request.runtime, request.at)
        first = request.body.message_id
        if any(pending.message_id == first for pending in session.inbox.pending):
            # The model has not read it, so that there is nothing to go back to.
            cancel = CancelInput(session_id=request.at.session_id, message_id=first)
            await send_session_command(request, "session.cancel", cancel)
            return json_answer(view_folded(await load_session(request.runtime, request.at)))
        boundary = _message_before(session, first)
        command = StageRevert(
            session_id=request.at.session_id, message_id=boundary or first, before=boundary is None
        )
        reached = await send_command(request, "revert.stage", command, CommandAnswer[RevertReached])
        return json_answer(view_folded(await wait_for_revert(request, reached)))

    async def _unrevert(self, request: ApiRequest[ViewQuery, EmptyInput]) -> Response:
        reached = await send_command(
            request, "revert.clear", _session_command(request), CommandAnswer[RevertReached]
        )
        return json_answer(view_folded(await wait_for_revert(request, reached)))


async def _prepare(
    request: ApiRequest[ViewQuery, Any], session: Session, choice: PartsBody | None
) -> None:
    """Make a staged revert final, and switch to the agent and the model that the prompt names."""
    assert session.profile is not None, "a session that was found has a profile"
    session_id = request.at.session_id
    if session.profile.revert is not None:
        await send_session_command(request, "revert.commit", _session_command(request))
    if choice is None:
        return
    setting = setting_of(session, request.runtime.settings.with_defaults, {})
    if choice.agent is not None and choice.agent != setting.agent:
        switch = SwitchAgent(session_id=session_id, agent=choice.agent)
        await send_session_command(request, "session.agent", switch)
    if choice.model is None:
        return
    model = ModelRef(
        id=choice.model.model_id, provider_id=choice.model.provider_id, variant=choice.variant
    )
    if not model.same_model(setting.model):
        command = SwitchModel(session_id=session_id, model=model)
        await send_session_command(request, "session.model", command)


async def _admit(request: ApiRequest[ViewQuery, Any], prompt: PromptInput, id_: MessageId) -> int:
    name = "minted_id" if request.body.message_id is None else "id"
    fields: Json = {name: id_, "prompt": prompt}
    command = AdmitPrompt(session_id=request.at.session_id, **fields)
    receipt = await send_command(request, "session.prompt", command, CommandAnswer[Receipt])
    return receipt.admitted_seq


def _answer(request: ApiRequest[ViewQuery, Any], session: Session | None) -> Response:
    """The last answer of the session. None: the process stops, and the turn goes on elsewhere."""
    if session is None:
        return json_answer({})
    setting = setting_of(session, request.runtime.settings.with_defaults, {})
    newest = [line.message for line in session.transcript.lines][-2:]
    viewed = [one for one in view_messages(newest, setting) if one.info["role"] == "assistant"]
    return json_answer(viewed[-1].wire() if viewed else {})


def _message_before(session: Session, message_id: MessageId) -> MessageId | None:
    """The answer or the prompt before a message; None if history has none, or not the message."""
    before: MessageId | None = None
    for line in session.transcript.lines:
        if line.message.id == message_id:
            return before
        if isinstance(line.message, UserMessage | AssistantMessage | CompactionMessage):
            before = line.message.id
    return None


def _session_command(request: ApiRequest[ViewQuery, Any]) -> SessionCommand:
    return SessionCommand(session_id=request.at.session_id)
