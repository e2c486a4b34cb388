"""Front ends run threads over AG-UI, through refusals, interrupts, crashes and second front ends."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from ag_ui.core import UserMessage
from ag_ui.core.types import DataSource, ImagePart, ResumeEntry, TextPart

from fairlead_gateway.ag_ui_view.run import PROTOCOL
from fairlead_gateway.turn_view.derived_ids import derived_session_id
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_testing.front_end import Run, run_input, run_thread
from fairlead_testing.node_packages import install_package
from fairlead_testing.protocol_stack import (
    add_stranger,
    ask_from_below,
    guide_block,
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

PACKAGE, VERSION = "@ag-ui/client", "1.0.0"
SCRIPT = Path(__file__).parent / "published_client" / "ag_ui.mjs"
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQI12P4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC"
)
LONG = "[[sim: chunks=60 delay_ms=50]] long"
WORDS = 60


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    async with protocol_stack(tmp_path_factory.mktemp("ag-ui")) as running:
        yield running


@pytest.fixture
def thread(request: pytest.FixtureRequest) -> str:
    """A thread of its own for each test."""
    return f"thread of {request.node.name}"


def session_of(thread: str) -> str:
    return derived_session_id(DEFAULT_TENANT, PROTOCOL, thread)


async def until_text(run: Run) -> None:
    async with asyncio.timeout(60):
        while not run.text():
            await asyncio.sleep(0.02)


async def test_the_published_client_keeps_the_right_messages(up: Stack) -> None:
    folder = install_package(PACKAGE, VERSION)
    node = await asyncio.create_subprocess_exec(
        *("node", str(SCRIPT), str(folder), up.up.http, up.up.token or "", shell_prompt("true")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(90):
        out, err = await node.communicate()

    assert node.returncode == 0, err.decode()
    kept: dict[str, Any] = json.loads(out.splitlines()[-1])
    assert [m["role"] for m in kept["afterText"]] == ["user", "assistant"]
    assert kept["afterText"][1]["content"] == "hello from npm"
    assert len(kept["interrupts"]) == 1
    roles = [m["role"] for m in kept["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    assert kept["messages"][-1]["content"] == "done it"
    assert kept["state"]["sessionID"] == session_of("npm-thread")
    assert "404" in kept["refused"]


async def test_the_program_of_the_guide_for_front_ends_prints_the_answer(up: Stack) -> None:
    folder = install_package(PACKAGE, VERSION)
    program = folder / "guide.mjs"
    program.write_text(guide_block("js"))
    node = await asyncio.create_subprocess_exec(
        *("node", str(program)),
        env={**os.environ, "FAIRLEAD_HTTP": up.up.http, "FAIRLEAD_TOKEN": up.up.token or ""},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await node.communicate()

    assert b"What is open?" in out, err.decode()


async def test_a_repeated_run_is_admitted_once_and_told_again(up: Stack, thread: str) -> None:
    given = run_input(thread, '[[sim: answer="only once"]] hi')

    first = await run_thread(up, given)
    second = await run_thread(up, given)

    assert first.text() == second.text() == "only once"
    assert second.end.outcome.type == "success"
    log = await up.wait_until_rested(session_of(thread))
    assert [one.event.type for one in log].count("prompt.admitted") == 1


async def test_a_run_id_with_another_prompt_conflicts(up: Stack, thread: str) -> None:
    await run_thread(up, run_input(thread, '[[sim: answer="a"]] one', run="same"))

    with pytest.raises(httpx.HTTPStatusError) as refused:
        await run_thread(up, run_input(thread, '[[sim: answer="b"]] two', run="same"))

    assert refused.value.response.status_code == 409
    assert refused.value.response.json()["_tag"] == "ConflictError"


async def test_a_rejected_call_cancels_the_run(up: Stack, thread: str) -> None:
    asked = await run_thread(up, run_input(thread, shell_prompt("true")))
    entry = ResumeEntry(interrupt_id=asked.end.outcome.interrupts[0].id, status="cancelled")

    done = await run_thread(up, run_input(thread, None, resume=[entry]))

    assert done.end.outcome.type == "cancelled"
    again = await run_thread(up, run_input(thread, None, resume=[entry]))
    assert again.end.outcome.type == "cancelled"
    late = ResumeEntry(interrupt_id="per_unknown", status="resolved", payload="once")
    third = await run_thread(up, run_input(thread, None, resume=[late]))
    assert third.events[0].metadata == {"fairlead": {"unknownInterrupts": ["per_unknown"]}}
    assert third.events[0].protocol_version == "1.0"


async def test_an_interrupt_cancels_the_run_and_a_failure_is_a_run_error(
    up: Stack, thread: str
) -> None:
    run = Run()
    running = asyncio.create_task(
        run_thread(up, run_input(thread, "[[sim: chunks=400 delay_ms=50]] long"), into=run)
    )
    await until_text(run)

    await up.http.post(f"/api/session/{session_of(thread)}/interrupt", json={})

    assert (await running).end.outcome.type == "cancelled"
    failed = await run_thread(up, run_input(thread, '[[sim: status=400 error="no such"]] go'))
    assert failed.end.type.value == "RUN_ERROR"
    assert "no such" in failed.end.message


async def test_a_second_run_steers_and_both_front_ends_see_it(up: Stack, thread: str) -> None:
    """Two clients: the approval of one lets the run of the other go on."""
    asked = await run_thread(up, run_input(thread, shell_prompt("true")))
    steer = asyncio.create_task(run_thread(up, run_input(thread, '[[sim: answer="steered"]] new')))
    await up.until(session_of(thread), "prompt.admitted", count=2)
    entry = ResumeEntry(
        interrupt_id=asked.end.outcome.interrupts[0].id,
        status="resolved",
        payload={"reply": "once"},
    )

    approved = await run_thread(up, run_input(thread, None, resume=[entry]))
    steered = await steer

    assert "steered" in approved.text()
    # The second run ended at once, because the session waited for a person.
    assert steered.end.outcome.type in {"interrupt", "success"}


@pytest.mark.parametrize("process", ["gateway", "runner"])
async def test_a_run_that_is_cut_off_is_taken_up_again_without_a_gap_or_a_double(
    up: Stack, thread: str, process: str
) -> None:
    given, cut = run_input(thread, LONG), Run()
    running = asyncio.create_task(run_thread(up, given, into=cut))
    await until_text(cut)

    up.up.kill(process)
    if process == "gateway":
        with pytest.raises(httpx.HTTPError):
            await running
        await up.up.wait_ready()
        cut = await run_thread(up, given)
    else:
        await running

    log = await up.wait_until_rested(session_of(thread))
    assert [one.event.type for one in log].count("prompt.admitted") == 1
    starts = [e.message_id for e in cut.events if e.type.value == "TEXT_MESSAGE_START"]
    last = [
        e.delta
        for e in cut.events
        if getattr(e, "message_id", "") == starts[-1] and "delta" in e.model_fields_set
    ]
    assert len("".join(last).split()) == WORDS
    assert cut.end.outcome.type == "success"
    await up.up.wait_ready()


async def test_a_run_without_a_prompt_attaches_to_what_the_session_does(
    up: Stack, thread: str
) -> None:
    first = Run()
    running = asyncio.create_task(run_thread(up, run_input(thread, LONG), into=first))
    await until_text(first)

    attached = await run_thread(up, run_input(thread, None))
    rested = await run_thread(up, run_input(session_of(thread), None))

    assert attached.text() == (await running).text()
    assert rested.types == ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert [message.role for message in rested.events[2].messages] == ["user", "assistant"]


async def test_what_a_sub_agent_asks_interrupts_the_run(up: Stack) -> None:
    session = await slow_session(up)
    running = asyncio.create_task(run_thread(up, run_input(session, task_prompt())))
    await ask_from_below(up, session)
    asked = await running
    interrupt = asked.end.outcome.interrupts[0]
    entry = ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload="once")

    done = await run_thread(up, run_input(session, None, resume=[entry]))

    assert interrupt.metadata["fairlead"]["sessionID"] != session
    assert (done.end.outcome.type, done.text()) == ("success", "done")


async def test_the_next_run_keeps_pictures_and_shows_what_programs_and_people_did(
    up: Stack, thread: str
) -> None:
    picture = ImagePart(source=DataSource(value=PICTURE, mime_type="image/png"))
    given = run_input(thread, "")
    text = TextPart(text='[[sim: answer="seen"]] look')
    given.messages[0] = UserMessage(id="1", content=[text, picture])
    await run_thread(up, given)
    session = session_of(thread)
    said = {"prompt": {"text": '[[sim: answer="told"]] report', "synthetic": True}}
    await up.http.post(f"/api/session/{session}/prompt", json=said)
    await up.wait_until_rested(session)

    shown = (await run_thread(up, run_input(thread, None))).events[2].messages

    assert [message.role for message in shown] == ["user", "assistant", "user", "assistant"]
    assert [part.type for part in shown[0].content] == ["text", "image"]
    assert shown[0].content[1].source.value == PICTURE
    assert shown[2].content == said["prompt"]["text"]


async def test_questions_interrupt_a_run_and_are_answered(up: Stack, thread: str) -> None:
    option = {"label": "Left", "description": "short"}
    given = {"questions": [{"question": "Which way?", "header": "Way", "options": [option]}]}
    text = f"[[sim: tool=question args='{json.dumps(given)}'; answer=left]] go"
    asked = await run_thread(up, run_input(thread, text))
    entry = ResumeEntry(
        interrupt_id=asked.end.outcome.interrupts[0].id,
        status="resolved",
        payload={"answers": [["Left"]]},
    )

    done = await run_thread(up, run_input(thread, None, resume=[entry]))

    assert asked.end.outcome.interrupts[0].message == "Which way?"
    assert done.text() == "left"


async def test_bad_input_is_refused_by_type(up: Stack, thread: str) -> None:
    stranger = {"authorization": f"Bearer {await add_stranger(up)}"}
    await run_thread(up, run_input(thread, '[[sim: answer="mine"]] hi'))
    json_type = {"content-type": "application/json"}

    async def refusal(body: bytes, headers: dict[str, str] | None = None) -> tuple[int, str]:
        answer = await up.http.post(
            "/ag-ui", content=body, headers={**json_type, **(headers or {})}
        )
        return answer.status_code, answer.json()["_tag"]

    unknown = run_input("ses_unknown", "hi").model_dump_json(by_alias=True).encode()
    foreign = run_input(session_of(thread), "hi").model_dump_json(by_alias=True).encode()
    large = run_input("t", "x" * 1_100_000).model_dump_json(by_alias=True).encode()

    assert await refusal(b"{nonsense") == (400, "InvalidRequestError")
    assert await refusal(b'{"threadId": "t"}') == (400, "InvalidRequestError")
    assert await refusal(b'{"threadId":"t","runId":"r","messages":[{"role":"x"}]}') == (
        400,
        "InvalidRequestError",
    )
    assert await refusal(unknown) == (404, "SessionNotFoundError")
    assert await refusal(foreign, stranger) == (404, "SessionNotFoundError")
    assert await refusal(large) == (413, "TooLargeError")
    assert await refusal(unknown, {"authorization": "Bearer no"}) == (401, "UnauthorizedError")


async def test_the_openapi_document_names_the_run(up: Stack) -> None:
    document = (await up.http.get("/openapi.json")).json()

    assert document["paths"]["/ag-ui"]["post"]["operationId"] == "ag-ui.run"
