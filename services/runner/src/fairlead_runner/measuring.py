"""What a turn tells about estimates and caches."""

from collections.abc import Mapping

from fairlead_runner.metrics import CACHE_TOKENS, ESTIMATE_ERROR
from fairlead_schema.provider import StepFinish
from fairlead_session import estimate
from fairlead_session.state import Attempt
from fairlead_session.usage import tokens


def observe(
    attempt: Attempt, ratios: Mapping[str, float], finish: StepFinish | None, *, cached: int
) -> None:
    """Compare what was expected of a request with what its provider counted."""
    counted = None if finish is None else tokens(finish.usage)
    reported = 0 if counted is None else estimate.prompt(counted)
    if counted is None or reported <= 0:
        return
    CACHE_TOKENS.labels("read").inc(counted.cache.read)
    CACHE_TOKENS.labels("expected").inc(cached)
    if attempt.estimate is not None:
        corrected = estimate.corrected(attempt.estimate, ratios.get(estimate.key(attempt.model)))
        ESTIMATE_ERROR.labels("plain").observe(abs(attempt.estimate - reported) / reported)
        ESTIMATE_ERROR.labels("corrected").observe(abs(corrected - reported) / reported)
