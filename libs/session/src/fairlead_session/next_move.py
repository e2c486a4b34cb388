"""What a session does next: one pure function over a closed union of moves."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fairlead_schema.events.execution import RestReason
from fairlead_schema.ids import MessageId
from fairlead_schema.message import AssistantMessage
from fairlead_session.execution.budget import TenantUsage, exceeded_limit
from fairlead_session.execution.rest import REST_RULES
from fairlead_session.input.pending_shells import due_shells, own_shells
from fairlead_session.input.promotion import STEERS_MAX, eligible_inputs
from fairlead_session.people.pending import waits_for_people
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.inbox import PendingInput, PendingShell
from fairlead_session.state.session import Session
from fairlead_session.state.turn import Attempt


@dataclass(frozen=True, slots=True)
class DrainLimits:
    """Settings that bound a drain. `steps` is the `agent`'s own, and bounds it earlier."""

    turns_max: int = 25
    steps: int | None = None
    agent: str | None = None
    recoveries_max: int = 3
    steers_max: int = STEERS_MAX
    repeats_max: int = 5
    tenant: TenantUsage = field(default_factory=TenantUsage)

    @property
    def turns(self) -> int:
        return self.turns_max if self.steps is None else min(self.steps, self.turns_max)


@dataclass(frozen=True, slots=True)
class Stop:
    """Somebody asked to stop: settle everything that is open, then rest."""


@dataclass(frozen=True, slots=True)
class AwaitCalls:
    """Local calls are open: make sure that each has a worker, then wait or park."""

    calls: tuple[UnsettledCall, ...]


@dataclass(frozen=True, slots=True)
class StartShells:
    """At a safe boundary: open the calls of people's own commands."""

    shells: tuple[PendingShell, ...]


@dataclass(frozen=True, slots=True)
class EndStep:
    """The stream is complete and every local call is settled: end the step."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class SettleInterrupted:
    """The log has an attempt of a dead owner without an outcome: settle it."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class ServeRevert:
    """Somebody asked to stage or to clear a revert, and nothing is open: change the files."""


@dataclass(frozen=True, slots=True)
class ServeMove:
    """Somebody asked to move the session with its changes, and nothing is open: transfer them."""


@dataclass(frozen=True, slots=True)
class CommitRevert:
    """Work begins again after a staged revert: what came after the boundary leaves first."""


@dataclass(frozen=True, slots=True)
class InitialiseContext:
    """The session has no epoch: observe every source before any input is promoted."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Replace history by a summary: a person asked, or the prompt did not fit.

    With a refusal no provider may be called for the summary.
    """

    cause: Literal["manual", "overflow"]
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class TakeTurn:
    """At a safe boundary: promote these inputs, reconcile context, call the provider.

    The `final` step of an agent is text only: no tools are offered.
    """

    inputs: tuple[PendingInput, ...]
    step: int
    final: bool = False


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing continues: release the session."""

    reason: RestReason
    detail: str | None = None


Move: TypeAlias = (
    Stop
    | AwaitCalls
    | StartShells
    | EndStep
    | SettleInterrupted
    | ServeRevert
    | ServeMove
    | CommitRevert
    | Compact
    | InitialiseContext
    | TakeTurn
    | Rest
)


def next_move(
    session: Session,
    limits: DrainLimits = DrainLimits(),  # noqa: B008
    *,
    opening: MessageId | None = None,
) -> Move:
    """Decide from the log alone. Total: every state has a move, and a quiet one rests.

    `opening` is the queued input that this drain was about to promote when the log moved.
    """
    move = _next_move(session, limits, opening)
    begins = isinstance(move, InitialiseContext | TakeTurn | StartShells) or move == Compact(
        "manual"
    )
    return CommitRevert() if begins and _is_revert_staged(session) else move


def _next_move(session: Session, limits: DrainLimits, opening: MessageId | None) -> Move:
    """The next move of a session without a staged revert."""
    open_work = _open_work(session, limits)
    if open_work is not None:
        return open_work
    if session.execution.compaction_requested:
        return _rest_if_unknown(limits) or Compact("manual", exceeded_limit(session, limits.tenant))
    if session.execution.failure is not None:
        return Rest("failed", session.execution.failure)
    if not session.execution.work_requested:
        # Nobody asked for work, so pending input that an interrupt kept stays pending.
        return Rest("idle")
    rebuilding = _rebuilds_turn(session)
    inputs = next_inputs(session, steers_max=limits.steers_max, opening=opening)
    if not inputs and not session.execution.owed:
        return Rest("idle")
    rest = _rest_by_limit(session, limits, fresh=bool(inputs) or rebuilding)
    if rest is not None:
        return rest
    shells = due_shells(session, inputs)
    if shells:
        return StartShells(shells)
    if session.epoch is None:
        return InitialiseContext()
    step = 1 if inputs else session.turn.step + 1
    return TakeTurn(inputs, step, final=limits.steps is not None and step >= limits.steps)


def next_inputs(
    session: Session, *, steers_max: int = STEERS_MAX, opening: MessageId | None = None
) -> tuple[PendingInput, ...]:
    """The inputs that the next turn promotes. What came before a staged revert leaves with its messages."""
    if _rebuilds_turn(session):
        return ()
    inputs = eligible_inputs(session, steers_max=steers_max, opening=opening)
    if not _is_revert_staged(session):
        return inputs
    staged_seq = session.revert.staged_seq or 0
    return tuple(item for item in inputs if item.admitted_seq > staged_seq)


def _rebuilds_turn(session: Session) -> bool:
    """A turn that is rebuilt after a compaction stays the same turn, so new input waits."""
    return session.compaction.rebuilding and session.execution.owed


def _open_work(session: Session, limits: DrainLimits) -> Move | None:
    """The move that ends what is open, or begins a person's command; None at a safe boundary."""
    if session.execution.interrupted:
        return Stop()
    if session.calls:
        return AwaitCalls(session.calls)
    if session.turn.attempt is not None:
        if session.turn.attempt.overflow is not None:
            return Compact("overflow", exceeded_limit(session, limits.tenant))
        finished = session.turn.attempt.finished is not None
        return (
            EndStep(session.turn.attempt) if finished else SettleInterrupted(session.turn.attempt)
        )
    if session.revert.requested is not None:
        return ServeRevert()
    if session.relocation.requested is not None:
        return ServeMove()
    if own_shells(session):
        return StartShells(own_shells(session))
    return None


