"""Estimates and expected cache hits are compared with the tokens that providers count."""

from prometheus_client import REGISTRY

from fairlead_runner.metrics import observe_turn
from fairlead_schema.catalog import ModelRef
from fairlead_schema.provider.events import ProviderUsage, StepFinish
from fairlead_session.state.turn import Attempt
from fairlead_session.turn.usage import TokenPrice

ATTEMPT = Attempt(
    attempt_id="att_1",
    assistant_message_id="msg_a",
    agent="build",
    model=ModelRef(provider_id="acme", id="fast"),
    step=1,
    generation=1,
    estimate=80,
)

PRICE = TokenPrice(input=3.0, output=15.0, cache_read=0.3)


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
    before, finish = samples(), step_finish(input=60, cache_read=40)

    observe_turn(ATTEMPT, {"acme/fast": 1.25}, finish, cached=50, price=PRICE)

    after = samples()
    grown = {name: round(after[name] - before[name], 6) for name in after}
    assert grown == {"plain": 0.2, "corrected": 0.0, "read": 40.0, "expected": 50.0}


def test_a_turn_without_counts_tells_nothing() -> None:
    before = samples()

    observe_turn(ATTEMPT, {}, None, cached=50, price=PRICE)
    observe_turn(ATTEMPT, {}, step_finish(), cached=50, price=PRICE)

    assert samples() == before


def step_finish(**counts: int) -> StepFinish:
    return StepFinish("stop", ProviderUsage(**counts))


def test_the_tokens_and_the_cost_of_a_turn_are_counted_by_provider() -> None:
    def read(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(name, {"provider": "acme", **labels}) or 0.0

    before = read("fairlead_cost_usd_total"), read("fairlead_tokens_total", kind="output")

    finish = step_finish(input=1_000_000, output=100_000, cache_read=1_000_000)
    observe_turn(ATTEMPT, {}, finish, cached=0, price=PRICE)

    assert round(read("fairlead_cost_usd_total") - before[0], 6) == 4.8
    assert read("fairlead_tokens_total", kind="output") - before[1] == 100_000
