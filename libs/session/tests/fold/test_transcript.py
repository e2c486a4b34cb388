"""The transcript: which messages events create, and how they change."""

from libs.session.tests.conftest import (
    CREATED,
    MODEL,
    assistant_of,
    given,
    messages,
    ms,
    promoted,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.catalog import Tokens
from fairlead_schema.events import (
    AgentSwitched,
    ModelSwitched,
    ReasoningEnded,
    ReasoningStarted,
    ShellEnded,
    ShellStarted,
    StepFailed,
    TextEnded,
    TextStarted,
)
from fairlead_schema.message import (
    AgentSwitchedMessage,
    CreationTime,
    FileSnapshot,
    ReasoningBlock,
    ShellMessage,
    Span,
    TextBlock,
    UserMessage,
)
from fairlead_schema.tools.content import ErrorInfo


def text(id_: str, value: str | None = None, owner: str = "msg_a") -> TextStarted | TextEnded:
    if value is None:
        return TextStarted(assistant_message_id=owner, text_id=id_)
    return TextEnded(assistant_message_id=owner, text_id=id_, text=value)


def test_a_message_keeps_the_sequence_of_the_event_that_created_it() -> None:
    """I-01: later events change the message and never its place."""
    session = given(CREATED, step_started(), promoted("msg_1"), text("t"), text("t", "hey"))

    assert [(line.seq, line.message.id) for line in session.transcript.lines] == [
        (2, "msg_a"),
        (3, "msg_1"),
    ]


def test_a_promoted_prompt_is_a_user_message_from_the_time_of_its_admission() -> None:
    """B-02: its created time is the admission's."""
    session = given(CREATED, promoted("msg_1", "hi", created=5))

    assert messages(session) == (UserMessage(id="msg_1", text="hi", time=CreationTime(created=5)),)


def test_switches_change_the_session_and_add_a_message() -> None:
    """I-04, I-19: the profile shows the choice, the transcript when it was made."""
    session = given(
        CREATED,
        AgentSwitched(message_id="msg_1", agent="plan"),
        ModelSwitched(message_id="msg_2", model=MODEL),
    )

    assert session.profile is not None
    assert (session.profile.agent, session.profile.model) == ("plan", MODEL)
    assert session.profile.updated == ms(3)
    first = messages(session)[0]
    assert first == AgentSwitchedMessage(id="msg_1", agent="plan", time=CreationTime(created=ms(2)))


def test_a_shell_message_is_filled_by_its_end() -> None:
    """I-07: it starts with empty output."""
    session = given(CREATED, ShellStarted(message_id="msg_1", call_id="c", command="ls"))
    ended = then(session, ShellEnded(message_id="msg_1", call_id="c", output="a.py"))
    stray = then(ended, ShellEnded(message_id="msg_9", call_id="c", output="x"))

    (before,), (done,) = messages(session), messages(ended)
    assert isinstance(before, ShellMessage)
    assert isinstance(done, ShellMessage)
    assert (before.output, before.time.completed) == ("", None)
    assert (done.output, done.time) == ("a.py", Span(created=ms(2), completed=ms(3)))
    assert messages(stray) == messages(ended)


def test_a_new_step_closes_the_latest_assistant_that_was_left_open() -> None:
    """I-08: older incomplete ones are never revived."""
    session = given(CREATED, step_started("msg_a"), step_started("msg_b"))

    assert assistant_of(session, "msg_a").time.completed == ms(3)
    ended = then(session, step_ended("msg_b"), step_started("msg_c"))
    assert assistant_of(ended, "msg_a").time.completed == ms(3)
    assert assistant_of(ended, "msg_c").time.completed is None


def test_events_change_exactly_the_assistant_they_name() -> None:
    """I-09: even a completed one, and no other with the same block id."""
    session = given(
        CREATED,
        step_started("msg_a"),
        text("t"),
        step_ended("msg_a"),
        step_started("msg_b"),
        text("t", owner="msg_b"),
        text("t", "late", owner="msg_a"),
    )

    assert assistant_of(session, "msg_a").content == (TextBlock(id="t", text="late"),)
    assert assistant_of(session, "msg_b").content == (TextBlock(id="t", text=""),)


def test_events_for_what_is_not_there_change_nothing() -> None:
    """I-10: a missing assistant or block is ignored."""
    session = given(CREATED, step_started())

    after = then(
        session,
        text("t", "x"),
        text("t", owner="msg_9"),
        step_ended("msg_9"),
        ReasoningEnded(assistant_message_id="msg_a", reasoning_id="t", text="x"),
    )

    assert messages(after) == messages(session)


def test_the_last_block_with_an_id_is_the_one_that_changes() -> None:
    """I-11: an id may come again inside one assistant."""
    session = given(
        CREATED, step_started(), text("t"), text("t", "one"), text("t"), text("t", "two")
    )

    assert assistant_of(session).content == (
        TextBlock(id="t", text="one"),
        TextBlock(id="t", text="two"),
    )


def test_a_failed_step_keeps_its_content() -> None:
    """I-16: finish, error and completion are set, what was said stays."""
    error = ErrorInfo(message="broke")
    session = given(
        CREATED, step_started(), text("t"), StepFailed(assistant_message_id="msg_a", error=error)
    )

    failed = assistant_of(session)
    assert (failed.finish, failed.error) == ("error", error)
    assert failed.time.completed == ms(4)
    assert failed.content == (TextBlock(id="t", text=""),)


def test_a_reasoning_end_replaces_metadata_only_if_it_has_some() -> None:
    """I-17: start-side metadata stays unless the end brings its own."""

    def block(metadata: dict[str, int] | None) -> ReasoningBlock:
        session = given(
            CREATED,
            step_started(),
            ReasoningStarted(
                assistant_message_id="msg_a", reasoning_id="r", provider_metadata={"start": 1}
            ),
            ReasoningEnded(
                assistant_message_id="msg_a",
                reasoning_id="r",
                text="hm",
                provider_metadata=metadata,
            ),
        )
        block_ = assistant_of(session).content[0]
        assert isinstance(block_, ReasoningBlock)
        return block_

    assert block(None).provider_metadata == {"start": 1}
    assert block({"end": 2}).provider_metadata == {"end": 2}
    assert block(None).time == Span(created=ms(3), completed=ms(4))


def test_a_step_end_tells_what_the_step_took() -> None:
    """D-36: finish, cost, tokens and the file snapshots of both ends."""
    session = given(
        CREATED,
        step_started(snapshot="s1"),
        step_ended(cost=0.5, tokens=Tokens(input=1)).model_copy(
            update={"snapshot": "s2", "files": ("a.py",)}
        ),
        step_started("msg_b"),
        step_ended("msg_b"),
    )

    done = assistant_of(session)
    assert (done.finish, done.cost, done.tokens) == ("stop", 0.5, Tokens(input=1))
    assert done.snapshot == FileSnapshot(start="s1", end="s2", files=("a.py",))
    assert assistant_of(session, "msg_b").snapshot is None
