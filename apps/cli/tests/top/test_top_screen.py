"""The screen of `fairlead top` without a stack: what it shows when something is missing."""

import os

import pytest
from textual.widgets import DataTable, Input, Static

from apps.cli.tests.top.test_top_figures import ASK, QUESTION, row
from fairlead_cli.__main__ import main
from fairlead_cli.command_line.exit_codes import NO_SERVER, USAGE
from fairlead_cli.top.answer_screen import AnswerScreen
from fairlead_cli.top.app import TopApp
from fairlead_cli.top.look import SessionObserver, SessionsLook
from fairlead_client import AsyncFairlead
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_schema.commands.quota import TenantUsageReport

NOWHERE = "http://127.0.0.1:9"
USAGE_REPORT = TenantUsageReport(tenant="default", quotas=(), cost=0, tokens=0)


def screen(look: SessionsLook) -> TopApp:
    connection = AsyncHttpConnection(NOWHERE, patience_s=0)
    observer = SessionObserver(AsyncFairlead(NOWHERE, patience_s=0), 50)
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
        await pilot.press("down", "down", "enter")
        await app.push_screen(AnswerScreen(QUESTION), answers.append)
        await pilot.pause()
        assert isinstance(app.focused, Input)
        await pilot.press("b", "l", "u", "e", "enter")
        await app.push_screen(AnswerScreen(ASK), answers.append)
        await pilot.press("escape")
        await pilot.pause()

    assert answers == ["reject", [["blue"]], None]


def test_without_a_terminal_top_says_what_to_use_instead(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["top", "--http", NOWHERE]) == USAGE
    assert "--json" in capsys.readouterr().err
    assert main(["top", "--json", "--http", NOWHERE]) == NO_SERVER
