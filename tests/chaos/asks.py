"""What must hold of asks: answered once, as somebody was told; what was refused never began."""

from collections.abc import Mapping
from typing import Any

from fairlead_schema.record import Recorded
from fairlead_testing.driving import of


def waiting_asks(log: list[Recorded]) -> list[str]:
    """The requests that nobody has answered."""
    answered = {event.request_id for event in of(log, "permission.replied")}
    return [id_ for id_ in _requests(log) if id_ not in answered]


def asks(log: list[Recorded], replies: Mapping[str, set[str]]) -> list[str]:
    """Everything that is wrong with what people were asked and said, a sentence each."""
    replied: dict[str, list[str]] = {}
    for event in of(log, "permission.replied"):
        replied.setdefault(event.request_id, []).append(event.reply)
    told = [f"{id_} was answered {len(words)} times" for id_, words in replied.items()
            if len(words) > 1]  # fmt: skip
    for id_ in _requests(log):
        accepted, written = replies.get(id_, set()), set(replied.get(id_, ()))
        if not accepted <= written:
            told.append(f"{id_}: {sorted(accepted)} accepted, {sorted(written)} in the log")
    return [*told, *_begun(log, replied)]


def call(event: Any) -> tuple[str, str]:  # noqa: ANN401 - any event that names a call
    return event.assistant_message_id, event.call_id


def _requests(log: list[Recorded]) -> dict[str, tuple[str, str]]:
    """The call behind each request."""
    found = (event.request for event in of(log, "permission.asked"))
    return {one.id: (one.source.message_id, one.source.call_id) for one in found}


def _begun(log: list[Recorded], replied: Mapping[str, list[str]]) -> list[str]:
    """A call about which a person was asked begins by approval alone."""
    started = {call(event) for event in of(log, "tool.started")}
    return [
        f"call {key[1]} began, and {id_} was answered {replied.get(id_, [])}"
        for id_, key in _requests(log).items()
        if key in started and replied.get(id_) != ["once"]
    ]
