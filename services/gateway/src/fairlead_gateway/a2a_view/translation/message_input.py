"""A message of another agent as our commands: a prompt, or an answer to an ask. Pure."""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from a2a.types import (
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    SendMessageConfiguration,
)
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
_ANSWER_KEYS: Final = frozenset({"reply", "answers", "dismiss", "requestID"})


class AskAnswer(NamedTuple):
    """The answer to one ask: a reply to a permission, or answers to questions."""

    request_id: str
    reply: Reply | None = None
    message: str | None = None
    answers: list[list[str]] | None = None
    is_dismissed: bool = False


def prompt_of(message: Message, metadata: Json) -> PromptInput:
    """The prompt of a message: data as its JSON. Raises InvalidParamsError, ContentTypeNotSupportedError."""
    texts = [_prompt_text(part) for part in message.parts if not _is_file(part)]
    files = [_file(part) for part in message.parts if _is_file(part)]
    if not any(text.strip() for text in texts) and not files:
        raise InvalidParamsError("The message is empty: send a text, a data or a file part")
    fields: Json = {"files": tuple(files)} if files else {}
    if isinstance(agent := metadata.get("agent"), str) and agent:
        fields["agent"] = agent
    if isinstance(model := metadata.get("model"), str) and "/" in model:
        provider_id, _, id_ = model.partition("/")
        fields["model"] = ModelRef(provider_id=provider_id, id=id_)
    return PromptInput(text="\n".join(texts), synthetic=True, **fields)


def is_answer(message: Message) -> bool:
    """Whether the data of a message can only be an answer to an ask."""
    return not _ANSWER_KEYS.isdisjoint(_first_data(message))


def answer_of(message: Message, asks: Mapping[str, Json]) -> AskAnswer:
    """The answer to an ask that waits. Raises InvalidParamsError, which says what to send."""
    if not asks:
        raise InvalidParamsError("Nothing is asked any more: get the task to see how it went on")
    given = _first_data(message)
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


def history_length_of(
    given: GetTaskRequest | SendMessageConfiguration | ListTasksRequest,
) -> int | None:
    """How many messages of a task the caller wants; None without a wish."""
    return given.history_length if given.HasField("history_length") else None


def _texts(message: Message) -> list[str]:
    return [part.text for part in message.parts if part.HasField("text")]


def _prompt_text(part: Part) -> str:
    if part.HasField("text"):
        return part.text
    return json.dumps(_plain(MessageToDict(part.data)), ensure_ascii=False)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The data with whole numbers again: the types of the protocol know only fractions."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case _:
            return value


def _first_data(message: Message) -> Json:
    """The first data of a message."""
    for part in message.parts:
        if part.HasField("data"):
            data = MessageToDict(part.data)
            return data if isinstance(data, dict) else {}
    return {}


def _is_file(part: Part) -> bool:
    return not part.HasField("text") and not part.HasField("data")


def _file(part: Part) -> FileInput:
    name: Json = {"name": part.filename} if part.filename else {}
    if part.HasField("url"):
        return FileInput(uri=part.url, **name)
    if part.HasField("raw"):
        mime = part.media_type or "application/octet-stream"
        return FileInput(uri=f"data:{mime};base64,{base64.b64encode(part.raw).decode()}", **name)
    raise ContentTypeNotSupportedError("A prompt has text parts, data parts and file parts")
