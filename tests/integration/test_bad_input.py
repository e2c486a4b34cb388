"""Rubbish at every door: a typed error that says what to do, and nothing is lost or stuck."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio

from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_schema import subjects
from fairlead_schema.subjects import Address
from fairlead_testing.keyed_stack import KEY, MISSING, TEAM, KeyedStack, keyed_stack
from fairlead_testing.stack import Stack, event_types

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def keyed_up() -> AsyncIterator[KeyedStack]:
    async with keyed_stack() as running:
        yield running


@pytest.fixture(scope="module")
def up(keyed_up: KeyedStack) -> Stack:
    """The only stack of the module."""
    return keyed_up.up


async def read_refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["_tag"]


async def test_http_answers_rubbish_with_typed_errors(up: Stack) -> None:
    session = await up.session()
    path = f"/api/session/{session}/prompt"
    huge = {"prompt": {"text": "x" * (2 * 1024 * 1024)}}
    json = {"content-type": "application/json"}

    assert await read_refusal(await up.http.post(path, content=b"{not json", headers=json)) == (
        400,
        "InvalidRequestError",
    )
    assert await read_refusal(await up.http.post(path, json={})) == (400, "InvalidRequestError")
    assert await read_refusal(await up.http.post(path, json={"prompt": {"text": " "}})) == (
        400,
        "InvalidRequestError",
    )
    assert await read_refusal(await up.http.post(path, json=huge)) == (413, "TooLargeError")
    for wrong in ({"delivery": "soon"}, {"id": "ses_wrong"}, {"resume": None}):
        body = {"prompt": {"text": "x"}} | wrong
        answer = await up.http.post(path, json=body)
        assert await read_refusal(answer) == (400, "InvalidRequestError")
        assert next(iter(wrong)) in answer.text
    missing = await up.http.post("/api/session/ses_nowhere/prompt", json=huge)
    assert await read_refusal(missing) in {(404, "SessionNotFoundError"), (413, "TooLargeError")}
    assert await read_refusal(await up.http.get("/api/session/nope")) == (
        400,
        "InvalidRequestError",
    )
    assert await read_refusal(await up.http.get("/api/session/ses_nowhere")) == (
        404,
        "SessionNotFoundError",
    )
    assert event_types(await up.events(session)) == ["session.created"]


async def test_an_unknown_model_provider_or_agent_is_refused_before_anything_is_written(
    up: Stack,
) -> None:
    provider = await up.ask("session.create", {"model": {"id": "x", "providerID": "nobody"}})
    model = await up.ask("session.create", {"model": {"id": "nothing", "providerID": "sim"}})
    agent = await up.ask("session.create", {"id": "ses_agentless", "agent": "nobody"})

    assert provider["error"]["_tag"] == "ProviderNotFoundError"
    assert model["error"]["_tag"] == "InvalidRequestError"
    assert model["error"]["field"] == "model"
    assert agent["error"]["field"] == "agent"
    assert await up.events("ses_agentless") == []


async def test_nats_requests_get_typed_errors_too(up: Stack) -> None:
    rubbish: list[tuple[str, Any, str]] = [
        ("session.create", b"\xff\x00 not json", "InvalidRequestError"),
        ("session.create", {"id": "wrong"}, "InvalidRequestError"),
        (
            "session.prompt",
            {"sessionID": "ses_nowhere", "prompt": {"text": "x"}},
            "SessionNotFoundError",
        ),
        ("session.prompt", {"sessionID": "ses_nowhere"}, "InvalidRequestError"),
        ("session.prompt", [], "InvalidRequestError"),
    ]
    for verb, body, tag in rubbish:
        assert (await up.ask(verb, body))["error"]["_tag"] == tag


async def test_commands_to_what_is_unknown_foreign_or_finished_write_nothing(up: Stack) -> None:
    """C-11, C-23, C-26, I-06: a typed error at both doors, or a no-op that says so; no event."""
    session = await up.session()
    prompt = {"sessionID": session, "prompt": {"text": "[[sim: answer=done]] go"}}
    message = (await up.ask("session.prompt", prompt))["data"]["id"]
    await up.wait_until_rested(session)
    before = await up.events(session)
    named = {"messageID": message}

    async def over_nats(verb: str, to: str, tenant: str = "default", **more: object) -> str:
        body = {"sessionID": to, **more}
        answer = await up.ask(f"session.{verb}", body, tenant=tenant)
        return str(answer["error"]["_tag"]) if "error" in answer else str(answer["data"])

    async def over_http(method: str, to: str, path: str) -> tuple[int, str]:
        return await read_refusal(await up.http.request(method, f"/api/session/{to}{path}"))

    missing = "SessionNotFoundError"
    for verb in ("interrupt", "resume", "compact", "shell", "skill", "archive", "delete"):
        assert await over_nats(verb, "ses_nowhere", command="true", skill="none") == missing
        stranger = await over_nats(verb, session, tenant="stranger", command="true", skill="none")
        assert stranger == missing
    for path in ("/interrupt", "/resume", "/compact", "/shell", "/skill", "/wait"):
        assert await over_http("POST", "ses_nowhere", path) == (404, missing)
    for verb, more in (("cancel", {}), ("edit", {"delivery": "queue"})):
        assert await over_nats(verb, "ses_nowhere", **named, **more) == missing
        assert await over_nats(verb, session, tenant="stranger", **named, **more) == missing
        assert await over_nats(verb, session, **named, **more) == "ConflictError"
        unknown = {"messageID": "msg_nothing", **more}
        assert await over_nats(verb, session, **unknown) == "MessageNotFoundError"
    gone = await over_http("DELETE", session, "/input/msg_nothing")
    promoted = await over_http("DELETE", session, f"/input/{message}")
    assert (gone, promoted) == ((404, "MessageNotFoundError"), (409, "ConflictError"))
    for what in ("shell", "skill"):
        assert await over_nats(what, session) == "InvalidRequestError"
        assert await over_http("POST", session, f"/{what}") == (400, "InvalidRequestError")
    assert "'outcome': 'idle'" in await over_nats("interrupt", session)
    assert (await up.http.post(f"/api/session/{session}/interrupt")).status_code == 204
    assert await up.events(session) == before
    assert await up.events(session, tenant="stranger") == []


async def test_a_poison_prompt_goes_to_the_dead_letters_and_the_next_is_admitted(
    up: Stack,
) -> None:
    session = await up.session()
    at = Address("default", session)

    await up.eventlog.work.put(subjects.prompt(at), b"\xffrubbish")
    await up.eventlog.work.put(subjects.prompt(at), orjson.dumps({"prompt": {"text": "fine"}}))
    await up.until(session, "step.ended")

    async with open_link(up.up.operator, name="test") as link:
        got = await link.last_message("DEAD", subjects.dead_letter("prompt"))
    assert got is not None
    letter = orjson.loads(got.payload)
    assert letter["subject"] == subjects.prompt(at)
    assert "JSON" in letter["reason"]


async def test_a_corrupted_log_stops_its_own_session_and_nothing_else(up: Stack) -> None:
    """H-19: an event from the future is never skipped; its session says why it stopped."""
    broken, fine = await up.session(), await up.session()
    at = Address("default", broken)
    event = {
        "id": "evt_x",
        "seq": 2,
        "type": "from.the.future",
        "version": 9,
        "time": 1,
        "data": {},
    }
    async with open_link(up.up.operator, name="test") as link:
        await link.store(subjects.log(at), orjson.dumps({"id": "cmt_x", "events": [event]}))

    answer = await up.ask("session.prompt", {"sessionID": broken, "prompt": {"text": "x"}})
    await up.ask("session.prompt", {"sessionID": fine, "prompt": {"text": "x"}})
    await up.until(fine, "step.ended")

    explanation = (await up.http.get(f"/api/session/{broken}/explain")).json()["data"]
    assert answer["error"]["_tag"] == "ServiceUnavailableError"
    assert (explanation["state"], explanation["code"]) == ("broken", "unreadable")
    assert "from.the.future" in explanation["reason"]
    history = await up.http.get(f"/api/session/{broken}/history")
    assert (history.json()["data"], history.json()["unreadable"]["seq"]) == ([], 2)
    assert "from.the.future" in history.json()["unreadable"]["reason"]


async def test_cursors_that_are_broken_or_foreign_are_errors(up: Stack) -> None:
    session_id, other = await up.session(), await up.session()
    for session in (session_id, other):
        for text in ("a", "b"):
            await up.client.prompt(session, text)
        await up.wait_until_rested(session)
    page = (await up.http.get(f"/api/session/{session_id}/message?limit=1")).json()

    foreign = await up.http.get(
        f"/api/session/{other}/message", params={"cursor": page["cursor"]["next"]}
    )
    broken = await up.http.get(f"/api/session/{session_id}/message", params={"cursor": "????"})
    beyond = await up.http.get(f"/api/session/{session_id}/event", params={"after": 10_000})

    assert await read_refusal(foreign) == (400, "InvalidCursorError")
    assert await read_refusal(broken) == (400, "InvalidCursorError")
    assert await read_refusal(beyond) == (400, "InvalidCursorError")


async def explain(up: Stack, session: str) -> dict[str, Any]:
    answer = await up.http.get(f"/api/session/{session}/explain")
    data: dict[str, Any] = answer.json()["data"]
    return data


async def test_what_cannot_speak_is_refused_or_promotes_nothing(
    keyed_up: KeyedStack,
) -> None:
    """O-29, O-31, D-41: over HTTP and NATS alike; the log holds the prompt and no promotion."""
    up = keyed_up.up
    unknown = {"model": {"providerID": "keyed", "id": "gone"}}
    variant = {"model": {"providerID": "unkeyed", "id": "m", "variant": "low"}}
    over_http = [await up.http.post("/api/session", json=body) for body in (unknown, variant)]
    over_nats = [await up.ask("session.create", body) for body in (unknown, variant)]
    unkeyed = await up.session(model={"providerID": "unkeyed", "id": "m", "variant": "high"})

    await up.ask("session.prompt", {"sessionID": unkeyed, "prompt": {"text": "hi"}})
    log = await up.until(unkeyed, "execution.released")

    assert [(answer.status_code, answer.json()["_tag"]) for answer in over_http] == [
        (400, "InvalidRequestError")
    ] * 2
    assert [answer["error"]["field"] for answer in over_nats] == ["model", "model.variant"]
    assert "prompt.promoted" not in event_types(log)
    assert f"{MISSING} is not set" in str(await explain(up, unkeyed))


async def test_a_key_that_its_provider_repeats_is_in_no_event_no_log_and_no_answer(
    keyed_up: KeyedStack,
) -> None:
    """O-32: it leaves in a header; nothing under the stack's state holds it afterwards."""
    up = keyed_up.up
    session = await up.session(model={"providerID": "keyed", "id": "m"})

    await up.http.post(f"/api/session/{session}/prompt", json={"prompt": {"text": "hi"}})
    log = await up.until(session, "step.failed")

    assert KEY.encode() in keyed_up.asked[-1]
    assert TEAM.encode() in keyed_up.asked[-1]
    paths = (f"{session}/message", f"{session}/explain", f"{session}/history")
    answers = [(await up.http.get(f"/api/session/{path}")).text for path in paths]
    texts = [*answers, (await up.http.get("/api/model")).text, str(log)]
    assert "bad key [redacted] of [redacted]" in str(log)
    files = [
        path for path in keyed_up.state.rglob("*") if path.is_file() and path.suffix != ".toml"
    ]
    assert any(path.suffix == ".log" for path in files)
    for secret in (KEY, TEAM):
        assert not [text for text in texts if secret in text]
        assert not [path for path in files if secret.encode() in read_if_there(path)]


def read_if_there(path: Path) -> bytes:
    """The bytes of a file; none if a service has removed the file since it was listed."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
