"""The Python client against a whole stack whose processes are killed, paused and restarted."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from fairlead_client import AsyncFairlead, Fairlead, PromptFailed, ReceivedEvent
from fairlead_schema.errors import SessionNotFound
from fairlead_testing.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

HANG_S = 90
EXAMPLES = Path(__file__).parents[2] / "examples/client"
SLOW = "[[sim: chunks=40 delay_ms=50]]"
WORDS = 40


@pytest_asyncio.fixture(loop_scope="module")
async def fairlead(up: Stack) -> AsyncIterator[AsyncFairlead]:
    async with AsyncFairlead(up.up.http, token=up.up.state.token, patience_s=HANG_S) as client:
        yield client


async def collect(fairlead: AsyncFairlead, session: str, taken: list[ReceivedEvent]) -> None:
    """Everything that a session says until its step ends."""
    async for event in fairlead.follow(session, after=0):
        taken.append(event)
        if event.type == "step.ended":
            return


def fragments(taken: list[ReceivedEvent]) -> dict[str, str]:
    """The text of the fragments of each message."""
    texts: dict[str, str] = {}
    for event in taken:
        if event.type == "text.delta":
            message = event.data["assistantMessageID"]
            texts[message] = texts.get(message, "") + event.data["delta"]
    return texts


async def until_text(taken: list[ReceivedEvent], *, from_: int = 0) -> None:
    """Wait until an answer is under way."""
    async with asyncio.timeout(HANG_S):
        while not any(event.type == "text.delta" for event in taken[from_:]):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("process", "sig"),
    [
        ("gateway", signal.SIGKILL),
        ("gateway", signal.SIGTERM),
        ("nats", signal.SIGKILL),
        ("runner", signal.SIGKILL),
    ],
)
async def test_an_answer_survives_the_death_of_a_process_in_the_middle(
    up: Stack, fairlead: AsyncFairlead, process: str, sig: signal.Signals
) -> None:
    """H-30: a follower gets every event once and in order, and no word twice; `ask` gets the answer."""
    session = (await fairlead.create()).id
    taken: list[ReceivedEvent] = []
    async with asyncio.timeout(HANG_S), asyncio.TaskGroup() as group:
        group.create_task(collect(fairlead, session, taken))
        asking = group.create_task(fairlead.ask(session, SLOW))
        await until_text(taken)
        for index in range(2 if process == "runner" else 1):
            up.up.kill(process, index, sig)

    answer = asking.result()
    seqs = [event.seq for event in taken if event.seq is not None]
    log = [event async for event in fairlead.events(session, with_notices=True)]
    assert seqs == [event.seq for event in log][: len(seqs)]
    whole = {
        event.data["assistantMessageID"]: event.data["text"]
        for event in log
        if event.type == "text.ended"
    }
    assert whole[answer.message_id].startswith(fragments(taken)[answer.message_id])
    assert len(answer.text.split()) == WORDS
    await up.up.wait_ready()


async def test_a_prompt_to_a_gateway_that_is_away_or_paused_is_admitted_once(
    up: Stack, fairlead: AsyncFairlead
) -> None:
    """A-14: nobody knows what the dead gateway did, so the same prompt is sent again."""
    session = (await fairlead.create()).id
    async with asyncio.timeout(HANG_S):
        up.up.kill("gateway", 0, signal.SIGKILL)
        first = await fairlead.prompt(session, "One", resume=False)
        await up.up.wait_ready()
        up.up.kill("gateway", 0, signal.SIGSTOP)
        sending = asyncio.create_task(fairlead.prompt(session, "Two", resume=False))
        await asyncio.sleep(0.2)
        up.up.kill("gateway", 0, signal.SIGCONT)
        second = await sending

    assert [receipt.id for receipt in await fairlead.pending(session)] == [first.id, second.id]


async def test_a_session_that_is_erased_while_it_is_followed_ends_the_stream(
    fairlead: AsyncFairlead,
) -> None:
    session = (await fairlead.create()).id

    async def erase() -> None:
        await fairlead.request("DELETE", f"/api/session/{session}", params={"purge": "true"})

    async def follow() -> None:
        async for event in fairlead.follow(session, after=0):
            if event.type == "session.created":
                await erase()

    async with asyncio.timeout(HANG_S):
        with pytest.raises(SessionNotFound):
            await follow()


async def test_an_interrupted_prompt_is_raised_as_failed(
    fairlead: AsyncFairlead,
) -> None:
    session = (await fairlead.create()).id
    taken: list[ReceivedEvent] = []
    following = asyncio.create_task(collect(fairlead, session, taken))
    asking = asyncio.create_task(fairlead.ask(session, SLOW, timeout_s=HANG_S))
    await until_text(taken)
    await fairlead.interrupt(session)

    with pytest.raises(PromptFailed, match="interrupted"):
        await asking
    following.cancel()
    await asyncio.wait({following})


async def test_the_synchronous_client_does_the_same(up: Stack) -> None:
    def converse() -> tuple[str, int, bytes]:
        with Fairlead(up.up.http, token=up.up.state.token) as fairlead:
            session = fairlead.create()
            text = fairlead.ask(session, "Say hello", timeout_s=HANG_S).text
            fairlead.wait(session, timeout_s=HANG_S)
            events = sum(1 for _event in fairlead.events(session))
            return text, events, b"".join(fairlead.export(session))

    text, events, export = await asyncio.to_thread(converse)

    assert text == "You said: Say hello"
    assert events == 6
    assert export.startswith(b'{"fairlead":"export"')


@pytest.mark.parametrize(
    ("example", "printed"),
    [
        ("ask", "You said: Say hello"),
        ("follow", "ended at "),
        ("approve", "permitting "),
        ("structured", "City x 0"),
    ],
)
async def test_an_example_runs(up: Stack, example: str, printed: str) -> None:
    token = up.up.state.token.read_text().strip()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        EXAMPLES / f"{example}.py",
        env={"FAIRLEAD_HTTP": up.up.http, "FAIRLEAD_TOKEN": token},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), HANG_S)

    assert process.returncode == 0, errors.decode()
    assert printed in output.decode()
