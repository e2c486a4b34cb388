"""The auditor as a process, with a key that only reads: it names a session whose log was damaged."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.ports import START, Head
from fairlead_eventlog.provision import provision
from fairlead_schema import subjects
from fairlead_schema.events import ExecutionClaimed, SessionEvent, ToolSucceeded
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.exports import PARENT, created, parent_life
from fairlead_testing.nats import Server, run_guarded_server

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

AT = Address("default", PARENT)
TIMEOUT_S = 60.0


@dataclass
class AuditProcess:
    """A running `fairlead audit`: its metrics over HTTP, its lines in a file."""

    port: int
    log: Path

    async def wait_for(self, line: str, count: float) -> str:
        """Wait until a line of the metrics has a value, and return all of them."""
        async with asyncio.timeout(TIMEOUT_S), httpx.AsyncClient(trust_env=False) as http:
            while True:
                try:
                    text = (await http.get(f"http://127.0.0.1:{self.port}/metrics")).text
                except httpx.TransportError:
                    text = ""
                found = re.search(rf"^{re.escape(line)} (\S+)$", text, re.MULTILINE)
                if found and float(found[1]) >= count:
                    return text
                await asyncio.sleep(0.05)

    def violations(self) -> set[tuple[str, str]]:
        """The rule and the session of every error line."""
        lines = (json.loads(line) for line in self.log.read_text().splitlines() if line[:1] == "{")
        return {(line["rule"], line["session_id"]) for line in lines if "rule" in line}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyDirectory:
    directory = KeyDirectory(tmp_path_factory.mktemp("nats") / "keys")
    directory.write(())
    return directory


@pytest.fixture(scope="module")
def server(keys: KeyDirectory) -> Iterator[Server]:
    with run_guarded_server(keys) as running:
        yield running


@asynccontextmanager
async def run_audit(server: Server, keys: KeyDirectory, log: Path) -> AsyncIterator[AuditProcess]:
    port = free_port()
    address = keys.service_address(server.url, "audit")
    env = {"FAIRLEAD_NATS_URL": address.url, "FAIRLEAD_NATS_NKEY_FILE": str(address.nkey_file)}
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fairlead_cli", "audit", "--port", str(port)),
            env={**os.environ, **env},
            stdout=output,
            stderr=output,
            cwd=log.parent,
        )
    try:
        yield AuditProcess(port, log)
    finally:
        process.terminate()
        await process.wait()


async def append(eventlog: EventLog, at: Address, events: tuple[SessionEvent, ...]) -> None:
    """Write a commit behind the last one of its session, whatever it says."""
    head: Head = await eventlog.log.head(at)
    drafts = tuple(Draft(ids.event_id(), 1, event) for event in events)
    await eventlog.log.append(at, ids.commit_id(), drafts, after=head if head.seq else START)


async def write_life(eventlog: EventLog, at: Address) -> ToolSucceeded:
    """A life that keeps the rules; the answer is a settlement in it."""
    settled: list[ToolSucceeded] = []
    for _by, events in parent_life():
        await append(eventlog, at, events)
        settled += [event for event in events if isinstance(event, ToolSucceeded)]
    return settled[0]


async def test_a_damaged_log_is_counted_by_rule_and_the_session_is_named(
    server: Server, keys: KeyDirectory, tmp_path: Path
) -> None:
    """A forged commit and a doubled settlement in a live log; an untouched session stays unnamed."""
    await provision(keys.service_address(server.url, "provision"))
    forged, whole = Address("default", "ses_forged"), Address("default", "ses_whole")
    operator = keys.service_address(server.url, "operator")
    metric = 'fairlead_audit_violations_total{rule="%s"}'
    async with (
        connect(operator, name="test") as eventlog,
        open_link(operator, name="test") as vandal,
        run_audit(server, keys, tmp_path / "audit.log") as audit,
    ):
        await audit.wait_for("fairlead_audit_lag_commits", 0)
        settled = await write_life(eventlog, AT)
        await append(eventlog, whole, (created(),))
        await append(eventlog, forged, (created(),))
        text = await audit.wait_for("fairlead_audit_commits_total", len(parent_life()) + 2)
        assert "fairlead_audit_violations_total{" not in text

        await append(eventlog, AT, (settled,))
        await append(eventlog, forged, (ExecutionClaimed(generation=1, runner="run_a"),))
        stream = f"LOG-{subjects.shard(forged.session_id)}"
        last = await vandal.last_message(stream, subjects.log(forged))
        assert last is not None
        payload = last.payload.replace(b"run_a", b"run_b").replace(b'"seq":2', b'"seq":3')
        await vandal.store(subjects.log(forged), payload)

        await audit.wait_for(metric % "settled-once", 1)
        await audit.wait_for(metric % "checksum", 1)
    named = audit.violations()
    assert ("settled-once", PARENT) in named
    assert ("checksum", "ses_forged") in named
    assert {session for _rule, session in named} == {PARENT, "ses_forged"}


async def test_what_happens_while_no_auditor_runs_is_verified_by_the_next(
    server: Server, keys: KeyDirectory, tmp_path: Path
) -> None:
    await provision(keys.service_address(server.url, "provision"))
    at = Address("default", "ses_meanwhile")
    operator = keys.service_address(server.url, "operator")
    async with connect(operator, name="test") as eventlog:
        async with run_audit(server, keys, tmp_path / "first.log") as audit:
            await append(eventlog, at, (created(),))
            await audit.wait_for("fairlead_audit_commits_total", 1)
        for _ in range(2):
            await append(eventlog, at, (ExecutionClaimed(generation=1, runner="run_a"),))

        async with run_audit(server, keys, tmp_path / "second.log") as audit:
            await audit.wait_for('fairlead_audit_violations_total{rule="generation"}', 1)

    assert ("generation", "ses_meanwhile") in audit.violations()
