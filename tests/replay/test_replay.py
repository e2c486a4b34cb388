"""Recorded logs, folded by today's code: what was written then still means the same."""

from pathlib import Path

import pytest

from fairlead_schema.message import AssistantMessage, UserMessage
from fairlead_schema.record import Recorded, decode, encode
from fairlead_session.fold.evolve import evolve
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.info import info
from fairlead_session.state.session import Session
from fairlead_session.verify.verify import verify

LOGS = sorted(Path(__file__).parent.glob("*.jsonl"))


def read_events(log: Path) -> list[Recorded]:
    return [event for line in log.read_bytes().splitlines() for event in decode(line).events]


def fold(events: list[Recorded], session: Session) -> Session:
    for event in events:
        session = evolve(session, event)
    return session


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_recorded_log_folds_verifies_and_writes_back_the_same(log: Path) -> None:
    """D-08, H-13: replaying durable events alone reproduces the session."""
    events = read_events(log)

    session = fold(events, Session(id="ses_recorded"))

    assert session.seq == len(events)
    assert verify(events) == []
    assert [encode(decode(line)) for line in log.read_bytes().splitlines()] == (
        log.read_bytes().splitlines()
    )


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_snapshot_anywhere_in_a_recorded_log_and_its_tail_equal_the_whole(log: Path) -> None:
    events = read_events(log)
    whole = fold(events, Session(id="ses_recorded"))

    for cut in range(0, len(events), 7):
        thawed = thaw(freeze(fold(events[:cut], Session(id="ses_recorded"))))
        assert thawed is not None
        assert fold(events[cut:], thawed) == whole


def test_a_working_day_is_told_as_it_was() -> None:
    """A text turn, a tool, a failure, an interrupt, and a queued prompt."""
    day = next(log for log in LOGS if log.stem == "a_working_day")
    session = fold(read_events(day), Session(id="ses_recorded"))

    messages = [line.message for line in session.transcript.lines]
    assert (
        next(message.text for message in messages if isinstance(message, UserMessage))
        == "Hello there"
    )
    finishes = [message.finish for message in messages if isinstance(message, AssistantMessage)]
    assert finishes.count("error") == 2
    assert finishes[-1] == "stop"
    assert session.execution.rested == "idle"
    assert session.inbox.pending == ()
    assert session.calls == ()
    assert info(session).tokens.input > 0
