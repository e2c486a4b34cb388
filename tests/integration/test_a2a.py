"""Other agents work with tasks over A2A, through refusals, cancels, crashes and second agents."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from a2a.types import (
    GetExtendedAgentCardRequest,
    StreamResponse,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    A2AError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from fairlead_testing.other_agent import (
    OtherAgent,
    joined_text,
    other_agent,
    state_of,
    text_of,
)
from fairlead_testing.protocol_stack import (
    add_stranger,
    ask_from_below,
    protocol_stack,
    shell_prompt,
    slow_session,
    task_prompt,
)
from fairlead_testing.stack import Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]

LONG = "[[sim: chunks=60 delay_ms=50]] long"
WORDS = 60


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    async with protocol_stack(tmp_path_factory.mktemp("a2a")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def other(up: Stack) -> AsyncIterator[OtherAgent]:
    async with other_agent(up) as one:
        yield one


async def until_text(updates: list[StreamResponse]) -> None:
    async with asyncio.timeout(60):
        while not joined_text(updates):
            await asyncio.sleep(0.02)


async def test_a_repeated_message_is_admitted_once(up: Stack, other: OtherAgent) -> None:
    first = await other.send('[[sim: answer="only once"]] hi', id_="same")
    second = await other.send('[[sim: answer="only once"]] hi', id_="same")

    assert (first.id, text_of(first)) == (second.id, "only once")
    log = await up.wait_until_rested(first.context_id)
    assert [one.event.type for one in log].count("prompt.admitted") == 1
    assert text_of(await other.get(first.id)) == "only once"


async def test_a_rejected_call_cancels_the_task(other: OtherAgent) -> None:
    asked = await other.send(shell_prompt("true"))

    done = await other.send("no", task=asked.id)

    assert state_of(asked) == "input_required"
    assert state_of(done) == "canceled"
    with pytest.raises(UnsupportedOperationError):
        await other.send("again", task=asked.id)


async def test_a_question_is_answered_and_a_failure_fails_the_task(other: OtherAgent) -> None:
    option = {"label": "Left", "description": "short"}
    asked = {"questions": [{"question": "Which way?", "header": "Way", "options": [option]}]}
    task = await other.send(f"[[sim: tool=question args='{json.dumps(asked)}'; answer=left]] go")

    done = await other.send("Left", task=task.id)

    assert task.status.message.parts[0].text == "Which way?"
    assert (state_of(done), text_of(done)) == ("completed", "left")
    failed = await other.send('[[sim: status=400 error="no such"]] go')
    assert state_of(failed) == "failed"
    assert "no such" in failed.status.message.parts[0].text


async def test_a_task_is_cancelled_while_it_runs_and_while_it_asks(other: OtherAgent) -> None:
    running = await other.send("[[sim: chunks=400 delay_ms=50]] long", at_once=True)
    asking = await other.send(shell_prompt("true"))

    cancelled = [await other.cancel(running.id), await other.cancel(asking.id)]

    assert state_of(running) in {"submitted", "working"}
    assert [state_of(task) for task in cancelled] == ["canceled", "canceled"]
    with pytest.raises(TaskNotCancelableError):
        await other.cancel(running.id)


async def test_a_message_to_a_task_that_works_steers_it(up: Stack, other: OtherAgent) -> None:
    updates: list[StreamResponse] = []
    streaming = asyncio.create_task(other.stream(LONG, updates))
    await until_text(updates)
    task = updates[0].task

    steered = await other.send('[[sim: answer="steered"]] rather this', task=task.id)
    await streaming

    assert state_of(steered) == "completed"
    log = await up.wait_until_rested(task.context_id)
    assert [one.event.type for one in log].count("prompt.promoted") == 2


async def test_two_agents_follow_one_task_and_either_may_answer(
    up: Stack, other: OtherAgent
) -> None:
    asked = await other.send(shell_prompt("true", "both see it"))
    seen: list[StreamResponse] = []
    async with other_agent(up) as second:
        done = await second.send({"reply": "once"}, task=asked.id)
        assert text_of(done) == "both see it"
    assert text_of(await other.get(asked.id)) == "both see it"
    with pytest.raises(UnsupportedOperationError):
        await other.subscribe(asked.id, seen)


async def test_what_a_sub_agent_asks_makes_the_task_want_input(
    up: Stack, other: OtherAgent
) -> None:
    session = await slow_session(up)
    sending = asyncio.create_task(other.send(task_prompt(), context=session))
    await ask_from_below(up, session)
    asked = await sending

    done = await other.send("yes", task=asked.id)

    assert state_of(asked) == "input_required"
    assert (state_of(done), text_of(done)) == ("completed", "done")


async def test_an_agent_that_leaves_frees_its_place_and_its_task_goes_on(
    up: Stack, other: OtherAgent
) -> None:
    sending = asyncio.create_task(other.send(LONG, id_="left alone"))
    await asyncio.sleep(0.5)
    sending.cancel()

    again = await other.send(LONG, id_="left alone")

    assert state_of(again) == "completed"
    log = await up.wait_until_rested(again.context_id)
    assert [one.event.type for one in log].count("prompt.admitted") == 1


@pytest.mark.parametrize("process", ["gateway", "runner"])
async def test_a_subscriber_misses_nothing_and_gets_nothing_twice_after_a_kill(
    up: Stack, other: OtherAgent, process: str
) -> None:
    cut: list[StreamResponse] = []
    streaming = asyncio.create_task(other.stream(LONG, cut))
    await until_text(cut)
    task = cut[0].task

    up.up.kill(process)
    if process == "gateway":
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the package raises
            await streaming
        await up.up.wait_ready()
        cut = await other.subscribe(task.id, [])
    else:
        await streaming

    done = await other.get(task.id)
    assert state_of(done) == "completed"
    assert joined_text(cut) == text_of(done)
    assert len(text_of(done).split()) == WORDS
    await up.up.wait_ready()


async def test_an_agent_of_the_earlier_version_works_with_the_same_tasks(up: Stack) -> None:
    async with other_agent(up, version="0.3") as earlier, other_agent(up) as other:
        updates = await earlier.stream('[[sim: answer="old words" chunks=3 delay_ms=60]] hi', [])
        asked = await earlier.send(shell_prompt("true"), context=updates[0].task.context_id)
        done = await earlier.send({"reply": "once"}, task=asked.id)
        running = await other.send("[[sim: chunks=400 delay_ms=50]] long", at_once=True)
        cancelled = await earlier.cancel(running.id)
        with pytest.raises(TaskNotFoundError):
            await earlier.get("ses_1.msg_1.1")

    assert joined_text(updates) == "old words"
    assert (state_of(asked), state_of(done)) == ("input_required", "completed")
    assert state_of(cancelled) == "canceled"


async def test_the_tasks_of_a_context_are_listed_page_by_page(other: OtherAgent) -> None:
    """The newest change comes first, and a cursor keeps its place although tasks are added."""
    first = await other.send('[[sim: answer="one"]] hi')
    context = first.context_id
    failed = await other.send('[[sim: status=400 error="no such"]] go', context=context)
    last = await other.send('[[sim: answer="three"]] hi', context=context)

    page = await other.page(context, page_size=2, include_artifacts=True)
    added = await other.send('[[sim: answer="four"]] hi', context=context)
    rest = await other.page(context, page_token=page.next_page_token, history_length=0)
    failures = await other.page(context, status=TaskState.TASK_STATE_FAILED)

    assert [task.id for task in page.tasks] == [last.id, failed.id]
    assert (page.total_size, text_of(page.tasks[0])) == (3, "three")
    assert [task.id for task in rest.tasks] == [first.id]
    assert (rest.next_page_token, len(rest.tasks[0].history)) == ("", 0)
    assert not rest.tasks[0].artifacts
    assert [task.id for task in failures.tasks] == [failed.id]
    assert added.status.timestamp.ToMilliseconds() > first.status.timestamp.ToMilliseconds()
    assert (await other.page("ses_unknown")).total_size == 0
    for wrong, size in (("", 5), (context, 500)):
        with pytest.raises(InvalidParamsError):
            await other.page(wrong, page_size=size)


async def test_an_answer_that_is_repeated_steers_nothing(up: Stack, other: OtherAgent) -> None:
    asked = await other.send(shell_prompt("true"))
    await other.send({"reply": "once"}, task=asked.id, at_once=True)

    with pytest.raises((InvalidParamsError, UnsupportedOperationError)):
        await other.send({"reply": "once"}, task=asked.id)

    log = await up.wait_until_rested(asked.context_id)
    assert [one.event.type for one in log].count("prompt.admitted") == 1


async def test_the_card_is_public_and_names_agents_only_to_callers(
    up: Stack, other: OtherAgent
) -> None:
    card = await up.http.get("/.well-known/agent-card.json", headers={"authorization": ""})
    known = await other.plain.get_extended_agent_card(GetExtendedAgentCardRequest())

    assert card.status_code == 200
    assert [skill["id"] for skill in card.json()["skills"]] == ["session"]
    assert "build" in {skill.id for skill in known.skills}
    assert (up.up.token or "none") not in card.text
    assert {one["url"] for one in card.json()["supportedInterfaces"]} == {f"{up.up.http}/a2a"}
    again = await up.http.get(
        "/.well-known/agent-card.json", headers={"if-none-match": card.headers["etag"]}
    )
    assert (again.status_code, again.content) == (304, b"")
    behind = await up.http.get(
        "/.well-known/agent-card.json", headers={"x-forwarded-proto": "https"}
    )
    assert behind.json()["url"].startswith("https://")


async def test_bad_requests_are_answered_with_errors_of_the_protocol(
    up: Stack, other: OtherAgent
) -> None:
    mine = await other.send('[[sim: answer="mine"]] hi', id_="mine")

    async def code(body: bytes, **headers: str) -> int:
        given = {"content-type": "application/json", **headers}
        answer = await up.http.post("/a2a", content=body, headers=given)
        found: int = answer.json()["error"]["code"]
        return found

    def call(method: str, **params: object) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()

    assert await code(b"{nonsense") == -32700
    assert await code(b"[]") == -32600
    assert await code(b'{"id": 1, "method": "GetTask"}') == -32600
    assert await code(call("Nonsense")) == -32601
    assert await code(call("GetTask", id=5)) == -32602
    assert await code(call("GetTask", id="ses_1.msg_1.1")) == -32001
    assert await code(call("GetTask", id=f"{mine.context_id}.msg_other.2")) == -32001
    assert await code(call("SendMessage", message={"parts": [{"text": "hi"}]})) == -32602
    assert await code(call("ListTasks")) == -32602
    assert await code(call("GetTask", id="x"), **{"a2a-version": "2.0"}) == -32009
    assert await code(b" " * 1_100_000) == -32600
    with pytest.raises(PushNotificationNotSupportedError):
        await other.plain.create_task_push_notification_config(
            TaskPushNotificationConfig(task_id=mine.id, url="http://example.org")
        )
    with pytest.raises(InvalidParamsError):
        await other.send("hi", context="ses_unknown")
    with pytest.raises(InvalidParamsError):
        await other.send("hi", context="no session")
    async with other_agent(up, token=await add_stranger(up)) as stranger:
        with pytest.raises(TaskNotFoundError):
            await stranger.get(mine.id)
        with pytest.raises(InvalidParamsError):
            await stranger.send("hi", context=mine.context_id)
    with pytest.raises(A2AError):
        await other.send('[[sim: answer="x"]] other text', id_="mine")


async def test_a_request_without_a_key_is_refused_by_http(up: Stack) -> None:
    answer = await up.http.post("/a2a", json={}, headers={"authorization": "Bearer no"})

    assert answer.status_code == 401
