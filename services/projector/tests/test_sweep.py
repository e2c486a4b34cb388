"""The sessions that the sweep wakes, and how often."""

import re
from itertools import pairwise

from fairlead_projector.database import query
from fairlead_projector.sweep import BACK_OFF_S_MAX, WAKES_MAX, StallDetector
from fairlead_schema.subjects import Address
from fairlead_session.execution.rest import REST_RULES

AT = Address("default", "ses_1")


def test_a_session_is_woken_once_it_stood_still_long_enough() -> None:
    detector = StallDetector(age_s=3)

    assert detector.due([(AT, 5)], now=0) == []
    assert detector.due([(AT, 5)], now=2.9) == []
    assert detector.due([(AT, 5)], now=3) == [AT]


def test_a_session_that_moves_is_left_alone() -> None:
    detector = StallDetector(age_s=3)

    woken = [detector.due([(AT, seq)], now=seq * 2.0) for seq in range(10)]

    assert woken == [[]] * 10


def test_a_session_that_waits_for_a_person_is_woken_ever_less() -> None:
    detector = StallDetector(age_s=3)

    woken = [now for now in range(600) if detector.due([(AT, 5)], now=now)]

    gaps = [later - earlier for earlier, later in pairwise(woken)]
    assert gaps[:5] == [3, 6, 12, 24, 48]
    assert set(gaps[5:]) == {BACK_OFF_S_MAX}


def test_a_session_that_moved_again_is_judged_afresh() -> None:
    detector = StallDetector(age_s=3)
    for now in range(100):
        detector.due([(AT, 5)], now=now)

    assert detector.due([(AT, 6)], now=100) == []
    assert detector.due([(AT, 6)], now=103) == [AT]


def test_a_sweep_is_bounded_and_takes_the_longest_due_first() -> None:
    detector = StallDetector(age_s=0)
    crowd = [(Address("default", f"ses_{n:05}"), 1) for n in range(WAKES_MAX + 50)]
    late = [(Address("default", "ses_zz"), 1)]
    detector.due(late, now=0)

    first = detector.due([*crowd, *late], now=10)
    second = detector.due([*crowd, *late], now=10.5)

    assert len(first) == WAKES_MAX
    assert first[0] == late[0][0]
    assert not set(first) & set(second)
    assert len(second) == len(crowd) + 1 - WAKES_MAX


def test_a_crowd_of_one_tenant_leaves_room_for_another() -> None:
    """A tenant with many stalled sessions does not delay the wake of another tenant."""
    detector = StallDetector(age_s=0)
    crowd = [(Address("crowd", f"ses_{n:05}"), 1) for n in range(20 * WAKES_MAX)]
    alone = Address("alone", "ses_zz")
    detector.due(crowd, now=0)

    woken = detector.due([*crowd, (alone, 1)], now=10)

    assert alone in woken[:2]
    assert len(woken) == WAKES_MAX


def test_a_session_at_rest_is_forgotten() -> None:
    detector = StallDetector(age_s=3)
    detector.due([(AT, 5)], now=0)
    detector.due([], now=1)

    assert detector.due([(AT, 5)], now=4) == []


def test_a_wake_that_is_refused_again_and_again_is_lost() -> None:
    """C-05: the sweep renews the wake; a session with an owner gets more time."""
    detector = StallDetector(age_s=3)
    detector.due([(AT, 5)], now=0)

    assert [detector.count_refusal(AT, owned=False) for _ in range(3)] == [False, True, True]

    detector.due([(AT, 6)], now=1)
    assert [detector.count_refusal(AT, owned=True) for _ in range(5)] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_the_query_for_raised_limits_names_every_reason_whose_limit_may_rise() -> None:
    """The query repeats what the table of reasons says, because its index needs a literal."""
    named = set(re.findall(r"rested = '([a-z-]+)'", query("load_affordable").decode()))

    assert named == {reason for reason, rule in REST_RULES.items() if rule.limit_may_rise}
