"""Input that is admitted once: prompts, skills, and people's own commands."""

from typing import TypeVar

from fairlead_gateway.http.operation import ApiRequest
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.commands import message_id_from_key, send_command
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.input import (
    AdmitPrompt,
    LoadSkill,
    PromptBody,
    RequestShell,
    ShellBody,
    SkillBody,
)
from fairlead_schema.model import Model
from fairlead_service import ids

Data = TypeVar("Data", bound=Model)


async def send_input(
    request: ApiRequest[EmptyInput, PromptBody]
    | ApiRequest[EmptyInput, SkillBody]
    | ApiRequest[EmptyInput, ShellBody],
    verb: str,
    command: type[AdmitPrompt | LoadSkill | RequestShell],
    answer: type[CommandAnswer[Data]],
) -> Data:
    """Send a body to ingest as a command with the id of the caller, of its key, or a new one."""
    body = request.body
    id_ = body.id or message_id_from_key(request.http, request.tenant)
    fields = {name: value for name, value in body if name != "id"}
    # The body was validated already. An id makes the command repeatable.
    made = command.model_construct(
        session_id=request.at.session_id,
        id=id_,
        minted_id=ids.message_id() if id_ is None else None,
        **fields,
    )
    return await send_command(request, verb, made, answer)
