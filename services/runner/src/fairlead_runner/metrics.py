"""The metrics of a runner. Labels are bounded: never a session id."""

from collections.abc import Mapping
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from fairlead_schema.provider.events import StepFinish
from fairlead_session.compaction import estimate
from fairlead_session.state.session import Epoch
from fairlead_session.state.turn import Attempt
from fairlead_session.turn import epoch
from fairlead_session.turn.usage import TokenPrice, cost, tokens

TURNS: Final = Counter("fairlead_turns", "Provider turns, by how they ended.", ("end",))
FIRST_OUTPUT_SECONDS: Final = Histogram(
    "fairlead_first_output_seconds",
    "Time from the request to a provider until its first output, by provider.",
    ("provider",),
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120),
)
TOKENS: Final = Counter(
    "fairlead_tokens", "Tokens that providers counted, by provider and kind.", ("provider", "kind")
)
COST: Final = Counter(
    "fairlead_cost_usd", "What turns cost by the prices of the configuration.", ("provider",)
)
RETRIES: Final = Counter(
    "fairlead_turn_retries",
    "Turns that are asked for again after a failure of a provider.",
    ("kind",),
)
RECOVERIES: Final = Counter(
    "fairlead_recoveries", "Turns of dead runners that were taken over, by policy.", ("policy",)
)
DRAINS: Final = Counter("fairlead_drains", "Drains, by how they ended.", ("end",))
PREFIX_BREAKS: Final = Counter(
    "fairlead_prefix_breaks",
    "Requests that do not begin like the one before in their epoch, by what changed.",
    ("source",),
)
COMPACTIONS: Final = Counter(
    "fairlead_compactions",
    "Compactions that were requested or started, by cause and outcome.",
    ("cause", "outcome"),
)
SAVED: Final = Counter(
    "fairlead_compaction_saved_tokens", "Estimated tokens that compactions took out of requests."
)
TITLES: Final = Counter(
    "fairlead_titles", "Attempts at a title by the small model, by how they ended.", ("end",)
)
PRUNINGS: Final = Counter("fairlead_prunings", "Requests that pruning alone made small enough.")
ESTIMATE_ERROR: Final = Histogram(
    "fairlead_estimate_error",
    "Relative error of the estimated prompt tokens of a request.",
    ("kind",),
    buckets=(0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0),
)
CACHE_TOKENS: Final = Counter(
    "fairlead_cache_tokens",
    "Prompt tokens that providers read from their cache, and those that unbroken prefixes made expected.",
    ("kind",),
)
TRANSFORMS: Final = Counter(
    "fairlead_transforms",
    "Transforms of requests, by what they did or how they failed.",
    ("outcome",),
)
TRANSFORM_SECONDS: Final = Histogram(
    "fairlead_transform_seconds",
    "Time that one transform took.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
DRAINING: Final = Gauge("fairlead_draining", "Sessions being drained now.")
EPOCHS: Final = Counter("fairlead_context_epochs", "Context epochs that began.")
CONTEXT_UPDATES: Final = Counter(
    "fairlead_context_updates", "Changes of the context inside an epoch."
)
BASELINE_BYTES: Final = Histogram(
    "fairlead_baseline_bytes",
    "Length of the baseline of a new epoch.",
    buckets=(256, 1024, 4096, 16384, 65536, 262144, 1048576),
)


def observe_turn(
    attempt: Attempt,
    ratios: Mapping[str, float],
    finish: StepFinish | None,
    *,
    cached: int,
    price: TokenPrice,
) -> None:
    """Count the tokens of a turn and their cost, and compare them with the estimates."""
    counted = None if finish is None else tokens(finish.usage)
    reported = 0 if counted is None else estimate.prompt_tokens(counted)
    if counted is None or reported <= 0:
        return
    provider = attempt.model.provider_id
    for kind, number in (
        ("input", counted.input),
        ("output", counted.output),
        ("reasoning", counted.reasoning),
        ("cache_read", counted.cache.read),
        ("cache_write", counted.cache.write),
    ):
        TOKENS.labels(provider, kind).inc(number)
    COST.labels(provider).inc(cost(counted, price))
    CACHE_TOKENS.labels("read").inc(counted.cache.read)
    CACHE_TOKENS.labels("expected").inc(cached)
    if attempt.estimate is not None:
        corrected = estimate.apply_ratio(attempt.estimate, ratios.get(estimate.key(attempt.model)))
        ESTIMATE_ERROR.labels("plain").observe(abs(attempt.estimate - reported) / reported)
        ESTIMATE_ERROR.labels("corrected").observe(abs(corrected - reported) / reported)


def count_epoch_change(before: Epoch | None, after: Epoch | None) -> None:
    """Count a new epoch with the size of its baseline, or an update inside the old epoch."""
    if after is None or after is before:
        return
    if before is None or before.seq != after.seq:
        EPOCHS.inc()
        BASELINE_BYTES.observe(len(epoch.text(after.baseline).encode()))
    elif before.snapshot != after.snapshot:
        CONTEXT_UPDATES.inc()
