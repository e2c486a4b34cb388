"""The level of the log's format: newer events are written after `provision --finalise`, not before."""

import asyncio
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import NotFinalised, UnsafeChange
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.ports import START
from fairlead_eventlog.provision import provision
from fairlead_eventlog.status.status_record import recorded_level
from fairlead_eventlog.streams import LOG_STATUS
from fairlead_schema.record import LEVEL_NEWEST, Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.events import drafts
from fairlead_testing.nats import Server
from fairlead_testing.newer_release import WeatherNoted, newer_release


def newer_draft() -> tuple[Draft, ...]:
    event: Any = WeatherNoted()
    return (Draft(ids.event_id(), 1, event),)


async def test_a_newer_event_waits_until_it_is_finalised(eventlog: EventLog, at: Address) -> None:
    """A13: the writer refuses what an older release beside it could not read."""
    with newer_release():
        with pytest.raises(NotFinalised, match="provision --finalise"):
            await eventlog.log.append(at, ids.commit_id(), newer_draft(), after=START)
        assert await eventlog.log.head(at) == START

        await eventlog.log.append(at, ids.commit_id(), drafts(1), after=START)


async def test_one_incarnation_follows_another(eventlog: EventLog) -> None:
    first = (await eventlog.status.read()).incarnation
    assert first is not None

    second = await eventlog.status.begin_incarnation((7,) * 8, after=first)

    assert second.previous == first.id
    assert second.common_position(3, known=first.id) == 7
    assert second.common_position(3, known="of an earlier time") == 0
    assert (await eventlog.status.read()).incarnation == second
    # Another process that noticed the same restore adopts what the first one began.
    assert await eventlog.status.begin_incarnation((), after=first) == second


@pytest.mark.integration
async def test_a_finalised_level_reaches_running_writers(own_server: Server, at: Address) -> None:
    """A13: the writers of two processes learn the level without a restart."""
    await provision(own_server.address)
    async with (
        connect(own_server.address, name="one") as one,
        connect(own_server.address, name="two") as two,
    ):
        first = await one.log.append(at, ids.commit_id(), drafts(1), after=START)
        with newer_release():
            await provision(own_server.address)
            assert await recorded_level(own_server.address) == LEVEL_NEWEST
            with pytest.raises(NotFinalised):
                await two.log.append(at, ids.commit_id(), newer_draft(), after=first.head)

            await provision(own_server.address, finalise=True)

            async with asyncio.timeout(20):
                while two.status.current.level < WeatherNoted.level:
                    await asyncio.sleep(0.02)
            await two.log.append(at, ids.commit_id(), newer_draft(), after=first.head)

        with pytest.raises(UnsafeChange, match="install a newer one"):
            await provision(own_server.address, finalise=True)


@pytest.mark.integration
async def test_an_empty_log_is_finalised_at_once(own_server: Server) -> None:
    lines: list[str] = []
    with newer_release():
        await provision(own_server.address, progress=lines.append)

        assert await recorded_level(own_server.address) == WeatherNoted.level
    assert f"format level {WeatherNoted.level}: finalised" in lines


@pytest.mark.integration
async def test_a_status_that_cannot_be_read_allows_the_first_level_alone(
    own_server: Server, at: Address
) -> None:
    """The safe value: every release can read the first level."""
    await provision(own_server.address)
    async with open_link(own_server.address, name="test") as link:
        await link.api(f"STREAM.DELETE.{LOG_STATUS.name}")
    async with connect(own_server.address, name="one") as one:
        assert (await one.status.read()).level == 1
        await one.log.append(at, ids.commit_id(), drafts(1), after=START)
        with newer_release(), pytest.raises(NotFinalised):
            await one.log.append(at, ids.commit_id(), newer_draft(), after=START)
