"""What a tenant's own client reads over NATS: events in pages, explanations, and waits for rest."""

import asyncio
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import Head
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs import history
from fairlead_ingest.verbs.execution import wait as waiting
from fairlead_ingest.verbs.execution.explain import explain
from fairlead_ingest.verbs.execution.wait import wait
from fairlead_ingest.verbs.history import read_history
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_schema.commands.history import HistoryRead, ReadHistory, WaitForRest
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import (
    CursorExpired,
    InvalidCursor,
    LimitReached,
    ServiceUnavailable,
    SessionNotFound,
)
from fairlead_schema.events import InputCancelled, PromptPromoted, TextEnded
from fairlead_schema.events.execution import ExecutionClaimed, ExecutionReleased
from fairlead_schema.subjects import Address
from services.ingest.tests.conftest import append_events, create_session, prompt_command

SESSION = SessionCommand(session_id="ses_1")


async def read(context: CommandContext, **fields: Any) -> HistoryRead:  # noqa: ANN401
    command = ReadHistory.model_validate({"sessionID": "ses_1", **fields})
    return await read_history(context, "default", command)


def text(number: int, words: str = "hello") -> TextEnded:
    return TextEnded(assistant_message_id="msg_a", text_id=f"t{number}", text=words)


async def test_pages_of_history_join_to_every_public_event_once(
    context: CommandContext, eventlog: EventLog
) -> None:
    """H-30: a page says where to read on, also behind private events."""
    await create_session(context)
    await prompt(context, "default", prompt_command(id="msg_1", resume=False))
    await append_events(eventlog, *(text(number) for number in range(7)))

    seqs: list[int] = []
    page = await read(context, limit=3)
    while True:
        seqs += [event["durable"]["seq"] for event in page.events]
        if not page.has_more:
            break
        page = await read(context, after=page.seq, limit=3)

    whole = await read(context)
    assert seqs == [event["durable"]["seq"] for event in whole.events] == sorted(set(seqs))
    assert not (await read(context, after=whole.seq)).events


