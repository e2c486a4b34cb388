"""Words for given, when and then: events by their shortest names, and sessions folded from them."""

from typing import Final

from hypothesis import settings

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.context import (
    BaselinePart,
    ContextSample,
    Observation,
    ObservedSource,
    SnapshotEntry,
    UnavailableSource,
)
from fairlead_schema.events import (
    AttemptDispatched,
    ContextInitialised,
    ExecutionClaimed,
    ExecutionReleased,
    PromptAdmitted,
    PromptPromoted,
    SessionCreated,
    SessionEvent,
    StepEnded,
    StepStarted,
)
from fairlead_schema.events.execution import RestReason
from fairlead_schema.location import LocationRef
from fairlead_schema.message import AssistantMessage, Message
from fairlead_schema.prompt import Delivery, Prompt
from fairlead_schema.record import Draft, Recorded, record
from fairlead_session.fold.evolve import evolve
from fairlead_session.state.execution import CallKey
from fairlead_session.state.session import Session

PROPERTY: Final = settings(deadline=None, max_examples=100)
DEEP: Final = settings(deadline=None, max_examples=2000)

NONE: Final = Tokens()
MODEL: Final = ModelRef(provider_id="acme", id="fast")
CREATED: Final = SessionCreated(
    title="A session", project_id="prj_1", location=LocationRef(directory="/work")
)
INITIALISED: Final = ContextInitialised(
    baseline=(BaselinePart(key="core/date", text="Today is Monday"),),
    snapshot={"core/date": SnapshotEntry(value="monday")},
)


def ms(seq: int) -> int:
    """The time of the event at a sequence."""
    return 1_000_000 + seq


def recorded(*events: SessionEvent, after: int = 0) -> tuple[Recorded, ...]:
    drafts = (
        Draft(f"evt_{seq}", ms(seq), event) for seq, event in enumerate(events, start=after + 1)
    )
    return record(tuple(drafts), after=after)


def then(session: Session, *events: SessionEvent) -> Session:
    for event in recorded(*events, after=session.seq):
        session = evolve(session, event)
        check_parts_agree(session)
    return session


def check_parts_agree(session: Session) -> None:
    """Execution has its own view of the attempt and the calls: it is the same as theirs."""
    execution, attempt = session.execution, session.turn.attempt
    assert (execution.attempt is None) == (attempt is None)
    if execution.attempt is not None and attempt is not None:
        assert execution.attempt.overflowed == (attempt.overflow is not None)
    keys = {
        by_person: [
            CallKey(call.assistant_message_id, call.call_id)
            for call in session.calls
            if call.by_person is by_person
        ]
        for by_person in (False, True)
    }
    assert list(execution.open_calls) == keys[False]
    assert set(execution.open_shells) >= set(keys[True])


def given(*events: SessionEvent) -> Session:
    return then(Session(id="ses_1"), *events)


def admitted(
    id_: str, text: str = "hello", delivery: Delivery = "steer", *, resume: bool | None = None
) -> PromptAdmitted:
    prompt = Prompt(text=text)
    return PromptAdmitted(message_id=id_, prompt=prompt, delivery=delivery, resume=resume)


def promoted(id_: str, text: str = "hello", created: int = 0) -> PromptPromoted:
    return PromptPromoted(message_id=id_, prompt=Prompt(text=text), created=created)


def claimed(generation: int = 1, runner: str = "run_a") -> ExecutionClaimed:
    return ExecutionClaimed(generation=generation, runner=runner)


def released(reason: RestReason = "idle", generation: int = 1) -> ExecutionReleased:
    return ExecutionReleased(generation=generation, reason=reason)


def dispatched(assistant: str = "msg_a", step: int = 1) -> AttemptDispatched:
    return AttemptDispatched(
        attempt_id=f"att_{assistant}",
        assistant_message_id=assistant,
        agent="build",
        model=MODEL,
        step=step,
    )


def step_started(assistant: str = "msg_a", *, snapshot: str | None = None) -> StepStarted:
    return StepStarted(
        assistant_message_id=assistant, agent="build", model=MODEL, snapshot=snapshot
    )


def step_ended(
    assistant: str = "msg_a", *, cost: float = 0, tokens: Tokens = NONE, finish: str = "stop"
) -> StepEnded:
    return StepEnded(assistant_message_id=assistant, finish=finish, cost=cost, tokens=tokens)


def observed(key: str, value: object, *, removed: str | None = None) -> ObservedSource:
    return ObservedSource(
        key=key,
        value=value,
        baseline=f"{key} is {value}",
        update=f"{key} became {value}",
        removed=removed,
    )


def away(key: str) -> UnavailableSource:
    return UnavailableSource(key=key, reason="hung")


def sample(*observations: Observation) -> ContextSample:
    return ContextSample(observations=observations)


def messages(session: Session) -> tuple[Message, ...]:
    return tuple(line.message for line in session.transcript.lines)


def assistant_of(session: Session, id_: str = "msg_a") -> AssistantMessage:
    found = session.transcript.find(id_)
    assert isinstance(found, AssistantMessage)
    return found
