"""Every program of `examples/`, and every command of the NATS guide, against one stack."""

import asyncio
import json
import os
import re
import shlex
import shutil
import sqlite3
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import nats
import pytest
import pytest_asyncio
from nats.aio.client import Client

from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_testing.session_driver import events_of, say, wait_until_settled
from fairlead_testing.stack import Stack, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]

ROOT = Path(__file__).parents[2]
CLIENTS = (ROOT / "docs/guide/clients.md").read_text()
GUIDE = (ROOT / "docs/guide/nats.md").read_text()
COMMANDS = [
    shlex.split(line.removeprefix("$ fl ")) for line in re.findall(r"(?m)^\$ fl .*$", GUIDE)
]
ALLOW = '[agent.build]\npermissions = [{ action = "*", resource = "*", effect = "allow" }]\n'
SUMS = "SELECT session, COUNT(*), SUM(tokens) FROM charge GROUP BY session"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """A stack whose agent may call every tool."""
    place = tmp_path_factory.mktemp("stack")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    (place / "fairlead.toml").write_text(ALLOW)
    async with stack(place / "state", config=place / "fairlead.toml", sim=True) as running:
        yield running


def environment(up: Stack) -> dict[str, str]:
    """Where a program finds the stack, and its keys."""
    local = up.up.local_client
    return {
        "FAIRLEAD_HTTP": up.up.http,
        "FAIRLEAD_TOKEN": up.up.token or "",
        "FAIRLEAD_NATS_URL": local.url,
        "FAIRLEAD_NATS_NKEY_FILE": str(local.nkey_file),
    }


def run_example(up: Stack, name: str, *args: str) -> AbstractAsyncContextManager[Process]:
    """A program of the examples."""
    return run_program(up, sys.executable, str(ROOT / "examples" / name), *args)


async def read_line(process: Process, start: str) -> str:
    """The next line of a program that begins so."""
    assert process.stdout is not None
    async with asyncio.timeout(60):
        while line := (await process.stdout.readline()).decode():
            if line.startswith(start):
                return line.removeprefix(start).strip()
    raise AssertionError(f"the program ended before it said {start}")


async def test_the_faststream_application_publishes_orders_and_reads_typed_answers(
    up: Stack,
) -> None:
    """A-23: the prompts go through the durable intake, the answers come from the feed.

    An event that a handler cannot take is put back, and the events behind it go on.
    """
    async with run_example(up, "faststream_app.py", "How many anchors?") as process:
        session = await read_line(process, "published")
        answer = await read_line(process, f"answer {session}")
        log = await wait_until_settled(up, session)

    assert answer == events_of(log, "text.ended")[0].text
    await publish_unreadable(up, session)
    async with run_example(up, "faststream_app.py", "And ropes?") as process:
        failures = [await read_line(process, "failed evt_unreadable") for _ in range(2)]
        assert [failure[0] for failure in failures] == ["1", "2"]
    async with run_example(up, "faststream_app.py", "And sails?") as process:
        later = await read_line(process, "published")
        assert "And sails?" in await read_line(process, f"answer {later}")


async def publish_unreadable(up: Stack, session: str) -> None:
    """An event without what its type promises, in the feed."""
    async with open_link(up.up.operator, name="test") as link:
        subject = f"fairlead.event.default.{session}.text.ended"
        attributes = {"id": "evt_unreadable", "type": "session.next.text.ended", "subject": session}
        headers = {f"ce-{name}": value for name, value in attributes.items()}
        await link.client.jetstream().publish(subject, b'{"data": {}}', headers=headers)


async def test_billing_counts_each_event_once_through_stops_kills_and_a_second_reading(
    up: Stack, tmp_path: Path
) -> None:
    """Stopped, killed before it could charge, and with the whole feed again: the sums are the log's."""
    database = tmp_path / "billing.db"
    expected: dict[str, tuple[int, int]] = {}

    async def spend() -> None:
        session = await up.session()
        await say(up, session, "hello")
        expected[session] = charges_of(await wait_until_settled(up, session))

    async with run_example(up, "billing.py", str(database), "--again") as process:
        await read_line(process, "ready")
        await spend()
        await until_billed(database, expected)
        process.terminate()
        assert await process.wait() == 0
    await spend()
    async with run_example(up, "billing.py", str(database)) as process:
        await until_billed(database, expected)
        with sqlite3.connect(database) as held:
            # While another one writes, the program has events, and can neither charge nor acknowledge.
            held.execute("BEGIN IMMEDIATE")
            await spend()
            await until_held(up)
            process.kill()
            await process.wait()
        held.close()
    assert not expected.items() <= read_sums(database).items()

    async with run_example(up, "billing.py", str(database), "--again"):
        await until_billed(database, expected)
    assert all(count for count, _tokens in expected.values())


async def until_held(up: Stack) -> None:
    """Wait until a program holds events of the feed, and acknowledges none of them."""
    async with connect_as_guided(up) as client, asyncio.timeout(60):
        held = 0
        while True:
            info = await client.jetstream().consumer_info("EVENTS", "feed-default-local")
            if held and info.num_ack_pending == held:
                return
            held = info.num_ack_pending or 0
            await asyncio.sleep(0.2)


def charges_of(log: list[Any]) -> tuple[int, int]:
    ended = events_of(log, "step.ended")
    return len(ended), sum(event.tokens.input + event.tokens.output for event in ended)


