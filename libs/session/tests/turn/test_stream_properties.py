"""Whatever a provider streams, and however it ends: the log is sound and nothing stays open."""

from typing import TypeAlias

from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    PROPERTY,
    admitted,
    assistant_of,
    claimed,
    dispatched,
    given,
    promoted,
    recorded,
    released,
    then,
)

from fairlead_schema.delta import Delta, ReasoningDelta, TextDelta, ToolInputDelta
from fairlead_schema.events import (
    InterruptRequested,
    ReasoningEnded,
    SessionEvent,
    TextEnded,
    ToolInputEnded,
    ToolSucceeded,
)
from fairlead_schema.message import AssistantMessage, ToolBlock
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    ProviderUsage,
    ReasoningChunk,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    TextChunk,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputChunk,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)
from fairlead_schema.tools.content import Executor
from fairlead_session.execution.recovery import (
    fail_abandoned_calls,
    fail_unrecordable_turn,
    settle_attempt,
    stop_open_work,
)
from fairlead_session.next_move import (
    AwaitCalls,
    EndStep,
    Rest,
    SettleInterrupted,
    Stop,
    next_move,
)
from fairlead_session.state.session import Session
from fairlead_session.turn.step_end import end_step
from fairlead_session.turn.stream import TurnStream
from fairlead_session.turn.stream_calls import Offer, ProtocolViolation
from fairlead_session.verify.verify import verify

BEFORE = (CREATED, INITIALISED, admitted("msg_1"), claimed(), promoted("msg_1"), dispatched())
IDS = st.sampled_from(["1", "2", "3"])
WORDS = st.sampled_from(["", "a", "{", "é"])
METADATA = st.sampled_from([None, {"signature": "s"}])
EVENTS: st.SearchStrategy[ProviderEvent] = st.one_of(
    st.builds(TextStart, IDS),
    st.builds(TextChunk, IDS, WORDS),
    st.builds(TextEnd, IDS, METADATA),
    st.builds(ReasoningStart, IDS, METADATA),
    st.builds(ReasoningChunk, IDS, WORDS),
    st.builds(ReasoningEnd, IDS, METADATA),
    st.builds(ToolInputStart, IDS, st.sampled_from(["read", "write"])),
    st.builds(ToolInputChunk, IDS, WORDS),
    st.builds(ToolInputEnd, IDS),
    st.builds(ToolCall, IDS, st.just("read"), st.sampled_from([{}, 7]), st.booleans()),
    st.builds(ToolResult, IDS, WORDS, st.booleans()),
    st.builds(StepFinish, st.sampled_from(["stop", "tool-calls"]), st.just(ProviderUsage())),
    st.builds(ProviderFailure, st.just("unknown"), st.just("no"), st.booleans()),
)
STREAMS = st.lists(EVENTS, max_size=25)
MANY = settings(deadline=None, max_examples=300)
ENDS = st.sampled_from(["completed", "interrupted", "died", "stopped", "unrecordable"])
OFFERS = st.sampled_from([Offer(), Offer(calls_max=1), Offer(final=True)])

StreamOutput: TypeAlias = tuple[tuple[SessionEvent, ...], list[Delta]]


def receive_stream(
    turn_stream: TurnStream, stream: list[ProviderEvent], *, strict: bool = True
) -> StreamOutput:
    """The events and deltas of a stream. A stream that breaks the grammar fails the turn.

    If not `strict`, an event that would break the grammar is left out, so that streams get longer.
    """
    events: tuple[SessionEvent, ...] = ()
    deltas: list[Delta] = []
    for event in stream:
        try:
            durable, delta = turn_stream.receive(event)
        except ProtocolViolation as violation:
            if not strict:
                continue
            broken = ProviderFailure("malformed-stream", str(violation))
            return (*events, *turn_stream.receive(broken)[0]), deltas
        events = (*events, *durable)
        deltas += [] if delta is None else [delta]
    return events, deltas


def closed(session: Session, turn_stream: TurnStream, how: str) -> tuple[SessionEvent, ...]:
    """How the turn ends: by itself, by its runner, by the next owner, or because it does not fit."""
    if how == "completed":
        return turn_stream.complete()
    if how == "interrupted":
        return turn_stream.interrupt()
    if how == "stopped":
        return (InterruptRequested(), *stop_open_work(then(session, InterruptRequested())))
    return fail_unrecordable_turn(session, "too long") if how == "unrecordable" else ()


