"""Commands about webhooks and schedules: every word is shown as it is, ids stay whole, and slow receivers are waited for."""

from typing import Any

import pytest

from apps.cli.tests.answering_server import AnsweringServer
from apps.cli.tests.command_line.test_terminals import in_terminal
from fairlead_cli.__main__ import main
from fairlead_cli.command_line.exit_codes import NO_SERVER
from fairlead_client.async_client import http_connection

WEBHOOK: dict[str, Any] = {
    "id": "whk_1f06df34ad12gZl7opwxWye3qQ",
    "url": "https://example.com/hooks/[red]/a/path/of/a/receiver",
    "events": ["asked", "turn-ended", "failed", "over-budget", "rested"],
    "status": "failing",
    "reason": "example.com cannot be read: its certificate is refused [/x]",
    "secrets": [{"id": "4f3a9b2c1d0e", "created": 1}],
    "created": 1,
    "changed": 1,
}
SCHEDULE: dict[str, Any] = {
    "id": "sch_1f06d1806431uU8CitI3uHubNw",
    "cron": "0 9 * * 1-5",
    "timezone": "Europe/Oslo",
    "missed": "once",
    "prompt": {"text": "[/x] what changed"},
    "delivery": "queue",
    "session": "new",
    "paused": False,
    "next": 1_801_382_400_000,
    "last": {
        "due": 1_801_382_400_000,
        "outcome": "refused",
        "time": 1_801_382_400_100,
        "error": {"_tag": "ForbiddenError", "message": "The key [red] does not count any more"},
    },
    "created": 1,
    "changed": 1,
}


@pytest.mark.parametrize("width", ["50", "80", "300"])
def test_a_webhook_shows_its_id_its_url_and_why_it_fails(
    server: AnsweringServer, width: str
) -> None:
    server.answer({"data": [WEBHOOK]})
    command = ["webhook", "list", "--http", server.url]
    code, output = in_terminal(command, COLUMNS=width, NO_COLOR="1")

    assert code == 0, output
    words = "".join(output.split())
    assert WEBHOOK["id"] in words
    assert WEBHOOK["url"] in words
    assert "itscertificateisrefused[/x]" in words


@pytest.mark.parametrize("width", ["50", "80", "300"])
def test_a_schedule_shows_its_id_its_prompt_its_zone_and_its_last_run(
    server: AnsweringServer, width: str
) -> None:
    server.answer({"data": [SCHEDULE]})
    command = ["schedule", "list", "--http", server.url]
    code, output = in_terminal(command, COLUMNS=width, NO_COLOR="1")

    assert code == 0, output
    words = "".join(output.split())
    assert SCHEDULE["id"] in words
    assert "[/x]whatchanged" in words
    assert "09**1-5Europe/Oslo" in words
    assert "Thekey[red]doesnotcountanymore" in words


def test_a_program_that_reads_a_table_gets_whole_words(
    server: AnsweringServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal a table has a width too."""
    server.answer({"data": [WEBHOOK]})
    assert main(["webhook", "list", "--http", server.url]) == 0

    printed = "".join(capsys.readouterr().out.split())
    assert WEBHOOK["url"] in printed
    assert WEBHOOK["id"] in printed


@pytest.mark.parametrize("action", [["test", "whk_1"], ["redeliver", "whk_1", "dlv_1"]])
def test_a_receiver_may_take_longer_than_other_answers(
    server: AnsweringServer, monkeypatch: pytest.MonkeyPatch, action: list[str]
) -> None:
    """The server waits for it up to a minute."""
    server.answer({"data": {"id": "dlv_1", "delivered": True, "status": 200}})
    server.take_time(0.4)
    monkeypatch.setattr(http_connection, "TIMEOUT_S", 0.1)

    assert main(["webhook", *action, "--http", server.url]) == 0
    assert main(["webhook", "list", "--http", server.url]) == NO_SERVER
