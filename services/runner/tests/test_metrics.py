"""Estimates and expected cache hits are compared with the tokens that providers count."""

from prometheus_client import REGISTRY

from fairlead_runner.metrics import observe_turn
from fairlead_schema.catalog import ModelRef
from fairlead_schema.provider.events import ProviderUsage, StepFinish
from fairlead_session.state.turn import Attempt

ATTEMPT = Attempt(
    attempt_id="att_1",
    assistant_message_id="msg_a",
    agent="build",
    model=ModelRef(provider_id="acme", id="fast"),
    step=1,
    generation=1,
    estimate=80,
)


def samples() -> dict[str, float]:
    names = {
        "plain": ("fairlead_estimate_error_sum", "plain"),
        "corrected": ("fairlead_estimate_error_sum", "corrected"),
        "read": ("fairlead_cache_tokens_total", "read"),
        "expected": ("fairlead_cache_tokens_total", "expected"),
    }
    return {
        name: REGISTRY.get_sample_value(metric, {"kind": kind}) or 0.0
        for name, (metric, kind) in names.items()
    }


def test_the_error_is_told_with_and_without_correction() -> None:
    before = samples()

    observe_turn(ATTEMPT, {"acme/fast": 1.25}, step_finish(input=60, cache_read=40), cached=50)

    after = samples()
    grown = {name: round(after[name] - before[name], 6) for name in after}
    assert grown == {"plain": 0.2, "corrected": 0.0, "read": 40.0, "expected": 50.0}


def test_a_turn_without_counts_tells_nothing() -> None:
    before = samples()

    observe_turn(ATTEMPT, {}, None, cached=50)
    observe_turn(ATTEMPT, {}, step_finish(), cached=50)

    assert samples() == before


def step_finish(**counts: int) -> StepFinish:
    return StepFinish("stop", ProviderUsage(**counts))