def is_moving(session: Session) -> bool:
    """Whether the session has requested work that a runner can do now.

    Work that waits only for a person's answer does not count, and none that an import brought.
    """
    if session.execution.imported_through is not None:
        return False
    work = bool(session.inbox.pending) or session.execution.owed or session.turn.attempt is not None
    execution = session.execution
    requested = (
        (work and execution.work_requested)
        or execution.compaction_requested
        or execution.shell_requested
    )
    moves = execution.interrupted or execution.revert_requested or execution.move_requested
    return (requested and not waits_for_people(session)) or moves


def wake_has_work(session: Session) -> bool:
    """Whether a wake has work to begin. A wake without work is dropped.

    After an interrupt earlier wakes have no work. Over its budget a session rests, but a limit
    outside its log may have been raised, so every wake counts.
    """
    rest = session.execution.rest
    if session.execution.imported_through is not None:
        return False
    return is_moving(session) or (rest is not None and REST_RULES[rest.reason].limit_may_rise)


def starts_work(session: Session) -> bool:
    """Whether a wake makes a session begin that does not run now. Stopping one is no beginning."""
    execution = session.execution
    return execution.owner is None and not execution.interrupted and wake_has_work(session)


def _is_revert_staged(session: Session) -> bool:
    return session.profile is not None and session.profile.revert is not None


def _rest_by_limit(session: Session, limits: DrainLimits, *, fresh: bool) -> Rest | None:
    """The limit that forbids a provider call. New input resets most counters."""
    over = exceeded_limit(session, limits.tenant)
    if over is not None:
        return Rest("over-budget", over)
    unknown = _rest_if_unknown(limits)
    if unknown is not None or fresh:
        return unknown
    if session.execution.recoveries > limits.recoveries_max:
        return Rest(
            "held", f"recovered {session.execution.recoveries} times without finishing a turn"
        )
    if session.execution.held:
        return Rest("held", "the recovery policy waits for a person to resume")
    if session.turn.repeats >= limits.repeats_max:
        return Rest(
            "repeated-calls", f"the same call was made {session.turn.repeats} times in a row"
        )
    if session.turn.step >= limits.turns and not _owes_final_step(session, limits):
        return Rest("turn-limit", f"{session.turn.step} provider turns without new input")
    return None


def _owes_final_step(session: Session, limits: DrainLimits) -> bool:
    """Whether an agent with fewer steps took over after them, and has not said its last word yet."""
    if limits.steps is None or limits.agent is None or session.turn.step >= limits.turns_max:
        return False
    messages = (line.message for line in reversed(session.transcript.lines))
    agents = (message.agent for message in messages if isinstance(message, AssistantMessage))
    return next(agents, limits.agent) != limits.agent


def _rest_if_unknown(limits: DrainLimits) -> Rest | None:
    """Rest while the usage of a tenant with limits is not known."""
    if limits.tenant.has_limits and not limits.tenant.is_known:
        return Rest("budget-unknown", "what the tenant has used cannot be asked now")
    return None
