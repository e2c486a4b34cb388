"""Idempotency keys: a session remembers how it answered the last commands with a key."""

from hypothesis import given as for_all
from hypothesis import strategies as st
from libs.session.tests.conftest import CREATED, PROPERTY, admitted, claimed, given, then

from fairlead_schema.events import CommandAnswered, InterruptRequested, RevertRequested
from fairlead_session.execution.commands import interrupt, resume
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.idempotency.keys import (
    CommandKey,
    KeyUsedOtherwise,
    command_key,
    find_answer,
    with_answer,
)
from fairlead_session.idempotency.reducers import ANSWERS_MAX
from fairlead_session.state.answers import KeptAnswer
from fairlead_session.state.session import Session

ADA = "key:ada"


def hashed(key: str = "k", body: object = None, *, principal: str | None = ADA) -> CommandKey:
    return command_key(principal, "ses_1", "session.resume", key, {"body": body})


def answered(session: Session, command: CommandKey) -> Session:
    """The session after a command without events of its own."""
    return then(session, *with_answer(command, ()))


def test_the_same_command_again_gets_its_first_answer() -> None:
    session = given(CREATED)
    events = resume(session)
    assert isinstance(events, tuple)

    session = then(session, *with_answer(hashed(), events))

    assert find_answer(session, hashed()) == KeptAnswer(hashed().body, seq=session.seq)
    assert find_answer(then(session, InterruptRequested()), hashed()) == KeptAnswer(
        hashed().body, seq=session.seq
    )


def test_another_command_under_the_same_key_is_a_conflict() -> None:
    session = answered(given(CREATED), hashed(body=1))

    assert find_answer(session, hashed(body=2)) == KeyUsedOtherwise()


def test_a_key_counts_for_one_principal_one_session_and_one_verb() -> None:
    session = answered(given(CREATED), hashed())

    assert find_answer(session, hashed(principal="key:bob")) is None
    assert find_answer(session, hashed(principal=None)) is None
    for session_id, verb in [("ses_2", "session.resume"), ("ses_1", "session.compact")]:
        other = command_key(ADA, session_id, verb, "k", {"body": None})
        assert find_answer(session, other) is None


def test_the_order_of_fields_makes_no_other_command() -> None:
    one = command_key(ADA, "ses_1", "session.model", "k", {"a": 1, "b": {"c": 2, "d": 3}})
    other = command_key(ADA, "ses_1", "session.model", "k", {"b": {"d": 3, "c": 2}, "a": 1})

    assert one == other


def test_the_outcome_of_an_interrupt_is_remembered() -> None:
    idle = given(CREATED)
    waiting = given(CREATED, admitted("msg_1"))
    running = given(CREATED, admitted("msg_1"), claimed())

    outcomes = []
    for session in (idle, waiting, running):
        kept = find_answer(then(session, *with_answer(hashed(), interrupt(session))), hashed())
        assert isinstance(kept, KeptAnswer)
        outcomes.append(kept.outcome)

    assert outcomes == ["idle", "dropped", "stopping"]


def test_the_request_of_a_revert_is_remembered() -> None:
    request = RevertRequested(action="clear")

    session = then(given(CREATED), *with_answer(hashed(), (request,)))

    assert find_answer(session, hashed()) == KeptAnswer(hashed().body, seq=3, request=2)


@PROPERTY
@for_all(st.lists(st.integers(0, 200), max_size=150))
def test_the_last_64_keys_are_remembered_and_survive_a_snapshot(numbers: list[int]) -> None:
    session, order = given(CREATED), list[int]()
    for number in numbers:
        command = hashed(str(number))
        if find_answer(session, command) is None:
            session = answered(session, command)
            order.append(number)

    thawed = thaw(freeze(session))

    assert thawed == session
    assert list(session.answers) == [hashed(str(number)).key for number in order[-ANSWERS_MAX:]]
    remembered = {kept.seq for kept in session.answers.values()}
    assert len(remembered) == len(session.answers) <= ANSWERS_MAX


def test_a_command_without_a_key_leaves_nothing() -> None:
    session = then(given(CREATED), InterruptRequested())

    assert session.answers == {}
    assert CommandAnswered.level == 2
