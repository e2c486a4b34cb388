"""Retries: whether a failed attempt is made again, and after which delay."""

from dataclasses import dataclass

from fairlead_schema.events import TurnRetried
from fairlead_schema.events.turn import RetryError
from fairlead_schema.provider.events import ProviderFailure
from fairlead_session.execution.rest import rest_rule
from fairlead_session.state.session import Session


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and after which delays a failed attempt is made again."""

    attempts_max: int = 5
    base_s: float = 0.5
    delay_s_max: float = 300.0
    jitter: float = 0.2


@dataclass(frozen=True, slots=True)
class Retry:
    """Make the attempt again after a delay. The runner waits, so this is not only an event."""

    event: TurnRetried
    delay_s: float


def retry(
    session: Session, failure: ProviderFailure, policy: RetryPolicy, *, chance: float
) -> Retry | None:
    """Retry after this failure. None if it is final. `chance` in [0, 1) spreads the delays."""
    if not failure.retryable or session.turn.retries + 1 >= policy.attempts_max:
        return None
    error = RetryError(
        message=failure.message,
        status_code=failure.status,
        is_retryable=True,
        response_body=failure.body,
        metadata={"kind": failure.kind},
    )
    event = TurnRetried(attempt=session.turn.retries + 1, error=error)
    return Retry(event, _delay(session.turn.retries, failure, policy, chance))


def keeps_backoff(session: Session) -> bool:
    """Whether the session waits until its back-off ends.

    A steer joins the waiting turn, so the turn is tried at once. Queued input waits behind it.
    """
    steered = any(item.delivery == "steer" for item in session.inbox.pending)
    return not (steered or session.execution.interrupted)


def retry_wait_s(session: Session, *, now_ms: int) -> float:
    """How long the session still waits for its retry timer. 0 if it may go on."""
    rest = session.execution.rest
    if rest is None or rest.wake_at is None or rest_rule(rest.reason).timer != "back-off":
        return 0.0
    return max(0, rest.wake_at - now_ms) / 1000 if keeps_backoff(session) else 0.0


def _delay(retries: int, failure: ProviderFailure, policy: RetryPolicy, chance: float) -> float:
    """The delay that the provider asks for, or a bit more; else a growing delay. Both have a cap."""
    if failure.retry_after_s is not None:
        delay = max(failure.retry_after_s, 0.0) * (1 + policy.jitter * chance)
        return min(delay, policy.delay_s_max)
    spread = 1 + policy.jitter * (2 * chance - 1)
    return float(min(policy.base_s * 2**retries * spread, policy.delay_s_max))
