"""Services that stop while NATS is away: each says so in plain lines, and ends."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import pytest

from fairlead_testing.stack import stack

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

SERVICES = ("runner", "tools", "ingest", "projector", "hooks", "gateway")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that Postgres can enter as another user."""
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


async def test_services_that_stop_while_nats_is_away_write_plain_lines(place: Path) -> None:
    async with stack(place / "state", sim=True, check_grants=False) as up:
        session = await up.session()
        await up.ask("session.prompt", {"sessionID": session, "prompt": {"text": "hello"}})
        await up.wait_until_rested(session)
        await up.up.process("nats").stop()
        await asyncio.gather(*(up.up.process(name).stop() for name in SERVICES))
        logs = {name: up.up.log_path(name).read_text() for name in SERVICES}

    for name, text in logs.items():
        lines = [orjson.loads(line) for line in text.splitlines()]
        assert not [line for line in lines if line["level"] == "error" or "error" in line], name
