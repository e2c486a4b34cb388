"""Why a session is or is not moving, from the log alone: one sentence and its structure."""

from typing import Literal, TypeAlias

from fairlead_schema.model import Model
from fairlead_session.state import Session
from fairlead_session.waiting import ready, what

State: TypeAlias = Literal["missing", "running", "waiting", "queued", "resting", "idle", "archived"]


class Waiting(Model):
    """One thing a session waits for."""

    kind: Literal["tool", "permission", "question", "timer"]
    id: str
    what: str


class Explanation(Model):
    """Where a session stands."""

    state: State
    reason: str
    since: int | None = None
    owner: str | None = None
    waiting_on: tuple[Waiting, ...] | None = None
    next: str | None = None


_RESTING = {
    "parked": "it waits for tool calls to settle",
    "interrupted": "somebody interrupted it",
    "failed": "its last provider turn failed",
    "context-unavailable": "the context of its location could not be observed",
    "held": "a crash was recovered and its policy holds the turn back",
    "handover": "its runner left and handed it over",
    "retry-later": "its provider asked to wait before the next attempt",
    "turn-limit": "it reached the limit of provider turns without new input",
    "repeated-calls": "the model kept making the same tool call",
    "over-budget": "its budget is used up",
    "declined": "a person declined a tool call",
    "idle": "there is nothing to do",
}
_NEXT = {
    "parked": "the last settlement wakes it",
    "interrupted": "a new prompt or a resume runs it",
    "failed": "a new prompt or a resume runs it",
    "context-unavailable": "it is tried again by itself",
    "held": "a resume runs it",
    "handover": "another runner takes it",
    "retry-later": "a timer wakes it",
    "turn-limit": "a new prompt or a resume runs it",
    "repeated-calls": "a new prompt or a resume runs it",
    "over-budget": "raising the budget runs it",
    "declined": "a new prompt or a resume runs it",
}


def explain(session: Session) -> Explanation:
    """The state of a session, its reason, and what would move it."""
    profile = session.profile
    if profile is None:
        return Explanation(state="missing", reason="The session does not exist.")
    waiting = _waiting(session)
    if session.owner is not None:
        doing = "stopping as asked" if session.interrupted else _doing(session)
        reason = f"A runner drains it: {doing}."
        return _told(session, "running", reason, waiting, owner=session.owner.runner)
    if profile.archived is not None:
        return _told(session, "archived", "The session is archived.", waiting)
    if waiting:
        reason = f"It waits for {', '.join(one.what for one in waiting)}."
        return _told(session, "waiting", reason, waiting, next_="answering or settling wakes it")
    asked = session.inbox or session.owed or session.attempt or session.compaction_requested
    if session.stirring and asked:
        reason = f"{_work(session)} waits for a runner."
        return _told(session, "queued", reason, waiting, next_="the next free runner takes it")
    return _resting(session)


def _resting(session: Session) -> Explanation:
    rested = session.rested or "idle"
    detail = f" ({session.rest_detail})" if session.rest_detail else ""
    pending = f" {len(session.inbox)} inputs are pending." if session.inbox else ""
    reason = f"It rests: {_RESTING[rested]}{detail}.{pending}"
    timer = Waiting(kind="timer", id=str(session.wake_at), what="a timer")
    waiting = (timer,) if session.wake_at is not None else ()
    state: State = "idle" if rested == "idle" and not session.inbox else "resting"
    follows = _NEXT.get(rested, "a new prompt runs it")
    return _told(session, state, reason, waiting, next_=follows)


def _told(
    session: Session,
    state: State,
    reason: str,
    waiting: tuple[Waiting, ...],
    *,
    owner: str | None = None,
    next_: str | None = None,
) -> Explanation:
    return Explanation(
        state=state,
        reason=reason,
        since=session.changed_at,
        owner=owner,
        waiting_on=waiting or None,
        next=next_,
    )


def _waiting(session: Session) -> tuple[Waiting, ...]:
    """Calls that run, and what a person must answer: a call that asks is told by its request."""
    calls = tuple(
        Waiting(kind="tool", id=call.call_id, what=f"the tool {call.tool}")
        for call in ready(session)
    )
    permissions = tuple(
        Waiting(kind="permission", id=id_, what=f"a person: {what(ask)}")
        for id_, ask in session.permissions.items()
    )
    questions = tuple(
        Waiting(kind="question", id=id_, what=f"a person: {what(ask)}")
        for id_, ask in session.questions.items()
    )
    return (*calls, *permissions, *questions)


def _doing(session: Session) -> str:
    if session.calls:
        return f"{len(ready(session))} tool calls are running"
    if session.compaction_requested:
        return "it compacts its history as asked"
    if session.attempt is not None:
        return f"step {session.attempt.step}, asking {session.attempt.model.id}"
    return "between two turns"


def _work(session: Session) -> str:
    if session.attempt is not None:
        return "A turn that its runner left behind"
    if session.inbox:
        count = len(session.inbox)
        return f"{count} pending input{'s' if count > 1 else ''}"
    return "A turn that is owed" if session.owed else "A compaction that was asked for"
