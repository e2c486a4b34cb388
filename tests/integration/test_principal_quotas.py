"""Quotas of principals through a whole stack: one principal at its limit, its tenant undisturbed. B11."""

import asyncio
import json
import os
import shlex
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
import pytest_asyncio

from fairlead_schema import subjects
from fairlead_schema.events import ToolFailed, ToolSucceeded
from fairlead_schema.record import Recorded
from fairlead_schema.tools.content import TextContent
from fairlead_testing.stack import TIMEOUT_S, Stack, check_log, stack
from tests.integration.test_quotas import say, totals, widest, write_config

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

ANN, BOB = "key:ann", "user:https://id.example/bob"
CONFIG = """
[[agent.build.permissions]]
action = "*"
resource = "*"
effect = "allow"

[location]
default = {work}

[tools]
probes = true

[tenant.default.quota.principal]
turns = 1

[tenant.turns.quota.principal]
turns = 1

[tenant.calls.quota.principal]
calls = 1

[tenant.outputs.quota.principal]
output_bytes = 1

[tenant.family.quota.principal]
sessions = 2
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    """A stack where each of some tenants has one small quota for its principals."""
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        config = write_config(place, CONFIG)
        async with stack(place / "state", config=config, sim=True, relaxed=True) as running:
            yield running


async def open_session(up: Stack, tenant: str, by: str) -> str:
    """A session that a principal created, as the gateway would ask for it."""
    subject = subjects.api(tenant, "session.create")
    answer = await up.eventlog.requests.request(subject, b"{}", timeout_s=10, by=by)
    session_id: str = orjson.loads(answer)["data"]["id"]
    return session_id


async def principal_totals(up: Stack, tenant: str, principal: str) -> dict[str, Any]:
    subject, question = subjects.tenant_usage(tenant), orjson.dumps({"principal": principal})
    answer = await up.eventlog.requests.request(subject, question, timeout_s=10)
    data: dict[str, Any] = orjson.loads(answer)["data"]
    return data


async def until_counted(up: Stack, tenant: str, principal: str, **wanted: int) -> None:
    """Wait until the projector counts so much for a principal."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            found = await principal_totals(up, tenant, principal)
            if {name: found[name] for name in wanted} == wanted:
                return
            await asyncio.sleep(0.05)


async def test_a_burst_over_several_runners_exceeds_a_quota_by_no_more_than_their_number() -> None:
    """B11: the bound of docs/adr/0034. A runner that is killed keeps no permit."""
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        options: dict[str, Any] = {"sim": True, "relaxed": True, "scale": {"runner": 2}}
        async with stack(place / "state", config=write_config(place, CONFIG), **options) as up:
            crowd = [await open_session(up, "turns", ANN) for _ in range(6)]
            for session in crowd:
                await say(up, "turns", session, "[[sim: first_byte_ms=300]] one of many")
            await up.until(crowd[0], "execution.claimed", tenant="turns")
            os.kill(up.up.services["runner"][0], signal.SIGKILL)

            logs = [await up.until(id_, "step.ended", tenant="turns") for id_ in crowd]

    # The turn of the killed runner was claimed twice and ended once.
    assert 1 <= widest(logs, "execution.claimed", "step.ended") <= 2 + 1
    for log in logs:
        check_log(log)


@pytest.mark.slow
async def test_a_killed_worker_keeps_no_call_of_a_principal() -> None:
    """B11: with one call allowed, the calls that wait run after the call of the dead worker is settled."""
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        options: dict[str, Any] = {"sim": True, "relaxed": True, "scale": {"tools": 2}}
        async with stack(place / "state", config=write_config(place, CONFIG), **options) as up:
            first, second = [await open_session(up, "calls", ANN) for _ in "ab"]
            await say(up, "calls", first, probe_call(600_000))
            await up.until(first, "tool.started", tenant="calls")
            await say(up, "calls", second, probe_call(0))
            await until_counted(up, "calls", ANN, calls=1)
            for pid in up.up.services["tools"]:
                os.kill(pid, signal.SIGKILL)

            logs = [
                await up.until(first, "tool.failed", tenant="calls"),
                await up.until(second, "tool.succeeded", tenant="calls"),
            ]
            await until_counted(up, "calls", ANN, calls=0)

    for log in logs:
        check_log(log)


def probe_call(delay_ms: int) -> str:
    arguments = shlex.quote(json.dumps({"key": "k", "delay_ms": delay_ms}))
    return f"[[sim: tool=probe_once args={arguments} ; answer=done]] go"


async def test_the_turns_of_a_principal_wait_for_each_other_and_for_nobody_else(up: Stack) -> None:
    """B11: whoever prompts, a turn counts for the principal that created its session."""
    crowd = [await open_session(up, "turns", ANN) for _ in range(4)]
    alone = await open_session(up, "turns", BOB)
    for session in crowd:
        await say(up, "turns", session, "[[sim: first_byte_ms=300]] one of many")
    await say(up, "turns", alone, "just me")
    await up.until(alone, "step.ended", tenant="turns")
    ended = [
        item.event.type for session in crowd for item in await up.events(session, tenant="turns")
    ]

    logs = [await up.until(session, "execution.released", tenant="turns") for session in crowd]

    assert ended.count("step.ended") < len(crowd), "the other principal did not wait for the crowd"
    assert widest(logs, "execution.claimed", "execution.released") == 1
    for log in logs:
        check_log(log)
        assert [item.event.type for item in log].count("step.ended") == 1
    await until_counted(up, "turns", ANN, sessions=4, turns=0, pending=0)


