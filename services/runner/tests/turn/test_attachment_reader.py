"""The runner asks for attachments before a prompt becomes history, and keeps what it got."""

import asyncio
from dataclasses import replace

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_runner.turn.attachment_reader import AttachmentReader, AttachmentsUnavailable
from fairlead_schema import subjects
from fairlead_schema.attachments.request import TakeAttachments
from fairlead_schema.events import (
    InterruptRequested,
    PromptAdmitted,
    SessionCreated,
    SessionMoved,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt, PromptFile
from fairlead_schema.record import LEVEL_NEWEST, Recorded
from fairlead_schema.subjects import Address
from fairlead_session.fold.evolve import evolve
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Session
from fairlead_testing.images import PNG, data_uri
from services.runner.tests.conftest import World

AT = Address("default", "ses_1")
FILES = (
    PromptFile(uri=data_uri("image/png", PNG), mime="image/png"),
    PromptFile(uri="a.py", mime="text/x-python"),
)


@pytest.fixture
async def eventlog() -> EventLog:
    eventlog = memory_eventlog()
    await eventlog.status.finalise(LEVEL_NEWEST)
    return eventlog


def session() -> Session:
    created = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
    return evolve(Session(id="ses_1"), Recorded("evt_1", 1, 1, created))


def pending(*files: PromptFile) -> PendingInput:
    return PendingInput(2, "msg_1", Prompt(text="see", files=files), "steer", 1)


def serve(eventlog: EventLog, *texts: str) -> list[TakeAttachments]:
    """A tools service whose files say something else each time."""
    asked: list[TakeAttachments] = []
    left = iter(texts)

    async def answer(body: bytes) -> bytes:
        asked.append(TakeAttachments.model_validate_json(body))
        text = next(left)
        return b'{"data":{"contents":[{"mime":"text/x-python","text":"%s"}]}}' % text.encode()

    assert isinstance(eventlog.requests, MemoryRequests)
    eventlog.requests.answerers[subjects.attach("default")] = answer
    return asked


async def test_only_what_lies_elsewhere_is_asked_for_and_once(eventlog: EventLog) -> None:
    """P-23: a boundary that is decided again shows the model what it had taken before."""
    asked = serve(eventlog, "first", "second")
    reader = AttachmentReader(eventlog, pool="default")
    item = pending(*FILES)

    (taken,) = await reader.take(AT, session(), "build", (item,))
    (again,) = await reader.take(AT, session(), "build", (item,))

    assert [file.uri for command in asked for file in command.files] == ["a.py"]
    assert taken == again
    assert taken.prompt.files is not None
    assert taken.prompt.files[0] == FILES[0]
    assert taken.prompt.files[1].content is not None
    assert taken.prompt.files[1].content.text == "first"


async def test_an_edited_prompt_is_taken_anew(eventlog: EventLog) -> None:
    asked = serve(eventlog, "first", "second")
    reader = AttachmentReader(eventlog, pool="default")
    await reader.take(AT, session(), "build", (pending(FILES[1]),))

    other = pending(replace_uri(FILES[1], "b.py"))
    await reader.take(AT, session(), "build", (other,))

    assert [command.files[0].uri for command in asked] == ["a.py", "b.py"]


def replace_uri(file: PromptFile, uri: str) -> PromptFile:
    return file.model_copy(update={"uri": uri})


async def test_a_service_that_does_not_answer_keeps_the_prompt_waiting(eventlog: EventLog) -> None:
    """P-23: an outage is no reason to show the model nothing for ever."""
    reader = AttachmentReader(eventlog, pool="default")

    with pytest.raises(AttachmentsUnavailable):
        await reader.take(AT, session(), "build", (pending(*FILES),))


async def test_before_the_level_is_finalised_nothing_is_taken(eventlog: EventLog) -> None:
    """A13: an older release could not read the content."""
    older = replace(eventlog, status=memory_eventlog().status)
    item = pending(*FILES)

    assert await AttachmentReader(older, pool="default").take(AT, session(), "build", (item,)) == (
        item,
    )


async def test_another_agent_or_location_takes_anew(eventlog: EventLog) -> None:
    """P-23: what one agent may read in one place says nothing about another."""
    asked = serve(eventlog, "first", "second", "third")
    reader, item = AttachmentReader(eventlog, pool="default"), pending(*FILES)
    moved = evolve(
        session(), Recorded("evt_2", 2, 2, SessionMoved(location=LocationRef(directory="/there")))
    )

    await reader.take(AT, session(), "build", (item,))
    await reader.take(AT, session(), "plan", (item,))
    await reader.take(AT, moved, "plan", (item,))

    assert [(each.agent, each.location.directory) for each in asked] == [
        ("build", "/w"),
        ("plan", "/w"),
        ("plan", "/there"),
    ]


async def test_an_interrupt_while_attachments_are_taken_ends_it_at_once(world: World) -> None:
    """A page may take half a minute. A prompt meanwhile does not begin it again."""
    asked, asks = asyncio.Event(), 0

    async def answer(_body: bytes) -> bytes:
        nonlocal asks
        asks += 1
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("never answered")

    await world.eventlog.status.finalise(LEVEL_NEWEST)
    assert isinstance(world.eventlog.requests, MemoryRequests)
    world.eventlog.requests.answerers[subjects.attach("default")] = answer
    prompt = Prompt(text="see", files=FILES[1:])
    await world.write(PromptAdmitted(message_id="msg_1", prompt=prompt, delivery="steer"))

    draining = asyncio.create_task(world.drain())
    await asyncio.wait_for(asked.wait(), 5)
    await world.write(PromptAdmitted(message_id="msg_2", prompt=prompt, delivery="queue"))
    await asyncio.sleep(0.3)
    assert not draining.done()
    await world.write(InterruptRequested())
    await asyncio.wait_for(draining, 5)

    assert asks == 1
    assert world.provider.requests == []
