"""Editors drive sessions over `fairlead acp`, through refusals, cancels, crashes and second editors."""

import asyncio
import base64
import json
import os
import struct
import sys
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from acp import RequestError
from acp.helpers import image_block, text_block

from fairlead_schema.events import PromptAdmitted
from fairlead_testing.editor import Editor, editor
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
    async with protocol_stack(tmp_path_factory.mktemp("acp")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def zed(up: Stack) -> AsyncIterator[Editor]:
    async with editor(up) as one:
        yield one


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A location that the tool workers may use."""
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o777)
    return tmp_path


def changes(one: Editor) -> list[Any]:
    """The changes to files that an editor was shown."""
    updates = [u for u in one.updates if u.session_update == "tool_call_update" and u.content]
    return [item for update in updates for item in update.content if item.type == "diff"]


async def test_a_command_and_a_large_picture_reach_the_model(
    up: Stack, zed: Editor, place: Path
) -> None:
    session = await zed.new_session(str(place))
    picture = image_block(base64.b64encode(png(600)).decode(), "image/png")
    async with asyncio.timeout(60):
        ended = await zed.agent.prompt(
            session_id=session, prompt=[text_block("/review a.py"), picture]
        )

    assert (ended.stop_reason, zed.text()) == ("end_turn", "reviewed")
    log = await up.wait_until_rested(session)
    (admitted,) = [one.event for one in log if isinstance(one.event, PromptAdmitted)]
    assert [file.name for file in admitted.prompt.files or ()] == ["file.png"]
    async with editor(up) as other:
        await other.agent.load_session(cwd=str(place), session_id=session, mcp_servers=[])
        shown = [u.content.type for u in other.updates if u.session_update == "user_message_chunk"]
    assert shown == ["text", "resource_link"]


def png(size: int) -> bytes:
    """A picture that does not compress: more than a request may have."""
    rows = b"".join(b"\0" + os.urandom(size * 3) for _ in range(size))
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    chunks = (b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


async def test_a_rejected_call_ends_the_turn_and_runs_nothing(zed: Editor, place: Path) -> None:
    zed.choose = lambda _options: "reject"
    session = await zed.new_session(str(place))

    ended = await zed.prompt(session, shell_prompt("touch made.txt"))

    assert ended.stop_reason == "end_turn"
    assert not (place / "made.txt").exists()
    assert [u.status for u in zed.updates if u.session_update == "tool_call_update"][-1] == "failed"


async def test_an_edit_shows_its_change_and_its_place(zed: Editor, place: Path) -> None:
    (place / "a.txt").write_text("one\n")
    session = await zed.new_session(str(place))
    given = """'{"path":"a.txt","oldString":"one","newString":"two"}'"""

    await zed.prompt(session, f'[[sim: tool=edit args={given}; answer="edited"]] go')

    shown = changes(zed)[-1]
    assert (shown.path, shown.old_text, shown.new_text) == (str(place / "a.txt"), "one", "two")
    assert (place / "a.txt").read_text() == "two\n"


async def test_a_question_is_answered_with_one_of_its_labels(zed: Editor, place: Path) -> None:
    zed.choose = lambda options: options[1].option_id
    session = await zed.new_session(str(place))
    asked = {
        "questions": [
            {
                "question": "Which way?",
                "header": "Way",
                "options": [
                    {"label": "Left", "description": "short"},
                    {"label": "Right", "description": "long"},
                ],
            }
        ]
    }

    await zed.prompt(session, f"[[sim: tool=question args='{json.dumps(asked)}'; answer=ok]] go")

    done = [u for u in zed.updates if u.session_update == "tool_call_update"][-1]
    assert done.raw_output == {"answers": [["Right"]]}


async def test_a_form_takes_several_labels_and_own_words(up: Stack, place: Path) -> None:
    option = {"label": "Red", "description": "warm"}
    other = {"label": "Blue", "description": "cold"}
    asked = {
        "questions": [
            {"question": "Which?", "header": "Which", "options": [option, other], "multiple": True},
            {"question": "Name?", "header": "Name", "options": []},
        ]
    }
    async with editor(up, has_forms=True) as zed:
        zed.fill = {"question-1": ["Red", "Blue"], "question-2-own": "Ann"}
        session = await zed.new_session(str(place))

        text = f"[[sim: tool=question args='{json.dumps(asked)}'; answer=ok]] go"
        ended = await zed.prompt(session, text)

    done = [u for u in zed.updates if u.session_update == "tool_call_update"][-1]
    assert ended.stop_reason == "end_turn"
    assert done.raw_output == {"answers": [["Red", "Blue"], ["Ann"]]}
    assert not zed.asked
    assert list(zed.forms[0].requested_schema.properties) == [
        "question-1",
        "question-1-own",
        "question-2-own",
    ]


async def test_a_cancel_ends_the_turn_and_the_next_prompt_is_served(
    zed: Editor, place: Path
) -> None:
    session = await zed.new_session(str(place))
    slow = asyncio.create_task(zed.prompt(session, "[[sim: chunks=400 delay_ms=50]] long"))
    await zed.until(lambda: bool(zed.text()))

    await zed.agent.cancel(session_id=session)

    assert (await slow).stop_reason == "cancelled"
    assert (await zed.prompt(session, '[[sim: answer="again"]] hi')).stop_reason == "end_turn"
    assert zed.text().endswith("again")


async def test_a_cancel_while_a_permission_waits_ends_the_turn(zed: Editor, place: Path) -> None:
    zed.may_answer.clear()
    zed.choose = lambda _options: None
    session = await zed.new_session(str(place))
    turn = asyncio.create_task(zed.prompt(session, shell_prompt("touch made.txt")))
    await zed.until(lambda: bool(zed.asked))

    await zed.agent.cancel(session_id=session)
    zed.may_answer.set()

    assert (await turn).stop_reason == "cancelled"
    assert not (place / "made.txt").exists()


async def test_a_cancel_right_behind_its_prompt_is_not_lost(zed: Editor, place: Path) -> None:
    session = await zed.new_session(str(place))
    turn = asyncio.create_task(zed.prompt(session, "[[sim: chunks=400 delay_ms=50]] long"))
    await asyncio.sleep(0)

    await zed.agent.cancel(session_id=session)

    assert (await turn).stop_reason == "cancelled"


async def test_a_closed_session_is_cancelled_and_another_open_takes_a_prompt_over(
    up: Stack, zed: Editor, place: Path
) -> None:
    session = await zed.new_session(str(place))
    turn = asyncio.create_task(zed.prompt(session, "[[sim: chunks=400 delay_ms=50]] long"))
    await zed.until(lambda: bool(zed.text()))

    await zed.agent.close_session(session_id=session)

    assert (await turn).stop_reason == "cancelled"
    log = await up.wait_until_rested(session)
    assert [one.event.type for one in log].count("interrupt.requested") == 1
    await zed.agent.resume_session(cwd=str(place), session_id=session)
    turn = asyncio.create_task(zed.prompt(session, LONG))
    await up.until(session, "prompt.promoted", count=2)
    await zed.agent.resume_session(cwd=str(place), session_id=session)
    with pytest.raises(RequestError, match="goes on"):
        await turn


async def test_a_prompt_while_the_session_works_steers_it(
    up: Stack, zed: Editor, place: Path
) -> None:
    session = await zed.new_session(str(place))
    zed.may_answer.clear()
    first = asyncio.create_task(zed.prompt(session, shell_prompt("true")))
    await zed.until(lambda: bool(zed.asked))

    second = asyncio.create_task(zed.prompt(session, '[[sim: answer="steered"]] rather this'))
    await up.until(session, "prompt.admitted", count=2)
    zed.may_answer.set()

    assert {(await first).stop_reason, (await second).stop_reason} == {"end_turn"}
    assert zed.text().endswith("steered")
    assert (await up.wait_until_rested(session))[-1] is not None


@pytest.mark.parametrize("process", ["gateway", "runner"])
async def test_no_word_is_lost_or_comes_twice_when_a_process_is_killed(
    up: Stack, zed: Editor, place: Path, process: str
) -> None:
    session = await zed.new_session(str(place))
    turn = asyncio.create_task(zed.prompt(session, LONG))
    await zed.until(lambda: bool(zed.text()))

    up.up.kill(process)
    ended = await turn

    assert ended.stop_reason == "end_turn"
    async with editor(up) as other:
        await other.agent.load_session(cwd=str(place), session_id=session, mcp_servers=[])
        # The protocol cannot take back what a killed attempt had said: it was another message.
        assert zed.answer() == other.text()
        assert len(other.text().split()) == WORDS
    await up.up.wait_ready()


async def test_a_killed_agent_leaves_the_session_and_another_one_goes_on_with_it(
    up: Stack, place: Path
) -> None:
    """The prompt is in the log once; the second editor sees the history and then the live rest."""
    async with editor(up) as first:
        session = await first.new_session(str(place))
        turn = asyncio.create_task(first.prompt(session, LONG))
        await first.until(lambda: bool(first.text()))
        first.process.kill()
        with pytest.raises(ConnectionError):
            await turn

    async with editor(up) as second:
        await second.agent.load_session(cwd=str(place), session_id=session, mcp_servers=[])
        assert second.text("user_message_chunk") == LONG
        await second.until(lambda: len(second.text().split()) >= WORDS)
        log = await up.wait_until_rested(session)

    texts = [getattr(one.event, "text", "") for one in log if one.event.type == "text.ended"]
    assert second.text() == "".join(texts)
    assert [one.event.type for one in log].count("prompt.admitted") == 1


async def test_an_ask_that_waits_is_asked_again_after_a_load_and_only_once_answered(
    up: Stack, place: Path
) -> None:
    async with editor(up) as first, editor(up) as second:
        first.may_answer.clear()
        session = await first.new_session(str(place))
        turn = asyncio.create_task(first.prompt(session, shell_prompt("touch made.txt")))
        await first.until(lambda: bool(first.asked))

        await second.agent.load_session(cwd=str(place), session_id=session, mcp_servers=[])

        assert (await turn).stop_reason == "end_turn"
        assert len(second.asked) == 1
        assert (place / "made.txt").exists()
        first.may_answer.set()
        log = await up.wait_until_rested(session)
        assert [one.event.type for one in log].count("permission.replied") == 1


async def test_what_a_sub_agent_asks_is_asked_in_the_editor(up: Stack, zed: Editor) -> None:
    session = await slow_session(up)
    await zed.agent.load_session(cwd="/", session_id=session, mcp_servers=[])
    turn = asyncio.create_task(zed.prompt(session, task_prompt()))
    child = await ask_from_below(up, session)

    assert (await turn).stop_reason == "end_turn"
    assert len(zed.asked) == 1
    assert [one.event.type for one in await up.events(child)].count("permission.replied") == 1


async def test_a_sub_agent_that_works_already_asks_in_an_editor_that_comes_later(
    up: Stack, zed: Editor
) -> None:
    session = await slow_session(up)
    body = {"prompt": {"text": task_prompt()}}
    await up.http.post(f"/api/session/{session}/prompt", json=body)
    child = await ask_from_below(up, session)

    await zed.agent.load_session(cwd="/", session_id=session, mcp_servers=[])

    await up.until(child, "permission.replied")
    await up.wait_until_rested(session)
    async with editor(up) as late:
        await late.agent.load_session(cwd="/", session_id=session, mcp_servers=[])
        assert (len(zed.asked), late.asked) == (1, [])


async def test_modes_are_agents_and_models_are_a_config_option(zed: Editor, place: Path) -> None:
    opened = await zed.agent.new_session(cwd=str(place), mcp_servers=[])
    assert opened.modes is not None
    assert opened.config_options
    names = [mode.id for mode in opened.modes.available_modes]
    assert opened.modes.current_mode_id in names
    other = next(name for name in names if name != opened.modes.current_mode_id)
    session = opened.session_id

    await zed.agent.set_session_mode(session_id=session, mode_id=other)
    model: Any = opened.config_options[0]
    chosen = await zed.agent.set_config_option(
        config_id="model", session_id=session, value=model.options[-1].value
    )

    await zed.until(lambda: "current_mode_update" in zed.kinds())
    assert chosen is not None
    assert chosen.config_options[0].current_value == model.options[-1].value
    listed = await zed.agent.list_sessions(cwd=str(place))
    assert session in {one.session_id for one in listed.sessions}


async def test_bad_requests_are_answered_with_errors_of_the_protocol(
    up: Stack, zed: Editor, place: Path
) -> None:
    session = await zed.new_session(str(place))
    agent = zed.agent
    calls = {
        "unknown session": (
            agent.prompt(session_id="ses_none", prompt=[text_block("hi")]),
            -32002,
        ),
        "unknown load": (
            agent.load_session(cwd="/", session_id="ses_none", mcp_servers=[]),
            -32002,
        ),
        "no session id": (agent.load_session(cwd="/", session_id="nope", mcp_servers=[]), -32602),
        "empty prompt": (agent.prompt(session_id=session, prompt=[]), -32602),
        "unknown model": (
            agent.set_config_option(config_id="model", session_id=session, value="no/model"),
            -32602,
        ),
        "unknown method": (agent.ext_method("nonsense", {}), -32601),
    }

    codes = {}
    for name, (call, _) in calls.items():
        with pytest.raises(RequestError) as refused:
            await call
        codes[name] = refused.value.code

    assert codes == {name: code for name, (_, code) in calls.items()}
    stranger = await add_stranger(up)
    async with editor(up, token=stranger) as other:
        with pytest.raises(RequestError) as refused:
            await other.agent.load_session(cwd="/", session_id=session, mcp_servers=[])
        assert refused.value.code == -32002


async def test_an_unknown_key_is_refused_as_missing_authentication(up: Stack, place: Path) -> None:
    async with editor(up, token="flk_nonsense") as other:  # noqa: S106 - no secret
        with pytest.raises(RequestError) as refused:
            await other.new_session(str(place))
    assert refused.value.code == -32000


async def test_a_malformed_line_is_refused_and_the_end_of_input_ends_the_agent(up: Stack) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "fairlead_cli", "acp"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "FAIRLEAD_HTTP": up.up.http, "FAIRLEAD_TOKEN": up.up.token or ""},
    )
    async with asyncio.timeout(30):
        out, _ = await process.communicate(b'{nonsense\n{"jsonrpc":"2.0","id":7,"method":"no"}\n')

    answers = [json.loads(line) for line in out.splitlines()]
    assert [(one["id"], one["error"]["code"]) for one in answers] == [(None, -32700), (7, -32601)]
    assert process.returncode == 0
