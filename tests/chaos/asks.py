"""What must hold of asks: one answer each, the accepted one; a refused call never starts."""

from collections.abc import Mapping
from typing import Any, Final

from fairlead_schema.record import Recorded
from fairlead_testing.session_driver import events_of

REPLIED: Final = "replied"
REJECTED: Final = "rejected"
ANSWERS: Final = ("permission.replied", "question.replied", "question.rejected")


def waiting_asks(log: list[Recorded]) -> list[str]:
    """The asks without an answer."""
    if events_of(log, "session.purged"):
        return []
    answered = {event.request_id for type_ in ANSWERS for event in events_of(log, type_)}
    questions = [event.request.id for event in events_of(log, "question.asked")]
    return [id_ for id_ in (*_requests(log), *questions) if id_ not in answered]


def judge_asks(log: list[Recorded], replies: Mapping[str, set[str]]) -> list[str]:
    """Every fault of the asks and their answers, a sentence each."""
    replied: dict[str, list[str]] = {}
    for event in events_of(log, "permission.replied"):
        replied.setdefault(event.request_id, []).append(event.reply)
    for event in events_of(log, "question.replied"):
        replied.setdefault(event.request_id, []).append(REPLIED)
    for event in events_of(log, "question.rejected"):
        replied.setdefault(event.request_id, []).append(REJECTED)
    faults = [f"{id_} was answered {len(words)} times" for id_, words in replied.items()
            if len(words) > 1]  # fmt: skip
    for id_ in (*_requests(log), *(event.request.id for event in events_of(log, "question.asked"))):
        accepted, written = replies.get(id_, set()), set(replied.get(id_, ()))
        if not accepted <= written:
            faults.append(f"{id_}: {sorted(accepted)} accepted, {sorted(written)} in the log")
    return [*faults, *_unapproved_starts(log, replied)]


def call(event: Any) -> tuple[str, str]:  # noqa: ANN401 - any event that names a call
    return event.assistant_message_id, event.call_id


def _requests(log: list[Recorded]) -> dict[str, tuple[str, str]]:
    """The call behind each request."""
    requests = (event.request for event in events_of(log, "permission.asked"))
    return {request.id: (request.source.message_id, request.source.call_id) for request in requests}


def _unapproved_starts(log: list[Recorded], replied: Mapping[str, list[str]]) -> list[str]:
    """The calls that started although no person approved them."""
    started = {call(event) for event in events_of(log, "tool.started")}
    return [
        f"call {key[1]} began, and {id_} was answered {replied.get(id_, [])}"
        for id_, key in _requests(log).items()
        if key in started and replied.get(id_) != ["once"]
    ]
