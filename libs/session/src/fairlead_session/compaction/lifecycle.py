"""The life of one compaction in the log: started, paid for, and then ended or failed.

A summary that is blank or does not make the request smaller is not used.
"""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from fairlead_schema.events import (
    CompactionEnded,
    CompactionFailed,
    CompactionStarted,
    CompactionUsed,
    SessionEvent,
)
from fairlead_schema.events.compaction import CompactionReason
from fairlead_schema.ids import MessageId
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    StepFinish,
    TextChunk,
)
from fairlead_session.compaction.compaction import (
    TRIES_MAX,
    CompactionPlan,
    CompactionPolicy,
    NothingToCompact,
    Window,
    entries_after,
    estimate_history,
    plan,
)
from fairlead_session.compaction.serialise import BETWEEN
from fairlead_session.frozen import replace
from fairlead_session.state.session import Session
from fairlead_session.turn.request import ModelIdentity
from fairlead_session.turn.usage import TokenPrice, cost, tokens

Cause: TypeAlias = Literal["auto", "manual", "overflow"]
"""`auto`: a request seems too large. `manual`: a client asked. `overflow`: a provider refused."""

FailureOutcome: TypeAlias = Literal["nothing", "refused", "failed"]

_UNUSABLE: Final = frozenset({"content-filter", "error"})


@dataclass(frozen=True, slots=True)
class CompactionRun:
    """A compaction whose start is in the log, and what its summary is made and judged with."""

    started: CompactionStarted
    plan: CompactionPlan
    identity: ModelIdentity
    policy: CompactionPolicy
    price: TokenPrice = field(default_factory=TokenPrice)


@dataclass(frozen=True, slots=True)
class Summary:
    """The model's answer to a summary request, as far as it has come."""

    text: str = ""
    finish: StepFinish | None = None
    failure: str | None = None


def check_budget_and_tries(
    session: Session, cause: Cause, budget_refusal: str | None
) -> CompactionFailed | None:
    """Why no compaction may start now: the budget is used up, or earlier ones never finished."""
    if budget_refusal is not None:
        return fail(cause, "refused", budget_refusal)
    if session.compaction.tries >= TRIES_MAX:
        return fail(cause, "failed", f"it was begun {TRIES_MAX} times and never finished")
    return None


def prepare(
    session: Session,
    cause: Cause,
    identity: ModelIdentity,
    policy: CompactionPolicy,
    window: Window,
) -> CompactionPlan | CompactionFailed:
    """The plan of a compaction that a client or an overflow asks for.

    For a client's request the recent entries are summarised too, if there is nothing older.
    """
    outcome = plan(session, identity, policy, window)
    if isinstance(outcome, NothingToCompact) and cause == "manual":
        outcome = plan(session, identity, replace(policy, keep_tokens=0), window)
    if isinstance(outcome, NothingToCompact):
        return fail(cause, "nothing", outcome.why)
    return outcome


def start(message_id: MessageId, cause: Cause) -> CompactionStarted:
    """The event that is in the log before the summary is requested."""
    return CompactionStarted(message_id=message_id, reason=_reason(cause))


def receive(summary: Summary, event: ProviderEvent) -> Summary:
    """Add one event of the provider's stream to the summary."""
    match event:
        case TextChunk(text=text):
            return replace(summary, text=summary.text + text)
        case StepFinish(finish=finish) if finish in _UNUSABLE:
            failure = f"the model ended its summary with: {finish}"
            return replace(summary, finish=event, failure=failure)
        case StepFinish():
            return replace(summary, finish=event)
        case ProviderFailure(message=message):
            return replace(summary, failure=message)
        case _:
            return summary


def conclude(session: Session, run: CompactionRun, summary: Summary) -> tuple[SessionEvent, ...]:
    """The usage of a summary request, then the end of its compaction or the reason why it failed."""
    used = _use(run, summary.finish)
    if summary.failure is not None:
        return (*used, _fail_run(run, summary.failure))
    ended = end(session, run, summary.text)
    if isinstance(ended, NothingToCompact):
        return (*used, _fail_run(run, ended.why))
    return (*used, ended)


def end(session: Session, run: CompactionRun, text: str) -> CompactionEnded | NothingToCompact:
    """The end of a compaction, if its summary says something and makes the request smaller."""
    if not text.strip():
        return NothingToCompact("the model gave no summary")
    # What became visible while the summary was made is kept as it was said.
    late = entries_after(session, run.policy, run.plan.through_seq)
    recent = BETWEEN.join(part for part in (run.plan.recent, *late) if part)
    started = run.started
    ended = CompactionEnded(
        message_id=started.message_id, reason=started.reason, text=text, recent=recent
    )
    before, after = (estimate_history(session, run.identity, each) for each in (None, ended))
    # The estimate of the whole request is rounded too: one token less of the history may be none of it.
    if before - after <= 1:
        return NothingToCompact("the summary is no smaller than what it would replace")
    return ended


def fail(cause: Cause, outcome: FailureOutcome, message: str) -> CompactionFailed:
    """A compaction that does not start."""
    return CompactionFailed(reason=_reason(cause), outcome=outcome, message=message)


def _fail_run(run: CompactionRun, message: str) -> CompactionFailed:
    started = run.started
    return CompactionFailed(
        message_id=started.message_id, reason=started.reason, outcome="failed", message=message
    )


def _use(run: CompactionRun, finish: StepFinish | None) -> tuple[CompactionUsed, ...]:
    """The usage event, if the provider counted: a failed summary has its price too."""
    if finish is None:
        return ()
    counted = tokens(finish.usage)
    return (
        CompactionUsed(
            message_id=run.started.message_id,
            model=run.identity.model,
            cost=cost(counted, run.price),
            tokens=counted,
        ),
    )


def _reason(cause: Cause) -> CompactionReason:
    return "manual" if cause == "manual" else "auto"
