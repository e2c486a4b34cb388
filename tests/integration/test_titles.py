"""Titles through real processes: off the way of the answer, and once through a death."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import pytest_asyncio

from fairlead_cli.embedded.ports import free_port
from fairlead_testing.session_driver import events_of
from fairlead_testing.stack import Stack, check_log, event_types, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),
]

CONFIG = """
default_model = "sim/fast"
small_model = "sim/small"

[runner]
title_timeout_s = 4.0

[provider.sim]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}"

[provider.sim.model.fast]
id = "fast"

[provider.sim.model.small]
id = "small"
"""
# The request for the title repeats the prompt, so the small model is as slow as the large one.
SLOW = "[[sim: chunks=20 delay_ms=60]] take your time"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    """Two runners, and a small model."""
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        config = write_config(place)
        async with stack(place / "state", scale={"runner": 2}, config=config, sim=True) as running:
            yield running


def write_config(place: Path) -> Path:
    place.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(CONFIG.format(port=free_port()))
    return config


async def prompt(up: Stack, session: str, text: str) -> None:
    await up.ask("session.prompt", {"sessionID": session, "prompt": {"text": text}})


async def test_runners_killed_during_the_title_leave_one_title(up: Stack) -> None:
    """P-28: the attempt is in the log, the timer brings another runner, and one title counts."""
    session = await up.session()
    await prompt(up, session, SLOW)
    log: list[Any] = await up.until(session, "title.requested")
    assert "execution.released" in event_types(log), "the answer did not wait for the title"

    for index in range(2):
        up.up.kill("runner", index, signal.SIGKILL)
    assert not events_of(await up.events(session), "title.ended")
    await up.up.wait_ready()
    log = await up.until(session, "title.ended")

    check_log(log)
    attempts: list[Any] = events_of(log, "title.requested")
    ended: list[Any] = events_of(log, "title.ended")
    assert len(attempts) == 2
    assert [event.attempt_id for event in ended] == [attempts[-1].attempt_id]
    async with asyncio.timeout(30):
        while True:
            told = (await up.http.get(f"/api/session/{session}")).json()["data"]
            if told["title"] == ended[0].title:
                break
            await asyncio.sleep(0.1)
    assert [usage["model"]["id"] for usage in told["models"]] == ["fast", "small"]
