"""The figures of `fairlead top`: states, their order, rates and lag."""

from typing import Any

import pytest

from fairlead_cli.top.app import detail_text, summary_line
from fairlead_cli.top.look import Ask, SessionsLook, ShownSession, build_row, rank
from fairlead_cli.top.rates import WINDOW_S, EventRates, RateMeter
from fairlead_schema.commands.quota import QuotaUse, TenantUsageReport
from fairlead_schema.location import LocationRef
from fairlead_schema.permission import PermissionRequest, QuestionInfo, QuestionRequest
from fairlead_schema.session_info import ChildrenUsage, SessionInfo, SessionTime

ASK = PermissionRequest(id="per_a", session_id="ses_a", action="bash", resources=("ls", "rm"))
QUESTION = QuestionRequest(
    id="que_a",
    session_id="ses_a",
    questions=(QuestionInfo(question="Which?", header="", options=()),),
)


def info(id_: str, updated: int = 1, **fields: Any) -> SessionInfo:  # noqa: ANN401
    time = SessionTime(created=1, updated=updated)
    place = LocationRef(directory="/tmp")  # noqa: S108
    return SessionInfo(
        id=id_, project_id="p", time=time, title=f"Title {id_}", location=place, **fields
    )


def row(id_: str, state: str, updated: int = 1, asks: tuple[Ask, ...] = ()) -> ShownSession:
    return build_row(info(id_, updated), {"state": state, "reason": "Because."}, asks)


def take(meter: RateMeter, type_: str, at: float, *, live: bool = False, **data: Any) -> None:  # noqa: ANN401
    meter.take(type_, data, is_live=live, now_s=at, clock_ms=1000 + at * 1000)


def test_those_that_need_a_person_come_first_then_those_that_work_then_the_newest() -> None:
    rows = [
        row("ses_old", "idle", 5),
        row("ses_new", "resting", 9),
        row("ses_works", "running", 1),
        row("ses_a", "resting", 2, asks=(ASK,)),
        row("ses_q", "queued", 3),
    ]

    assert [each.info.id for each in rank(rows)] == [
        "ses_a",
        "ses_works",
        "ses_q",
        "ses_new",
        "ses_old",
    ]


def test_a_session_that_asks_is_in_that_state_and_shows_what_it_asks() -> None:
    asking = row("ses_a", "waiting", asks=(ASK, QUESTION))

    assert asking.state == "asks"
    assert row("ses_b", "waiting", asks=(ASK,)).state == "waiting"
    assert detail_text(asking).splitlines() == [
        "ses_a  Because.",
        "asks: bash ls, rm",
        "asks: Which?",
    ]


def test_the_cost_of_a_session_has_that_of_its_sub_agents() -> None:
    parent = info("ses_a", cost=0.5, children=ChildrenUsage(cost=0.25, tokens=9))

    assert build_row(parent, {"state": "idle"}, ()).cost == 0.75


def test_rates_are_those_of_the_last_seconds() -> None:
    meter = RateMeter()
    take(meter, "text.ended", 0.0)
    take(meter, "text.delta", 5.0, live=True)
    take(meter, "step.ended", 6.0, tokens={"output": 30, "reasoning": 10})

    assert meter.rates(6.0) == EventRates(3 / WINDOW_S, 4.0, None)
    assert meter.rates(11.0).events == 2 / WINDOW_S
    assert meter.rates(60.0) == EventRates()


def test_the_lag_is_the_age_of_durable_events_when_they_come() -> None:
    """A promotion has the time of its admission, and a clock may be ahead of ours."""
    meter = RateMeter()
    take(meter, "prompted", 1.0, timestamp=1)
    take(meter, "text.delta", 1.0, live=True, timestamp=1)
    take(meter, "step.started", 1.0, timestamp=1990)
    take(meter, "text.ended", 1.0, timestamp=1980)
    take(meter, "step.ended", 1.0, timestamp=99_999)

    assert meter.rates(1.0).lag_ms == pytest.approx(10)


def test_the_summary_has_counts_rates_lag_and_cost() -> None:
    usage = TenantUsageReport(
        tenant="default",
        quotas=(QuotaUse(quota="turns", used=2), QuotaUse(quota="pending", used=1)),
        cost=0.5,
        tokens=1200,
    )
    look = SessionsLook((row("ses_a", "idle", asks=(ASK,)),), usage)

    assert summary_line(look, EventRates(1.25, 40.0, 12.4)) == (
        "2 running · 1 asking · 1 pending · 0 calls · 1.2 events/s · 40 tokens/s · lag 12 ms"
        " · $0.5000 · 1,200 tokens"
    )
    assert look.wire()["asks"] == 1
