"""What an editor is shown of a session that it opens again. Pure."""

from collections.abc import Iterable
from typing import Final

from fairlead_client import ReceivedEvent

ASKED: Final = frozenset({"permission.v2.asked", "question.v2.asked"})
ANSWERED: Final = frozenset(
    {"permission.v2.replied", "question.v2.replied", "question.v2.rejected"}
)
SETTLED: Final = frozenset({"tool.success", "tool.failed"})
_MESSAGE_KEYS: Final = ("messageID", "assistantMessageID")


def without_reverted(events: Iterable[ReceivedEvent]) -> list[ReceivedEvent]:
    """The events whose messages are still there: a revert takes away all that came after its boundary."""
    kept: list[ReceivedEvent] = []
    for event in events:
        if event.type == "revert.committed":
            boundary = event.data["messageID"]
            while kept and boundary not in _message_ids(kept[-1]):
                kept.pop()
            if event.data.get("before"):
                kept = [one for one in kept if boundary not in _message_ids(one)]
        else:
            kept.append(event)
    return kept


def open_asks(events: Iterable[ReceivedEvent]) -> list[ReceivedEvent]:
    """The asks that nobody has answered, in their order."""
    waiting: dict[str, ReceivedEvent] = {}
    for event in events:
        if event.type in ASKED:
            waiting[event.data["id"]] = event
        elif event.type in ANSWERED:
            waiting.pop(event.data["requestID"], None)
    return list(waiting.values())


def open_calls(events: Iterable[ReceivedEvent]) -> list[ReceivedEvent]:
    """The calls that run, in their order."""
    running: dict[str, ReceivedEvent] = {}
    for event in events:
        if event.type == "tool.called":
            running[event.data["callID"]] = event
        elif event.type in SETTLED:
            running.pop(event.data["callID"], None)
    return list(running.values())


def _message_ids(event: ReceivedEvent) -> set[object]:
    return {event.data.get(key) for key in _MESSAGE_KEYS}
