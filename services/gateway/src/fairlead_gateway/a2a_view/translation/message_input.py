"""A message of another agent as our commands: a prompt, or an answer to an ask. Pure."""

import base64
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from a2a.types import Message, Part
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError
from google.protobuf.json_format import MessageToDict

from fairlead_schema.catalog import ModelRef
from fairlead_schema.permission import Reply
from fairlead_schema.prompt import FileInput, PromptInput

Json: TypeAlias = dict[str, Any]

_WORDS: Final[Mapping[str, Reply]] = {
    **dict.fromkeys(("once", "yes", "allow", "approve", "approved", "ok"), "once"),
    **dict.fromkeys(("always",), "always"),
    **dict.fromkeys(("reject", "no", "deny", "rejected"), "reject"),
}


class AskAnswer(NamedTuple):
    """The answer to one ask: a reply to a permission, or answers to questions."""

    request_id: str
    reply: Reply | None = None
    message: str | None = None
    answers: list[list[str]] | None = None
    is_dismissed: bool = False


def prompt_of(message: Message, metadata: Json) -> PromptInput:
    """The prompt of a message. Raises InvalidParamsError, ContentTypeNotSupportedError."""
    texts, files = _texts(message), [_file(part) for part in message.parts if _is_file(part)]
    if not any(text.strip() for text in texts) and not files:
        raise InvalidParamsError("The message is empty: send a text part or a file part")
    fields: Json = {"files": tuple(files)} if files else {}
    if isinstance(agent := metadata.get("agent"), str) and agent:
        fields["agent"] = agent
    if isinstance(model := metadata.get("model"), str) and "/" in model:
        provider_id, _, id_ = model.partition("/")
        fields["model"] = ModelRef(provider_id=provider_id, id=id_)
    return PromptInput(text="\n".join(texts), synthetic=True, **fields)


def answer_of(message: Message, asks: Mapping[str, Json]) -> AskAnswer:
    """The answer to an ask that waits. Raises InvalidParamsError, which says what to send."""
    given = next((_data(part) for part in message.parts if part.HasField("data")), {})
    request_id = given.get("requestID") or next(iter(asks))
    ask = asks.get(request_id)
    if ask is None:
        raise InvalidParamsError(f"No ask {request_id} waits: answer one of {', '.join(asks)}")
    text = "\n".join(_texts(message)).strip()
    return _answers(ask, given, text) if "questions" in ask else _reply(ask, given, text)


def _reply(ask: Json, given: Json, text: str) -> AskAnswer:
    reply = _WORDS.get(str(given.get("reply") or text).lower())
    if reply is None:
        options = '{"reply": "once"}, {"reply": "always"} or {"reply": "reject"}'
        raise InvalidParamsError(f"Answer the permission with a data part: {options}")
    note = given.get("message")
    return AskAnswer(ask["id"], reply=reply, message=note if isinstance(note, str) else None)


def _answers(ask: Json, given: Json, text: str) -> AskAnswer:
    if given.get("dismiss") is True:
        return AskAnswer(ask["id"], is_dismissed=True)
    answers = given.get("answers")
    if isinstance(answers, list) and all(isinstance(one, list) for one in answers):
        return AskAnswer(ask["id"], answers=[[str(label) for label in one] for one in answers])
    if text and len(ask["questions"]) == 1:
        return AskAnswer(ask["id"], answers=[[text]])
    options = '{"answers": [["label"], …]}, one list for each question, or {"dismiss": true}'
    raise InvalidParamsError(f"Answer the questions with a data part: {options}")


def _texts(message: Message) -> list[str]:
    return [part.text for part in message.parts if part.HasField("text")]


def _data(part: Part) -> Json:
    data = MessageToDict(part.data)
    return data if isinstance(data, dict) else {}


def _is_file(part: Part) -> bool:
    return not part.HasField("text")


def _file(part: Part) -> FileInput:
    name: Json = {"name": part.filename} if part.filename else {}
    if part.HasField("url"):
        return FileInput(uri=part.url, **name)
    if part.HasField("raw"):
        mime = part.media_type or "application/octet-stream"
        return FileInput(uri=f"data:{mime};base64,{base64.b64encode(part.raw).decode()}", **name)
    raise ContentTypeNotSupportedError("A prompt has text parts and file parts")
