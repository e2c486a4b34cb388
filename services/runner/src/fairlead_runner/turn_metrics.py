"""What a turn tells about estimates and caches, and a commit about epochs."""

from collections.abc import Mapping

from fairlead_runner.metrics import (
    BASELINE_BYTES,
    CACHE_TOKENS,
    CONTEXT_UPDATES,
    EPOCHS,
    ESTIMATE_ERROR,
)
from fairlead_schema.provider.events import StepFinish
from fairlead_session.compaction import estimate
from fairlead_session.state.session import Epoch
from fairlead_session.state.turn import Attempt
from fairlead_session.turn import epoch
from fairlead_session.turn.usage import tokens


def observe(
    attempt: Attempt, ratios: Mapping[str, float], finish: StepFinish | None, *, cached: int
) -> None:
    """Compare what was expected of a request with what its provider counted."""
    counted = None if finish is None else tokens(finish.usage)
    reported = 0 if counted is None else estimate.prompt_tokens(counted)
    if counted is None or reported <= 0:
        return
    CACHE_TOKENS.labels("read").inc(counted.cache.read)
    CACHE_TOKENS.labels("expected").inc(cached)
    if attempt.estimate is not None:
        corrected = estimate.apply_ratio(attempt.estimate, ratios.get(estimate.key(attempt.model)))
        ESTIMATE_ERROR.labels("plain").observe(abs(attempt.estimate - reported) / reported)
        ESTIMATE_ERROR.labels("corrected").observe(abs(corrected - reported) / reported)


def count(before: Epoch | None, after: Epoch | None) -> None:
    """Note a new epoch with its size, or an update inside the one there was."""
    if after is None or after is before:
        return
    if before is None or before.seq != after.seq:
        EPOCHS.inc()
        BASELINE_BYTES.observe(len(epoch.text(after.baseline).encode()))
    elif before.snapshot != after.snapshot:
        CONTEXT_UPDATES.inc()
