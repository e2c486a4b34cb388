"""A purge of a session and of a tenant leaves nothing of them anywhere, and everything of the others."""

import asyncio
import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from fairlead_cli.embedded.running_stack import RunningStack
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.streams import STREAMS
from fairlead_schema import subjects
from fairlead_schema.subjects import Address
from fairlead_testing.stack import TIMEOUT_S, Stack, stack

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

CONFIG = """
[runner]
snapshot_events = 2

[[agent.build.permissions]]
action = "*"
resource = "*"
effect = "allow"
"""
TENANT = "acme"


async def command(up: Stack, *arguments: str) -> tuple[int, str, str]:
    """Run `fairlead` as a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", *arguments),
        *("--state", str(up.up.state.root), "--json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(TIMEOUT_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def live(up: Stack, tenant: str, word: str) -> str:
    """A session with everything that a session can leave behind, each with the word."""
    created = await up.ask("session.create", {}, tenant=tenant)
    session = str(created["data"]["id"])
    at = Address(tenant, session)
    run = f"echo {word}; seq 1 200000"
    args = json.dumps({"command": run}).replace("'", "")
    text = f"[[sim: tool=bash args='{args}' ; answer='{word} done']] {word}"
    body = {"sessionID": session, "prompt": {"text": text}}
    assert "error" not in await up.ask("session.prompt", body, tenant=tenant)
    await up.until(session, "step.ended", count=2, tenant=tenant)
    await up.until(session, "execution.released", tenant=tenant)
    # A prompt that ingest refuses leaves a receipt, and rubbish a dead letter.
    await up.eventlog.work.put(subjects.prompt(at), f"{word} is no prompt".encode())
    await up.eventlog.dead_letters.add("prompt", subjects.prompt(at), word.encode(), word)
    await up.eventlog.receipts.store(at, "msg_own", json.dumps({"text": word}).encode())
    await up.eventlog.message_ids.bind(tenant, f"msg_{word}", session)
    return session


async def find_word(up: RunningStack, word: str) -> list[str]:
    """Every stream, table and file below the state that has a word."""
    needle = word.encode()
    found: list[str] = []
    async with open_link(up.operator, name="test-grep") as link:
        for spec in STREAMS:
            position = 1
            while (message := await link.next_message(spec.name, position)) is not None:
                if needle in message.payload or word in message.subject:
                    found.append(f"{spec.name}: {message.subject}")
                position = message.sequence + 1
    with psycopg.connect(up.postgres_admin) as connection:
        for schema, table in connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname = 'projection'"
        ).fetchall():
            statement = sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(schema, table))
            with connection.cursor().copy(statement) as rows:
                if needle in b"".join(bytes(row) for row in rows):
                    found.append(f"{schema}.{table}")
    # The stores of the servers keep bytes of removed messages and rows until they are compacted.
    own = [path for path in up.state.root.rglob("*") if path.is_file()]
    servers = (up.state.nats, up.state.postgres)
    return found + [
        str(path)
        for path in own
        if not any(path.is_relative_to(server) for server in servers)
        and needle in path.read_bytes()
    ]


async def test_a_purge_leaves_nothing_of_a_session_or_a_tenant(tmp_path: Path) -> None:
    """Planted words are in every store before, and in none after; the neighbours keep theirs."""
    config = tmp_path / "fairlead.toml"
    config.write_text(CONFIG)
    async with stack(tmp_path / "state", sim=True, solo=True, config=config) as up:
        one, kept = await live(up, "default", "plantedone"), await live(up, "default", "kepttwo")
        others = [await live(up, TENANT, "plantedthree") for _ in range(2)]
        before = " ".join(await find_word(up.up, "plantedone"))
        for store in ("LOG-", "EVENTS", "RECEIPTS", "DEAD", "OBJ_fairlead-output", "projection."):
            assert store in before, f"{store} has nothing to purge: {before}"
        whole = await find_word(up.up, "kepttwo")

        code, out, err = await command(up, "purge", one, "--dry-run")
        assert (code, json.loads(out)["sessions"]) == (0, 1), err
        code, _, err = await command(up, "purge", one)
        assert (code, "--confirm" in err) == (1, True)
        assert " ".join(await find_word(up.up, "plantedone")) == before
        code, _, err = await command(up, "purge", one, "--confirm", one)
        assert code == 0, err
        left = await find_word(up.up, "plantedone")
        assert left == [f"MESSAGES: {subjects.message('default', 'msg_plantedone')}"]

        code, out, err = await command(
            up, "purge", "--all", "--tenant", TENANT, "--confirm", TENANT
        )
        assert code == 0, err
        assert json.loads(out)["purged"] == len(others)
        assert await find_word(up.up, "plantedthree") == []
        assert await find_word(up.up, "kepttwo") == whole
        answer = await up.http.get(f"/api/session/{kept}/message")
        assert "kepttwo" in answer.text
        code, _, err = await command(up, "purge", "--all", "--tenant", "nobody", "--confirm", "x")
        assert (code, "nothing of tenant" in err) == (1, True)


async def test_a_purge_that_was_killed_goes_on(tmp_path: Path) -> None:
    """SIGKILL at many moments: the same command ends with nothing left."""
    config = tmp_path / "fairlead.toml"
    config.write_text(CONFIG)
    async with stack(tmp_path / "state", sim=True, solo=True, config=config) as up:
        for _ in range(4):
            await live(up, TENANT, "plantedword")
        killed = [await kill_purge(up, lines, 0.0) for lines in range(1, 5)]
        killed += [await kill_purge(up, 1, later_s) for later_s in (0.02, 0.05, 0.1, 0.2)]
        assert any(killed), "a kill met the command at work"
        await wait_for_purge(up)
        assert await find_word(up.up, "plantedword") == []


async def kill_purge(up: Stack, lines: int, later_s: float) -> bool:
    """Kill the command a moment after it printed so many lines. False: it was done before."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", "purge", "--all", "--tenant", TENANT),
        *("--confirm", TENANT, "--state", str(up.up.state.root)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    async with asyncio.timeout(TIMEOUT_S):
        while lines and await process.stderr.readline():
            lines -= 1
        await asyncio.sleep(later_s)
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        return await process.wait() == -signal.SIGKILL


async def wait_for_purge(up: Stack) -> None:
    arguments: tuple[Any, ...] = ("purge", "--all", "--tenant", TENANT, "--confirm", TENANT)
    code, _, err = await command(up, *arguments)
    assert code == 0, err