def settled(session: Session) -> tuple[SessionEvent, ...]:
    """Let workers settle their calls, and the next owner the rest, until a turn may follow."""
    events: tuple[SessionEvent, ...] = ()
    for _ in range(20):
        now = then(session, *events)
        match next_move(now):
            case AwaitCalls(calls=calls):
                call = calls[0]
                done = ToolSucceeded(
                    assistant_message_id=call.assistant_message_id,
                    call_id=call.call_id,
                    structured={},
                    content=(),
                    provider=Executor(),
                )
                events = (*events, done)
            case EndStep(attempt=attempt):
                events = (*events, *end_step(attempt))
            case SettleInterrupted(attempt=attempt):
                events = (*events, *settle_attempt(now, attempt, "auto", "que_1"))
            case Stop():
                events = (*events, *stop_open_work(now), released("interrupted"))
            case _:
                return (*events, *fail_abandoned_calls(now))
    raise AssertionError("a turn that never ends")


@MANY
@examples(stream=STREAMS, how=ENDS, offer=OFFERS, strict=st.booleans())
def test_every_turn_ends_and_leaves_nothing_open(
    stream: list[ProviderEvent],
    how: str,
    offer: Offer,
    strict: bool,  # noqa: FBT001
) -> None:
    """D-09, D-10, D-11, D-14, D-18, E-19: blocks close once, calls settle once, the step ends once."""
    turn_stream = TurnStream("msg_a", "build", MODEL, offer=offer, attempt_id="att_msg_a")
    events, _deltas = receive_stream(turn_stream, stream, strict=strict)
    session = given(*BEFORE, *events)

    ending = closed(session, turn_stream, how)
    after = settled(then(session, *ending))

    log = (*BEFORE, *events, *ending, *after)
    assert verify(recorded(*log)) == []
    done = given(*log)
    assert (done.turn.attempt, done.calls) == (None, ())
    assistant = done.transcript.find("msg_a")
    if isinstance(assistant, AssistantMessage):
        assert assistant.time.completed is not None
        blocks = [block for block in assistant.content if isinstance(block, ToolBlock)]
        assert {block.state.status for block in blocks} <= {"completed", "error"}
    assert not isinstance(next_move(done), SettleInterrupted | EndStep | AwaitCalls)


@PROPERTY
@examples(stream=STREAMS, how=st.sampled_from(["completed", "interrupted"]))
def test_the_deltas_of_a_block_are_its_durable_text(stream: list[ProviderEvent], how: str) -> None:
    """D-07: all fragments of a block together are the text that its end holds."""
    turn_stream = TurnStream("msg_a", "build", MODEL)
    events, deltas = receive_stream(turn_stream, stream, strict=False)
    events = (*events, *closed(given(*BEFORE, *events), turn_stream, how))

    live = "".join(sorted("".join(delta.delta for delta in deltas)))  # type: ignore[union-attr]
    ends = [
        event for event in events if isinstance(event, TextEnded | ReasoningEnded | ToolInputEnded)
    ]
    assert "".join(sorted("".join(item.text for item in ends))) == live
    assert all(isinstance(delta, TextDelta | ReasoningDelta | ToolInputDelta) for delta in deltas)
    kinds = [event for event in events if isinstance(event, TextEnded)]
    texts = {
        id_: "".join(d.delta for d in deltas if isinstance(d, TextDelta) and d.text_id == id_)
        for id_ in {kind.text_id for kind in kinds}
    }
    assert texts == {
        id_: "".join(kind.text for kind in kinds if kind.text_id == id_) for id_ in texts
    }


def test_the_property_sees_what_it_should() -> None:
    """A plain turn ends in rest: the walk above is no walk around the point."""
    turn_stream = TurnStream("msg_a", "build", MODEL)
    stream: list[ProviderEvent] = [
        TextStart("1"),
        TextChunk("1", "a"),
        StepFinish("stop", ProviderUsage()),
    ]
    events, _deltas = receive_stream(turn_stream, stream)
    done = given(*BEFORE, *events, *turn_stream.complete())

    assert settled(done) == ()
    assert next_move(done) == Rest("idle")
    assert assistant_of(done).finish == "stop"
