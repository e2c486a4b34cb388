"""Quotas of tenants through a whole stack: one tenant at its limit, the others undisturbed. B11, A12."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
import pytest_asyncio

from fairlead_schema import subjects
from fairlead_schema.commands.quota import QUOTAS, TenantUsageReport
from fairlead_schema.events import ToolSucceeded
from fairlead_schema.record import Recorded
from fairlead_schema.tools.content import TextContent
from fairlead_testing.stack import TIMEOUT_S, Stack, check_log, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

CONFIG = """
[[agent.build.permissions]]
action = "*"
resource = "*"
effect = "allow"

[location]
default = {work}

[tools]
probes = true

[tenant.sessions.quota]
sessions = 2

[tenant.bytes.quota]
log_bytes = 3000

[tenant.turns.quota]
turns = 2

[tenant.calls.quota]
calls = 2

[tenant.outputs.quota]
output_bytes = 1

[tenant.shared.quota.principal]
sessions = 2

[quota]
pending = 50
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    """A stack where each of some tenants has one small quota."""
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        config = write_config(place, CONFIG)
        async with stack(place / "state", config=config, sim=True, relaxed=True) as running:
            yield running


def write_config(place: Path, text: str) -> Path:
    place.chmod(0o755)
    (place / "work").mkdir()
    config = place / "fairlead.toml"
    config.write_text(text.format(work=json.dumps(str(place / "work"))))
    return config


async def open_session(up: Stack, tenant: str) -> str:
    created = await up.ask("session.create", {}, tenant=tenant)
    session_id: str = created["data"]["id"]
    return session_id


async def say(up: Stack, tenant: str, session_id: str, text: str) -> dict[str, Any]:
    body = {"sessionID": session_id, "prompt": {"text": text}}
    return await up.ask("session.prompt", body, tenant=tenant)


async def totals(up: Stack, tenant: str) -> dict[str, Any]:
    subject = subjects.tenant_usage(tenant)
    answer = await up.eventlog.requests.request(subject, b"{}", timeout_s=10)
    data: dict[str, Any] = orjson.loads(answer)["data"]
    return data


async def until_totals(up: Stack, tenant: str, **wanted: int) -> dict[str, Any]:
    """Wait until the projector counts so much."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            found = await totals(up, tenant)
            if {name: found[name] for name in wanted} == wanted:
                return found
            await asyncio.sleep(0.05)


def widest(logs: Iterable[list[Recorded]], begins: str, ends: str) -> int:
    """How many spans between two kinds of events were open at once over all sessions."""
    changes = sorted(
        (recorded.time, 1 if recorded.event.type == begins else -1)
        for log in logs
        for recorded in log
        if recorded.event.type in {begins, ends}
    )
    open_, most = 0, 0
    for _time, change in changes:
        open_ += change
        most = max(most, open_)
    return most


async def test_a_tenant_with_all_its_sessions_is_refused_until_it_deletes_one(up: Stack) -> None:
    """B11: the refusal names the quota, the other tenants create on, and a purge makes room."""
    first = await open_session(up, "sessions")
    await open_session(up, "sessions")

    refused = await up.ask("session.create", {}, tenant="sessions")
    await open_session(up, "others")

    error = refused["error"]
    assert (error["_tag"], error["kind"], error["field"]) == ("TooManyError", "Quota", "sessions")
    assert "2 of 2 sessions" in error["message"]
    await up.ask("session.delete", {"sessionID": first}, tenant="sessions")
    async with asyncio.timeout(TIMEOUT_S):
        while "error" in await up.ask("session.create", {}, tenant="sessions"):
            await asyncio.sleep(0.1)


async def test_a_principal_at_its_quota_leaves_room_for_the_others_of_its_tenant(
    up: Stack,
) -> None:
    """B11: the refusal says whose quota it is, services are exempt, and a purge makes room."""
    subject = subjects.api("shared", "session.create")

    async def create(by: str | None) -> dict[str, Any]:
        answer = await up.eventlog.requests.request(subject, b"{}", timeout_s=10, by=by)
        created: dict[str, Any] = orjson.loads(answer)
        return created

    first = (await create("key:ann"))["data"]["id"]
    await create("key:ann")
    refused = await create("key:ann")
    assert "data" in await create("key:bob")
    assert "data" in await create(None)

    error = refused["error"]
    assert (error["_tag"], error["kind"]) == ("TooManyError", "Quota")
    assert error["field"] == "principal.sessions"
    assert "The principal has 2 of 2 sessions" in error["message"]
    await until_totals(up, "shared", sessions=4)
    await up.ask("session.delete", {"sessionID": first}, tenant="shared")
    async with asyncio.timeout(TIMEOUT_S):
        while "error" in await create("key:ann"):
            await asyncio.sleep(0.1)


async def test_a_tenant_that_filled_its_part_of_the_log_is_refused_new_prompts(up: Stack) -> None:
    """B11: what was accepted is finished, and deleting does not refund what it cost (A12)."""
    session = await open_session(up, "bytes")
    assert "data" in await say(up, "bytes", session, "x" * 4000)
    await up.until(session, "step.ended", tenant="bytes")
    async with asyncio.timeout(TIMEOUT_S):
        while (await totals(up, "bytes"))["logBytes"] <= 4000:
            await asyncio.sleep(0.05)

    async with asyncio.timeout(TIMEOUT_S):
        while "data" in (refused := await say(up, "bytes", session, "more")):
            await asyncio.sleep(0.1)
    assert refused["error"]["field"] == "log_bytes"
    assert "data" in await say(up, "others", await open_session(up, "others"), "hello")

    await up.until(session, "execution.released", tenant="bytes")
    before = await until_totals(up, "bytes", turns=0, pending=0)
    await up.ask("session.delete", {"sessionID": session}, tenant="bytes")
    after = await until_totals(up, "bytes", sessions=0)
    assert before["tokens"] > 0
    assert (after["tokens"], after["cost"]) == (before["tokens"], before["cost"])
    assert after["logBytes"] < 3000


async def test_only_as_many_turns_of_a_tenant_run_as_its_quota_allows(up: Stack) -> None:
    """B11: nothing accepted is lost, and another tenant's turn does not wait for the crowd."""
    crowd = [await open_session(up, "turns") for _ in range(8)]
    for session in crowd:
        await say(up, "turns", session, "[[sim: first_byte_ms=300]] one of many")
    alone = await open_session(up, "others")
    await say(up, "others", alone, "just me")
    await up.until(alone, "step.ended", tenant="others")
    ended = [await ended_turns(up, "turns", session) for session in crowd]

    logs = [await up.until(session, "execution.released", tenant="turns") for session in crowd]

    assert sum(ended) < len(crowd), "the other tenant did not wait for the crowd"
    assert widest(logs, "execution.claimed", "execution.released") <= 2
    for log in logs:
        check_log(log)
        assert [item.event.type for item in log].count("step.ended") == 1


