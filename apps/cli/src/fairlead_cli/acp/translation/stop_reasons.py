"""Why a turn of an editor ended, in the words of the protocol. Pure."""

from collections.abc import Mapping
from typing import Final

from acp.schema import StopReason

_FINISHES: Final[Mapping[str, StopReason]] = {
    "length": "max_tokens",
    "content-filter": "refusal",
    "refusal": "refusal",
}
_RESTS: Final[Mapping[str, StopReason]] = {
    "interrupted": "cancelled",
    "declined": "end_turn",
    "turn-limit": "max_turn_requests",
    "repeated-calls": "max_turn_requests",
    "idle": "end_turn",
}


def stop_reason_of_finish(finish: str) -> StopReason:
    """The reason of a turn with an answer."""
    return _FINISHES.get(finish, "end_turn")


def stop_reason_of_rest(code: str) -> StopReason | None:
    """The reason of a turn without an answer; None: it is an error."""
    return _RESTS.get(code)
