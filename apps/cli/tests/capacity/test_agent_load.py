"""What a workload needs, computed from measured figures."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_cli.capacity.agent_load import (
    PROJECTORS_MAX,
    REDUNDANT,
    UTILISATION,
    AgentLoad,
    busy_cores,
    plan,
)
from fairlead_cli.capacity.figures import MEASURED

HUNDRED = AgentLoad(agents=100, step_s=10, steps_per_prompt=10)
counts = st.floats(min_value=1, max_value=1e6)


def test_a_runner_is_busy_with_prompts_calls_and_fragments() -> None:
    """100 agents take 10 steps a second: one prompt, nine calls, 1,000 fragments."""
    busy_ms = (
        1 * MEASURED.prompt_ms["runner"]
        + 9 * MEASURED.call_ms["runner"]
        + 1_000 * MEASURED.fragment_us["runner"] / 1000
    )
    assert busy_cores("runner", HUNDRED, MEASURED) == pytest.approx(busy_ms / 1000)


def test_a_core_is_not_planned_to_be_full() -> None:
    needed = plan(HUNDRED, MEASURED).needs["runner"]
    busy = busy_cores("runner", HUNDRED, MEASURED)
    assert needed.cores == pytest.approx(busy / UTILISATION)


def test_every_service_runs_at_least_twice() -> None:
    needed = plan(AgentLoad(agents=1), MEASURED)
    services = {name: need for name, need in needed.needs.items() if need.memory_gb}
    assert {need.processes for need in services.values()} == {REDUNDANT}


def test_the_shards_bound_the_projectors() -> None:
    needed = plan(AgentLoad(agents=1e6), MEASURED)
    assert needed.needs["projector"].processes == PROJECTORS_MAX
    assert needed.needs["runner"].processes > PROJECTORS_MAX


def test_further_watchers_cost_the_gateway_alone() -> None:
    crowd = replace(HUNDRED, watchers=50)
    assert busy_cores("gateway", crowd, MEASURED) > busy_cores("gateway", HUNDRED, MEASURED)
    assert busy_cores("nats", crowd, MEASURED) == busy_cores("nats", HUNDRED, MEASURED)


def test_every_copy_of_the_log_is_written() -> None:
    alone = replace(HUNDRED, replicas=1)
    assert busy_cores("nats", HUNDRED, MEASURED) == pytest.approx(
        3 * busy_cores("nats", alone, MEASURED)
    )


def test_text_and_days_fill_the_disk() -> None:
    short, long = replace(HUNDRED, days=1), replace(HUNDRED, days=10)
    assert plan(long, MEASURED).log_gb == pytest.approx(10 * plan(short, MEASURED).log_gb)
    assert plan(long, MEASURED).feed_gb == plan(short, MEASURED).feed_gb


@given(agents=counts, more=counts, step_s=st.floats(0.1, 1e4), steps=st.floats(1, 1e3))
def test_more_agents_never_need_less(
    agents: float, more: float, step_s: float, steps: float
) -> None:
    few = AgentLoad(agents=agents, step_s=step_s, steps_per_prompt=steps)
    many = replace(few, agents=agents + more)
    here, there = plan(few, MEASURED), plan(many, MEASURED)
    assert there.cores >= here.cores
    assert there.log_gb >= here.log_gb
    assert there.nats_nodes >= here.nats_nodes >= few.replicas
    for name, need in here.needs.items():
        assert there.needs[name].processes >= need.processes
