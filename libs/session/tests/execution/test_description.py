"""Titles and metadata that people give a session: merged, bounded, and stronger than a model's title."""

from hypothesis import given as for_all
from hypothesis import strategies as st
from libs.session.tests.conftest import CREATED, admitted, given, then
from libs.session.tests.test_titles import LATER, SMALL, answered, request

from fairlead_schema.events import (
    SessionArchived,
    SessionDescribed,
    SessionEvent,
    TitleEnded,
    TitleRequested,
)
from fairlead_schema.session_values.metadata import METADATA_KEYS_MAX, MetadataValue
from fairlead_session.execution.commands import SessionIsArchived
from fairlead_session.execution.description import MetadataChanges, TooMuchMetadata, describe
from fairlead_session.info import info
from fairlead_session.state.session import Session
from fairlead_session.titles import TitleAnswer, end_title, is_title_due

VALUES: st.SearchStrategy[MetadataValue | None] = st.one_of(
    st.none(), st.text(max_size=9), st.integers(-9, 9), st.floats(-9, 9)
)


def written(
    session: Session, title: str | None, changes: MetadataChanges | None
) -> tuple[SessionEvent, ...]:
    events = describe(session, title, changes)
    assert isinstance(events, tuple)
    return events


CHANGES = st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES)


def test_metadata_is_merged_and_a_null_removes_its_key() -> None:
    session = given(CREATED, SessionDescribed(metadata={"ticket": "OPS-7", "rank": 1}))

    (described,) = written(session, None, {"rank": None, "team": "tides"})

    assert described == SessionDescribed(metadata={"ticket": "OPS-7", "team": "tides"})
    after = info(then(session, described))
    assert (after.title, after.metadata) == (CREATED.title, {"ticket": "OPS-7", "team": "tides"})


@for_all(st.lists(st.tuples(st.none() | st.sampled_from(["One", "Two"]), CHANGES), max_size=6))
def test_an_exact_repeat_writes_nothing(
    commands: list[tuple[str | None, dict[str, MetadataValue | None]]],
) -> None:
    """Whatever came before, the same command again finds its work done."""
    session = given(CREATED)
    for title, changes in commands:
        session = then(session, *written(session, title, changes))
        assert describe(session, title, changes) == ()
        assert title is None or info(session).title == title


def test_a_session_has_no_more_metadata_than_its_bound() -> None:
    """Several commands together stay below the bound that each one has."""
    full: dict[str, MetadataValue] = {
        f"key {number}": number for number in range(METADATA_KEYS_MAX)
    }
    session = given(CREATED, SessionDescribed(metadata=full))

    assert describe(session, None, {"one more": 1}) == TooMuchMetadata(METADATA_KEYS_MAX + 1)
    (described,) = written(session, None, {"key 0": None, "one more": 1})
    assert len(info(then(session, described)).metadata or {}) == METADATA_KEYS_MAX


def test_an_archived_session_is_not_described() -> None:
    assert describe(given(CREATED, SessionArchived()), "Mine", None) == SessionIsArchived("ses_1")


def test_a_persons_title_wins_over_a_models() -> None:
    """P-28: also if the person chose the words that stood there, and while a request is under way."""
    session = answered()
    words = info(session).title
    asked = then(session, *request(session, "att_1"))
    assert isinstance(request(session, "att_1")[0], TitleRequested)

    named = then(asked, *written(asked, words, None))

    (ended,) = end_title(named, "att_1", SMALL, TitleAnswer("Theirs"))
    assert isinstance(ended, TitleEnded)
    assert ended.title is None
    assert info(then(named, ended)).title == words
    assert not is_title_due(then(named, ended), left_before_ms=LATER)


def test_a_description_moves_nothing() -> None:
    session = given(CREATED, admitted("msg_1"))

    after = then(session, *written(session, "Mine", {"a": 1}))

    assert (after.inbox, after.execution) == (session.inbox, session.execution)
