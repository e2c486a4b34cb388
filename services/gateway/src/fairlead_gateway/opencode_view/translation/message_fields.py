"""The fields that all messages of the terminal client share, and the ids of their parts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from fairlead_schema.catalog import ModelRef, Tokens

Json: TypeAlias = dict[str, Any]
TextKey: TypeAlias = tuple[str, str]
"""The message and the block of an open text."""


class ViewedMessage(NamedTuple):
    """One message of the client, and its parts in order."""

    info: Json
    parts: tuple[Json, ...]

    def wire(self) -> Json:
        return {"info": self.info, "parts": list(self.parts)}


@dataclass(frozen=True, slots=True)
class Setting:
    """What the messages of a session have in common."""

    session_id: str
    directory: str
    agent: str
    model: ModelRef
    texts: Mapping[TextKey, str] = field(default_factory=dict)
    """What open texts say so far."""


def part_id(message_id: str, index: int) -> str:
    """The id of the part at a place in its message."""
    return f"prt_{message_id.removeprefix('msg_')}_{index:05}"


def build_message(info: Json, parts: Iterable[tuple[int, Json]]) -> ViewedMessage:
    owner = {"sessionID": info["sessionID"], "messageID": info["id"]}
    return ViewedMessage(
        info, tuple({"id": part_id(info["id"], index), **owner, **part} for index, part in parts)
    )


def user_info(id_: str, created: int, setting: Setting, agent: str, model: ModelRef) -> Json:
    return {
        "id": id_,
        "role": "user",
        "sessionID": setting.session_id,
        "time": {"created": created},
        "agent": agent,
        "model": model_of(model),
    }


def assistant_info(id_: str, created: int, setting: Setting, agent: str, model: ModelRef) -> Json:
    return {
        "id": id_,
        "role": "assistant",
        "sessionID": setting.session_id,
        "time": {"created": created},
        "agent": agent,
        "mode": agent,
        "providerID": model.provider_id,
        "modelID": model.id,
        "path": {"cwd": setting.directory, "root": setting.directory},
        "cost": 0,
        # Without complete counts the client shows a crash report.
        "tokens": tokens_of(Tokens()),
    }


def model_of(model: ModelRef) -> Json:
    """A reference to a model. The default variant is left out."""
    variant = {} if model.variant in {None, "default"} else {"variant": model.variant}
    return {"providerID": model.provider_id, "modelID": model.id, **variant}


def tokens_of(tokens: Tokens) -> Json:
    return {
        "input": tokens.input,
        "output": tokens.output,
        "reasoning": tokens.reasoning,
        "cache": {"read": tokens.cache.read, "write": tokens.cache.write},
    }
