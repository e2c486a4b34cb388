"""Explains from the log and the quotas why a session works or rests: a sentence and its structure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from fairlead_schema.commands.quota import QuotaLimits, QuotaName, TenantTotals
from fairlead_schema.events.execution import RestReason
from fairlead_schema.model import Model
from fairlead_session.calls.subagents import child_for
from fairlead_session.execution.quota import PROMPT_QUOTAS, find_reached_quota
from fairlead_session.execution.rest import REST_RULES, rest_rule
from fairlead_session.execution.retry import keeps_backoff
from fairlead_session.next_move import wake_has_work
from fairlead_session.people.pending import describe_ask, ready_calls
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.execution import RestState
from fairlead_session.state.session import Session

State: TypeAlias = Literal[
    "missing", "running", "waiting", "queued", "resting", "idle", "archived", "stored", "broken"
]
Code: TypeAlias = (
    Literal[
        "missing",
        "stopping",
        "calls",
        "turn",
        "between-turns",
        "archived",
        "tool",
        "session",
        "permission",
        "question",
        "left-behind",
        "pending-input",
        "turn-owed",
        "compaction",
        "shell",
        "revert",
        "move",
        "unreadable",
        "import",
        "imported",
        "stored",
    ]
    | RestReason
)
"""The reason of a state, for programs."""


class Waiting(Model):
    """One thing that a session waits for."""

    kind: Literal["tool", "session", "permission", "question", "timer"]
    id: str
    what: str


class Explanation(Model):
    """The state of a session in words and in codes."""

    state: State
    code: Code
    reason: str
    since: int | None = None
    owner: str | None = None
    generation: int | None = None
    """How often a runner has taken the session; absent before the first time."""
    waiting_on: tuple[Waiting, ...] | None = None
    approved_by: str | None = None
    """Who gave the newest permission of the session."""
    next: str | None = None


_NEXT_RUNNER = "the next free runner takes it"
_REMEDIES: Final[Mapping[str, str]] = {
    "context-overflow": "the conversation is too long for its model: compact it, or switch to a "
    "model with a larger window, and then prompt or resume",
    "auth": "an operator mends the key of the provider; then a new prompt or a resume runs it",
}


def explain(session: Session) -> Explanation:
    """The state of a session, its reason, and what would move it."""
    profile = session.profile
    if session.stored is not None:
        return _explain_stored(session)
    if profile is None:
        return Explanation(state="missing", code="missing", reason="The session does not exist.")
    waiting = _waiting(session)
    import_rest = _explain_import(session, waiting)
    if import_rest is not None:
        return import_rest
    if session.execution.owner is not None:
        code, doing = _doing(session)
        reason = f"A runner drains it: {doing}."
        return _explain(
            session, ("running", code), reason, waiting, owner=session.execution.owner.runner
        )
    if profile.archived is not None:
        return _explain(
            session,
            ("archived", "archived"),
            "The session is archived.",
            waiting,
            next_="unarchive it to go on",
        )
    if session.execution.interrupted:
        reason = "It was interrupted, and what is open waits for a runner to settle it."
        return _explain(session, ("queued", "stopping"), reason, waiting, next_=_NEXT_RUNNER)
    if waiting:
        reason = f"It waits for {', '.join(item.what for item in waiting)}."
        cause: tuple[State, Code] = ("waiting", _kind(waiting[0]))
        return _explain(session, cause, reason, waiting, next_="answering or settling wakes it")
    if wake_has_work(session) and not _waits(session):
        code, work = _work(session)
        return _explain(
            session, ("queued", code), f"{work} waits for a runner.", (), next_=_NEXT_RUNNER
        )
    return _resting(session)


def _explain_stored(session: Session) -> Explanation:
    assert session.stored is not None, "only a stored session is in a file"
    file = session.stored.file
    reason = f"It is stored in the file {file.name}, with {file.seq} events."
    if session.seq:
        reason = f"It is being restored: {session.seq} of {file.seq} events are back."
    next_ = f"`fairlead cold restore {session.id} --from DIR`, or a purge"
    return Explanation(
        state="stored", code="stored", reason=reason, since=session.changed_at, next=next_
    )


def _explain_import(session: Session, waiting: tuple[Waiting, ...]) -> Explanation | None:
    """Why an imported session rests; None if nothing was open when it was exported."""
    execution = session.execution
    if execution.imported_through is None:
        return None
    if session.is_incomplete:
        reason = (
            f"It is being imported: {session.seq} of {execution.imported_through} events are here."
        )
        next_ = "run the import again to its end, or purge the session"
        return _explain(session, ("resting", "import"), reason, waiting, next_=next_)
    local = replace(session, execution=replace(execution, imported_through=None))
    if waiting or not (wake_has_work(local) or session.turn.attempt):
        return None
    reason = "It was imported with work that is not done, and nobody here has asked for it."
    return _explain(
        session, ("resting", "imported"), reason, waiting, next_="a prompt, or `fairlead resume`"
    )


def add_quotas(explanation: Explanation, limits: QuotaLimits, totals: TenantTotals) -> Explanation:
    """The explanation with the quotas of a tenant or a creator that keep the session or new prompts waiting."""
    needed: tuple[QuotaName, ...] = ("turns",) if explanation.state == "queued" else ()
    if explanation.code in {"tool", "calls"}:
        needed = ("calls",)
    waits = find_reached_quota(limits, totals, needed)
    refused = find_reached_quota(limits, totals, PROMPT_QUOTAS)
    reason, next_ = explanation.reason, explanation.next
    if waits is not None:
        reason, next_ = f"{reason} What has not begun waits: {waits.sentence}.", waits.remedy
    if refused is not None:
        reason = f"{reason} New prompts are refused: {refused.sentence}."
        next_ = next_ or refused.remedy
    return explanation.model_copy(update={"reason": reason, "next": next_})


def explain_unreadable(detail: str) -> Explanation:
    """A session with an unreadable event. Only this session stops."""
    return Explanation(
        state="broken",
        code="unreadable",
        reason=f"Its log cannot be read any further: {detail}.",
        next="an operator mends it; `fairlead verify` says where, the dead letters say what",
    )


def _waits(session: Session) -> bool:
    """Whether the session waits for a time, a place or a limit. A free runner changes nothing."""
    rule = rest_rule(session.execution.rested)
    return keeps_backoff(session) if rule.timer == "back-off" else rule.waits


def _resting(session: Session) -> Explanation:
    rest = session.execution.rest or RestState("idle")
    rule, inputs = REST_RULES[rest.reason], len(session.inbox.pending)
    detail = f" ({rest.detail})" if rest.detail else ""
    pending = f" {inputs} inputs are pending." if inputs else ""
    reason = f"It rests: {rule.sentence}{detail}.{pending}"
    timer = Waiting(kind="timer", id=str(rest.wake_at), what="a timer")
    waiting = (timer,) if rest.wake_at is not None else ()
    state: State = "idle" if rule.finished and not inputs else "resting"
    next_ = _remedy(session) or rule.next_step
    return _explain(session, (state, rest.reason), reason, waiting, next_=next_)


def _remedy(session: Session) -> str | None:
    """What helps after a failure that the same prompt would only repeat; None after any other end."""
    newest = session.transcript.newest_assistant()
    rest, error = session.execution.rested, newest.error if newest is not None else None
    if rest not in {"failed", "idle"} or error is None:
        return None
    return _REMEDIES.get(error.code or "")


def _explain(
    session: Session,
    cause: tuple[State, Code],
    reason: str,
    waiting: tuple[Waiting, ...],
    *,
    owner: str | None = None,
    next_: str | None = None,
) -> Explanation:
    approved_by = session.asks.approved_by
    approval = f" Its newest permission was approved by {approved_by}." if approved_by else ""
    return Explanation(
        state=cause[0],
        code=cause[1],
        reason=f"{reason}{approval}",
        approved_by=approved_by,
        since=session.changed_at,
        owner=owner,
        generation=session.execution.generation or None,
        waiting_on=waiting or None,
        next=next_,
    )


def _waiting(session: Session) -> tuple[Waiting, ...]:
    """The running calls and the pending asks. A call that waits for an ask is not listed itself."""
    calls = tuple(_waiting_call(session, call) for call in ready_calls(session))
    permissions = tuple(
        Waiting(kind="permission", id=id_, what=f"a person: {describe_ask(ask)}")
        for id_, ask in session.asks.permissions.items()
    )
    questions = tuple(
        Waiting(kind="question", id=id_, what=f"a person: {describe_ask(ask)}")
        for id_, ask in session.asks.questions.items()
    )
    return (*calls, *permissions, *questions)


def _waiting_call(session: Session, call: UnsettledCall) -> Waiting:
    """A running call. A call of a sub-agent is shown as its child session."""
    child = child_for(session, call)
    if child is not None:
        return Waiting(kind="session", id=child, what=f"the sub-agent {child}")
    pool = None if session.profile is None else session.profile.pool
    place = (
        "" if pool is None or call.worker is not None else f", which the pool {pool} has not begun"
    )
    return Waiting(kind="tool", id=call.call_id, what=f"the tool {call.tool}{place}")


def _doing(session: Session) -> tuple[Code, str]:
    if session.execution.interrupted:
        return "stopping", "stopping as asked"
    if session.calls and not ready_calls(session):
        return "calls", "it is about to park, for every open call waits for a person"
    if session.calls:
        return "calls", f"{len(ready_calls(session))} tool calls are running"
    if session.execution.revert_requested:
        return "revert", "it changes files back as asked"
    if session.execution.move_requested:
        return "move", "it moves with its changes as asked"
    if session.execution.compaction_requested:
        return "compaction", "it compacts its history as asked"
    if session.turn.attempt is not None:
        return "turn", f"step {session.turn.attempt.step}, asking {session.turn.attempt.model.id}"
    return "between-turns", "between two turns"


def _work(session: Session) -> tuple[Code, str]:
    if session.turn.attempt is not None:
        return "left-behind", "A turn that its runner left behind"
    if session.execution.revert_requested:
        return "revert", "A revert that was asked for"
    if session.execution.move_requested:
        return "move", "A move with changes that was asked for"
    if session.inbox.pending:
        count = len(session.inbox.pending)
        return "pending-input", f"{count} pending input{'s' if count > 1 else ''}"
    if session.execution.owed:
        return "turn-owed", "A turn that is owed"
    if session.execution.compaction_requested:
        return "compaction", "A compaction that was asked for"
    return "shell", "A person's own command"


def _kind(waiting: Waiting) -> Code:
    assert waiting.kind != "timer", "a session that waits for a timer rests"
    return waiting.kind
