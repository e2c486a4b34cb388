"""A person's own command: requested once, started at a safe boundary, settled once."""

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    admitted,
    claimed,
    dispatched,
    given,
    messages,
    promoted,
    released,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.events import (
    InputCancelled,
    InterruptRequested,
    ResumeRequested,
    SessionEvent,
    ShellEnded,
    ShellRequested,
    ShellStarted,
    ToolFailed,
    ToolStarted,
)
from fairlead_schema.message import ShellMessage
from fairlead_schema.prompt import Prompt, PromptInput
from fairlead_schema.record import ImportMark, Recorded
from fairlead_schema.tools.content import TextContent
from fairlead_session.calls.lifecycle import (
    INTERRUPTED,
    Begin,
    Failed,
    ProgressReport,
    Settle,
    Succeeded,
    begin,
    halt_reason,
    progress,
    settle,
)
from fairlead_session.calls.snapshot import snapshot_call
from fairlead_session.execution.commands import interrupt, is_at_rest, resume
from fairlead_session.execution.ownership import needs_release
from fairlead_session.execution.recovery import INTERRUPTED_TOOL, stop_open_work
from fairlead_session.explain import explain
from fairlead_session.fold.evolve import evolve
from fairlead_session.input.admission import InboxFull, MessageIdInUse, admit
from fairlead_session.input.attachment import resolve_attachments
from fairlead_session.input.inbox import (
    AlreadyPromoted,
    InputNotPending,
    cancel,
    edit,
    pending_commands,
)
from fairlead_session.input.pending_shells import drop_shells, start_shells
from fairlead_session.input.shell import request_shell
from fairlead_session.next_move import (
    AwaitCalls,
    Rest,
    StartShells,
    Stop,
    TakeTurn,
    is_moving,
    next_move,
)
from fairlead_session.state.session import Session
from fairlead_session.verify.unfinished import find_unfinished_work
from fairlead_session.verify.verify import verify

REQUESTED = ShellRequested(message_id="msg_s", call_id="call_s", command="make test", agent="build")
STARTED = ShellStarted(message_id="msg_s", call_id="call_s", command="make test", agent="build")
ENDED = ShellEnded(message_id="msg_s", call_id="call_s", output="ok")
OF_PROMPT = REQUESTED.model_copy(update={"prompt_id": "msg_1"})
RUN = ToolStarted(assistant_message_id="msg_s", call_id="call_s", worker="wkr_a", generation=1)


def request(session: Session, id_: str = "msg_s", command: str = "make test") -> object:
    return request_shell(session, id_, "call_s", command, "build", pending_max=2)


def events_of(decision: object) -> tuple[SessionEvent, ...]:
    assert isinstance(decision, tuple)
    return decision


def recorded(*events: SessionEvent) -> list[Recorded]:
    return [Recorded(f"evt_{seq}", seq, seq, event) for seq, event in enumerate(events, start=1)]


def test_a_command_is_requested_once_and_an_exact_retry_writes_nothing() -> None:
    session = given(CREATED)

    assert request(session) == (REQUESTED,)
    for later in (given(CREATED, REQUESTED), given(CREATED, REQUESTED, STARTED, ENDED)):
        assert request(later) == ()
        assert request(later, command="rm -rf .") == MessageIdInUse("msg_s")
        prompt = resolve_attachments(PromptInput(text="make test"))
        assert admit(later, "msg_s", prompt, "steer") == MessageIdInUse("msg_s")


def test_a_command_needs_an_id_and_a_place_of_its_own() -> None:
    assert request(given(CREATED, admitted("msg_s"))) == MessageIdInUse("msg_s")
    full = given(CREATED, REQUESTED, admitted("msg_1"))
    assert request(full, "msg_t") == InboxFull(2)


def test_a_command_starts_at_rest_runs_as_a_call_and_asks_for_no_turn() -> None:
    """I-07: input that an interrupt kept stays pending beside it."""
    kept = given(CREATED, admitted("msg_1"), InterruptRequested())
    assert not is_moving(kept)

    asked = then(kept, REQUESTED, claimed())
    move = next_move(asked)
    assert isinstance(move, StartShells)
    assert explain(given(CREATED, REQUESTED)).code == "shell"
    started = then(asked, *start_shells(move.shells))
    assert isinstance(next_move(started), AwaitCalls)
    assert messages(started)[-1].type == "shell"
    ended = then(started, RUN, ENDED)
    assert next_move(ended) == Rest("idle")
    shown = messages(ended)[-1]
    assert isinstance(shown, ShellMessage)
    assert (shown.command, shown.output) == ("make test", "ok")
    rested = then(ended, released())
    assert is_at_rest(rested)
    assert [item.message_id for item in rested.inbox.pending] == ["msg_1"]


