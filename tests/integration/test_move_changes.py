"""Moves with changes through a whole stack: both ends, a refusal, and processes that are killed."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fairlead_testing.stack import TIMEOUT_S, Stack, check_log, event_types, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
]

PERSON = {
    **os.environ,
    "GIT_AUTHOR_NAME": "ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
}


async def git(place: Path, *arguments: str) -> str:
    command = ["git", "-C", str(place), *arguments]
    done = await asyncio.to_thread(
        subprocess.run, command, check=True, capture_output=True, env=PERSON
    )
    return done.stdout.decode()


class Checkouts:
    """A stack, and two checkouts of one repository."""

    def __init__(self, up: Stack, place: Path) -> None:
        self.up = up
        self.here, self.there = place / "here", place / "there"

    async def session(self) -> str:
        return await self.up.session(location={"directory": str(self.here)})

    async def move(self, session: str, to: Path) -> Any:  # noqa: ANN401
        body = {"location": {"directory": str(to)}, "moveChanges": True}
        url = f"/api/session/{session}/move"
        answer = await self.up.http.post(url, json=body, timeout=TIMEOUT_S)
        assert answer.status_code in {204, 409}, answer.text
        return answer.json() if answer.content else None

    async def make(self) -> None:
        await asyncio.to_thread(self.here.mkdir)
        await git(self.here, "init", "-q")
        (self.here / "a.txt").write_text("initial\n")
        await git(self.here, "add", "-A")
        await git(self.here, "commit", "-qm", "first")
        await git(self.here, "worktree", "add", "-q", "--detach", str(self.there))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def checkouts(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Checkouts]:
    place: Path = tmp_path_factory.mktemp("move")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(f"[location]\nroots = [{json.dumps(str(place))}]\n")
    async with stack(place / "state", sim=True, config=config) as running:
        found = Checkouts(running, place)
        await found.make()
        yield found


async def test_changes_move_with_their_session_or_nothing_moves(checkouts: Checkouts) -> None:
    """N-17, N-20: a conflict is a typed refusal; without it the changes are there and not here."""
    here, there = checkouts.here, checkouts.there
    session = await checkouts.session()
    (here / "a.txt").write_text("changed\n")
    (here / "b.txt").write_text("new\n")
    (there / "b.txt").write_text("other\n")
    refused = await checkouts.move(session, there)
    assert refused["_tag"] == "MoveRefusedError"
    assert "b.txt" in refused["message"]
    info = await checkouts.up.client.get(session)
    assert info.location.directory == str(here)
    (there / "b.txt").unlink()

    assert await checkouts.move(session, there) is None

    assert ((there / "a.txt").read_text(), (there / "b.txt").read_text()) == ("changed\n", "new\n")
    assert await git(here, "status", "--porcelain") == ""
    types = event_types(await checkouts.up.wait_until_rested(session))
    assert types[-2:] == ["move.ended", "execution.released"]
    check_log(await checkouts.up.events(session))
    await checkouts.move(session, here)
    assert await git(there, "status", "--porcelain") == ""


@pytest.mark.slow
@pytest.mark.parametrize("service", ["tools", "runner"])
@pytest.mark.parametrize("act", ["apply", "discard"])
async def test_a_process_killed_in_a_move_loses_nothing(
    checkouts: Checkouts, service: str, act: str
) -> None:
    """SIGKILL while files change at one end: the changes end at the destination, once."""
    here, there = checkouts.here, checkouts.there
    count = 600
    many = here / "many"
    many.mkdir()
    for index in range(count):
        (many / f"{index:04}.txt").write_text(f"{index}\n")
    session = await checkouts.session()

    moving = asyncio.create_task(checkouts.move(session, there))
    async with asyncio.timeout(TIMEOUT_S):
        if act == "apply":
            while not (there / "many").exists():
                await asyncio.sleep(0.001)
        else:
            while len(list(many.iterdir())) == count:
                await asyncio.sleep(0.001)
    checkouts.up.up.kill(service, 0, signal.SIGKILL)

    assert await moving is None
    assert len(list((there / "many").iterdir())) == count
    assert not many.exists()
    log = await checkouts.up.wait_until_rested(session)
    types = event_types(log)
    assert (types.count("moved"), types.count("move.ended")) == (1, 1)
    check_log(log)
    for path in (there / "many").iterdir():
        path.unlink()
    (there / "many").rmdir()
