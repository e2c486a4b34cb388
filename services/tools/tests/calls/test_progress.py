"""Progress and live output of running calls: bounded, fenced, kept with a failure; on the twin."""

import asyncio
from dataclasses import replace

import pytest

from fairlead_eventlog.errors import SessionBusy
from fairlead_eventlog.memory.deltas import MemoryDeltas
from fairlead_eventlog.ports import START
from fairlead_schema.delta import ToolOutputDelta
from fairlead_schema.events import (
    InterruptRequested,
    SessionEvent,
    ToolFailed,
    ToolProgressed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.message import AssistantMessage, ToolBlock
from fairlead_schema.tools.content import CompletedCall, FailedCall, TextContent
from fairlead_session.fold.evolve import evolve
from fairlead_session.state.session import Session
from fairlead_tools.calls.progress import SKIPPED
from fairlead_tools.calls.timings import CallTimings
from fairlead_tools.registry.tool import CallContext
from services.tools.tests.conftest import (
    AT,
    EchoInput,
    EchoOutput,
    Harness,
    run_worker,
    tool,
    wait_until,
)


class ReportingTool:
    """A tool that waits until a test lets it go. The test reports progress for it."""

    def __init__(self) -> None:
        self.contexts: list[CallContext] = []
        self.opened = asyncio.Event()
        self.raises: Exception | None = None

    async def __call__(self, request: EchoInput, context: CallContext) -> EchoOutput:
        self.contexts.append(context)
        await self.opened.wait()
        if self.raises:
            raise self.raises
        return EchoOutput(said=request.key)

    async def report(self, text: str) -> None:
        await self.contexts[-1].report({"text": text}, (TextContent(text=text),))


QUICK = CallTimings(progress_s=0.0, live_s=0.0)


@pytest.fixture(autouse=True)
def _quick_reports(harness: Harness) -> None:
    harness.timings = QUICK


async def reports(harness: Harness) -> list[str]:
    events = await harness.events()
    return [str(event.structured["text"]) for event in events if isinstance(event, ToolProgressed)]


async def wait_for_reports(harness: Harness, *texts: str) -> None:
    async with asyncio.timeout(5):
        while await reports(harness) != list(texts):
            await asyncio.sleep(0)


async def state(harness: Harness) -> object:
    """The call as readers of the session see it."""
    session = Session(id=AT.session_id)
    page = await harness.log.read(AT, after=START)
    for stored in page.commits:
        for recorded in stored.commit.events:
            session = evolve(session, recorded)
    message = session.transcript.find("msg_a")
    assert isinstance(message, AssistantMessage)
    (block,) = [part for part in message.content if isinstance(part, ToolBlock)]
    return block.state


async def call_reporting_tool(harness: Harness) -> ReportingTool:
    reporter = ReportingTool()
    registered_tool = tool(execute=reporter)
    harness.registry.register(registered_tool)
    await harness.call(registered_tool)
    return reporter


async def test_progress_is_written_and_a_success_replaces_it(harness: Harness) -> None:
    """E-28: each report is an event of its own, and the result replaces them."""
    reporter = await call_reporting_tool(harness)
    async with run_worker(harness.worker()):
        await wait_until(lambda: bool(reporter.contexts))
        await reporter.report("a third")
        await wait_for_reports(harness, "a third")
        await reporter.report("half")
        await wait_for_reports(harness, "a third", "half")
        reporter.opened.set()
        await wait_until(lambda: not harness.jobs)

    result = await state(harness)
    assert isinstance(result, CompletedCall)
    assert result.structured == {"said": "k"}


async def test_only_the_last_word_is_written_when_its_time_comes(harness: Harness) -> None:
    """E-28: of many reports in one pause the last is written."""
    harness.timings = replace(QUICK, progress_s=0.02)
    reporter = await call_reporting_tool(harness)
    async with run_worker(harness.worker()):
        await wait_until(lambda: bool(reporter.contexts))
        for number in range(500):
            await reporter.report(str(number))
        await wait_for_reports(harness, "499")
        await reporter.report("499")
        await asyncio.sleep(0.1)
        await reporter.report("unwritten")
        reporter.opened.set()
        await wait_until(lambda: not harness.jobs)

    assert await reports(harness) == ["499"]


@pytest.mark.parametrize("how", ["fails", "interrupted"])
async def test_a_failure_keeps_the_last_progress_also_unwritten(harness: Harness, how: str) -> None:
    """E-28: the commit that settles the call holds it."""
    harness.timings = replace(QUICK, progress_s=60.0)
    reporter = await call_reporting_tool(harness)
    async with run_worker(harness.worker()):
        await wait_until(lambda: bool(reporter.contexts))
        await reporter.report("nearly")
        if how == "fails":
            reporter.raises = RuntimeError("boom")
            reporter.opened.set()
        else:
            await harness.write(InterruptRequested())
        await wait_until(lambda: not harness.jobs)

    failure = await state(harness)
    assert isinstance(failure, FailedCall)
    assert failure.content == (TextContent(text="nearly"),)
    assert [type(event) for event in (await harness.events())[-2:]] == [ToolProgressed, ToolFailed]


async def test_progress_that_a_busy_log_refused_is_kept_with_the_failure(harness: Harness) -> None:
    """E-28: a refused report is not in the log, so the settlement holds it."""
    harness.timings = replace(QUICK, progress_s=0.001, progress_s_max=60.0)
    reporter = await call_reporting_tool(harness)
    refused: list[object] = []

    async def refuse(drafts: object) -> None:
        refused.append(drafts)
        harness.log.before = None
        reporter.raises = RuntimeError("boom")
        reporter.opened.set()
        raise SessionBusy(AT)

    async with run_worker(harness.worker()):
        await wait_until(lambda: bool(reporter.contexts))
        harness.log.before = refuse
        await reporter.report("nearly")
        await wait_until(lambda: not harness.jobs)

    assert len(refused) == 1
    failure = await state(harness)
    assert isinstance(failure, FailedCall)
    assert failure.content == (TextContent(text="nearly"),)
    assert await reports(harness) == ["nearly"]


async def test_progress_that_a_busy_log_refused_is_written_later(harness: Harness) -> None:
    """E-28: the tool need not report again."""
    reporter = await call_reporting_tool(harness)

    async def refuse(_drafts: object) -> None:
        harness.log.before = None
        raise SessionBusy(AT)

    async with run_worker(harness.worker()):
        await wait_until(lambda: bool(reporter.contexts))
        harness.log.before = refuse
        await reporter.report("half")
        await wait_for_reports(harness, "half")
        reporter.opened.set()
        await wait_until(lambda: not harness.jobs)


async def test_a_worker_that_lost_its_call_writes_no_progress(harness: Harness) -> None:
    """E-28, E-20: another worker started the call, so the log refuses the report."""
    reporter = await call_reporting_tool(harness)
    stolen = ToolStarted(
        assistant_message_id="msg_a", call_id="call_1", worker="wkr_b", generation=2
    )
    steals: list[SessionEvent] = [stolen]

    async def overtake(_drafts: object) -> None:
        if steals:
            await harness.write(steals.pop())

    async with run_worker(harness.worker()):
        await wait_until(lambda: bool(reporter.contexts))
        harness.log.before = overtake
        await reporter.report("stale")
        await wait_until(lambda: not steals)
        for _ in range(50):
            await asyncio.sleep(0)

    assert await reports(harness) == []


async def test_progress_that_no_log_can_hold_is_dropped(harness: Harness) -> None:
    """E-28: the tool runs on. Long text is shortened before it is written."""
    reporter = await call_reporting_tool(harness)
    async with run_worker(harness.worker()):
        await wait_until(lambda: bool(reporter.contexts))
        await reporter.contexts[-1].report({"text": "x" * 9_000_000}, ())
        await reporter.contexts[-1].report({"text": "\ud800"}, ())
        await asyncio.sleep(0.05)
        await reporter.contexts[-1].report({"text": "ok"}, (TextContent(text="y" * 99_999),))
        await wait_for_reports(harness, "ok")
        reporter.opened.set()
        await wait_until(lambda: not harness.jobs)

    (report,) = [event for event in await harness.events() if isinstance(event, ToolProgressed)]
    (content,) = report.content
    assert isinstance(content, TextContent)
    assert len(content.text.encode()) <= 51_200
    assert isinstance((await harness.events())[-1], ToolSucceeded)


async def test_output_is_live_and_never_stored(harness: Harness) -> None:
    """E-28: listeners get every piece, also the last one. A flood is cut."""
    reporter = await call_reporting_tool(harness)
    deltas = harness.eventlog.deltas
    assert isinstance(deltas, MemoryDeltas)
    async with run_worker(harness.worker()):
        await wait_until(lambda: bool(reporter.contexts))
        say = reporter.contexts[-1].emit_output
        await say("one")
        await wait_until(lambda: len(deltas.sent) == 1)
        for _ in range(1000):
            await say("x" * 1000)
        await say("the end")
        reporter.opened.set()
        await wait_until(lambda: not harness.jobs)

    sent = [delta for _at, delta in deltas.sent]
    assert all(isinstance(delta, ToolOutputDelta) and delta.call_id == "call_1" for delta in sent)
    text = "".join(delta.delta for delta in sent if isinstance(delta, ToolOutputDelta))
    assert text.startswith("one")
    assert text.endswith("xthe end")
    assert SKIPPED in text
    assert len(text) < 40_000
