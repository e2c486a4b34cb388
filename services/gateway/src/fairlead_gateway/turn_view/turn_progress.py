"""How far the turn of one prompt is, folded from the events that clients read. Pure."""

from typing import Any, Final, TypeAlias

from fairlead_schema.catalog import Tokens
from fairlead_schema.events.execution import RestReason
from fairlead_session.execution.rest import rest_rule

Json: TypeAlias = dict[str, Any]

PREFIX: Final = "session.next."
_GOES_ON: Final = frozenset({"tool-calls", "invalid-output"})
"""A step with such a finish is followed by another one."""
_ASKED: Final = frozenset({"permission.v2.asked", "question.v2.asked"})
_ANSWERED: Final = frozenset(
    {"permission.v2.replied", "question.v2.replied", "question.v2.rejected"}
)
STOPPED: Final = frozenset({"interrupted", "declined"})
"""Reasons to rest by which a person ended the turn."""


def type_of(event: Json) -> str:
    """The type of an event without its prefix."""
    type_: str = event["type"]
    return type_.removeprefix(PREFIX)


def seq_of(event: Json) -> int | None:
    """The place of an event in the log; None for a fragment."""
    durable = event.get("durable")
    return None if durable is None else durable["seq"]


class TurnProgress:
    """The turn of a prompt. Without a prompt it is the turn that runs now."""

    def __init__(self, prompt_id: str | None, *, is_promoted: bool = False) -> None:
        self._prompt_id = prompt_id
        self._is_promoted = is_promoted or prompt_id is None
        self.asks: dict[str, Json] = {}
        """The requests that wait for people, by their ids."""
        self.texts: list[str] = []
        """What the last step said."""
        self.finish: str | None = None
        """How the step that answers the prompt ended."""
        self.output: Json | None = None
        """The judgement of a structured answer."""
        self.failure: Json | None = None
        """The error of the last step. Another step may follow."""
        self.rested: RestReason | None = None
        self.detail: str | None = None
        self.is_withdrawn = False
        self.model = ""
        """The model of the step that runs: `provider/model`."""
        self.usage: dict[str, Tokens] = {}
        """What the steps used, by model."""

    @property
    def has_begun(self) -> bool:
        """Whether the model has seen the prompt."""
        return self._is_promoted

    @property
    def is_answered(self) -> bool:
        return self.finish is not None

    @property
    def waits_for_people(self) -> bool:
        """Whether nothing goes on before somebody answers."""
        return bool(self.asks) and self.rested == "parked"

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens for this prompt until somebody asks for it."""
        if self.is_withdrawn or self.is_answered:
            return True
        return self.rested is not None and not _goes_on_by_itself(self.rested)

    def take(self, event: Json) -> None:
        """Fold one durable event. Fragments change nothing."""
        type_, data = type_of(event), event["data"]
        if type_ in _ASKED:
            self.asks[data["id"]] = data
        elif type_ in _ANSWERED:
            self.asks.pop(data["requestID"], None)
        elif type_ == "input.cancelled":
            self.is_withdrawn = data["messageID"] == self._prompt_id
        elif type_ == "prompted":
            self._is_promoted = self._is_promoted or data["messageID"] == self._prompt_id
            self.rested = None
        elif type_ == "execution.released":
            self.rested, self.detail = data["reason"], data.get("detail")
        else:
            self._take_step(type_, data)

    def _take_step(self, type_: str, data: Json) -> None:
        match type_:
            case "step.started":
                self.texts, self.failure, self.rested = [], None, None
                self.model = f"{data['model']['providerID']}/{data['model']['id']}"
            case "text.ended":
                self.texts.append(data["text"])
            case "step.ended":
                self._end_step(data)
            case "step.failed":
                self.failure = data["error"]
            case _:
                pass

    def _end_step(self, data: Json) -> None:
        tokens = Tokens.model_validate(data["tokens"])
        self.usage[self.model] = self.usage.get(self.model, Tokens()).plus(tokens)
        self.output = data.get("output")
        status = (self.output or {}).get("status")
        if status == "failed":
            error = (self.output or {}).get("error", "the answer does not fit its schema")
            self.failure = {"message": error}
        is_last = status is not None or data["finish"] not in _GOES_ON
        if self._is_promoted and is_last and status != "rejected":
            self.finish = data["finish"]


def _goes_on_by_itself(reason: RestReason) -> bool:
    return reason not in STOPPED and rest_rule(reason).goes_on