async def test_the_next_page_begins_where_the_last_one_ended_without_a_search(
    context: CommandContext, eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page may end within a commit. What somebody else asks for is searched for as before."""
    await create_session(context)
    await append_events(eventlog, *(text(number) for number in range(5)))
    await append_events(eventlog, *(text(number) for number in range(5, 9)))
    first = await read(context, limit=3)
    searched: list[int] = []
    locate = eventlog.log.locate

    async def note(at: Address, seq: int) -> Head:
        searched.append(seq)
        return await locate(at, seq)

    monkeypatch.setattr(eventlog.log, "locate", note)
    second = await read(context, after=first.seq, limit=4)
    third = await read(context, after=second.seq)
    assert searched == []
    other = await read(context, after=second.seq - 1)

    taken = [event["durable"]["seq"] for page in (first, second, third) for event in page.events]
    assert taken == list(range(2, 11))
    assert [event["durable"]["seq"] for event in other.events] == list(range(second.seq, 11))
    assert searched == [second.seq - 1]


async def test_a_page_of_a_session_that_was_erased_and_restored_is_searched_for(
    context: CommandContext, eventlog: EventLog
) -> None:
    """The commit at which the last page ended is gone, and its position is never used again."""
    at = Address("default", "ses_1")
    await create_session(context)
    await append_events(eventlog, *(text(number) for number in range(5)))
    page = await read(context, limit=3)
    head = await eventlog.log.locate(at, page.seq)
    context.page_ends.note(at, page.seq, Head(head.position + 100, page.seq))

    rest = await read(context, after=page.seq)

    assert [event["durable"]["seq"] for event in rest.events] == [5, 6]


async def test_a_promotion_names_the_delivery_of_its_input(
    context: CommandContext, eventlog: EventLog
) -> None:
    """The admission may lie before the page."""
    await create_session(context)
    receipt = await prompt(
        context, "default", prompt_command(id="msg_1", delivery="queue", resume=False)
    )
    promoted = PromptPromoted(message_id="msg_1", prompt=receipt.prompt, created=1)
    await append_events(eventlog, promoted)

    (event,) = (await read(context, after=receipt.admitted_seq)).events

    assert (event["type"], event["data"]["delivery"]) == ("session.next.prompted", "queue")


async def test_notices_are_read_by_those_who_want_them(
    context: CommandContext, eventlog: EventLog
) -> None:
    await create_session(context)
    await prompt(context, "default", prompt_command(id="msg_1", resume=False))
    await append_events(eventlog, InputCancelled(message_id="msg_1"))

    public, all_ = await read(context), await read(context, notices=True)

    assert "input.cancelled" not in [event["type"] for event in public.events]
    assert "input.cancelled" in [event["type"] for event in all_.events]


async def test_a_page_ends_before_it_is_too_long_for_a_message(
    context: CommandContext, eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event that is too long alone is cut, and says how long it is."""
    monkeypatch.setattr(history, "PAGE_BYTES", 3_000)
    monkeypatch.setattr(history, "EVENT_BYTES_MAX", 8_000)
    await create_session(context)
    await append_events(eventlog, text(1, "a" * 2_000), text(2, "b" * 2_000), text(3, "c" * 9_000))

    pages = [await read(context, after=1)]
    while pages[-1].has_more:
        pages.append(await read(context, after=pages[-1].seq))

    texts = [event["data"]["text"] for page in pages for event in page.events]
    assert [len(page.events) for page in pages] == [1, 1, 1]
    assert [words[0] for words in texts] == ["a", "b", "c"]
    assert pages[-1].events[0]["metadata"]["partial"]["bytes"] > 9_000


async def test_a_cursor_of_another_log_or_beyond_the_end_is_refused(
    context: CommandContext,
) -> None:
    await create_session(context)

    with pytest.raises(InvalidCursor, match="start again"):
        await read(context, after=99)
    with pytest.raises(CursorExpired):
        await read(context, log="another")


async def test_a_session_that_does_not_exist_is_said(context: CommandContext) -> None:
    with pytest.raises(SessionNotFound):
        await read(context)
    with pytest.raises(SessionNotFound):
        await explain(context, "default", SESSION)
    with pytest.raises(SessionNotFound):
        await wait(context, "default", WaitForRest(session_id="ses_1"))


async def test_an_explanation_says_why_a_session_rests(context: CommandContext) -> None:
    await create_session(context)

    assert (await explain(context, "default", SESSION)).code == "idle"


def claim() -> ExecutionClaimed:
    return ExecutionClaimed(runner="run_1", generation=1)


async def test_a_wait_ends_when_the_session_rests(
    context: CommandContext, eventlog: EventLog
) -> None:
    await create_session(context)
    await append_events(eventlog, claim())
    waits = asyncio.create_task(wait(context, "default", WaitForRest(session_id="ses_1")))
    await asyncio.sleep(0.01)
    assert not waits.done()

    await append_events(eventlog, ExecutionReleased(generation=1, reason="idle"))

    assert (await waits).seq == 3


async def test_a_wait_for_a_session_that_works_says_to_wait_again(
    context: CommandContext, eventlog: EventLog
) -> None:
    """The time is over, or the process stops: it must not hold its own end."""
    await create_session(context)
    await append_events(eventlog, claim())

    with pytest.raises(ServiceUnavailable) as raised:
        await wait(context, "default", WaitForRest(session_id="ses_1", timeout_s=0.01))
    assert raised.value.body.service == "session.wait"
    waits = asyncio.create_task(wait(context, "default", WaitForRest(session_id="ses_1")))
    await asyncio.sleep(0.01)
    context.stopping.set()
    with pytest.raises(ServiceUnavailable):
        await waits
    assert context.waits == 0


async def test_too_many_waits_are_refused(
    context: CommandContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "WAITS_MAX", 0)

    with pytest.raises(LimitReached):
        await wait(context, "default", WaitForRest(session_id="ses_1"))
