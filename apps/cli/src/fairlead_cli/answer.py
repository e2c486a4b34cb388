"""Follows the answer to one prompt: what a reader sees next, and how it ended."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pydantic import ValidationError

from fairlead_cli.client import Client
from fairlead_cli.terminal import shorten
from fairlead_schema.prompt import Receipt
from fairlead_schema.public_events import PREFIX, EventEnvelope

# A step that an interruption closed is followed by the next one at once.
FAILURE_SETTLES_S: Final = 1.5
TOOL_CALLS: Final = "tool-calls"


class Piece(NamedTuple):
    """A part of the answer, in reading order."""

    kind: Literal["text", "reasoning", "note"]
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The step ended."""

    text: str
    finish: str
    cost: float
    tokens: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """The step failed, and nothing went on."""

    message: str


Outcome: TypeAlias = Finished | Failed


class Answer:
    """Folds events into pieces, each once: after a reconnect nothing is shown again."""

    def __init__(self, message_id: str) -> None:
        self._message_id = message_id
        self._promoted = False
        self._received: dict[str, str] = {}
        self._shown: dict[str, int] = {}
        self._texts: list[str] = []
        self.outcome: Outcome | None = None

    def restart(self) -> None:
        """The connection is new: fragments start again from the beginning of each part."""
        self._received.clear()

    def take(self, envelope: EventEnvelope) -> list[Piece]:
        """What this event adds."""
        data, type_ = envelope.data, envelope.type.removeprefix(PREFIX)
        if type_ == "prompted" and data["messageID"] == self._message_id:
            self._promoted = True
        if not self._promoted:
            return []
        match type_:
            case "text.delta" | "reasoning.delta":
                kind: Literal["text", "reasoning"] = "text" if type_[0] == "t" else "reasoning"
                part = self._part(data, kind)
                self._received[part] = self._received.get(part, "") + data["delta"]
                return self._unseen(kind, part, self._received[part])
            case "text.ended":
                self._texts.append(data["text"])
                return [*self._unseen("text", self._part(data, "text"), data["text"]), _BREAK]
            case "reasoning.ended":
                part = self._part(data, "reasoning")
                return [*self._unseen("reasoning", part, data["text"]), _BREAK]
            case "step.started":
                self.outcome = None
            case "step.ended" if data["finish"] != TOOL_CALLS:
                text = "\n\n".join(self._texts)
                self.outcome = Finished(text, data["finish"], data["cost"], data["tokens"])
            case "step.failed":
                self.outcome = Failed(data["error"]["message"])
            case _:
                return _notes(type_, data)
        return []

    def _part(self, data: dict[str, Any], kind: str) -> str:
        return f"{data['assistantMessageID']}/{kind}/{data[f'{kind}ID']}"

    def _unseen(self, kind: Literal["text", "reasoning"], part: str, text: str) -> list[Piece]:
        shown = self._shown.get(part, 0)
        self._shown[part] = max(shown, len(text))
        return [Piece(kind, text[shown:])] if len(text) > shown else []


_BREAK: Final = Piece("note", "")


def _notes(type_: str, data: dict[str, Any]) -> list[Piece]:
    """Remarks between the parts of an answer."""
    match type_:
        case "tool.called":
            said = f"{data['tool']} {shorten(str(data['input']), 60)}"
        case "tool.failed":
            said = f"tool failed: {shorten(data['error']['message'])}"
        case "retried":
            said = f"retrying ({data['attempt']}): {shorten(data['error']['message'])}"
        case "permission.v2.asked":
            what = f"{data['action']} {' '.join(data['resources'])}"
            said = f"waits for permission: {what} (fairlead reply {data['id']} once)"
        case "question.v2.asked":
            said = f"waits for an answer to its question (fairlead reply {data['id']} ANSWER)"
        case _:
            return []
    return [Piece("note", said)]


async def follow(client: Client, receipt: Receipt, show: Callable[[Piece], None]) -> Outcome:
    """Show the answer to an admitted prompt as it comes; returns how it ended."""
    answer = Answer(receipt.id)
    stream = client.follow(
        receipt.session_id,
        after=max(receipt.admitted_seq - 1, 0),
        live=True,
        on_reconnect=answer.restart,
    )
    clock = asyncio.get_running_loop().time
    try:
        async with aclosing(stream), asyncio.timeout(None) as limit:
            async for event in stream:
                for piece in _pieces(answer, event.data):
                    show(piece)
                if isinstance(answer.outcome, Finished):
                    break
                failed = answer.outcome is not None
                limit.reschedule(clock() + FAILURE_SETTLES_S if failed else None)
    except TimeoutError:
        pass
    assert answer.outcome is not None, "the stream ends only with an outcome"
    return answer.outcome


def _pieces(answer: Answer, data: str) -> list[Piece]:
    try:
        envelope = EventEnvelope.model_validate_json(data)
    except ValidationError:
        return []
    return answer.take(envelope)
