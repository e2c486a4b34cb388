"""The release before this one and this release on one log: beside each other, and back (A13)."""

import asyncio
from pathlib import Path

import orjson
import pytest

from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.status.status_record import recorded_level
from fairlead_eventlog.streams import EVENTS
from fairlead_schema import subjects
from fairlead_schema.record import LEVEL_FIRST
from fairlead_schema.subjects import Address
from fairlead_testing.earlier_release import rebuild_with, run_services
from fairlead_testing.releases import THIS, Release, unpack_earlier_release
from fairlead_testing.stack import Stack, check_log, event_types, stack

pytestmark = [pytest.mark.integration, pytest.mark.slow]

WRITERS = ("ingest", "tools", "runner")
EVERYTHING = (*WRITERS, "projector", "gateway")
CALL = '[[sim: tool=glob args=\'{"pattern": "*.%s"}\' ; answer="done"]] use a tool'


async def say(up: Stack, session: str, text: str) -> None:
    """Send a prompt, and send it again with the same id while its ingest is exchanged."""
    body = {"id": f"msg_{abs(hash((session, text))):x}", "prompt": {"text": text}}
    async with asyncio.timeout(60):
        while True:
            answer = await up.http.post(f"/api/session/{session}/prompt", json=body)
            if answer.status_code != 503:
                break
            await asyncio.sleep(0.2)
    assert answer.status_code == 200, answer.text


async def converse(up: Stack, sessions: list[str], word: str) -> None:
    """A text turn and a turn with a tool in every session, until all of them rest."""
    for session in sessions:
        await say(up, session, f"hello {word}")
        await say(up, session, CALL % word.replace(" ", ""))
    for session in sessions:
        await up.wait_until_rested(session)


async def check_sessions(up: Stack, sessions: list[str], turns: int) -> None:
    """Every prompt was answered once, and every call was settled once."""
    for session in sessions:
        events = await up.events(session)
        check_log(events)
        types = event_types(events)
        assert types.count("prompt.admitted") == types.count("prompt.promoted") == 2 * turns
        assert types.count("tool.called") == types.count("tool.succeeded") == turns
        assert "step.failed" not in types


async def check_feed(up: Stack, session: str) -> None:
    """The feed has every event that is not private, in order; rests are private in the earlier release."""
    rests = {
        item.id for item in await up.events(session) if item.event.type == "execution.released"
    }
    wanted = [
        event.id
        for event in await up.events(session)
        if event.event.visibility != "private" and event.id not in rests
    ]
    subject = subjects.event(Address("default", session), ">")
    async with open_link(up.up.operator, name="test") as link, asyncio.timeout(60):
        while True:
            found, _ = await link.read_subject(EVENTS.name, subject, first=1, batch=1000)
            ids = [orjson.loads(message.payload)["id"] for message in found]
            published = [id_ for id_ in ids if id_ not in rests]
            if len(published) >= len(wanted):
                break
            await asyncio.sleep(0.2)
    assert published == wanted


async def stop(up: Stack, names: tuple[str, ...]) -> None:
    for name in names:
        await up.up.process(name).stop()


async def messages(up: Stack, session: str) -> int:
    """How many messages the read models have, once they answer."""
    async with asyncio.timeout(60):
        while True:
            answer = await up.http.get(f"/api/session/{session}/message", params={"limit": 200})
            if answer.status_code == 200 and "fairlead-stale" not in answer.headers:
                return len(answer.json()["data"])
            await asyncio.sleep(0.2)


async def test_two_releases_share_one_log_and_the_newer_one_is_rolled_back(tmp_path: Path) -> None:
    """A13: sessions of one release are continued by the other, both ways, until it is finalised."""
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    earlier = unpack_earlier_release(tmp_path)
    async with stack(tmp_path / "state", check_grants=False) as up:
        sessions = [await up.session() for _ in range(3)]
        async with run_services(up.up, earlier, WRITERS):
            await converse(up, sessions, "beside each other")
            await stop(up, WRITERS)
            sessions.append(await up.session())
            await converse(up, sessions[:3], "the earlier release alone")
        async with run_services(up.up, THIS, WRITERS):
            await converse(up, sessions[:3], "this release again")
            await converse(up, sessions[3:], "begun by the earlier release")
        await check_sessions(up, sessions[:3], 3)
        await check_sessions(up, sessions[3:], 1)
        told = await messages(up, sessions[0])
        # Nothing that only this release can read was written.
        assert await recorded_level(up.up.operator) >= LEVEL_FIRST

        await _roll_back(up, earlier, sessions, told)


async def _roll_back(up: Stack, earlier: Release, sessions: list[str], told: int) -> None:
    """The earlier release takes over everything, with read models of its own, and goes back again."""
    await stop(up, ("projector", "gateway"))
    rebuild_with(earlier, up.up)
    async with run_services(up.up, earlier, EVERYTHING):
        assert await messages(up, sessions[0]) == told
        await converse(up, sessions[:3], "rolled back")
        told = await messages(up, sessions[0])
    rebuild_with(THIS, up.up)
    async with run_services(up.up, THIS, EVERYTHING):
        assert await messages(up, sessions[0]) == told
        await converse(up, sessions[:3], "forward again")
        await check_sessions(up, sessions[:3], 5)
        for session in sessions:
            await check_feed(up, session)
