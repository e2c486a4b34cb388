"""The answer to one prompt as it comes: the text to print next."""

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from fairlead_cli.terminal import shorten
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_client.prompt_answer import PromptAnswer
from fairlead_client.received_event import ReceivedEvent
from fairlead_schema.prompt import Receipt

PartKind: TypeAlias = Literal["text", "reasoning"]


class AnswerPiece(NamedTuple):
    """A part of the answer, in reading order."""

    kind: Literal["text", "reasoning", "note"]
    text: str


class AnswerFold:
    """Folds events into pieces to print. No text is printed a second time."""

    def __init__(self, message_id: str) -> None:
        self._message_id = message_id
        self._prompt_promoted = False
        self._printed: dict[str, str] = {}

    def take(self, event: ReceivedEvent) -> list[AnswerPiece]:
        """The pieces that this event adds."""
        data = event.data
        if event.type == "prompted" and data["messageID"] == self._message_id:
            self._prompt_promoted = True
        if not self._prompt_promoted:
            return []
        match event.type:
            case "text.delta":
                return self._add(data, "text")
            case "reasoning.delta":
                return self._add(data, "reasoning")
            case "text.ended":
                return [*self._complete(data, "text"), _BREAK]
            case "reasoning.ended":
                return [*self._complete(data, "reasoning"), _BREAK]
            case _:
                return _notes(event.type, data)

    def _add(self, data: dict[str, Any], kind: PartKind) -> list[AnswerPiece]:
        """The text of a fragment. The client hands each character out once."""
        part = _part(data, kind)
        self._printed[part] = self._printed.get(part, "") + data["delta"]
        return [AnswerPiece(kind, data["delta"])]

    def _complete(self, data: dict[str, Any], kind: PartKind) -> list[AnswerPiece]:
        """What no fragment has shown of a text that is complete. After a lost fragment: all of it."""
        text: str = data["text"]
        printed = self._printed.pop(_part(data, kind), "")
        if text.startswith(printed):
            rest = text[len(printed) :]
            return [AnswerPiece(kind, rest)] if rest else []
        return [_BREAK, AnswerPiece(kind, text)]


_BREAK: Final = AnswerPiece("note", "")


def _part(data: dict[str, Any], kind: PartKind) -> str:
    return f"{data['assistantMessageID']}/{kind}/{data[f'{kind}ID']}"


def _notes(type_: str, data: dict[str, Any]) -> list[AnswerPiece]:
    """Notes between the parts of an answer."""
    match type_:
        case "tool.called":
            note = f"{data['tool']} {shorten(str(data['input']), 60)}"
        case "tool.failed":
            note = f"tool failed: {shorten(data['error']['message'])}"
        case "retried":
            note = f"retrying ({data['attempt']}): {shorten(data['error']['message'])}"
        case "step.ended" if (data.get("output") or {}).get("status") == "rejected":
            note = f"answer does not fit: {shorten(data['output']['error'])}"
        case "permission.v2.asked":
            need = f"{data['action']} {' '.join(data['resources'])}"
            note = f"waits for permission: {need} (fairlead reply {data['id']} once)"
        case "question.v2.asked":
            note = f"waits for an answer to its question (fairlead reply {data['id']} ANSWER)"
        case _:
            return []
    return [AnswerPiece("note", note)]


async def follow_answer(
    client: AsyncFairlead, receipt: Receipt, show: Callable[[AnswerPiece], None]
) -> PromptAnswer:
    """Show the answer to an admitted prompt as it comes. Raises as `AsyncFairlead.ask` does."""
    fold = AnswerFold(receipt.id)

    def show_pieces(event: ReceivedEvent) -> None:
        for piece in fold.take(event):
            show(piece)

    return await client.answer_of(receipt, on_event=show_pieces)