def test_a_command_that_ends_while_the_session_is_parked_brings_it_to_rest() -> None:
    parked = given(CREATED, REQUESTED, claimed(), STARTED, RUN, released("parked"))
    ended = then(parked, ENDED)

    assert is_moving(ended)
    assert needs_release(ended, "idle")
    assert is_at_rest(then(ended, claimed(2), released("idle", 2)))


def test_a_command_in_mid_turn_waits_for_the_end_of_the_step() -> None:
    turn = (CREATED, admitted("msg_1"), claimed(), INITIALISED, promoted("msg_1"), dispatched())
    session = given(*turn, step_started(), REQUESTED)
    assert not isinstance(next_move(session), StartShells)

    ended = then(session, step_ended())
    assert isinstance(next_move(ended), StartShells)


def test_the_command_of_a_prompt_starts_just_before_its_promotion() -> None:
    session = given(CREATED, OF_PROMPT, admitted("msg_1", resume=False))
    assert not is_moving(session)

    due = then(session, claimed(), INITIALISED, ResumeRequested())
    move = next_move(due)
    assert isinstance(move, StartShells)
    after = then(due, *start_shells(move.shells), RUN, ENDED)
    assert isinstance(next_move(after), TakeTurn)


def test_the_command_of_a_queued_prompt_waits_for_its_turn() -> None:
    queued = given(CREATED, OF_PROMPT, admitted("msg_1", delivery="queue"), claimed(), INITIALISED)
    assert isinstance(next_move(queued), StartShells)

    busy = then(queued, admitted("msg_2"))
    move = next_move(busy)
    assert isinstance(move, TakeTurn)
    assert [item.message_id for item in move.inputs] == ["msg_2"]


def test_a_cancelled_prompt_takes_its_commands_along() -> None:
    session = given(CREATED, OF_PROMPT, admitted("msg_1"), InputCancelled(message_id="msg_1"))

    assert session.inbox.shells == ()
    assert next_move(then(session, claimed())) == Rest("idle")


def test_a_command_is_cancelled_before_it_starts_and_never_after() -> None:
    """One by one. Its id is used up."""
    second = REQUESTED.model_copy(update={"message_id": "msg_t", "call_id": "call_t"})
    session = given(CREATED, REQUESTED, second)
    assert [item.id for item in pending_commands(session)] == ["msg_s", "msg_t"]

    one = then(session, *events_of(cancel(session, "msg_s")))
    assert [item.id for item in pending_commands(one)] == ["msg_t"]
    assert is_moving(one)
    none = then(one, *events_of(cancel(one, "msg_t")))
    assert is_at_rest(none)
    assert next_move(then(none, claimed())) == Rest("idle")
    assert request(none) == MessageIdInUse("msg_s")
    assert cancel(none, "msg_s") == InputNotPending("msg_s")
    started = given(CREATED, REQUESTED, claimed(), STARTED)
    assert isinstance(cancel(started, "msg_s"), AlreadyPromoted)
    events = recorded(CREATED, REQUESTED, InputCancelled(message_id="msg_s"))
    assert list(verify(events)) == []
    assert find_unfinished_work(events) == ()


@pytest.mark.parametrize("id_", ["msg_s", "msg_1"])
def test_a_cancel_in_an_imported_session_begins_nothing(id_: str) -> None:
    """H-14: what was asked for at the origin waits here until somebody asks for it."""
    mark = ImportMark(through=3)
    session = Session(id="ses_1")
    for item in recorded(CREATED, REQUESTED, admitted("msg_1")):
        session = evolve(session, item._replace(imported=mark))
    assert not is_moving(session)

    after = then(session, *events_of(cancel(session, id_)))
    assert not is_moving(after)


def test_a_cancelled_command_beside_a_running_one_leaves_it_alone() -> None:
    second = REQUESTED.model_copy(update={"message_id": "msg_t", "call_id": "call_t"})
    session = given(CREATED, REQUESTED, claimed(), STARTED, RUN, second)

    after = then(session, *events_of(cancel(session, "msg_t")))
    assert isinstance(next_move(after), AwaitCalls)
    assert is_at_rest(then(after, ENDED, released()))


@pytest.mark.parametrize(
    ("text", "left"), [("No command", 0), ("Now (the output of `make test` stands above)", 1)]
)
def test_an_edit_that_takes_a_command_out_of_its_prompt_withdraws_it(text: str, left: int) -> None:
    """P-22: nothing runs that the prompt does not name any more."""
    session = given(CREATED, OF_PROMPT, admitted("msg_1"))

    edited = edit(session, "msg_1", prompt=Prompt(text=text), delivery=None)
    assert len(then(session, *events_of(edited)).inbox.shells) == left