async def ended_turns(up: Stack, tenant: str, session: str) -> int:
    log = await up.events(session, tenant=tenant)
    return sum(item.event.type == "step.ended" for item in log)


async def test_only_as_many_calls_of_a_tenant_run_as_its_quota_allows(up: Stack) -> None:
    """B11: requests wait in their queue, every call is settled once, and others are not delayed."""
    arguments = shlex.quote(json.dumps({"key": "k", "delay_ms": 300}))
    text = f"[[sim: tool=probe_once args={arguments} ; answer=done]] go"
    crowd = [await open_session(up, "calls") for _ in range(6)]
    for session in crowd:
        await say(up, "calls", session, text)
    alone = await open_session(up, "others")
    await say(up, "others", alone, text)
    await up.until(alone, "tool.succeeded", tenant="others")
    settled = [await up.events(session, tenant="calls") for session in crowd]

    logs = [await up.until(session, "tool.succeeded", tenant="calls") for session in crowd]

    done = sum(item.event.type == "tool.succeeded" for log in settled for item in log)
    assert done < len(crowd), "the other tenant did not wait for the crowd"
    assert widest(logs, "tool.started", "tool.succeeded") <= 2
    for log in logs:
        check_log(log)
        assert [item.event.type for item in log].count("tool.started") == 1


async def test_an_operator_sees_the_quotas_of_any_tenant(up: Stack) -> None:
    """Over HTTP the caller's own tenant, over NATS every tenant, with the same names."""
    await open_session(up, "sessions2")
    await until_totals(up, "sessions2", sessions=1)
    own = await up.usage()
    command = [sys.executable, "-m", "fairlead_cli", "quota", "--tenant", "turns", "--json"]

    shown = await asyncio.create_subprocess_exec(
        *command,
        env={
            **os.environ,
            "FAIRLEAD_NATS_URL": up.up.nats,
            "FAIRLEAD_NATS_NKEY_FILE": str(up.up.operator.nkey_file),
        },
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await shown.communicate()

    report = TenantUsageReport.model_validate_json(output)
    allowed = {use.quota: use.allowed for use in report.quotas}
    assert (own.tenant, report.tenant) == ("default", "turns")
    assert own.principal is not None
    assert [use.quota for use in own.principal.quotas] == list(QUOTAS)
    assert allowed["turns"] == 2
    assert allowed["pending"] == {use.quota: use.allowed for use in own.quotas}["pending"] == 50


async def test_an_output_over_the_quota_is_cut_and_its_call_succeeds(up: Stack) -> None:
    """B11: the first output fills the quota; of the next one the model sees both ends."""
    command = shlex.quote(json.dumps({"command": "seq 1 20000"}))
    text = f"[[sim: tool=bash args={command} ; answer=done]] go"
    markers: list[str] = []
    for _ in range(2):
        session = await open_session(up, "outputs")
        await say(up, "outputs", session, text)
        log = await up.until(session, "tool.succeeded", tenant="outputs")
        (succeeded,) = (item.event for item in log if isinstance(item.event, ToolSucceeded))
        markers += [part.text for part in succeeded.content if isinstance(part, TextContent)]

    assert "for the whole" in markers[0]
    assert "could not be kept" in markers[1]
    async with asyncio.timeout(TIMEOUT_S):
        while not (await totals(up, "outputs"))["outputBytes"]:
            await asyncio.sleep(0.1)
