"""How the doctor compares a running stack with the limits of its parts."""

import pytest

from fairlead_cli.capacity.limits import COMMITS, LIMITS, StackLoad, compare_with_limits
from fairlead_eventlog.condition.waiting_work import QueueAge

QUIET = StackLoad([10.0] * 8, 0, (QueueAge("WAKES", "runner", 0, 0.0),), 0.1)


def test_a_quiet_stack_is_far_from_its_limits() -> None:
    (finding,) = compare_with_limits(QUIET)
    assert finding.status == "ok"
    assert "80 commits a second" in finding.detail


@pytest.mark.parametrize(
    ("load", "advice"),
    [
        (StackLoad([COMMITS.comfortable] * 2, 0, (), None), "more nats-servers"),
        (StackLoad([COMMITS.comfortable * 0.9], 0, (), None), "move leaders apart"),
        (StackLoad([0.0], 10_000_000, (), None), "more projectors"),
        (StackLoad([0.0], 0, (QueueAge("WAKES", "runner", 9, 60.0),), None), "more runners"),
        (StackLoad([0.0], 0, (QueueAge("TOOLS", "tools-x", 9, 60.0),), None), "more tool workers"),
        (StackLoad([0.0], 0, (QueueAge("PROMPTS", "ingest", 9, 60.0),), None), "more ingests"),
        (StackLoad([0.0], 0, (), 0.95), "max_connections"),
    ],
)
def test_a_limit_that_is_near_is_named_with_what_helps(load: StackLoad, advice: str) -> None:
    findings = compare_with_limits(load)
    assert {finding.status for finding in findings} == {"warn"}
    assert any(advice in str(finding.mend) for finding in findings)


def test_the_oldest_of_several_queues_counts() -> None:
    queues = (QueueAge("TOOLS", "tools-a", 1, 90.0), QueueAge("TOOLS", "tools-b", 0, 0.0))
    (finding,) = compare_with_limits(StackLoad([0.0], 0, queues, None))
    assert finding.detail.startswith("90 ")


def test_what_nobody_may_read_is_not_judged() -> None:
    (finding,) = compare_with_limits(StackLoad([], None, (), None))
    assert finding.status == "ok"


def test_every_limit_says_what_to_do() -> None:
    assert len({limit.name for limit in LIMITS}) == len(LIMITS)
    assert all(limit.advice and limit.counted and limit.comfortable > 0 for limit in LIMITS)
