"""Long sessions: writes the events of many turns straight into the log."""

from collections.abc import Iterator

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import Head
from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    AttemptDispatched,
    CompactionEnded,
    ExecutionClaimed,
    ExecutionReleased,
    PromptAdmitted,
    PromptPromoted,
    SessionCreated,
    SessionEvent,
    StepEnded,
    StepStarted,
    TextEnded,
    TextStarted,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Draft, Recorded, record
from fairlead_schema.subjects import Address
from fairlead_service import ids

MODEL = ModelRef(provider_id="sim", id="fast")
TURN_EVENTS = 9


async def fill_log(eventlog: EventLog, at: Address, *, until_seq: int, compact: bool) -> Head:
    """Append turns until the log has about `until_seq` events, then one compaction if asked."""
    head = await eventlog.log.head(at)
    generation = 0
    while head.seq + TURN_EVENTS < until_seq:
        generation += 1
        for commit in _turn(generation):
            head = await _append(eventlog, at, head, commit)
    if compact:
        compaction = CompactionEnded(
            message_id=ids.message_id(), reason="auto", text="A long talk.", recent="It went on."
        )
        head = await _append(eventlog, at, head, (compaction,))
    return head


def record_history(*, events: int) -> tuple[Recorded, ...]:
    """The events of a session with about this many events, without a log."""
    created = SessionCreated(title="", project_id="bench", location=LocationRef(directory="/"))
    history: list[SessionEvent] = [created]
    generation = 0
    while len(history) + TURN_EVENTS < events:
        generation += 1
        history.extend(event for commit in _turn(generation) for event in commit)
    return record(_drafts(tuple(history)), after=0)


async def _append(
    eventlog: EventLog, at: Address, head: Head, events: tuple[SessionEvent, ...]
) -> Head:
    return (await eventlog.log.append(at, ids.commit_id(), _drafts(events), after=head)).head


def _drafts(events: tuple[SessionEvent, ...]) -> tuple[Draft, ...]:
    return tuple(Draft(ids.event_id(), ids.now_ms(), event) for event in events)


def _turn(generation: int) -> Iterator[tuple[SessionEvent, ...]]:
    user, assistant = ids.message_id(), ids.message_id()
    prompt = Prompt(text=f"Question {generation}: what is the weather like at sea today?")
    answer = f"Answer {generation}: " + "the wind is fair and the water calm. " * 4
    yield (PromptAdmitted(message_id=user, prompt=prompt, delivery="steer"),)
    yield (
        ExecutionClaimed(generation=generation, runner=ids.runner_id()),
        PromptPromoted(message_id=user, prompt=prompt, created=ids.now_ms()),
        AttemptDispatched(
            attempt_id=ids.attempt_id(),
            assistant_message_id=assistant,
            agent="build",
            model=MODEL,
            step=1,
        ),
    )
    yield (
        StepStarted(assistant_message_id=assistant, agent="build", model=MODEL),
        TextStarted(assistant_message_id=assistant, text_id="t"),
        TextEnded(assistant_message_id=assistant, text_id="t", text=answer),
        StepEnded(
            assistant_message_id=assistant, finish="stop", cost=0.001, tokens=Tokens(input=9)
        ),
        ExecutionReleased(generation=generation, reason="idle"),
    )
