"""How compactions end: on request, by an interrupt, a hand-over or the death of a runner."""

import asyncio

import pytest
from starlette.responses import Response

from fairlead_eventlog.process_life import Nudge
from fairlead_runner.drain.drain import Drain
from fairlead_runner.drain.staged_writer import OwnershipLost, StagedWriter
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema.events import (
    BudgetSet,
    CompactionEnded,
    CompactionFailed,
    CompactionRequested,
    CompactionStarted,
    ExecutionClaimed,
    InterruptRequested,
    PromptPromoted,
    ResumeRequested,
)
from fairlead_schema.prompt import Prompt
from fairlead_session.turn.history import history
from fairlead_session.verify.verify import verify
from services.runner.tests.conftest import (
    AT,
    LONG,
    World,
    admitted,
    error_reply,
    events_of,
    run_consumer,
    text_reply,
    wait_until,
)

TOO_LONG = error_reply(400, "prompt is too long: 9000 tokens")


@pytest.mark.parametrize("cause", ["auto", "overflow", "manual"])
async def test_an_interrupt_during_the_summary_leaves_nothing(small: World, cause: str) -> None:
    """G-34: no compaction message, the previous boundary active, and rest."""
    await small.prompt("msg_1", LONG)
    before = history(await small.session())
    hanging = asyncio.Event()

    async def hang() -> Response:
        await hanging.wait()
        return text_reply("SUMMARY")

    small.provider.replies.extend([TOO_LONG, hang] if cause == "overflow" else [hang])
    request = CompactionRequested() if cause == "manual" else None
    text = LONG if cause == "auto" else "Where to?"
    await small.write(request or admitted("msg_2", text))
    await small.wake()
    consumer = WakeConsumer(small.context())
    count = len(small.provider.requests) + (2 if cause == "overflow" else 1)

    async with run_consumer(consumer):
        await wait_until(lambda: len(small.provider.requests) == count)
        await small.write(InterruptRequested())
        consumer.nudge(Nudge(AT))
        await wait_until(lambda: not small.wakes)
        hanging.set()

    session = await small.session()
    assert (session.execution.rested, session.turn.attempt, session.execution.owed) == (
        "interrupted",
        None,
        False,
    )
    assert not session.execution.compaction_requested
    assert events_of(await small.events(), CompactionEnded) == []
    assert history(session)[: len(before)] == before


async def test_a_requested_compaction_runs_in_an_idle_session(small: World) -> None:
    """G-40: the reason is `manual`; then the session rests, and no request is left."""
    await small.prompt("msg_1", LONG)
    small.provider.replies.append(text_reply("SUMMARY"))
    before = len(small.provider.requests)

    await small.write(CompactionRequested())
    await small.drain()

    session, events = await small.session(), await small.events()
    assert [item.reason for item in events_of(events, CompactionEnded)] == ["manual"]
    assert not session.execution.compaction_requested
    assert (session.execution.rested, session.execution.owner) == ("idle", None)
    assert len(small.provider.requests) == before + 1
    await small.prompt("msg_2", "Where to?")
    assert [role for role, _text in small.provider.messages()] == ["system", "user", "user"]


async def test_a_requested_compaction_leaves_input_that_an_interrupt_kept(small: World) -> None:
    """G-40, C-16: one summary and no turn; the input waits until a client asks for work."""
    await small.prompt("msg_1", LONG)
    small.provider.replies.append(text_reply("SUMMARY"))
    await small.write(admitted("msg_2"), InterruptRequested(), CompactionRequested())
    before = len(small.provider.requests)

    await small.drain()

    session = await small.session()
    assert len(small.provider.requests) == before + 1
    assert [item.message_id for item in session.inbox.pending] == ["msg_2"]
    assert (session.execution.rested, session.execution.owner) == ("idle", None)
    await small.write(ResumeRequested(forced=False))
    await small.drain()
    assert (await small.session()).inbox.pending == ()


async def test_a_requested_compaction_takes_what_is_recent_too(small: World) -> None:
    """G-10, G-40: if nothing is older, a client's request summarises the recent entries."""
    small.config["compaction"]["keep_tokens"] = 8_000
    await small.prompt("msg_1", "sail " * 400)
    small.provider.replies.append(text_reply("SUMMARY"))

    await small.write(CompactionRequested())
    await small.drain()

    (ended,) = events_of(await small.events(), CompactionEnded)
    assert (ended.text, ended.recent) == ("SUMMARY", "")


