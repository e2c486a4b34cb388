"""The screen of `fairlead top` without a stack: what it shows when something is missing."""

import asyncio
import os
from dataclasses import replace

import pytest
from textual.widgets import DataTable, Input, Static

from apps.cli.tests.answering_server import AnsweringServer
from apps.cli.tests.top.test_top_figures import ASK, QUESTION, info, row
from fairlead_cli.__main__ import main
from fairlead_cli.command_line.exit_codes import NO_SERVER, USAGE
from fairlead_cli.top.answer_screen import AnswerScreen, ChosenReply
from fairlead_cli.top.app import TopApp
from fairlead_cli.top.look import SessionObserver, SessionsLook, build_row
from fairlead_cli.top.tenant_stream import follow_all
from fairlead_client import AsyncFairlead
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_schema.commands.quota import TenantUsageReport
from fairlead_schema.errors import SessionNotFound, Unauthorized
from fairlead_schema.permission import (
    PermissionRequest,
    QuestionInfo,
    QuestionOption,
    QuestionRequest,
)

NOWHERE = "http://127.0.0.1:9"
USAGE_REPORT = TenantUsageReport(tenant="default", quotas=(), cost=0, tokens=0)


def screen(look: SessionsLook, url: str = NOWHERE) -> TopApp:
    connection = AsyncHttpConnection(url, patience_s=0)
    observer = SessionObserver(AsyncFairlead(url, patience_s=0), 50)
    return TopApp(
        observer, connection, look, every_s=60, open_command=["true"], environment=os.environ
    )


def text(app: TopApp, name: str) -> str:
    return str(app.screen_stack[0].query_one(name, Static).render())


@pytest.mark.parametrize("width", [40, 120])
async def test_while_the_server_is_away_the_last_look_stays_and_the_screen_says_so(
    width: int,
) -> None:
    app = screen(SessionsLook((row("ses_a", "idle"), row("ses_b", "running")), USAGE_REPORT))

    async with app.run_test(size=(width, 20)) as pilot:
        assert "nothing answers" not in text(app, "#summary")
        await app.refresh_look()
        await pilot.pause()

        assert f"nothing answers at {NOWHERE}" in text(app, "#summary")
        assert app.query_one(DataTable).row_count == 2
        await pilot.press("i")
        await pilot.pause(0.2)
        assert app.is_running


async def test_an_empty_server_is_an_empty_screen_whose_keys_do_no_harm() -> None:
    app = screen(SessionsLook((), USAGE_REPORT))

    async with app.run_test() as pilot:
        await pilot.press("i", "r", "a", "o", "enter", "down")

        assert app.is_running
        assert text(app, "#detail") == ""


async def test_the_cursor_stays_on_its_session_when_the_order_changes() -> None:
    app = screen(SessionsLook((row("ses_b", "running", 5), row("ses_a", "idle", 1)), USAGE_REPORT))

    async with app.run_test() as pilot:
        await pilot.press("down")
        app.show(SessionsLook((row("ses_a", "running", 9), row("ses_b", "idle", 5)), USAGE_REPORT))
        await pilot.pause()

        assert text(app, "#detail").startswith("ses_a")


async def test_a_permission_is_answered_with_a_choice_and_a_question_with_a_text() -> None:
    app = screen(SessionsLook((), USAGE_REPORT))
    answers: list[object] = []

    async with app.run_test() as pilot:
        await app.push_screen(AnswerScreen(ASK), answers.append)
        await pilot.press("down", "enter")
        await app.push_screen(AnswerScreen(QUESTION), answers.append)
        await pilot.pause()
        assert isinstance(app.focused, Input)
        await pilot.press("b", "l", "u", "e", "enter")
        await app.push_screen(AnswerScreen(ASK), answers.append)
        await pilot.press("escape")
        await pilot.pause()

    assert answers == [ChosenReply("reject"), [["blue"]], None]


