"""The input of a run as our commands: a prompt, and answers to asks. Pure."""

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from ag_ui.core import RunAgentInput, UserMessage
from ag_ui.core.types import ContentPart, DataSource, FileSource, ResumeEntry, TextPart
from pydantic import ValidationError

from fairlead_schema.catalog import ModelRef
from fairlead_schema.errors import InvalidRequest
from fairlead_schema.permission import Reply
from fairlead_schema.prompt import FileInput, PromptInput

Json: TypeAlias = dict[str, Any]

ELSEWHERE: Final = "it is at a provider, and nobody else can read it"


class PermissionReply(NamedTuple):
    reply: Reply
    message: str | None = None


def parse_input(raw: Json) -> RunAgentInput:
    """The input of a run. Raises InvalidRequest with the first invalid field."""
    try:
        return RunAgentInput.model_validate(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidRequest(f"{field}: {first['msg']}", kind="Body", field=field) from error


def prompt_of(given: RunAgentInput) -> PromptInput | None:
    """The prompt of a run: its last message, if a person says it. Raises InvalidRequest.

    The log has the messages before it. Context of the front end holds for this prompt alone.
    """
    last = given.messages[-1] if given.messages else None
    if not isinstance(last, UserMessage):
        return None
    parts: Sequence[ContentPart] = (
        [TextPart(text=last.content)] if isinstance(last.content, str) else last.content
    )
    text = "\n".join(_text(part) for part in parts if _is_said(part))
    files = tuple(_file(part) for part in parts if not _is_said(part))
    if not text.strip() and not files:
        reason = "The prompt is empty: send a text or a file"
        raise InvalidRequest(reason, kind="Body", field="messages")
    context = "\n".join(f"{one.description}: {one.value}" for one in given.context or ())
    fields: Json = {"files": files} if files else {}
    fields |= {"system": context} if context else {}
    return PromptInput(text=text, **fields, **_options(given))


def delivery_of(given: RunAgentInput) -> Literal["steer", "queue"]:
    """How the prompt joins a session that works. `forwardedProps.delivery` may say `queue`."""
    return "queue" if _props(given).get("delivery") == "queue" else "steer"


def directory_of(given: RunAgentInput) -> str | None:
    """The directory of a thread that begins, if the front end names one."""
    directory = _props(given).get("directory")
    return directory if isinstance(directory, str) and directory else None


def permission_reply(entry: ResumeEntry) -> PermissionReply:
    """The reply to a permission. Raises InvalidRequest for a payload that says nothing."""
    if entry.status == "cancelled":
        return PermissionReply("reject")
    match entry.payload:
        case "once" | "always" | "reject" as reply:
            return PermissionReply(reply)
        case {"reply": "once" | "always" | "reject" as reply, "message": str(message)}:
            return PermissionReply(reply, message)
        case {"reply": "once" | "always" | "reject" as reply}:
            return PermissionReply(reply)
        case True | {"approved": True}:
            return PermissionReply("once")
        case False | {"approved": False}:
            return PermissionReply("reject")
        case _:
            text = 'Answer a permission with {"reply": "once"}, "always" or "reject"'
            raise InvalidRequest(text, kind="Body", field="resume.payload")


def question_answers(entry: ResumeEntry) -> list[list[str]] | None:
    """The answers to questions; None dismisses them. Raises InvalidRequest."""
    if entry.status == "cancelled":
        return None
    payload = entry.payload
    answers = payload.get("answers") if isinstance(payload, dict) else payload
    match answers:
        case str():
            return [[answers]]
        case list() if all(isinstance(one, str) for one in answers):
            return [[one] for one in answers]
        case list() if all(isinstance(one, list) for one in answers):
            return [[str(label) for label in one] for one in answers]
        case _:
            text = 'Answer questions with {"answers": [["label"], …]}, one list for each question'
            raise InvalidRequest(text, kind="Body", field="resume.payload")


def _options(given: RunAgentInput) -> Json:
    """The agent and the model of one prompt, if the front end chooses them."""
    props = _props(given)
    options: Json = {}
    if isinstance(agent := props.get("agent"), str) and agent:
        options["agent"] = agent
    if isinstance(model := props.get("model"), str) and "/" in model:
        provider_id, _, id_ = model.partition("/")
        options["model"] = ModelRef(provider_id=provider_id, id=id_)
    return options


def _props(given: RunAgentInput) -> Json:
    return given.forwarded_props if isinstance(given.forwarded_props, dict) else {}


def _is_said(part: ContentPart) -> bool:
    return isinstance(part, TextPart) or isinstance(part.source, FileSource)


def _text(part: ContentPart) -> str:
    """A text, or the note that a file was left out: no run fails because of a part."""
    return part.text if isinstance(part, TextPart) else f"[{part.type} left out: {ELSEWHERE}]"


def _file(part: Any) -> FileInput:  # noqa: ANN401 - a part of any medium
    if isinstance(part.source, DataSource):
        return FileInput(uri=f"data:{part.source.mime_type};base64,{part.source.value}")
    return FileInput(uri=part.source.value)