def read_sums(database: Path) -> dict[str, tuple[int, int]]:
    with sqlite3.connect(database) as charges:
        rows = charges.execute(SUMS).fetchall()
    charges.close()
    return {session: (count, tokens) for session, count, tokens in rows}


async def until_billed(database: Path, expected: dict[str, tuple[int, int]]) -> None:
    async with asyncio.timeout(60):
        while not expected.items() <= read_sums(database).items():
            await asyncio.sleep(0.1)


async def test_the_tool_of_another_service_answers_the_model(up: Stack) -> None:
    session = await up.session()
    async with run_example(up, "stock_tool.py") as process:
        await read_line(process, '{"data"')
        call = """[[sim: tool=stock args='{"article": "anchor"}' ; answer=ok]] go"""
        await say(up, session, call)
        log = await wait_until_settled(up, session)

    (done,) = events_of(log, "tool.succeeded")
    assert done.structured == {"article": "anchor", "count": 7}
    await up.ask("tool.unregister", {"name": "stock"})


async def test_the_context_source_of_another_service_tells_every_model(up: Stack) -> None:
    session = await up.session()
    async with run_example(up, "shift_source.py", "day") as process:
        await read_line(process, '{"data"')
        await say(up, session, "hello")
        await wait_until_settled(up, session)
    async with run_example(up, "shift_source.py", "night") as process:
        await read_line(process, '{"data"')
        await say(up, session, "hello")
        log = await wait_until_settled(up, session)

    assert [event.text for event in events_of(log, "context.updated")] == [
        "Now the night shift works."
    ]
    await up.ask("source.remove", {"key": "acme/shift"})


async def test_every_command_of_the_guide_is_granted_and_answered(up: Stack) -> None:
    """The subjects and bodies of the guide, sent with the key that the guide names."""
    async with connect_as_guided(up) as client:
        for command in COMMANDS:
            await run_command(client, *command)
        assert client.last_error is None
    assert len(COMMANDS) == 14


@asynccontextmanager
async def connect_as_guided(up: Stack) -> AsyncIterator[Client]:
    """A connection with the key and the inbox of the guide."""
    local = up.up.local_client
    client = await nats.connect(
        local.url, nkeys_seed=str(local.nkey_file), inbox_prefix="_INBOX_local"
    )
    try:
        yield client
    finally:
        await client.close()


async def run_command(client: Client, *command: str) -> None:
    """One command of the guide, with the requests that the command line sends for it."""
    match command:
        case ("request", subject, body):
            reply = await ask_until_stored(client, subject, body.encode())
            answer = json.loads(reply)
            assert isinstance(answer, dict), reply
            assert "error" not in answer, (subject, answer)
        case ("consumer", "info", stream, consumer):
            await client.jetstream().consumer_info(stream, consumer)
        case ("consumer", "next", stream, consumer, "--count", count):
            feed = await client.jetstream().pull_subscribe("", durable=consumer, stream=stream)
            for _ in range(int(count)):
                [message] = await feed.fetch(1, timeout=20)
                assert message.headers is not None
                assert {"ce-id", "ce-type", "ce-subject"} <= set(message.headers)
                await message.ack()
        case ("subscribe" | "reply", subject, *_body):
            await client.subscribe(subject)
            await client.flush()
        case _:
            pytest.fail(f"no test for this command of the guide: {command}")


async def ask_until_stored(client: Client, subject: str, body: bytes) -> bytes:
    """Ask. A receipt comes a moment after its prompt was published."""
    async with asyncio.timeout(60):
        while True:
            reply = await client.request(subject, body, timeout=20, old_style=True)
            if reply.data:
                return reply.data
            await asyncio.sleep(0.05)


def program(language: str, marker: str) -> str:
    """The one program of the clients' guide that holds a word."""
    programs = re.findall(rf"(?ms)^```{language}\n(.*?)^```", CLIENTS)
    (found,) = [text for text in programs if marker in text]
    return str(found)


@asynccontextmanager
async def run_program(up: Stack, *command: str) -> AsyncIterator[Process]:
    """A program of the guide as a process, killed at the end."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **environment(up)},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_the_guides_python_service_gets_an_answer(up: Stack) -> None:
    async with run_program(up, sys.executable, "-c", program("python", "AsyncFairlead")) as process:
        assert await read_line(process, "You said:") == "Say hello"


async def test_the_guides_python_service_on_nats_follows_its_session(up: Stack) -> None:
    async with run_program(up, sys.executable, "-c", program("python", "over_nats")) as process:
        assert await read_line(process, "step.ended") == ""


async def test_the_guides_nats_consumer_reads_the_feed(up: Stack) -> None:
    async with run_program(up, sys.executable, "-c", program("python", "feed.open")) as process:
        session = await up.session()
        assert await read_line(process, f"session.created {session}") == ""


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs what browsers run")
async def test_the_guides_browser_reads_the_stream(up: Stack) -> None:
    session = await up.session()
    await say(up, session, "hello")
    prelude = (
        f"const url = {json.dumps(up.up.http)}, token = {json.dumps(up.up.token)};\n"
        f"const session = {json.dumps(session)}; let after = 0;\n"
        "const show = (event) => console.log(event.type, after);\n"
    )
    script = prelude + program("js", "TextDecoderStream")
    async with run_program(up, "node", "--input-type=module", "-e", script) as process:
        seq = int(await read_line(process, "session.next.text.ended"))
    log = await wait_until_settled(up, session)
    assert seq in {recorded.seq for recorded in log if recorded.event.type == "text.ended"}
