"""A machine that slept: the program stands still while its token ends and its connection dies."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copyfile
from subprocess import run
from typing import Any

import pytest

from fairlead_client import ReceivedEvent
from fairlead_eventlog.grants.tenants import principal_key
from fairlead_schema.identity.principal import LOCAL
from fairlead_testing.stack import Stack
from fairlead_testing.terminal import Terminal

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

FAIRLEAD = str(Path(sys.executable).with_name("fairlead"))
HANG_S = 120
SLOW = "[[sim: chunks=60 delay_ms=50]]"
FOLLOWER = """
import asyncio, json, sys
from pathlib import Path
from fairlead_client import AsyncFairlead, NatsLogin

def connect(url, proof):
    if url.startswith("nats"):
        return AsyncFairlead.over_nats(NatsLogin(url, nkey_file=proof), patience_s=90)
    return AsyncFairlead(url, token=proof, patience_s=90)

async def main(url, proof, session):
    async with connect(url, Path(proof)) as fairlead:
        async for event in fairlead.follow(session, after=0):
            print(json.dumps([event.seq, event.type, event.data]), flush=True)

print("loaded", flush=True)
asyncio.run(main(sys.stdin.readline().strip(), *sys.argv[1:]))
"""


def make_key(up: Stack, *options: str) -> str:
    command = [FAIRLEAD, "token", "create", "--role", "user", "--state", str(up.up.state.root)]
    return run([*command, *options], capture_output=True, text=True, check=True).stdout.strip()


def expiring_key(up: Stack, life_s: float) -> str:
    end = datetime.now(UTC) + timedelta(seconds=life_s)
    return make_key(up, "--expires", end.isoformat())


@asynccontextmanager
async def asleep(pid: int, sleep_s: float) -> AsyncIterator[None]:
    """Let a process stand still during the block, and for that long at least."""
    os.kill(pid, signal.SIGSTOP)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(sleep_s))
            yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Follower:
    """A program that follows a session, and what it was given."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.taken: list[tuple[int | None, str, dict[str, Any]]] = []

    async def take_until(self, type_: str, message_id: str | None = None) -> None:
        """Read on until an event of a type comes, perhaps that of one message."""
        assert self.process.stdout is not None
        while True:
            line = await self.process.stdout.readline()
            assert line, "the follower has ended"
            seq, taken_type, data = json.loads(line)
            self.taken.append((seq, taken_type, data))
            if taken_type == type_ and message_id in {None, data.get("assistantMessageID")}:
                return

    def check(self, log: list[ReceivedEvent]) -> None:
        """Every event once and in order, and fragments without a gap or a double."""
        seqs = [seq for seq, _type, _data in self.taken if seq is not None]
        assert seqs == [event.seq for event in log][: len(seqs)]
        parts: dict[str, str] = {}
        for _seq, type_, data in self.taken:
            id_ = data.get("assistantMessageID", "")
            if type_ == "text.delta":
                parts[id_] = parts.get(id_, "") + data["delta"]
            elif type_ == "text.ended":
                assert data["text"].startswith(parts.get(id_, ""))


def begin_proof(up: Stack, transport: str, proof: Path) -> str:
    """Write what proves the follower, and will not for long. The answer is the address that takes it."""
    if transport == "nats":
        copyfile(up.up.nats_keys.seed_file(principal_key(LOCAL)), proof)
        return up.up.nats
    proof.write_text(expiring_key(up, 5.0))
    return up.up.http


def renew_proof(up: Stack, transport: str, proof: Path) -> None:
    """Write what proves the follower from now on. Over NATS nothing else does any more."""
    if transport == "http":
        proof.write_text(make_key(up))
        return
    keys, name = up.up.nats_keys, principal_key(LOCAL)
    keys.rotate(name)
    keys.retire(name)
    keys.write((LOCAL,))
    up.up.kill("nats", 0, signal.SIGHUP)
    copyfile(keys.seed_file(name), proof)


@asynccontextmanager
async def following(
    up: Stack, transport: str, proof: Path, session: str
) -> AsyncIterator[Follower]:
    """A program that follows a session. Its proof begins when it is loaded, because it ends soon."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", FOLLOWER, str(proof), session),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**20,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"loaded\n"
        process.stdin.write(begin_proof(up, transport, proof).encode() + b"\n")
        yield Follower(process)
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize(
    ("transport", "sleep_s", "dies"),
    [
        pytest.param("http", 6.0, True, id="the gateway died meanwhile"),
        pytest.param("nats", 1.0, False, id="its key was revoked meanwhile"),
        pytest.param("nats", 6.0, True, id="its server died meanwhile", marks=pytest.mark.slow),
        pytest.param("http", 60.0, False, id="longer than any silence", marks=pytest.mark.slow),
        pytest.param("nats", 60.0, False, id="longer than any ping", marks=pytest.mark.slow),
    ],
)
async def test_a_follower_that_slept_misses_nothing_and_gets_nothing_twice(
    up: Stack, tmp_path: Path, transport: str, sleep_s: float, *, dies: bool
) -> None:
    """H-30: it wakes with a proof that has ended, in the middle of an answer, behind a whole turn."""
    proof = tmp_path / "proof"
    session = (await up.client.create()).id
    async with following(up, transport, proof, session) as follower, asyncio.timeout(HANG_S):
        await follower.take_until("session.created")
        await up.client.prompt(session, SLOW)
        await follower.take_until("text.delta")
        async with asleep(follower.process.pid, sleep_s):
            renew_proof(up, transport, proof)
            if dies:
                up.up.kill("nats" if transport == "nats" else "gateway", 0, signal.SIGKILL)
                await up.up.wait_ready()
            await up.client.ask(session, "While you slept.")
        last = await up.client.ask(session, "And now.")
        await follower.take_until("step.ended", last.message_id)

    log = [event async for event in up.client.events(session, with_notices=True)]
    follower.check(log)
    assert [type_ for _seq, type_, _data in follower.taken].count("step.ended") == 3


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_the_screen_of_a_session_that_slept_shows_what_happened_meanwhile(
    up: Stack, tmp_path: Path
) -> None:
    """H-30: no word twice, no line about the connection, and the next prompt goes out."""
    token = tmp_path / "token"
    token.write_text(expiring_key(up, 8.0))
    session = (await up.client.create(directory=str(tmp_path))).id
    options = ["--resume", session, "--token-file", str(token), "--http", up.up.http]
    command = [FAIRLEAD, "chat", *options]
    async with Terminal(command, cwd=tmp_path, env={"HOME": str(tmp_path)}) as terminal:
        await terminal.until("ready")
        terminal.send(SLOW)
        await terminal.until("word5 ")
        async with asleep(terminal.pid, 60.0):
            token.write_text(make_key(up))
            await up.client.ask(session, "While you slept.")

        shown = await terminal.until("word59", "You said: While you slept.", "ready")
        words = [word for word in shown.split() if word.startswith("word")]
        assert words == [f"word{number}" for number in range(60)]
        terminal.send("Still there?")
        await terminal.until("You said: Still there?", "ready")
