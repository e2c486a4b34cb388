"""A session that one release could not project is projected again by another."""

import asyncio
from typing import TYPE_CHECKING

import pytest

from fairlead_eventlog.memory.dead_letters import MemoryDeadLetters
from fairlead_projector.projection import release
from fairlead_projector.projection.rebuild import digest, rebuild
from fairlead_schema.events import (
    AgentSwitched,
    PromptAdmitted,
    PromptPromoted,
    SessionArchived,
    SessionCreated,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_schema.subjects import Address
from fairlead_testing.newer_release import newer_commit, newer_release

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder, Projection

pytestmark = pytest.mark.integration

AT = Address("default", "ses_1")
OTHER = Address("default", "ses_2")
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
PROMPT = Prompt(text="hello")
ADMITTED = PromptAdmitted(message_id="msg_1", prompt=PROMPT, delivery="queue")
PROMOTED = PromptPromoted(message_id="msg_1", prompt=PROMPT, created=2)
SWITCHED = AgentSwitched(message_id="msg_2", agent="plan")
BROKEN = "SELECT session_id, broken FROM read.session WHERE broken IS NOT NULL"


async def project(projection: "Projection") -> None:
    """Project everything, until the rows and the list of broken sessions stand still."""
    async with projection.run():
        await projection.wait_until(projection.is_caught_up)


async def write_newer_session(log_builder: "LogBuilder", at: Address, *, first: bool) -> None:
    """A session with a commit of a newer release: its first one, or one in its middle."""
    created = log_builder.payload(at, CREATED, ADMITTED, by="user:ada")
    if first:
        # The newer release packs the creation in its own way.
        created = b'{"id":"cmt_1","level":%d,' % (LEVEL_NEWEST + 1) + created.partition(b",")[2]
    await log_builder.log.append_raw(at, created)
    if not first:
        await log_builder.log.append_raw(at, newer_commit(3))
        log_builder.payload(at, SWITCHED)  # The newer event has its seq.
    await log_builder.append(at, PROMOTED)
    await log_builder.append(at, SessionArchived())


@pytest.mark.parametrize("first", [False, True], ids=["in its middle", "at its beginning"])
async def test_another_release_projects_a_broken_session_from_its_first_commit(
    log_builder: "LogBuilder",
    projection: "Projection",
    first: bool,  # noqa: FBT001
) -> None:
    """A13: rows, totals and messages are those of a projector that could always read it."""
    await write_newer_session(log_builder, AT, first=first)
    await log_builder.append(OTHER, CREATED)
    await project(projection)
    (broken,) = projection.rows(BROKEN)
    assert broken["session_id"] == AT.session_id
    assert "newer release wrote it" in broken["broken"]
    assert isinstance(log_builder.eventlog.dead_letters, MemoryDeadLetters)
    assert log_builder.eventlog.dead_letters.letters == []

    with newer_release():
        log_builder.log.parse_again(AT)
        async with projection.run():
            await projection.wait_until(lambda: not projection.rows(BROKEN))
            await log_builder.append(AT, SWITCHED)
            await projection.wait_until(projection.is_caught_up)
        projected = await digest(projection.dsn)
        await rebuild(projection.dsn, log_builder.eventlog, progress=lambda _progress: None)
        assert await digest(projection.dsn) == projected

    (row,) = projection.rows("SELECT agent, pending FROM read.session WHERE session_id = 'ses_1'")
    assert row == {"agent": "plan", "pending": 0}
    (total,) = projection.rows("SELECT sessions, pending FROM read.tenant_total")
    assert total == {"sessions": 2, "pending": 0}


async def test_a_release_tries_a_broken_session_once(
    log_builder: "LogBuilder", projection: "Projection", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A13: a session that no release can read costs each release one try."""
    await log_builder.append(AT, CREATED)
    await log_builder.log.append_raw(AT, b"?")
    await project(projection)
    tries: list[Address] = []
    session_entries = log_builder.log.session_entries

    def note_try(at: Address, *, after: int) -> object:
        tries.append(at)
        return session_entries(at, after=after)

    monkeypatch.setattr(log_builder.log, "session_entries", note_try)
    await project(projection)
    assert tries == []

    monkeypatch.setattr(release, "version", lambda _name: "99.0")
    for _ in range(2):
        async with projection.run():
            await projection.wait_until(lambda: tries == [AT])
            await asyncio.sleep(0.2)
    assert tries == [AT]
    (row,) = projection.rows("SELECT broken, broken_by, seq FROM read.session")
    assert row["broken"].startswith("malformed commit")
    assert row["broken_by"].startswith("99.0/")
    assert row["seq"] == 1
