"""`fairlead provision` waits for servers that elect a leader, and not for a key that is refused."""

import pytest

from fairlead_cli.__main__ import main
from fairlead_cli.deployment.server_wait import repeat_until_available
from fairlead_eventlog.errors import CredentialsRefused, LogUnavailable


async def test_servers_that_do_not_answer_yet_are_asked_again() -> None:
    attempts, reports = list[int](), list[str]()

    async def attempt() -> None:
        attempts.append(1)
        if len(attempts) < 2:
            raise LogUnavailable("no leader yet")

    await repeat_until_available(attempt, 60, reports.append)

    assert len(attempts) == 2
    assert reports == ["no leader yet"]


async def test_a_refused_key_fails_at_once() -> None:
    attempts = list[int]()

    async def attempt() -> None:
        attempts.append(1)
        raise CredentialsRefused("nats://n", "the key", "Authorization Violation")

    with pytest.raises(CredentialsRefused):
        await repeat_until_available(attempt, 60, lambda _reason: None)

    assert attempts == [1]


def test_servers_that_stay_away_are_an_error_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["provision", "--nats", "nats://127.0.0.1:9", "--wait", "0"]) == 1

    assert "NATS at nats://127.0.0.1:9 cannot be reached" in capsys.readouterr().err
