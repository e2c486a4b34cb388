"""The sessions that the sweep wakes, and how often."""

import re
from collections.abc import Iterable
from itertools import pairwise

from fairlead_projector.database import query
from fairlead_projector.stalls import BACK_OFF_S_MAX, REFUSALS_MAX, WAKES_MAX, StallDetector
from fairlead_schema.subjects import Address
from fairlead_session.execution.rest import REST_RULES

AT = Address("default", "ses_1")


def due(
    detector: StallDetector, moving: Iterable[tuple[Address, int]], *, now: float
) -> list[Address]:
    """What is due after a whole lap in one round."""
    detector.watch(moving, now=now)
    detector.end_lap()
    return detector.take_due(now=now)


def test_a_session_is_woken_once_it_stood_still_long_enough() -> None:
    detector = StallDetector(age_s=3)

    assert due(detector, [(AT, 5)], now=0) == []
    assert due(detector, [(AT, 5)], now=2.9) == []
    assert due(detector, [(AT, 5)], now=3) == [AT]


def test_a_session_that_moves_is_left_alone() -> None:
    detector = StallDetector(age_s=3)

    woken = [due(detector, [(AT, seq)], now=seq * 2.0) for seq in range(10)]

    assert woken == [[]] * 10


def test_a_session_that_waits_for_a_person_is_woken_ever_less() -> None:
    detector = StallDetector(age_s=3)

    woken = [now for now in range(600) if due(detector, [(AT, 5)], now=now)]

    gaps = [later - earlier for earlier, later in pairwise(woken)]
    assert gaps[:5] == [3, 6, 12, 24, 48]
    assert set(gaps[5:]) == {BACK_OFF_S_MAX}


def test_a_session_that_moved_again_is_judged_afresh() -> None:
    detector = StallDetector(age_s=3)
    for now in range(100):
        due(detector, [(AT, 5)], now=now)

    assert due(detector, [(AT, 6)], now=100) == []
    assert due(detector, [(AT, 6)], now=103) == [AT]


def test_a_sweep_is_bounded_and_takes_the_longest_due_first() -> None:
    detector = StallDetector(age_s=0)
    crowd = [(Address("default", f"ses_{n:05}"), 1) for n in range(WAKES_MAX + 50)]
    late = [(Address("default", "ses_zz"), 1)]
    due(detector, late, now=0)

    first = due(detector, [*crowd, *late], now=10)
    second = due(detector, [*crowd, *late], now=10.5)

    assert len(first) == WAKES_MAX
    assert first[0] == late[0][0]
    assert not set(first) & set(second)
    assert len(second) == len(crowd) + 1 - WAKES_MAX


def test_a_crowd_of_one_tenant_leaves_room_for_another() -> None:
    """A tenant with many stalled sessions does not delay the wake of another tenant."""
    detector = StallDetector(age_s=0)
    crowd = [(Address("crowd", f"ses_{n:05}"), 1) for n in range(20 * WAKES_MAX)]
    alone = Address("alone", "ses_zz")
    due(detector, crowd, now=0)

    woken = due(detector, [*crowd, (alone, 1)], now=10)

    assert alone in woken[:2]
    assert len(woken) == WAKES_MAX


def test_a_session_at_rest_is_forgotten() -> None:
    detector = StallDetector(age_s=3)
    due(detector, [(AT, 5)], now=0)
    due(detector, [], now=1)

    assert due(detector, [(AT, 5)], now=4) == []


def test_a_wake_that_is_refused_again_and_again_is_lost() -> None:
    """C-05, A18: the sweep renews the wake; that of an owner that answers is its own for an hour."""
    for life, refusals in REFUSALS_MAX.items():
        detector = StallDetector(age_s=3)
        due(detector, [(AT, 5)], now=0)

        lost = [detector.count_refusal(AT, life) for _ in range(refusals + 1)]

        assert lost == [False] * (refusals - 1) + [True, True]
    assert REFUSALS_MAX["alive"] * BACK_OFF_S_MAX >= 3600


def test_sessions_that_wait_for_long_do_not_hide_one_that_has_just_lost_its_wake() -> None:
    """A15: 20,000 sessions of one tenant are due again and again; a new one comes within one round."""
    detector = StallDetector(age_s=3)
    crowd = [(Address("default", f"ses_{n:05}"), 1) for n in range(20_000)]
    for now in range(0, 300, 2):
        due(detector, crowd, now=now)
    late = Address("default", "ses_zz")

    woken = [due(detector, [*crowd, (late, 1)], now=now) for now in (300, 302, 304)]

    assert late in woken[2]
    assert len(woken[2]) == WAKES_MAX


def test_a_lap_over_many_pages_forgets_nobody() -> None:
    """A15: what stands on other pages is not at rest, and keeps its time."""
    detector = StallDetector(age_s=3)
    pages = [[(Address("default", f"ses_{page}"), 1)] for page in range(3)]
    for now, page in enumerate([*pages, *pages]):
        detector.watch(page, now=now)
        if now % 3 == 2:
            assert detector.end_lap() == 3

    assert detector.take_due(now=5) == [page[0][0] for page in pages]


def test_a_wake_that_could_not_be_sent_is_tried_again_soon() -> None:
    detector = StallDetector(age_s=3)
    for now in range(100):
        due(detector, [(AT, 5)], now=now)

    detector.retry_soon(AT, now=100)

    assert due(detector, [(AT, 5)], now=102) == []
    assert due(detector, [(AT, 5)], now=103) == [AT]


def test_the_query_for_raised_limits_names_every_reason_whose_limit_may_rise() -> None:
    """The query repeats what the table of reasons says, because its index needs a literal."""
    named = set(re.findall(r"rested = '([a-z-]+)'", query("load_affordable").decode()))

    assert named == {reason for reason, rule in REST_RULES.items() if rule.limit_may_rise}
