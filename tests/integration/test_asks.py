"""Asks through real processes: they outlive every restart, hold nobody up, and are answered once."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
import pytest_asyncio

from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address, tool
from fairlead_testing.session_driver import (
    count_runs,
    events_of,
    probe_prompt,
    say,
    wait_until_settled,
)
from fairlead_testing.stack import TIMEOUT_S, Stack, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

CONFIG = """
permissions = [ {{ action = "probe_once", resource = "*", effect = "ask" }} ]

[agent.careful]
recovery = "ask"

[runner]
tools_wait_s = 30.0

[tools]
probes = true
probe_file = "{probe}"
"""
PROCESSES = (
    ("nats", 1),
    ("postgres", 1),
    ("sim", 1),
    ("tools", 2),
    ("runner", 2),
    ("ingest", 1),
    ("projector", 1),
    ("gateway", 1),
    ("hooks", 1),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    """Two runners and two tool workers; one probe needs a permission.

    A runner that waited for people would show: it would hold its session for half a minute.
    """
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        config = write_config(place)
        scale = {"runner": 2, "tools": 2}
        async with stack(place / "state", scale=scale, config=config, sim=True) as running:
            yield running


def write_config(place: Path) -> Path:
    place.chmod(0o755)
    config, probe = place / "fairlead.toml", place / "probe.log"
    probe.touch(mode=0o666)
    config.write_text(CONFIG.format(probe=probe))
    return config


async def eventually(ask: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response:
    """The first answer of services that may be starting again."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            try:
                answer = await ask()
                if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                    return answer
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)


async def reply(
    up: Stack, session: str, request: str, word: str, message: str | None = None
) -> int:
    body = {"reply": word} | ({"message": message} if message else {})
    path = f"/api/session/{session}/permission/{request}/reply"
    return (await eventually(lambda: up.http.post(path, json=body))).status_code


async def wait_until_parked(up: Stack, session: str) -> list[Recorded]:
    """Wait until only a person can go on, and nobody holds the session."""
    log = await up.events(session)
    async with asyncio.timeout(TIMEOUT_S):
        while not events_of(log, "permission.asked") or log[-1].event.type != "execution.released":
            await asyncio.sleep(0.05)
            log = await up.events(session)
    return log


async def last_text(up: Stack, session: str) -> str:
    """The text of the session's last message."""
    messages = await up.messages(session)
    return "".join(block.get("text", "") for block in messages[-1]["content"])


async def explain(up: Stack, session: str) -> dict[str, Any]:
    return await up.client.explain(session)


async def test_an_approval_outlives_a_restart_of_every_process(up: Stack) -> None:
    """K-14, K-15, K-25, K-35: asked, everything killed, servers too, answered later, run once.

    The first worker is killed about when it has written the request and not acknowledged its job.
    """
    session = await up.session()
    await say(up, session, probe_prompt("restart"))
    log = await up.until(session, "permission.asked")
    killed = {(name, index) for name, count in PROCESSES for index in range(count)}
    assert killed == {(process.name, process.index) for process in up.up.processes}
    before = {process: up.up.pid(*process) for process in killed}
    for name, index in killed:
        up.up.kill(name, index, signal.SIGKILL)
    (ask,) = events_of(log, "permission.asked")
    request = ask.request
    assert (request.action, request.resources, request.save) == ("probe_once", ("*",), ("*",))
    assert request.source is not None

    path = f"/api/session/{session}/permission/{request.id}"
    pending = (await eventually(lambda: up.http.get(path))).json()["data"]
    assert pending["source"] == {
        "type": "tool",
        "messageID": request.source.message_id,
        "callID": request.source.call_id,
    }
    await up.up.wait_ready()
    assert not set(before.items()) & {(process, up.up.pid(*process)) for process in killed}
    assert count_runs(up, "restart") == 0
    assert await reply(up, session, request.id, "once") == 204

    log = await wait_until_settled(up, session)
    assert [event.reply for event in events_of(log, "permission.replied")] == ["once"]
    assert (len(events_of(log, "permission.asked")), len(events_of(log, "tool.succeeded"))) == (
        1,
        1,
    )
    assert count_runs(up, "restart") == 1
    assert await last_text(up, session) == "done"
    assert await reply(up, session, request.id, "once") == 204
    assert await reply(up, session, request.id, "reject") == 404
    assert await up.events(session) == log


