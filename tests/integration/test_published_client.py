"""The published client of the `/api` surface drives a real stack, unchanged (WIRE)."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import pytest_asyncio

from fairlead_gateway.routes import OPERATIONS
from fairlead_testing.node_packages import install_package
from fairlead_testing.stack import Stack, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]

PACKAGE, VERSION = "@opencode-ai/sdk", "1.19.3"
SCRIPT = Path(__file__).parent / "published_client" / "conversation.mjs"
CONFIG = """
permissions = [ {{ action = "probe_once", resource = "*", effect = "ask" }} ]

[command.review]
template = "Review $ARGUMENTS"

[reference.guide]
path = "/srv/guide"

[tools]
probes = true
probe_file = "{probe}"
"""
STEPS = (
    "catalogues",
    "files",
    "create_and_list",
    "prompt_retry_and_conflict",
    "events",
    "live_stream_with_deltas",
    "messages",
    "switch_agent_and_model",
    "interrupt",
    "steer_and_queue",
    "permissions",
    "questions",
    "revert",
    "compact",
)

NOT_SERVED = {"pty", "integration", "credential"}
"""Terminals, and the keys of providers, which are the operator's."""

Outcomes = dict[str, dict[str, Any]]


def install() -> Path:
    """The folder of the client. Skips where npm cannot install it."""
    return install_package(PACKAGE, VERSION)


def write_config(place: Path) -> Path:
    place.chmod(0o755)
    config, probe = place / "fairlead.toml", place / "probe.log"
    probe.touch(mode=0o666)
    config.write_text(CONFIG.format(probe=probe))
    return config


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up() -> AsyncIterator[Stack]:
    install()
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        config = write_config(place)
        async with stack(place / "state", config=config, sim=True) as running:
            yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def outcomes(up: Stack, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """How each step of the conversation ended. The client runs once for all tests."""
    work = tmp_path_factory.mktemp("work")
    (work / "src").mkdir()
    (work / "src/hello.txt").write_text("hello\n")
    environment = {
        "PATH": os.environ["PATH"],
        "CLIENT": str(install()),
        "BASE": str(up.http.base_url).rstrip("/"),
        "TOKEN": up.up.token or "",
        "DIRECTORY": str(work),
    }
    node = await asyncio.create_subprocess_exec(
        "node",
        str(SCRIPT),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(200):
            out, err = await node.communicate()
    finally:
        if node.returncode is None:
            node.kill()
            await node.wait()
    lines = [json.loads(line) for line in out.splitlines()]
    assert lines, err.decode()
    return {line["name"]: line for line in lines}


@pytest.mark.parametrize("step", STEPS)
async def test_the_published_client_works_unchanged(outcomes: Outcomes, step: str) -> None:
    assert outcomes[step]["ok"], outcomes[step].get("error")


async def test_every_step_of_the_conversation_is_checked(outcomes: Outcomes) -> None:
    assert set(outcomes) == set(STEPS)


async def test_every_route_of_the_client_is_served_or_known_to_be_missing() -> None:
    """A new version of the client shows here which of its routes nobody serves yet."""
    source = install() / "node_modules" / PACKAGE / "dist/v2/gen/sdk.gen.js"
    called = set(re.findall(r'url: "(/api/[^"]*)"', source.read_text()))
    served = {operation.path for operation in OPERATIONS}
    missing = {path for path in called if path.replace("*", "{path}") not in served}

    assert len(called) > len(NOT_SERVED) * 4
    assert {path.split("/")[2] for path in missing} == NOT_SERVED
