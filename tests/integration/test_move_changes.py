"""Moves with changes through a whole stack: both ends, a refusal, and processes that are killed."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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

COUNT = 600
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
    async with open_checkouts(tmp_path_factory.mktemp("move")) as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crowded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Checkouts]:
    """Two runners and two workers, so that another one takes over from one that stands still."""
    scale = {"runner": 2, "tools": 2}
    async with open_checkouts(tmp_path_factory.mktemp("crowded"), scale=scale) as found:
        yield found


@asynccontextmanager
async def open_checkouts(place: Path, **options: Any) -> AsyncIterator[Checkouts]:  # noqa: ANN401
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(f"[location]\nroots = [{json.dumps(str(place))}]\n")
    async with stack(place / "state", sim=True, config=config, **options) as running:
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
    session, moving = await begin_move(checkouts, act)
    checkouts.up.up.kill(service, 0, signal.SIGKILL)

    await check_moved(checkouts, session, moving)


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("service", ["tools", "runner"])
@pytest.mark.parametrize("act", ["apply", "discard"])
async def test_a_process_that_stands_still_in_a_move_loses_and_doubles_nothing(
    crowded: Checkouts, service: str, act: str, index: int
) -> None:
    """SIGSTOP while files change, longer than an owner may be silent; then it goes on where it stood."""
    session, moving = await begin_move(crowded, act)
    crowded.up.up.kill(service, index, signal.SIGSTOP)
    try:
        await asyncio.sleep(6)
    finally:
        crowded.up.up.kill(service, index, signal.SIGCONT)

    await check_moved(crowded, session, moving)


async def begin_move(checkouts: Checkouts, act: str) -> tuple[str, asyncio.Task[Any]]:
    """A move of many new files, in the middle of one of its acts."""
    many = checkouts.here / "many"
    many.mkdir()
    for index in range(COUNT):
        (many / f"{index:04}.txt").write_text(f"{index}\n")
    session = await checkouts.session()
    moving = asyncio.create_task(checkouts.move(session, checkouts.there))
    async with asyncio.timeout(TIMEOUT_S):
        if act == "apply":
            while not (checkouts.there / "many").exists():
                await asyncio.sleep(0.001)
        else:
            while count_files(many) == COUNT:
                await asyncio.sleep(0.001)
    return session, moving


def count_files(directory: Path) -> int:
    """The files of a directory. A quick discard may have removed it between two looks."""
    return len(list(directory.iterdir())) if directory.exists() else 0


async def check_moved(checkouts: Checkouts, session: str, moving: asyncio.Task[Any]) -> None:
    """All files are at the destination with their content, none at the source, and the log says it once."""
    moved = checkouts.there / "many"
    assert await moving is None
    assert {path.name: path.read_text() for path in moved.iterdir()} == {
        f"{index:04}.txt": f"{index}\n" for index in range(COUNT)
    }
    assert not (checkouts.here / "many").exists()
    log = await checkouts.up.wait_until_rested(session)
    types = event_types(log)
    assert (types.count("moved"), types.count("move.ended")) == (1, 1)
    check_log(log)
    for path in moved.iterdir():
        path.unlink()
    moved.rmdir()
