"""A transform as a runner calls it: what it declares, how it is asked, and how it may fail."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pydantic import ValidationError

from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.transforms.answer import RequestChange
from fairlead_schema.transforms.registration import TransformRules

FailureKind: TypeAlias = Literal[
    "timeout", "unreachable", "error", "malformed", "too-large", "refused"
]
"""`error`: it failed by itself. `refused`: its change breaks a rule of requests."""

AskTransform: TypeAlias = Callable[[bytes, float], Awaitable[bytes]]
"""Sends a document and returns the answer, within so many seconds. Raises TransformFailed."""

_ANSWER = CommandAnswer[RequestChange]
_UNCHANGED: Final = RequestChange()


class TransformFailed(Exception):
    """A transform gave no usable answer. The reason has no content of the request or of the answer."""

    def __init__(self, kind: FailureKind, reason: str) -> None:
        super().__init__(reason)
        self.kind: FailureKind = kind
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Transform:
    """One transform of the requests of some sessions."""

    name: str
    version: str
    rules: TransformRules
    ask: AskTransform
    trusted: bool = False
    """Whether the operator installed it. A service of a tenant is not trusted with headers."""

    @property
    def place(self) -> tuple[int, str]:
        """Its place among all transforms."""
        return self.rules.order, self.name


def parse_answer(raw: bytes, bytes_max: int) -> RequestChange:
    """The change in an answer. Raises TransformFailed."""
    if len(raw) > bytes_max:
        raise TransformFailed("too-large", f"it answered {len(raw)} bytes; {bytes_max} are allowed")
    try:
        answer = _ANSWER.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        # The path may have keys that the transform chose, such as the name of a header.
        field = ".".join(str(part) for part in first["loc"][:2])
        raise TransformFailed("malformed", f"{field}: {first['type']}") from None
    if answer.error is not None:
        raise TransformFailed("error", "the service answered with an error: its log has the reason")
    if answer.data is None and "data" not in answer.model_fields_set:
        raise TransformFailed("malformed", "neither data nor error")
    return answer.data or _UNCHANGED