@pytest.mark.parametrize("cause", ["auto", "overflow"])
async def test_a_runner_that_must_leave_hands_the_summary_over(small: World, cause: str) -> None:
    """G-15, P-02: the next runner makes the summary, and the first try counts."""
    small.config["runner"] = {"grace_s": 0.05}
    await small.prompt("msg_1", LONG)
    hanging = asyncio.Event()

    async def hang() -> Response:
        await hanging.wait()
        return text_reply("too late")

    small.provider.replies.extend([TOO_LONG, hang] if cause == "overflow" else [hang])
    await small.write(admitted("msg_2", "Where to?" if cause == "overflow" else LONG))
    await small.wake()
    async with run_consumer(WakeConsumer(small.context())):
        await wait_until(lambda: len(small.provider.requests) == (3 if cause == "overflow" else 2))
    hanging.set()
    left = await small.session()

    small.provider.replies.append(text_reply("SUMMARY"))
    await small.drain("run_b")

    assert (left.execution.rested, left.compaction.tries) == ("handover", 1)
    assert [item.text for item in events_of(await small.events(), CompactionEnded)] == ["SUMMARY"]
    assert (await small.session()).execution.rested == "idle"
    assert verify(await small.read_log()) == []


@pytest.mark.parametrize(
    ("given", "outcome", "why"),
    [
        ("nothing", "nothing", "nothing was said yet"),
        ("budget", "refused", "tokens"),
        ("broken", "failed", "broken"),
        ("no key", "refused", "FAIRLEAD_NO_SUCH_KEY is not set"),
        ("tried", "failed", "begun 2 times"),
    ],
)
async def test_a_request_that_comes_to_nothing_says_why_and_is_over(
    small: World, given: str, outcome: str, why: str
) -> None:
    """G-40, G-15: the request causes no further wake."""
    if given != "nothing":
        await small.prompt("msg_1", LONG)
    if given == "budget":
        await small.write(BudgetSet(tokens=1))
    if given == "broken":
        small.provider.replies.append(error_reply(400, "broken"))
    if given == "no key":
        small.config["provider"]["acme"]["api_key_env"] = "FAIRLEAD_NO_SUCH_KEY"
    await small.write(CompactionRequested())
    if given == "tried":
        dead = ExecutionClaimed(generation=2, runner="run_dead")
        started = CompactionStarted(message_id="msg_c", reason="manual")
        await small.write(dead, started, started)

    await small.drain("run_b")

    failed = events_of(await small.events(), CompactionFailed)
    session = await small.session()
    assert [(item.reason, item.outcome) for item in failed] == [("manual", outcome)]
    assert why in failed[0].message
    assert not session.execution.compaction_requested
    assert (session.execution.owner, session.execution.work_requested) == (None, False)


@pytest.mark.parametrize("starts", [1, 2])
async def test_a_dead_owners_summary_is_made_again_but_not_for_ever(
    small: World, starts: int
) -> None:
    """G-15: a start without an end changes nothing; after two starts there is no third."""
    await small.prompt("msg_1", LONG)
    promoted = PromptPromoted(message_id="msg_2", prompt=Prompt(text=LONG), created=1)
    started = CompactionStarted(message_id="msg_c", reason="auto")
    dead = ExecutionClaimed(generation=2, runner="run_dead")
    await small.write(admitted("msg_2", LONG), dead, promoted, *[started] * starts)
    small.provider.replies.append(text_reply("SUMMARY"))

    await small.drain("run_b")

    events = await small.events()
    assert len(events_of(events, CompactionStarted)) == 2
    assert len(events_of(events, CompactionEnded)) == 2 - starts
    assert len(events_of(events, PromptPromoted)) == 2
    assert (await small.session()).execution.rested == "idle"


async def test_a_runner_fenced_during_a_summary_writes_nothing_more(small: World) -> None:
    """P-02, G-15."""
    await small.prompt("msg_1", LONG)

    async def lose_ownership() -> Response:
        await small.write(ExecutionClaimed(generation=3, runner="run_b"))
        return text_reply("SUMMARY")

    small.provider.replies.append(lose_ownership)
    await small.write(admitted("msg_2", LONG))
    context = small.context()
    writer = StagedWriter(AT, await context.sessions.load(AT), context.session_writer)

    with pytest.raises(OwnershipLost):
        await Drain(context, writer).run()

    assert (await small.types())[-2:] == ["compaction.started", "execution.claimed"]
