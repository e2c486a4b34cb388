"""The parts of a session: every event reaches one, and the tables behind them are complete."""

from typing import get_args

from hypothesis import given as for_all
from hypothesis import strategies as st
from libs.session.tests.conftest import PROPERTY

from fairlead_schema.events import BY_TYPE, SessionPurged
from fairlead_schema.events.execution import RestReason
from fairlead_session.execution.rest import REST_RULES
from fairlead_session.fold.evolve import REDUCERS
from fairlead_session.persistent import CHUNK, PersistentList


def test_every_event_changes_a_part_of_the_session() -> None:
    """A purge is the exception: it replaces the whole session."""
    assert set(BY_TYPE.values()) == {SessionPurged, *REDUCERS}


def test_no_event_reaches_one_part_twice() -> None:
    parts = {kind: [part for part, _reduce in reducers] for kind, reducers in REDUCERS.items()}

    assert {kind: names for kind, names in parts.items() if len(names) != len(set(names))} == {}


def test_every_reason_to_rest_has_its_rule() -> None:
    assert set(REST_RULES) == set(get_args(RestReason))


def test_what_rests_by_itself_says_what_happens_next() -> None:
    sentences = [(rule.sentence, rule.next_step) for rule in REST_RULES.values()]

    assert all(sentence and step for sentence, step in sentences)
    assert len({sentence for sentence, _step in sentences}) == len(REST_RULES)


@PROPERTY
@for_all(st.integers(0, 3 * CHUNK), st.data())
def test_a_persistent_list_is_a_list_that_never_changes(length: int, data: st.DataObject) -> None:
    items = list(range(length))
    grown: PersistentList[int] = PersistentList()
    for item in items:
        grown = grown.append(item)
    assert grown == PersistentList(items)
    assert (len(grown), list(grown), list(reversed(grown))) == (length, items, items[::-1])
    if not items:
        return

    index = data.draw(st.integers(0, length - 1))
    changed = grown.replace(index, -1)

    assert (grown[index], changed[index], grown[-1]) == (items[index], -1, items[-1])
    assert list(changed) == [*items[:index], -1, *items[index + 1 :]]
    assert list(grown) == items
    assert grown[index:] == tuple(items[index:])
