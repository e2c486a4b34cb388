"""Every line of the guides of webhooks and schedules, typed as a reader would type it."""

import asyncio
import json
import re
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fairlead_testing.stack import Stack, stack
from fairlead_testing.webhook_receiver import Receiver, receive_webhooks

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

GUIDES = Path(__file__).parents[2] / "docs/guide"
URL = "https://example.com/hooks/fairlead"
CONFIG = "[hooks]\nprivate = true\ntimeout_s = 1.0\nretry_s = 0.1\nattempts_max = 1\n"


def lines(name: str) -> list[list[str]]:
    """The commands of a guide, without the name of the program."""
    text = (GUIDES / name).read_text()
    return [shlex.split(line)[3:] for line in re.findall(r"(?m)^\$ fairlead .*$", text)]


def python_block(name: str) -> str:
    found = re.search(r"(?s)```python\n(.*?)```", (GUIDES / name).read_text())
    assert found is not None
    return found[1]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    place = tmp_path_factory.mktemp("guides")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    (place / "fairlead.toml").write_text(CONFIG)
    async with stack(place / "state", config=place / "fairlead.toml", sim=True) as running:
        yield running


async def fairlead(up: Stack, *arguments: str) -> list[dict[str, Any]]:
    """What a command prints as JSON. It must succeed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", *arguments),
        *(() if "--json" in arguments else ("--json",)),
        *("--http", up.up.http, "--token", up.up.token or ""),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, (arguments, err.decode())
    return [json.loads(line) for line in out.decode().splitlines()]


async def give_up(up: Stack, receiver: Receiver, path: str) -> None:
    """Let a delivery fail for the last time."""
    receiver.answers["/guide"] = lambda _request: "500 Broken"
    session = await up.session()
    await up.ask("session.prompt", {"sessionID": session, "prompt": {"text": "hello"}})
    async with asyncio.timeout(30):
        while not (await up.http.get(path)).json()["data"]:
            await asyncio.sleep(0.05)
    del receiver.answers["/guide"]


async def test_the_lines_about_webhooks_work_in_their_order(up: Stack) -> None:
    async with receive_webhooks() as receiver:
        webhook, secret = "", ""
        commands = lines("webhooks.md")
        # The guide removes its webhook among the first lines; the later ones want it still.
        commands.sort(key=lambda command: command[0] == "remove")
        for command in commands:
            words = [webhook if word == "WEBHOOK" else word for word in command]
            words = [f"{receiver.url}/guide" if word == URL else word for word in words]
            if words[0] == "redeliver":
                await give_up(up, receiver, f"/api/webhook/{webhook}/undelivered")
            printed = await fairlead(up, "webhook", *words)
            if words[0] == "create":
                webhook, secret = printed[0]["webhook"]["id"], printed[0]["secret"]
            if words[0] == "redeliver":
                assert [outcome["delivered"] for outcome in printed] == [True]
        assert (await up.http.get("/api/webhook")).json()["data"] == []

        names: dict[str, Any] = {}
        exec(python_block("webhooks.md"), names)  # noqa: S102 - the block of the guide
        last = receiver.on("/guide")[-1]
        assert names["receive"]([secret], last.headers, last.body) == 204
        assert names["receive"]([secret], last.headers, b"{}") == 401


async def test_the_lines_about_schedules_work_in_their_order(up: Stack) -> None:
    made: list[str] = []
    commands = lines("schedules.md")
    commands.sort(key=lambda command: command[0] == "remove")
    for command in commands:
        words = [made[0] if word == "SCHEDULE" else word for word in command]
        printed = await fairlead(up, "schedule", *words)
        if words[0] == "create":
            assert printed[0]["next"] > 0
            made.append(printed[0]["id"])
    [left] = (await up.http.get("/api/schedule")).json()["data"]
    assert (left["id"], left["at"]) == (made[1], 1_801_382_400_000)
