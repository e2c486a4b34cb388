"""What changed in a session besides its messages: its description, its status, and what it asks people."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from pydantic_core import from_json

from fairlead_gateway.opencode_view.translation.sessions import (
    IDLE,
    status_of,
    view_folded,
    view_permission,
    view_question,
)
from fairlead_session.state.session import Session

Json: TypeAlias = dict[str, Any]

_REPLIES: Final = frozenset({"once", "always", "reject"})


def event(type_: str, properties: Json) -> Json:
    """An event without its id."""
    return {"type": type_, "properties": properties}


def changed_asks(
    before: Session | None, session: Session, *, whole: bool = False
) -> Iterator[Json]:
    """The asks that began and ended. `whole`: and those that began before."""
    asks, answers = session.asks, session.asks.answers
    old = None if before is None else before.asks
    if old is asks and not whole:
        return
    permissions = {} if old is None else old.permissions
    questions = {} if old is None else old.questions
    for id_, permission in asks.permissions.items():
        if whole or id_ not in permissions:
            yield event("permission.asked", view_permission(permission.request))
    for id_, question in asks.questions.items():
        if whole or id_ not in questions:
            yield event("question.asked", view_question(question.request))
    for id_ in permissions.keys() - asks.permissions.keys():
        # The dialog stays open until the client hears of the end, whatever the end was.
        reply = answers.get(id_, "").partition(" ")[0]
        ended = {"reply": reply if reply in _REPLIES else "reject"}
        yield event("permission.replied", {"sessionID": session.id, "requestID": id_, **ended})
    for id_ in questions.keys() - asks.questions.keys():
        ids = {"sessionID": session.id, "requestID": id_}
        answer = answers.get(id_, "rejected")
        if answer == "rejected":
            yield event("question.rejected", ids)
        else:
            yield event("question.replied", {**ids, "answers": from_json(answer)})


def changed_session(
    before: Session | None, session: Session, *, whole: bool = False
) -> Iterator[Json]:
    """What changed in the description and the status. `whole`: the status also if it is the same."""
    profile = session.profile
    assert profile is not None, "only a created session changes"
    status = status_of(session)
    if before is None or before.profile is None:
        if session.todos:
            yield tell_todos(session)
        yield tell_status(session)
        return
    old = before.profile
    if session.todos is not before.todos or (whole and session.todos):
        yield tell_todos(session)
    if profile.location != old.location:
        location = {"directory": profile.location.directory}
        moved = {"location": location, "timestamp": session.changed_at or 0}
        yield event("session.next.moved", {"sessionID": session.id, **moved})
    has_rested = status == IDLE and status_of(before) != IDLE
    if profile.archived is not None and old.archived is None:
        yield tell_deletion(session)
    elif has_rested or _describes_otherwise(before, session):
        yield tell_session(session)
    if whole or status != status_of(before):
        yield tell_status(session)


def _describes_otherwise(before: Session, after: Session) -> bool:
    """Whether the client would show the session itself in another way."""
    old, new = before.profile, after.profile
    assert old is not None, "a session is compared with itself"
    assert new is not None, "a session is compared with itself"
    return (old.title, old.location, old.revert, old.archived) != (
        new.title,
        new.location,
        new.revert,
        new.archived,
    )


def tell_session(session: Session) -> Json:
    return event("session.updated", {"sessionID": session.id, "info": view_folded(session)})


def tell_deletion(session: Session) -> Json:
    return event("session.deleted", {"sessionID": session.id, "info": view_folded(session)})


def tell_status(session: Session) -> Json:
    return event("session.status", {"sessionID": session.id, "status": status_of(session)})


def tell_todos(session: Session) -> Json:
    todos = [todo.wire() for todo in session.todos]
    return event("todo.updated", {"sessionID": session.id, "todos": todos})