async def test_a_rejection_has_a_reason_and_a_question_several_answers() -> None:
    app = screen(SessionsLook((), USAGE_REPORT))
    answers: list[object] = []
    options = tuple(QuestionOption(label=label, description="") for label in ("Red", "Blue"))
    several = QuestionInfo(question="Which?", header="", options=options, multiple=True)
    question = QuestionRequest(id="que_a", session_id="ses_a", questions=(several,))

    async with app.run_test() as pilot:
        await app.push_screen(AnswerScreen(ASK), answers.append)
        await pilot.press("3", "n", "o", "enter")
        await app.push_screen(AnswerScreen(question), answers.append)
        await pilot.press("space", "down", "space", "3")
        await pilot.pause()

    assert answers == [ChosenReply("reject", "no"), [["Red", "Blue"]]]


async def test_what_a_model_writes_does_not_command_the_terminal() -> None:
    evil = "\x1b]0;pwned\x07\x1b[31mred"
    question = QuestionInfo(question=evil, header=evil, options=())
    asks = (
        PermissionRequest(id="per_a", session_id="ses_a", action=evil, resources=(evil,)),
        QuestionRequest(id="que_a", session_id="ses_a", questions=(question,)),
    )
    titled = build_row(info("ses_a"), {"state": "waiting", "reason": evil}, asks)
    titled = replace(titled, info=titled.info.model_copy(update={"title": evil}))
    app = screen(SessionsLook((titled,), USAGE_REPORT))

    async with app.run_test() as pilot:
        shown = [
            text(app, "#detail"),
            *(str(cell) for cell in app.query_one(DataTable).get_row_at(0)),
        ]
        await pilot.press("a")
        shown.append(str(app.screen.query_one("#ask-text", Static).render()))

    assert "\x1b" not in "".join(shown)
    assert "red" in shown[0]


def test_without_a_terminal_top_says_what_to_use_instead(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["top", "--http", NOWHERE]) == USAGE
    assert "--json" in capsys.readouterr().err
    assert main(["top", "--json", "--http", NOWHERE]) == NO_SERVER


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (Unauthorized("The token is expired").body.wire(), 401, "--token"),
        ({"data": 7}, 200, "fairlead --version"),
        (b"\xff\xfe", 200, "fairlead --version"),
        ({"_tag": "QuantumError", "message": "two states"}, 422, "two states"),
    ],
    ids=["expired token", "another release", "broken UTF-8", "unknown refusal"],
)
@pytest.mark.parametrize("width", [40, 120])
async def test_an_answer_that_cannot_be_used_is_said_and_the_last_look_stays(
    server: AnsweringServer, width: int, body: object, status: int, words: str
) -> None:
    app = screen(SessionsLook((row("ses_a", "idle"),), USAGE_REPORT), server.url)
    server.answer(body, status=status)

    async with app.run_test(size=(width, 20)) as pilot:
        await app.refresh_look()
        await pilot.pause()

        assert words in text(app, "#summary")
        assert app.query_one(DataTable).row_count == 1


async def test_a_key_for_a_session_that_was_deleted_meanwhile_says_so(
    server: AnsweringServer,
) -> None:
    app = screen(SessionsLook((row("ses_a", "running"),), USAGE_REPORT), server.url)
    server.refuse(SessionNotFound("ses_a"))

    async with app.run_test(notifications=True) as pilot:
        await pilot.press("i")
        while not list(app._notifications):  # noqa: SLF001 - the toasts have no other list
            await pilot.pause(0.02)

        assert any("fairlead sessions" in toast.message for toast in app._notifications)  # noqa: SLF001
        assert app.is_running


@pytest.mark.parametrize(
    "frame",
    [b"data: \xff\xfe\n\n", b"data: [1]\n\n", b'data: {"id":"e","type":"x","data":7}\n\n'],
    ids=["broken UTF-8", "no event", "no data"],
)
async def test_a_live_stream_that_cannot_be_read_does_not_end_the_screen(
    server: AnsweringServer, frame: bytes
) -> None:
    server.answer(frame, mime="text/event-stream")
    events = follow_all(AsyncHttpConnection(server.url, patience_s=0))

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(events), 0.3)
