"""Every decider has one shape, answers in every state, and returns events that fold."""

from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Final, TypeAlias

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    PROPERTY,
    admitted,
    claimed,
    dispatched,
    given,
    promoted,
    recorded,
    released,
    step_ended,
    step_started,
    then,
)
from libs.session.tests.fold.test_evolve import EVENTS, folded

from fairlead_schema.events import (
    AttemptFinished,
    InterruptRequested,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    SessionEvent,
    SessionPurged,
    TextStarted,
    ToolCalled,
    ToolInputStarted,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.permission import (
    CallSource,
    PermissionRequest,
    PermissionRule,
    QuestionRequest,
    ToolSource,
)
from fairlead_schema.prompt import Prompt
from fairlead_schema.tools.content import Executor
from fairlead_session.calls.lifecycle import Succeeded, defer, progress, settle
from fairlead_session.compaction import overflow
from fairlead_session.execution import commands, recovery
from fairlead_session.execution.description import describe
from fairlead_session.execution.ownership import claim
from fairlead_session.fold.snapshot import freeze, thaw
from fairlead_session.input import admission, inbox
from fairlead_session.input.promotion import eligible_inputs, promote
from fairlead_session.people import asks
from fairlead_session.people.pending import close_asks, withdraw_continue_question
from fairlead_session.relocation.commands import move
from fairlead_session.state.session import Session
from fairlead_session.state.turn import Attempt
from fairlead_session.state.usage import Budget
from fairlead_session.turn.step_end import end_step
from fairlead_session.verify.verify import verify

Decider: TypeAlias = Callable[[Session], object]

ALLOWING: Final = (PermissionRule(action="*", resource="*", effect="allow"),)
ASKED: Final = PermissionAsked(
    request=PermissionRequest(
        id="per_1",
        session_id="ses_1",
        action="bash",
        resources=("ls",),
        save=("ls *",),
        source=CallSource(message_id="msg_a", call_id="call_1"),
    ),
    agent="build",
)
QUESTION: Final = QuestionAsked(
    request=QuestionRequest(
        id="que_1",
        session_id="ses_1",
        questions=(),
        tool=ToolSource(message_id="msg_a", call_id="call_1"),
    )
)
CALLED: Final = (
    ToolInputStarted(assistant_message_id="msg_a", call_id="call_1", name="bash"),
    ToolCalled(
        assistant_message_id="msg_a", call_id="call_1", tool="bash", input={}, provider=Executor()
    ),
)
FINISHED: Final = AttemptFinished(
    attempt_id="att_msg_a",
    assistant_message_id="msg_a",
    finish="stop",
    cost=0.0,
    tokens=step_ended().tokens,
)


def of_attempt(
    decide: Callable[[Session, Attempt], tuple[SessionEvent, ...]],
) -> Callable[[Session], tuple[SessionEvent, ...]]:
    """A decider about the attempt of the turn, if there is one."""
    return lambda session: (
        () if session.turn.attempt is None else decide(session, session.turn.attempt)
    )


COMMANDS: Final[dict[str, Decider]] = {
    "create": lambda session: commands.create(session, CREATED, Budget(1.0, 10)),
    "interrupt": commands.interrupt,
    "request work": commands.request_work,
    "resume": commands.resume,
    "compact": commands.compact,
    "budget": lambda session: commands.set_budget(session, Budget(2.0, None)),
    "agent": lambda session: commands.switch_agent(session, "msg_agent", "plan"),
    "model": lambda session: commands.switch_model(session, "msg_model", MODEL),
    "move": lambda session: move(session, LocationRef(directory="/there")),
    "move with changes": lambda session: move(
        session, LocationRef(directory="/there"), with_changes=True
    ),
    "archive": commands.archive,
    "unarchive": commands.unarchive,
    "describe": lambda session: describe(session, "A title", {"ticket": 7}),
    "admit": lambda session: admission.admit(session, "msg_1", Prompt(text="hello"), "steer"),
    "admit later": lambda session: admission.admit(
        session, "msg_2", Prompt(text="hi"), "queue", resume=False
    ),
    "cancel": lambda session: inbox.cancel(session, "msg_1"),
    "edit": lambda session: inbox.edit(
        session, "msg_2", prompt=Prompt(text="better"), delivery="steer"
    ),
    "claim": lambda session: claim(session, "run_b", "gone"),
    "ask": lambda session: asks.ask_permission(session, ASKED),
    "permit": lambda session: asks.reply_permission(
        session, PermissionReplied(request_id="per_1", reply="always"), lambda _agent: (), ALLOWING
    ),
    "reject": lambda session: asks.reply_permission(
        session, PermissionReplied(request_id="per_1", reply="reject"), lambda _agent: (), ()
    ),
    "refuse": lambda session: asks.reply_permission(
        session,
        PermissionReplied(request_id="per_1", reply="reject", message="no"),
        lambda _agent: (),
        (),
    ),
    "recheck": lambda session: asks.recheck_permission(
        session, "per_1", lambda _agent: (), ALLOWING
    ),
    "answer": lambda session: asks.answer_question(
        session, QuestionReplied(request_id="que_1", answers=(("Continue",),))
    ),
    "dismiss": lambda session: asks.reject_question(session, QuestionRejected(request_id="que_1")),
    "expire": lambda session: asks.expire_ask(session, "per_1", before=10**12),
    "close asks": close_asks,
    "withdraw": withdraw_continue_question,
}
DECIDERS: Final[dict[str, Decider]] = {
    **COMMANDS,
    "purge": commands.purge,
    "promote": lambda session: promote(eligible_inputs(session)),
    "stop": recovery.stop_open_work,
    "abandoned": recovery.fail_abandoned_calls,
    "unrecordable": lambda session: recovery.fail_unrecordable_turn(session, "too long"),
    "recover": of_attempt(
        lambda session, attempt: recovery.settle_attempt(session, attempt, "ask", "que_2")
    ),
    "end step": of_attempt(lambda _session, attempt: end_step(attempt)),
    "hand over": of_attempt(lambda _session, attempt: recovery.hand_over(attempt)),
    "overflow": overflow.fail_overflowed_step,
    "settle": lambda session: tuple(
        event for call in session.calls[:1] for event in settle(session, call, Succeeded())
    ),
    "defer": lambda session: tuple(
        event for call in session.calls for event in defer(session, call, 10)
    ),
    "progress": lambda session: tuple(
        event for call in session.calls for event in progress(session, call, {}, ())
    ),
}
# Events of one life with few ids, so that random orders of them meet.
LIFE: Final[tuple[SessionEvent, ...]] = (
    admitted("msg_1"),
    admitted("msg_2", delivery="queue", resume=False),
    promoted("msg_1"),
    claimed(),
    released("parked"),
    released("over-budget"),
    released("retry-later"),
    dispatched(),
    step_started(),
    TextStarted(assistant_message_id="msg_a", text_id="text_1"),
    *CALLED,
    ASKED,
    QUESTION,
    FINISHED,
    step_ended(),
    InterruptRequested(),
)
STATES = st.one_of(
    st.lists(st.sampled_from(LIFE), max_size=25),
    st.lists(st.sampled_from((*LIFE, *EVENTS)), max_size=25),
).map(lambda events: folded(given(CREATED, INITIALISED), tuple(events)))


@pytest.mark.parametrize("name", DECIDERS)
@PROPERTY
@for_all(session=STATES)
def test_a_decider_answers_in_every_state_with_events_that_fold(
    name: str, session: Session
) -> None:
    """A decider returns a tuple of events or a small frozen refusal, and never raises."""
    decision = DECIDERS[name](session)

    if isinstance(decision, tuple):
        after = then(session, *decision)
        assert thaw(freeze(after)) == after
    else:
        assert is_dataclass(decision)
        hash(decision)


# Ingest refuses these before it decides, because the session does not exist.
BEGINNINGS: Final = {"resume", "compact", "budget", "claim", "admit", "admit later", "ask"}


@pytest.mark.parametrize("name", sorted(set(DECIDERS) - BEGINNINGS))
def test_a_purged_session_has_no_open_work(name: str) -> None:
    """H-29: nothing is left to stop, settle, answer or change."""
    purged = given(CREATED, admitted("msg_1"), claimed(), dispatched(), *CALLED, SessionPurged())

    decision = DECIDERS[name](purged)

    assert decision == () or is_dataclass(decision)


@PROPERTY
@for_all(names=st.lists(st.sampled_from(sorted(COMMANDS)), max_size=30))
def test_commands_in_any_order_write_a_log_that_verifies(names: list[str]) -> None:
    """Every command is decided from the session that the earlier commands left."""
    session, log = given(CREATED), [CREATED]
    for name in names:
        decision = COMMANDS[name](session)
        if isinstance(decision, tuple):
            session = then(session, *decision)
            log = [*log, *decision]

    assert verify(recorded(*log)) == []