async def test_a_session_that_waits_for_a_person_holds_nobody_and_says_so(up: Stack) -> None:
    """K-25, K-34: parked at once, listed, not stranded; a foreign session cannot answer."""
    session, other = await up.session(), await up.session()
    await say(up, session, probe_prompt("held"))
    log = await wait_until_parked(up, session)
    (ask,) = events_of(log, "permission.asked")

    explanation = await explain(up, session)
    assert (explanation["state"], explanation["waiting_on"][0]["kind"]) == ("waiting", "permission")
    assert "a person: permission to run probe_once" in explanation["reason"]
    assert await wait_until_settled(up, session) == log, "it is not taken for unfinished"

    async with asyncio.timeout(TIMEOUT_S):
        everywhere: list[str] = []
        while ask.request.id not in everywhere:
            requests = (await up.http.get("/api/permission/request")).json()
            everywhere = [request["id"] for request in requests["data"]]
    assert await reply(up, other, ask.request.id, "once") == 404
    assert (await up.http.get(f"/api/session/{other}/permission")).json() == {"data": []}

    assert await reply(up, session, ask.request.id, "reject", "use another tool") == 204
    log = await wait_until_settled(up, session)
    (failed,) = events_of(log, "tool.failed")
    assert "use another tool" in failed.error.message
    assert (await last_text(up, session), count_runs(up, "held")) == ("done", 0)


async def test_a_repeated_request_asks_nobody_twice(up: Stack) -> None:
    """K-24: a worker that died after it asked leaves its request behind; another one finds it."""
    session = await up.session()
    await say(up, session, probe_prompt("twice"))
    log = await wait_until_parked(up, session)
    (ask,) = events_of(log, "permission.asked")
    again = {
        "sessionID": session,
        "assistantMessageID": ask.request.source.message_id,
        "callID": ask.request.source.call_id,
    }
    subject = tool(Address(DEFAULT_TENANT, session), "default")
    for _ in range(5):
        await up.eventlog.work.put(subject, json.dumps(again).encode())
    assert await reply(up, session, ask.request.id, "once") == 204

    log = await wait_until_settled(up, session)
    assert (len(events_of(log, "permission.asked")), count_runs(up, "twice")) == (1, 1)


async def test_a_decline_halts_the_drain_and_keeps_the_inbox(up: Stack) -> None:
    """E-10, K-19: both calls and the step are settled, no request follows, the next input waits."""
    session = await up.session()
    arguments = json.dumps({"key": "declined"})
    both = f"tool=probe_once args='{arguments}' tool=probe_once args='{arguments}'"
    await say(up, session, f"[[sim: {both} ; answer=never]] go")
    log = await up.until(session, "permission.asked", count=2)
    queued = {"sessionID": session, "prompt": {"text": "later"}, "delivery": "queue"}
    await up.ask("session.prompt", queued)
    first = events_of(log, "permission.asked")[0].request

    assert await reply(up, session, first.id, "reject") == 204

    log = await up.until(session, "execution.released")
    async with asyncio.timeout(TIMEOUT_S):
        while events_of(log, "execution.released")[-1].reason != "declined":
            await asyncio.sleep(0.05)
            log = await up.events(session)
    assert [event.reply for event in events_of(log, "permission.replied")] == ["reject", "reject"]
    messages = [event.error.message for event in events_of(log, "tool.failed")]
    assert messages == ["Tool execution interrupted"] * 2
    assert len(events_of(log, "step.ended")) == 1
    assert len(events_of(log, "attempt.dispatched")) == 1
    explanation = await explain(up, session)
    assert (explanation["state"], "a person declined" in explanation["reason"]) == ("resting", True)
    pending = (await up.http.get(f"/api/session/{session}/input")).json()["data"]
    assert [receipt["prompt"]["text"] for receipt in pending] == ["later"]
    assert count_runs(up, "declined") == 0


