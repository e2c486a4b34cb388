"""Follows the answer to one prompt: the text to print next, and the outcome."""

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

# After an interruption the next step starts at once: a failure is final only after this time.
FAILURE_SETTLES_S: Final = 1.5
TOOL_CALLS: Final = "tool-calls"


class AnswerPiece(NamedTuple):
    """A part of the answer, in reading order."""

    kind: Literal["text", "reasoning", "note"]
    text: str


@dataclass(frozen=True, slots=True)
class AnswerFinished:
    """The last step ended."""

    text: str
    finish: str
    cost: float
    tokens: dict[str, Any]
    output: dict[str, Any] | None = None
    """The structured output, if the prompt had a schema."""


@dataclass(frozen=True, slots=True)
class AnswerFailed:
    """The last step failed, and no other step followed."""

    message: str
    final: bool = False
    """Whether no other step can follow."""


AnswerOutcome: TypeAlias = AnswerFinished | AnswerFailed


class AnswerFold:
    """Folds events into pieces to print. After a reconnect no text is printed a second time."""

    def __init__(self, message_id: str) -> None:
        self._message_id = message_id
        self._prompt_promoted = False
        self._part_text: dict[str, str] = {}
        self._printed_length: dict[str, int] = {}
        self._texts: list[str] = []
        self.outcome: AnswerOutcome | None = None

    def restart(self) -> None:
        """Start over on a new connection: the server sends each part from its beginning again."""
        self._part_text.clear()

    def take(self, envelope: EventEnvelope) -> list[AnswerPiece]:
        """The pieces that this event adds."""
        data, type_ = envelope.data, envelope.type.removeprefix(PREFIX)
        if type_ == "prompted" and data["messageID"] == self._message_id:
            self._prompt_promoted = True
        if not self._prompt_promoted:
            return []
        match type_:
            case "text.delta" | "reasoning.delta":
                kind: Literal["text", "reasoning"] = "text" if type_[0] == "t" else "reasoning"
                part = self._part(data, kind)
                self._part_text[part] = self._part_text.get(part, "") + data["delta"]
                return self._unseen(kind, part, self._part_text[part])
            case "text.ended":
                self._texts.append(data["text"])
                return [*self._unseen("text", self._part(data, "text"), data["text"]), _BREAK]
            case "reasoning.ended":
                part = self._part(data, "reasoning")
                return [*self._unseen("reasoning", part, data["text"]), _BREAK]
            case "step.started":
                self.outcome = None
            case "step.ended" if data["finish"] != TOOL_CALLS:
                return self._end(data)
            case "step.failed":
                self.outcome = AnswerFailed(data["error"]["message"])
            case _:
                return _notes(type_, data)
        return []

    def _end(self, data: dict[str, Any]) -> list[AnswerPiece]:
        """A rejected answer is not the end: the model repairs it."""
        output = data.get("output") or {}
        match output.get("status"):
            case "rejected":
                return [AnswerPiece("note", f"answer does not fit: {shorten(output['error'])}")]
            case "failed":
                message = f"the answer does not fit its schema: {output['error']}"
                self.outcome = AnswerFailed(message, final=True)
            case _:
                self.outcome = AnswerFinished(
                    "\n\n".join(self._texts),
                    data["finish"],
                    data["cost"],
                    data["tokens"],
                    output.get("value"),
                )
        return []

    def _part(self, data: dict[str, Any], kind: str) -> str:
        return f"{data['assistantMessageID']}/{kind}/{data[f'{kind}ID']}"

    def _unseen(
        self, kind: Literal["text", "reasoning"], part: str, text: str
    ) -> list[AnswerPiece]:
        length = self._printed_length.get(part, 0)
        self._printed_length[part] = max(length, len(text))
        return [AnswerPiece(kind, text[length:])] if len(text) > length else []


_BREAK: Final = AnswerPiece("note", "")


def _notes(type_: str, data: dict[str, Any]) -> list[AnswerPiece]:
    """Notes between the parts of an answer."""
    match type_:
        case "tool.called":
            note = f"{data['tool']} {shorten(str(data['input']), 60)}"
        case "tool.failed":
            note = f"tool failed: {shorten(data['error']['message'])}"
        case "retried":
            note = f"retrying ({data['attempt']}): {shorten(data['error']['message'])}"
        case "permission.v2.asked":
            need = f"{data['action']} {' '.join(data['resources'])}"
            note = f"waits for permission: {need} (fairlead reply {data['id']} once)"
        case "question.v2.asked":
            note = f"waits for an answer to its question (fairlead reply {data['id']} ANSWER)"
        case _:
            return []
    return [AnswerPiece("note", note)]


async def follow_answer(
    client: Client, receipt: Receipt, show: Callable[[AnswerPiece], None]
) -> AnswerOutcome:
    """Show the answer to an admitted prompt as it comes, and return its outcome."""
    answer = AnswerFold(receipt.id)
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
                for piece in _parse_pieces(answer, event.data):
                    show(piece)
                if _is_final(answer.outcome):
                    break
                is_failed = answer.outcome is not None
                limit.reschedule(clock() + FAILURE_SETTLES_S if is_failed else None)
    except TimeoutError:
        pass
    assert answer.outcome is not None, "the stream ends only with an outcome"
    return answer.outcome


def _is_final(outcome: AnswerOutcome | None) -> bool:
    return isinstance(outcome, AnswerFinished) or (outcome is not None and outcome.final)


def _parse_pieces(answer: AnswerFold, data: str) -> list[AnswerPiece]:
    try:
        envelope = EventEnvelope.model_validate_json(data)
    except ValidationError:
        return []
    return answer.take(envelope)
