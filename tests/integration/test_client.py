"""The Python client against a whole stack whose processes are killed, paused and restarted."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from fairlead_client import AsyncFairlead, Fairlead, NatsLogin, PromptFailed, ReceivedEvent
from fairlead_schema.errors import SessionNotFound
from fairlead_testing.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

HANG_S = 90
EXAMPLES = Path(__file__).parents[2] / "examples/client"
SLOW = "[[sim: chunks=40 delay_ms=50]]"
WORDS = 40


def login(up: Stack) -> NatsLogin:
    """The local principal of the stack."""
    local = up.up.local_client
    assert local.nkey_file is not None
    return NatsLogin(local.url, nkey_file=Path(local.nkey_file))


def connect(up: Stack, transport: str, *, patience_s: float = HANG_S) -> AsyncFairlead:
    """The asynchronous client over one of the two ways."""
    if transport == "nats":
        return AsyncFairlead.over_nats(login(up), patience_s=patience_s)
    return AsyncFairlead(up.up.http, token=up.up.state.token, patience_s=patience_s)


@pytest.fixture(params=["http", "nats"])
def transport(request: pytest.FixtureRequest) -> str:
    """Every test that uses it runs over HTTP and over NATS."""
    return str(request.param)


@pytest_asyncio.fixture(loop_scope="module")
async def fairlead(up: Stack, transport: str) -> AsyncIterator[AsyncFairlead]:
    async with connect(up, transport) as client:
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
    ("transport", "process", "sig"),
    [
        ("http", "gateway", signal.SIGKILL),
        ("http", "gateway", signal.SIGTERM),
        ("http", "nats", signal.SIGKILL),
        ("http", "runner", signal.SIGKILL),
        ("nats", "ingest", signal.SIGKILL),
        ("nats", "ingest", signal.SIGTERM),
        ("nats", "nats", signal.SIGKILL),
        pytest.param("nats", "projector", signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
async def test_an_answer_survives_the_death_of_a_process_in_the_middle(
    up: Stack, transport: str, process: str, sig: signal.Signals
) -> None:
    """H-30: a follower gets every event once and in order, and no word twice; `ask` gets the answer."""
    taken: list[ReceivedEvent] = []
    async with connect(up, transport) as fairlead:
        session = (await fairlead.create()).id
        async with asyncio.timeout(HANG_S), asyncio.TaskGroup() as group:
            group.create_task(collect(fairlead, session, taken))
            asking = group.create_task(fairlead.ask(session, SLOW))
            await until_text(taken)
            for index in range(2 if process == "runner" else 1):
                up.up.kill(process, index, sig)
        log = [event async for event in fairlead.events(session, with_notices=True)]

    answer = asking.result()
    check_taken(taken, log, answer.message_id)
    assert len(answer.text.split()) == WORDS
    await up.up.wait_ready()


def check_taken(taken: list[ReceivedEvent], log: list[ReceivedEvent], message_id: str) -> None:
    """A follower has the beginning of the log, and the fragments are the beginning of the text."""
    seqs = [event.seq for event in taken if event.seq is not None]
    assert seqs == [event.seq for event in log][: len(seqs)]
    whole = {
        event.data["assistantMessageID"]: event.data["text"]
        for event in log
        if event.type == "text.ended"
    }
    assert whole[message_id].startswith(fragments(taken).get(message_id, ""))


@pytest.mark.parametrize(
    ("transport", "process"),
    [("http", "gateway"), ("nats", "ingest"), ("http", "nats"), ("nats", "nats")],
)
async def test_a_prompt_to_a_server_that_is_away_or_paused_is_admitted_once(
    up: Stack, transport: str, process: str
) -> None:
    """A-14: nobody knows what the dead process did, so the same prompt is sent again."""
    async with connect(up, transport) as fairlead, asyncio.timeout(HANG_S):
        session = (await fairlead.create()).id
        up.up.kill(process, 0, signal.SIGKILL)
        first = await fairlead.prompt(session, "One", resume=False)
        await up.up.wait_ready()
        up.up.kill(process, 0, signal.SIGSTOP)
        sending = asyncio.create_task(fairlead.prompt(session, "Two", resume=False))
        await asyncio.sleep(0.2)
        up.up.kill(process, 0, signal.SIGCONT)
        second = await sending
        pending = [receipt.id for receipt in await fairlead.pending(session)]

    assert pending == [first.id, second.id]


@pytest.mark.parametrize("process", [pytest.param("nats", marks=pytest.mark.slow), "ingest"])
async def test_every_command_outlives_a_server_that_dies(
    up: Stack, fairlead: AsyncFairlead, process: str
) -> None:
    """Create, prompt, read, wait, list, withdraw, interrupt and erase, each sent to a dead server."""
    session, doomed = (await fairlead.create()).id, await fairlead.create()
    await fairlead.ask(session, "Say hello", timeout_s=HANG_S)
    kept = await fairlead.prompt(session, "Later", resume=False)
    async with asyncio.timeout(HANG_S):
        up.up.kill(process, 0, signal.SIGKILL)
        created, receipt, types, *_ = await asyncio.gather(
            fairlead.create(),
            fairlead.prompt(session, "And now?", resume=False),
            event_types(fairlead, session),
            fairlead.interrupt(session),
            fairlead.get(session),
            fairlead.permissions(session),
        )
        pending = {waiting.id for waiting in await fairlead.pending(session)}
        await up.up.wait_ready()
        up.up.kill(process, 0, signal.SIGKILL)
        await asyncio.gather(
            fairlead.wait(created), fairlead.cancel(session, kept.id), fairlead.erase(doomed)
        )
        left = {waiting.id for waiting in await fairlead.pending(session)}
    await up.up.wait_ready()

    assert pending == {kept.id, receipt.id}
    assert left == {receipt.id}
    assert types.count("step.ended") == 1


async def event_types(fairlead: AsyncFairlead, session: str) -> list[str]:
    return [event.type async for event in fairlead.events(session)]


async def test_a_session_that_is_erased_while_it_is_followed_ends_the_stream(
    fairlead: AsyncFairlead,
) -> None:
    session = (await fairlead.create()).id

    async def follow() -> None:
        async for event in fairlead.follow(session, after=0):
            if event.type == "session.created":
                await fairlead.erase(session)

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


QUESTION = {"questions": [{"question": "Which?", "header": "Which", "options": []}]}


async def test_a_person_approves_and_answers(fairlead: AsyncFairlead) -> None:
    """The asks of a session come as events, and their answers let it go on."""
    read = '[[sim: tool=read args=\'{"path":"/etc/hostname"}\' ; answer=done]] go'
    question = f"[[sim: tool=question args='{json.dumps(QUESTION)}' ; answer=known]] go"
    async with asyncio.timeout(HANG_S):
        session = await fairlead.create()
        asking = asyncio.create_task(fairlead.ask(session, read))
        await until_asked(fairlead, session.id, "permission.v2.asked")
        (request,) = await fairlead.permissions(session)
        await fairlead.approve(request)
        assert (await asking).text == "done"
        asking = asyncio.create_task(fairlead.ask(session, question))
        await until_asked(fairlead, session.id, "question.v2.asked")
        (ask,) = await fairlead.questions(session)
        await fairlead.answer(ask, [["blue"]])
        assert (await asking).text == "known"


async def until_asked(fairlead: AsyncFairlead, session: str, type_: str) -> None:
    async for event in fairlead.follow(session, after=0):
        if event.type == type_:
            return


async def test_both_ways_show_the_same_session(up: Stack) -> None:
    """Events, explanation, session and export are the same over HTTP and over NATS."""
    async with connect(up, "http") as http, connect(up, "nats") as nats:
        session = await http.create()
        await nats.ask(session, "Say hello", timeout_s=HANG_S)
        await http.ask(session, "And again", delivery="queue", timeout_s=HANG_S)
        await http.wait(session)
        await nats.wait(session)
        seen = [
            [
                [event async for event in fairlead.events(session, with_notices=True)],
                await fairlead.explain(session),
                await fairlead.get(session),
                [line async for line in export_lines(fairlead, session.id)],
            ]
            for fairlead in (http, nats)
        ]

    assert seen[0] == seen[1]


async def export_lines(fairlead: AsyncFairlead, session: str) -> AsyncIterator[bytes]:
    """The lines of the commits. The first line names its time, and the last ones hash it."""
    whole = b"".join([piece async for piece in fairlead.export(session, tree=True)])
    lines = whole.splitlines()
    assert lines[0].startswith(b'{"fairlead":"export"')
    assert lines[-1].startswith(b'{"end":{"sessions":1,')
    for line in lines[1:-2]:
        yield line


async def test_the_synchronous_client_does_the_same(up: Stack, transport: str) -> None:
    def converse() -> tuple[str, int, bytes]:
        synchronous = (
            Fairlead.over_nats(login(up))
            if transport == "nats"
            else Fairlead(up.up.http, token=up.up.state.token)
        )
        with synchronous as fairlead:
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
