"""The parts of a session: every event reaches one, and the tables behind them are complete."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import signature
from itertools import islice
from types import ModuleType
from typing import get_args, get_type_hints

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from libs.session.tests.conftest import PROPERTY

from fairlead_schema.events import (
    BY_TYPE,
    SessionEvent,
    ShellEnded,
    StepStarted,
)
from fairlead_schema.events.execution import RestReason
from fairlead_schema.record import ENDS_LOG
from fairlead_session.execution.rest import REST_RULES, rest_rule
from fairlead_session.fold import (
    asks,
    calls,
    compaction,
    context,
    execution,
    inbox,
    model_requests,
    profile,
    read_directories,
    transcript,
    turn,
    usage,
)
from fairlead_session.fold.evolve import REDUCERS
from fairlead_session.fold.messages import CHANGES, CREATIONS, MessageEvent
from fairlead_session.persistent import CHUNK, PersistentList

PARTS = (
    *(asks, calls, compaction, context, execution, inbox),
    *(profile, read_directories, model_requests, transcript, turn, usage),
)


def test_every_event_changes_a_part_of_the_session() -> None:
    """A purge and a marker are the exceptions: they replace the whole session."""
    assert set(BY_TYPE.values()) == {*ENDS_LOG, *REDUCERS}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__.rpartition(".")[2])
def test_a_reducer_is_written_for_the_event_it_is_listed_under(part: ModuleType) -> None:
    _assert_written_for(part.REDUCERS)


@pytest.mark.parametrize("table", [CREATIONS, CHANGES], ids=["creations", "changes"])
def test_a_message_rule_is_written_for_the_event_it_is_listed_under(
    table: Mapping[type, Callable[..., object]],
) -> None:
    _assert_written_for(table)


def test_every_message_event_has_one_rule() -> None:
    """A step and the end of a shell read other messages, so they are in neither table."""
    listed = [*CREATIONS, *CHANGES, StepStarted, ShellEnded]

    assert len(listed) == len(set(listed))
    assert set(listed) == set(get_args(MessageEvent))


def _assert_written_for(table: Mapping[type, Callable[..., object]]) -> None:
    """The second parameter of each function is the event, or a union that has it."""
    for kind, function in table.items():
        event = next(islice(signature(function).parameters, 1, None))
        assert kind in _kinds(get_type_hints(function)[event]), kind.__name__


def _kinds(annotation: object) -> tuple[object, ...]:
    """The event classes that an annotation names; a union may hold unions."""
    if annotation is SessionEvent:
        return tuple(BY_TYPE.values())
    inner = get_args(annotation)
    return tuple(kind for item in inner for kind in _kinds(item)) if inner else (annotation,)


def test_every_reason_to_rest_has_its_rule() -> None:
    assert set(REST_RULES) == set(get_args(RestReason))
    assert all(rest_rule(reason) is rule for reason, rule in REST_RULES.items())


def test_a_session_that_does_not_rest_has_no_rest_property() -> None:
    rule = rest_rule(None)
    names = {field.name for field in fields(rule)} - {"sentence", "next_step"}

    assert not any(getattr(rule, name) for name in names)


def test_every_rest_that_a_timer_ends_is_a_wait() -> None:
    assert all(rule.waits and rule.goes_on for rule in REST_RULES.values() if rule.timer)


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
    assert list(grown.replace_last(-1)) == [*items[:-1], -1]
    assert (list(grown), grown.last) == (items, items[-1])
    assert grown[index:] == tuple(items[index:])


@for_all(st.integers(0, 3 * CHUNK), st.integers(0, 2 * CHUNK), st.integers(0, 5 * CHUNK))
def test_a_persistent_list_tells_what_it_shares_with_an_earlier_one(
    length: int, more: int, start: int
) -> None:
    earlier: PersistentList[list[int]] = PersistentList()
    for item in range(length):
        earlier = earlier.append([item])
    later = earlier
    for item in range(more):
        later = later.append([item])

    assert earlier.shared_length(later) == later.shared_length(earlier) == length
    assert later.items_from(start) == tuple(later)[start:]
    for index in {0, length // 2, length - 1} & set(range(length)):
        # An equal item is another object: what was made of the old one may not fit it.
        assert earlier.shared_length(later.replace(index, [*later[index]])) == index