async def test_a_session_that_waits_for_its_principal_says_so(up: Stack) -> None:
    """B11: `explain` names the quota, and the caller's share shows what is used of it."""
    first, second = [
        (await up.http.post("/api/session", json={})).json()["data"]["id"] for _ in "ab"
    ]
    await say(up, "default", first, "[[sim: first_byte_ms=20000]] a slow one")
    await up.until(first, "attempt.dispatched")
    await say(up, "default", second, "next")
    async with asyncio.timeout(TIMEOUT_S):
        while "the principal has" not in (reason := await explain(up, second)):
            await asyncio.sleep(0.1)

    usage = await up.usage()
    types = [item.event.type for item in await up.events(second)]
    await up.ask("session.interrupt", {"sessionID": first})
    await up.until(second, "step.ended")

    assert "What has not begun waits: the principal has 1 of 1 running turns." in reason
    assert usage.principal is not None
    uses = {use.quota: (use.used, use.allowed) for use in usage.principal.quotas}
    assert (uses["turns"], uses["sessions"]) == ((1, 1), (2, None))
    assert "execution.claimed" not in types


async def explain(up: Stack, session: str) -> str:
    answer = await up.http.get(f"/api/session/{session}/explain")
    reason: str = answer.json()["data"]["reason"]
    return reason


async def test_the_calls_of_a_principal_wait_for_each_other_and_for_nobody_else(up: Stack) -> None:
    """B11: requests wait in their queue, and every call is settled once."""
    crowd = [await open_session(up, "calls", ANN) for _ in range(3)]
    alone = await open_session(up, "calls", BOB)
    for session in crowd:
        await say(up, "calls", session, probe_call(300))
    await say(up, "calls", alone, probe_call(0))
    await up.until(alone, "tool.succeeded", tenant="calls")
    settled = [
        item.event.type for session in crowd for item in await up.events(session, tenant="calls")
    ]

    logs = [await up.until(session, "tool.succeeded", tenant="calls") for session in crowd]

    assert settled.count("tool.succeeded") < len(crowd), "the other did not wait for the crowd"
    assert widest(logs, "tool.started", "tool.succeeded") == 1
    for log in logs:
        check_log(log)
        assert [item.event.type for item in log].count("tool.started") == 1


async def test_the_outputs_of_a_principal_are_cut_and_those_of_others_are_kept(up: Stack) -> None:
    """B11: the first output fills the quota of its principal alone."""
    kept = [await last_marker(up, by) for by in (ANN, ANN, BOB)]

    assert ["for the whole" in marker for marker in kept] == [True, False, True]
    assert "could not be kept" in kept[1]
    async with asyncio.timeout(TIMEOUT_S):
        while not (await principal_totals(up, "outputs", BOB))["outputBytes"]:
            await asyncio.sleep(0.1)
    ann = (await principal_totals(up, "outputs", ANN))["outputBytes"]
    assert (await totals(up, "outputs"))["outputBytes"] == 2 * ann


async def last_marker(up: Stack, by: str) -> str:
    """What the model sees of an output that is too long for the log."""
    command = shlex.quote(json.dumps({"command": "seq 1 20000"}))
    session = await open_session(up, "outputs", by)
    await say(up, "outputs", session, f"[[sim: tool=bash args={command} ; answer=done]] go")
    log = await up.until(session, "tool.succeeded", tenant="outputs")
    (succeeded,) = (item.event for item in log if isinstance(item.event, ToolSucceeded))
    return "".join(part.text for part in succeeded.content if isinstance(part, TextContent))


async def test_sub_agents_count_for_the_principal_of_their_root(up: Stack) -> None:
    """B11: with two sessions allowed, a root has one sub-agent; the next one is refused with a reason."""
    arguments = json.dumps({"agent": "general", "description": "work", "prompt": "count sails"})
    text = f"[[sim: tool=task args='{arguments}' ; answer=done]] go"
    root = await open_session(up, "family", ANN)

    await say(up, "family", root, text)
    log = await up.until(root, "tool.succeeded", tenant="family")
    await until_counted(up, "family", ANN, sessions=2)
    await say(up, "family", root, text)
    log = await up.until(root, "tool.failed", tenant="family")

    (failed,) = (item.event for item in log if isinstance(item.event, ToolFailed))
    assert "The principal has 2 of 2 sessions" in failed.error.message
    assert (await totals(up, "family"))["sessions"] == 2
    assert await child_creators(up, log) == {ANN}
    await open_session(up, "family", BOB)


async def test_a_principal_with_one_turn_gets_the_answers_of_its_sub_agents(up: Stack) -> None:
    """B11: a parent that waits for its sub-agent keeps no turn, so the two never wait for each other."""
    arguments = json.dumps({"agent": "general", "description": "work", "prompt": "count sails"})
    root = await open_session(up, "turns", ANN)

    await say(up, "turns", root, f"[[sim: tool=task args='{arguments}' ; answer=done]] go")
    await up.until(root, "tool.succeeded", tenant="turns")

    check_log(await up.until(root, "step.ended", tenant="turns"))


async def child_creators(up: Stack, parent: list[Recorded]) -> set[str | None]:
    """The principals of the sub-agents of a session. A refused sub-agent may be counted: its log is empty."""
    children = [getattr(item.event, "session_id", None) for item in parent]
    logs = [await up.events(id_, tenant="family") for id_ in children if id_ is not None]
    return {log[0].by for log in logs if log}