async def test_always_answers_what_waits_in_another_session(up: Stack) -> None:
    """K-16, K-17, K-28: the approval is the project's; taken back, people are asked again."""
    place = {"location": {"directory": "/project-always"}}
    first, second = await up.session(**place), await up.session(**place)
    stranger = await up.session(location={"directory": "/project-other"})
    for session in (first, second, stranger):
        await say(up, session, probe_prompt(f"always-{session}"))
        await wait_until_parked(up, session)
    (ask,) = events_of(await up.events(first), "permission.asked")

    assert await reply(up, first, ask.request.id, "always") == 204

    for session in (first, second):
        log = await up.until(session, "permission.replied")
        log = await wait_until_settled(up, session)
        assert [event.reply for event in events_of(log, "permission.replied")] == ["always"]
        assert count_runs(up, f"always-{session}") == 1
    assert events_of(await up.events(stranger), "permission.replied") == []
    query = {"location[directory]": "/project-always"}
    (saved,) = (await up.http.get("/api/permission/saved", params=query)).json()["data"]
    assert (saved["action"], saved["resource"]) == ("probe_once", "*")

    assert (await up.http.delete(f"/api/permission/saved/{saved['id']}")).status_code == 204
    assert (await up.http.delete(f"/api/permission/saved/{saved['id']}")).status_code == 204
    assert (await up.http.get("/api/permission/saved", params=query)).json() == {"data": []}
    await say(up, second, probe_prompt("always-again"))
    await up.until(second, "permission.asked", count=2)
    assert count_runs(up, "always-again") == 0


async def test_a_question_is_answered_over_http(up: Stack) -> None:
    """L-68, L-69, N-24, N-27: the answer itself is the call's result; an unknown one is not found."""
    session = await up.session()
    arguments = json.dumps({"questions": [{"question": "Which colour?", "header": "Colour"}]})
    await say(up, session, f"[[sim: tool=question args='{arguments}' ; answer=thanks]] go")
    log = await up.until(session, "question.asked")
    (question,) = events_of(log, "question.asked")
    path = f"/api/session/{session}/question"
    (listed,) = (await up.http.get(path)).json()["data"]
    assert listed["questions"][0]["question"] == "Which colour?"
    unknown = await up.http.post(f"{path}/que_none/reply", json={"answers": []})
    assert (unknown.status_code, unknown.json()["_tag"]) == (404, "QuestionNotFoundError")

    answered = await up.http.post(
        f"{path}/{question.request.id}/reply", json={"answers": [["red", "blue"]]}
    )

    assert answered.status_code == 204
    log = await wait_until_settled(up, session)
    (result,) = events_of(log, "tool.succeeded")
    assert result.structured == {"answers": [["red", "blue"]]}
    assert result.content[0].text == "Which colour? → red, blue"
    assert events_of(log, "tool.started") == []
    assert await last_text(up, session) == "thanks"


async def test_a_crash_under_the_policy_ask_becomes_a_question(up: Stack) -> None:
    """P-01: a person decides whether the turn runs again."""
    session = await up.session(agent="careful")
    await say(up, session, "[[sim: chunks=40 delay_ms=50]] take your time")
    await up.until(session, "text.started")
    for index in range(2):
        up.up.kill("runner", index, signal.SIGKILL)
    log = await up.until(session, "question.asked")
    (question,) = events_of(log, "question.asked")
    assert question.request.tool is None

    path = f"/api/session/{session}/question/{question.request.id}/reply"
    answered = await eventually(lambda: up.http.post(path, json={"answers": [["Continue"]]}))

    assert answered.status_code == 204
    await up.until(session, "step.ended")
    log = await wait_until_settled(up, session)
    assert len(events_of(log, "question.replied")) == 1
    assert events_of(log, "execution.recovered")[0].action == "held"
