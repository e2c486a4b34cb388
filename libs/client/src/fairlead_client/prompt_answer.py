"""Collects the answer to one prompt from the events of its session."""

from dataclasses import dataclass
from typing import Any, Final

from fairlead_client.errors import AnswerMisfit, ClientError, PromptFailed, PromptWithdrawn
from fairlead_client.received_event import ReceivedEvent
from fairlead_schema.catalog import Tokens

_GOES_ON: Final = frozenset({"tool-calls", "invalid-output"})
"""A step with such a finish is followed by another one."""
_MOVES: Final = frozenset({"running", "queued", "waiting"})
_ENDS_BY_ITSELF: Final = frozenset(
    {"handover", "parked", "retry-later", "context-unavailable", "budget-unknown"}
)
"""Reasons to rest that pass without anybody's help."""


def is_under_way(explanation: dict[str, Any]) -> bool:
    """Whether a session goes on by itself, or when somebody answers what it asked."""
    return (
        explanation.get("state") in _MOVES
        or explanation.get("code") in _ENDS_BY_ITSELF
        or bool(explanation.get("waiting_on"))
    )


@dataclass(frozen=True, slots=True)
class PromptAnswer:
    """The answer of the model to one prompt."""

    text: str
    """What the last step said."""
    message_id: str
    """The assistant message of the last step."""
    finish: str
    cost: float
    """What all steps since the prompt cost, in USD."""
    tokens: Tokens
    value: dict[str, Any] | None = None
    """The object that fits the schema of the prompt, if the prompt has one."""
    seq: int = 0
    """The place of the end of the answer in the log."""


class AnswerCollector:
    """Folds events, each at most once and in order, until the prompt has its answer."""

    def __init__(self, message_id: str, *, after: int) -> None:
        self._prompt_id = message_id
        self._is_promoted = False
        self._texts: list[str] = []
        self._cost = 0.0
        self._tokens = Tokens()
        self.seq = after
        """The last event that was taken."""
        self.answer: PromptAnswer | None = None
        self.failure: ClientError | None = None
        """The last failure. Another step may still answer the prompt."""
        self.is_final = False
        """Whether nothing that follows can change the outcome."""

    def take(self, event: ReceivedEvent) -> None:
        """Take one event. Fragments and events that were taken already change nothing."""
        if event.seq is None or event.seq <= self.seq:
            return
        self.seq = event.seq
        data = event.data
        if event.type == "input.cancelled" and data.get("messageID") == self._prompt_id:
            self.failure, self.is_final = PromptWithdrawn(self._prompt_id), True
        elif event.type == "prompted" and data.get("messageID") == self._prompt_id:
            self._is_promoted = True
        elif self._is_promoted:
            self._take_step(event.type, data)

    def _take_step(self, type_: str, data: dict[str, Any]) -> None:
        match type_:
            case "step.started":
                self._texts, self.failure = [], None
            case "text.ended":
                self._texts.append(data["text"])
            case "step.ended":
                self._end_step(data)
            case "step.failed":
                error = data["error"]
                self.failure = PromptFailed(error.get("message", "unknown"), error)
            case _:
                pass

    def _end_step(self, data: dict[str, Any]) -> None:
        self._cost += data["cost"]
        self._tokens = self._tokens.plus(Tokens.model_validate(data["tokens"]))
        output, text = data.get("output") or {}, "\n\n".join(self._texts)
        if output.get("status") == "failed":
            self.failure = AnswerMisfit(output.get("error", "it is no such object"), text)
            self.is_final = True
        elif output.get("status") == "accepted" or data["finish"] not in _GOES_ON:
            self.answer = PromptAnswer(
                text,
                data["assistantMessageID"],
                data["finish"],
                self._cost,
                self._tokens,
                output.get("value"),
                self.seq,
            )
            self.is_final = True
