"""Streams and consumers that somebody deleted or changed: the cause is said, and work goes on when it is mended."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_testing.session_driver import probe_stack
from fairlead_testing.stack import TIMEOUT_S, Stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

CALL = '[[sim: tool=probe_once args=\'{"key":"k"}\' ; answer=done]] go'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    async with probe_stack() as running:
        yield running


@asynccontextmanager
async def admin(up: Stack) -> AsyncIterator[NatsLink]:
    async with open_link(up.up.operator, name="vandal") as link:
        yield link


async def provision_again(up: Stack) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", "provision"),
        env={
            **os.environ,
            "FAIRLEAD_NATS_URL": up.up.nats,
            "FAIRLEAD_NATS_NKEY_FILE": str(up.up.operator.nkey_file),
        },
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert await process.wait() == 0


async def doctor(up: Stack) -> dict[str, dict[str, str]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", "doctor", "--json", "--state", up.up.state.root),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    findings = [json.loads(line) for line in output.splitlines()]
    return {finding["name"]: finding for finding in findings}


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("CONSUMER.DELETE.TOOLS.tools-default", marks=pytest.mark.slow),
        "STREAM.DELETE.WAKES",
        pytest.param("STREAM.DELETE.TOOLS", marks=pytest.mark.slow),
    ],
)
async def test_what_was_deleted_is_named_and_work_goes_on_when_it_is_provisioned_again(
    up: Stack, damage: str
) -> None:
    """Nothing accepted is lost: the prompt is answered once, and its call runs once."""
    *_, name = damage.split(".", 2)
    async with admin(up) as link:
        await link.api(damage)
    session = await up.session()
    assert "data" in await up.ask(
        "session.prompt", {"sessionID": session, "prompt": {"text": CALL}}
    )

    nats = (await doctor(up))["nats"]
    await provision_again(up)
    log = await up.until(session, "step.ended", count=2)

    assert nats["status"] == "fail"
    assert name.replace(".", "/") in nats["detail"]
    assert nats["mend"] == "run `fairlead provision`"
    types = [item.event.type for item in log]
    assert [types.count(kind) for kind in ("prompt.promoted", "tool.succeeded")] == [1, 1]
    assert (await doctor(up))["nats"]["status"] == "ok"


async def test_the_consumer_of_wakes_is_made_again_by_itself(up: Stack) -> None:
    async with admin(up) as link:
        await link.api("CONSUMER.DELETE.WAKES.runner-default")
    session = await up.session()

    await up.ask("session.prompt", {"sessionID": session, "prompt": {"text": CALL}})

    await up.until(session, "step.ended", count=2)


async def test_a_worker_says_which_consumer_is_gone(up: Stack) -> None:
    """An operator at night reads the cause and the cure in the log of the service."""
    async with admin(up) as link:
        await link.api("CONSUMER.DELETE.TOOLS.tools-default")
    path = up.up.log_path("tools", 0)
    words = "consumer tools-default of stream TOOLS does not exist: run `fairlead provision`"
    async with asyncio.timeout(TIMEOUT_S):
        while words not in path.read_text():
            await asyncio.sleep(0.1)
    await provision_again(up)

    session = await up.session()
    await up.ask("session.prompt", {"sessionID": session, "prompt": {"text": CALL}})
    await up.until(session, "tool.succeeded")


async def test_a_stream_that_was_changed_by_hand_is_named_and_changed_back(up: Stack) -> None:
    async with admin(up) as link:
        config = (await link.api("STREAM.INFO.DEAD"))["config"]
        await link.api("STREAM.UPDATE.DEAD", config | {"allow_direct": False})

    before = (await doctor(up))["nats"]
    await provision_again(up)

    assert (
        "1 streams were changed by hand: DEAD (allow_direct is False instead of True)"
        in (before["detail"])
    )
    assert (await doctor(up))["nats"]["status"] == "ok"