def test_commands_that_wait_leave_no_room_for_prompts() -> None:
    session = given(CREATED, REQUESTED, admitted("msg_1"))
    prompt = Prompt(text="more")

    assert admit(session, "msg_2", prompt, "steer", pending_max=2) == InboxFull(2)
    assert isinstance(admit(session, "msg_2", prompt, "steer", pending_max=3), tuple)


def test_the_end_of_a_command_has_its_exit_code() -> None:
    """A command that failed by itself did run: its code says so."""
    running = given(CREATED, REQUESTED, claimed(), STARTED, RUN)

    (ended,) = settle(running, running.calls[0], Succeeded(structured={"exit": 2}))
    assert isinstance(ended, ShellEnded)
    assert (ended.exit, ended.needed_level) == (2, 2)
    shown = messages(then(running, ended))[-1]
    assert isinstance(shown, ShellMessage)
    assert shown.exit == 2


def test_an_interrupt_ends_a_command_that_runs_and_one_that_waits() -> None:
    """A command that waited has no start of a worker in the log: it never ran."""
    second = REQUESTED.model_copy(update={"message_id": "msg_t", "call_id": "call_t"})
    session = given(CREATED, REQUESTED, claimed(), STARTED, RUN, second)
    stopped = then(session, *interrupt(session))
    assert isinstance(next_move(stopped), Stop)

    ends = (*drop_shells(stopped), *stop_open_work(stopped))
    rested = then(stopped, *ends, released("interrupted"))
    outputs = [message.output for message in messages(rested) if isinstance(message, ShellMessage)]
    assert outputs == [INTERRUPTED_TOOL, INTERRUPTED_TOOL]
    assert is_at_rest(rested)
    assert rested.calls == ()


def test_a_worker_begins_a_command_once_and_settles_it_in_its_message() -> None:
    """E-20: after a death its outcome is unknown, so it never runs again."""
    session = given(CREATED, REQUESTED, claimed(), STARTED)
    begun = begin(session, "msg_s", "call_s", "wkr_a", None)
    assert isinstance(begun, Begin)
    assert snapshot_call(session, 1, "msg_s", "call_s") is None

    running = then(session, begun.event)
    dead = begin(running, "msg_s", "call_s", "wkr_b", "gone")
    assert dead == Settle(ENDED.model_copy(update={"output": INTERRUPTED_TOOL}))
    call = running.calls[0]
    done = settle(running, call, Succeeded(content=(TextContent(text="ok"),)))
    assert done == (ENDED,)
    assert settle(then(running, *done), call, INTERRUPTED) == ()
    assert progress(running, call, {}, ()) == ()
    assert halt_reason(call, ENDED) == "lost"


def test_a_failed_command_keeps_what_it_said_before() -> None:
    running = given(CREATED, REQUESTED, claimed(), STARTED, RUN)
    report: ProgressReport = ({}, (TextContent(text="compiling"),))

    (ended,) = settle(running, running.calls[0], Failed("stopped"), report)
    assert isinstance(ended, ShellEnded)
    assert ended.output == "compiling\nstopped"


def test_a_resume_during_a_command_is_not_lost() -> None:
    running = given(CREATED, REQUESTED, claimed(), STARTED, RUN)

    assert resume(running) != ()


def test_a_log_without_the_request_runs_nothing() -> None:
    """Logs of other origins have starts and ends that nobody here runs."""
    bare = STARTED.model_copy(update={"agent": None})
    session = given(CREATED, bare)

    assert session.calls == ()
    assert is_at_rest(session)


@pytest.mark.parametrize(
    ("events", "rule"),
    [
        ((REQUESTED, claimed(), STARTED, RUN, ENDED, ENDED), "settled-once"),
        ((REQUESTED, claimed(), STARTED, RUN, RUN), "started-once"),
        ((REQUESTED, claimed(), STARTED, RUN, ENDED, released()), None),
    ],
)
def test_verify_knows_the_rules_of_commands(
    events: tuple[SessionEvent, ...], rule: str | None
) -> None:
    found = [violation.rule for violation in verify(recorded(CREATED, *events))]

    assert found == ([] if rule is None else [rule])


def test_verify_finds_a_command_that_nobody_ran() -> None:
    assert find_unfinished_work(recorded(CREATED, REQUESTED)) == ("command msg_s has not run",)
    assert find_unfinished_work(recorded(CREATED, REQUESTED, claimed(), STARTED)) == (
        "call call_s is not settled",
    )
    done = (CREATED, REQUESTED, claimed(), STARTED, RUN, ENDED, released())
    assert find_unfinished_work(recorded(*done)) == ()
    assert not any(isinstance(event, ToolFailed) for event in done)
