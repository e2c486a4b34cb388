"""When a delivery is tried again, and when it is given up."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

GONE: Final = 410
TOO_MANY: Final = 429
UNAVAILABLE: Final = 503
JITTER: Final = 0.5
"""The part of a pause that is drawn by lot, so that receivers do not get everything at once."""


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """How often and how long a delivery is tried."""

    attempts_max: int = 12
    first_s: float = 5.0
    longest_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """What one attempt came to: a status of the receiver, or a reason why there is none."""

    status: int | None
    reason: str | None = None
    retry_after_s: float | None = None
    hopeless: bool = False
    """No later attempt can succeed: the address is forbidden."""

    @property
    def delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Put the event back for so long."""

    after_s: float


Verdict: TypeAlias = Literal["delivered", "gone", "given-up"] | TryAgain


def judge_attempt(
    attempt: DeliveryAttempt, number: int, policy: DeliveryPolicy, *, chance: float
) -> Verdict:
    """What follows from the `number`th attempt. `chance` is between 0 and 1."""
    if attempt.delivered:
        return "delivered"
    if attempt.status == GONE:
        return "gone"
    if attempt.hopeless or number >= policy.attempts_max:
        return "given-up"
    return TryAgain(max(_pause_s(number, policy, chance), _wanted_pause_s(attempt, policy)))


def _pause_s(number: int, policy: DeliveryPolicy, chance: float) -> float:
    # The exponent is bounded, because a float is.
    whole: float = min(policy.first_s * 2.0 ** min(number - 1, 60), policy.longest_s)
    return whole * (1 - JITTER + JITTER * chance)


def _wanted_pause_s(attempt: DeliveryAttempt, policy: DeliveryPolicy) -> float:
    """The pause that the receiver asks for, as far as it is sensible."""
    if attempt.retry_after_s is None or attempt.status not in {TOO_MANY, UNAVAILABLE}:
        return 0.0
    return min(max(attempt.retry_after_s, 0.0), policy.longest_s)
