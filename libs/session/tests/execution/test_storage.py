"""A session leaves the log only at rest and exactly where its file ends; behind its marker it begins again."""

import pytest
from hypothesis import given as over
from libs.session.tests.conftest import (
    CREATED,
    PROPERTY,
    admitted,
    claimed,
    given,
    promoted,
    recorded,
    released,
    then,
)
from libs.session.tests.test_life import lived, plans

from fairlead_schema.events import SessionEvent, SessionPurged, SessionStored
from fairlead_schema.record import Commit, Recorded, decode, encode
from fairlead_session.execution.commands import last_event
from fairlead_session.execution.storage import StoreRefused, store
from fairlead_session.explain import explain
from fairlead_session.fold.evolve import evolve
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.state.session import Session
from fairlead_session.verify.verify import verify
from fairlead_testing.stored import marker, recorded_marker, replayed, stored_file

RESTED = (CREATED, admitted("msg_1"), claimed(), promoted("msg_1"), released())


def fold(session: Session, events: list[Recorded]) -> Session:
    for event in events:
        session = evolve(session, event)
    return session


def test_a_session_at_rest_leaves_with_what_lists_need() -> None:
    session = given(CREATED)

    outcome = store(session, stored_file(1))

    assert isinstance(outcome, tuple)
    (event,) = outcome
    assert isinstance(event, SessionStored)
    assert event.file.seq == session.seq
    assert (event.profile.title, event.profile.location) == (CREATED.title, CREATED.location)
    assert decode(encode(Commit("cmt_1", (recorded_marker(1),)))).level == 3


@pytest.mark.parametrize(
    ("events", "seq", "reason"),
    [
        pytest.param((CREATED, admitted("msg_1")), 2, "works", id="input that a runner takes"),
        pytest.param((CREATED, admitted("msg_1"), claimed()), 3, "works", id="an owner"),
        pytest.param((CREATED,), 2, "export it again", id="a file with more events"),
        pytest.param((CREATED, *RESTED[1:]), 1, "export it again", id="a file with fewer events"),
        pytest.param(
            (CREATED, admitted("msg_1", resume=False)), 2, "pending input", id="input that waits"
        ),
    ],
)
def test_a_session_that_moved_or_has_something_open_stays(
    events: tuple[SessionEvent, ...], seq: int, reason: str
) -> None:
    outcome = store(given(*events), stored_file(seq))

    assert isinstance(outcome, StoreRefused)
    assert reason in outcome.reason


@PROPERTY
@over(plans)
def test_a_restored_session_is_the_replayed_one_wherever_a_reader_stood(plan: list[str]) -> None:
    """H-14, ADR 0084: a snapshot of any moment and the rest of the log give the same session."""
    log = lived(plan).log
    end = recorded_marker(log[-1].seq)
    behind = [end, *replayed(log)]
    whole = fold(Session(id="ses_1"), log)

    back = fold(whole, behind)

    assert back == fold(Session(id="ses_1"), behind) == fold(Session(id="ses_1"), replayed(log))
    for place in {0, 1, len(behind) // 2, len(behind) - 1}:
        snapshot = thaw(freeze(fold(whole, behind[:place])))
        assert snapshot is not None
        assert fold(snapshot, behind[place:]) == back
        assert (snapshot.stored is None) == (place == 0)
    assert (back.seq, back.stored, back.transcript) == (whole.seq, None, whole.transcript)
    assert verify([*log, *behind]) == verify(log)
    assert verify(behind) == verify(replayed(log))


def test_a_stored_session_is_only_its_marker_until_the_last_event_is_back() -> None:
    log = list(recorded(*RESTED))
    stored = fold(given(*RESTED), [recorded_marker(5)])
    half = fold(stored, replayed(log)[:4])

    assert (stored.seq, stored.profile) == (0, None)
    assert half.stored == stored.stored
    assert [explain(each).state for each in (stored, half)] == ["stored", "stored"]
    assert "4 of 5 events are back" in explain(half).reason
    assert explain(fold(half, replayed(log)[4:])).state == "idle"


def test_a_purge_behind_a_marker_keeps_what_the_session_used() -> None:
    stored = then(given(*RESTED), marker(5))

    assert last_event(stored) == SessionPurged(cost=0.5)
    log = [*recorded(*RESTED), recorded_marker(5)]
    purged = Recorded("evt_last", 6, 1, SessionPurged(cost=0.5))
    assert verify([*log, purged]) == verify(log)
    assert fold(stored, [purged]) == Session(id="ses_1", seq=6)


@pytest.mark.parametrize(
    ("behind", "rule"),
    [
        pytest.param(recorded(CREATED), "stored-replay", id="a new session under the id"),
        pytest.param(
            (recorded_marker(5)._replace(seq=6),), "stored-marker", id="a marker with a seq"
        ),
        pytest.param((recorded_marker(4),), "stored-marker", id="a file without the last event"),
        pytest.param(replayed(recorded(*RESTED))[1:], "sequence", id="a replay with a hole"),
    ],
)
def test_what_no_release_writes_behind_a_session_is_a_violation(
    behind: tuple[Recorded, ...], rule: str
) -> None:
    is_marker = behind[0].event.type == "session.stored"
    log = [*recorded(*RESTED), *(() if is_marker else (recorded_marker(5),)), *behind]

    assert rule in [violation.rule for violation in verify(log)]
