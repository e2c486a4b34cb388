"""When a schedule is due: time zones, daylight saving, missed times, and the ids of a run."""

from datetime import datetime
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairlead_schema.ids import is_minted
from fairlead_schema.schedules.record import MissedRuns, ScheduleTiming
from fairlead_session.schedules.due_times import (
    TimingInvalid,
    check_timing,
    last_due,
    next_due,
    plan_run,
)
from fairlead_session.schedules.run_ids import run_message_id, run_session_id

HOUR_MS = 3_600_000
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]
)
CRONS = st.sampled_from(
    ["* * * * *", "*/7 * * * *", "30 2 * * *", "0 9 * * 1-5", "0 0 29 2 *", "15,45 1-3 * * *"]
)
MISSED: st.SearchStrategy[MissedRuns] = st.sampled_from(["skip", "once"])
MOMENTS = st.integers(1_700_000_000_000, 1_900_000_000_000)


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def due_times(timing: ScheduleTiming, first: str, count: int) -> list[int]:
    times, after = [], ms(first)
    for _ in range(count):
        due = next_due(timing, after)
        assert due is not None
        times.append(due)
        after = due
    return times


def test_a_time_that_the_clocks_leave_out_is_due_right_after() -> None:
    nightly = ScheduleTiming(cron="30 2 * * *", timezone="Europe/Berlin")

    assert due_times(nightly, "2026-03-28T00:00+00:00", 3) == [
        ms("2026-03-28T02:30+01:00"),
        ms("2026-03-29T03:00+02:00"),
        ms("2026-03-30T02:30+02:00"),
    ]


def test_a_time_that_comes_twice_is_due_once_and_every_hour_goes_on() -> None:
    nightly = ScheduleTiming(cron="30 2 * * *", timezone="Europe/Berlin")
    hourly = ScheduleTiming(cron="30 * * * *", timezone="Europe/Berlin")

    assert due_times(nightly, "2026-10-24T22:00+00:00", 2) == [
        ms("2026-10-25T02:30+02:00"),
        ms("2026-10-26T02:30+01:00"),
    ]
    times = due_times(hourly, "2026-10-24T22:00+00:00", 5)
    assert {later - earlier for earlier, later in pairwise(times)} == {HOUR_MS}


@given(CRONS, ZONES, MOMENTS)
def test_looking_forward_and_looking_back_agree(cron: str, zone: str, after: int) -> None:
    timing = ScheduleTiming(cron=cron, timezone=zone)
    due = next_due(timing, after)

    assert due is not None
    assert due > after
    assert last_due(timing, due) == due
    assert last_due(timing, due + 999) == due
    before = last_due(timing, due - 1)
    assert before is None or before <= after


@given(CRONS, ZONES, MOMENTS, st.integers(0, 400 * 24 * HOUR_MS), MISSED)
def test_a_plan_runs_or_skips_the_last_missed_time_and_never_a_handled_one(
    cron: str, zone: str, handled: int, away: int, missed: MissedRuns
) -> None:
    timing = ScheduleTiming(cron=cron, timezone=zone, missed=missed)
    now = handled + away
    plan = plan_run(timing, handled_ms=handled, now_ms=now, late_ms=60_000)
    due = last_due(timing, now)

    chosen = plan.run or plan.skip
    assert plan.run is None or plan.skip is None
    if due is None or due <= handled:
        assert chosen is None
    else:
        assert chosen == due
        assert (plan.skip is not None) == (missed == "skip" and now - due > 60_000)
    assert plan.next is not None
    assert plan.next > now


@given(CRONS, ZONES, MOMENTS, st.lists(st.integers(1, 3 * HOUR_MS), min_size=1, max_size=20))
def test_whoever_handles_each_plan_runs_each_time_at_most_once(
    cron: str, zone: str, start: int, steps: list[int]
) -> None:
    timing = ScheduleTiming(cron=cron, timezone=zone)
    handled, now, runs = start, start, []
    for step in steps:
        now += step
        plan = plan_run(timing, handled_ms=handled, now_ms=now, late_ms=60_000)
        if plan.run is not None:
            runs.append(plan.run)
            handled = plan.run

    assert runs == sorted(set(runs))
    assert all(start < run <= now for run in runs)


@given(MOMENTS, MOMENTS)
def test_a_single_time_is_due_once(at: int, now: int) -> None:
    timing = ScheduleTiming(at=at)
    plan = plan_run(timing, handled_ms=at - 1, now_ms=now, late_ms=60_000)

    assert plan.run == (at if at <= now else None)
    assert plan.next == (at if at > now else None)
    assert plan_run(timing, handled_ms=at, now_ms=now, late_ms=60_000).run is None


@pytest.mark.parametrize(
    ("timing", "field"),
    [
        (ScheduleTiming(cron="61 * * * *"), "cron"),
        (ScheduleTiming(cron="0 0 30 2 *"), "cron"),
        (ScheduleTiming(cron="whenever"), "cron"),
        (ScheduleTiming(cron="* * * * *", timezone="Mars/Olympus"), "timezone"),
        (ScheduleTiming(at=0, timezone="../etc/passwd"), "timezone"),
    ],
)
def test_a_timing_that_cannot_be_used_says_which_field_is_wrong(
    timing: ScheduleTiming, field: str
) -> None:
    with pytest.raises(TimingInvalid) as refused:
        check_timing(timing)

    assert refused.value.field == field


@pytest.mark.parametrize(
    ("timezone", "sentence"),
    [
        ("Europe/Olso", "unknown time zone: Europe/Olso (did you mean Europe/Oslo?)"),
        ("europe/berlin", "unknown time zone: europe/berlin (did you mean Europe/Berlin?)"),
        ("nowhere", "unknown time zone: nowhere"),
    ],
)
def test_a_misspelt_time_zone_gets_the_name_of_the_nearest(timezone: str, sentence: str) -> None:
    with pytest.raises(TimingInvalid) as refused:
        check_timing(ScheduleTiming(cron="0 9 * * *", timezone=timezone))

    assert str(refused.value) == sentence


def test_a_misspelt_expression_gets_the_names_of_the_fields() -> None:
    with pytest.raises(TimingInvalid, match=r"minute, hour, day of month.*Bad minute"):
        check_timing(ScheduleTiming(cron="61 9 * * *"))


@given(st.text(max_size=20), st.text(max_size=20), MOMENTS, MOMENTS)
def test_the_ids_of_a_run_follow_from_its_schedule_and_its_time(
    tenant: str, schedule: str, due: int, other: int
) -> None:
    assume(due != other)
    message = run_message_id(tenant, schedule, due)

    assert message == run_message_id(tenant, schedule, due)
    assert message != run_message_id(tenant, schedule, other)
    assert not is_minted(message)
    assert run_session_id(tenant, schedule, "new", due) != run_session_id(
        tenant, schedule, "new", other
    )
    assert run_session_id(tenant, schedule, "same", due) == run_session_id(
        tenant, schedule, "same", other
    )
    assert run_session_id(tenant, schedule, "ses_own", due) == "ses_own"
