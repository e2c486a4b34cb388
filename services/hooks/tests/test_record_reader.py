"""What is registered changes under way, or cannot be read: the rest goes on."""

import asyncio
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_hooks.schedules.clock import ScheduleClock
from fairlead_hooks.schedules.run import RunSender
from fairlead_hooks.settings import HooksSettings
from fairlead_hooks.webhooks.lanes import Lanes
from fairlead_schema.model import Model
from fairlead_schema.schedules.record import ScheduleRecord, ScheduleTiming
from fairlead_service.config.configuration import Config
from fairlead_service.ids import now_ms
from fairlead_service.supervise import cancel_and_wait
from services.hooks.tests.test_post import record as webhook
from services.hooks.tests.test_runs import OPEN, Ingest, claims, schedule

HANG_S = 20.0
NEVER_S = 3_600.0


def encode(record: Model) -> bytes:
    return record.model_dump_json(by_alias=True, exclude_none=True).encode()


def with_timing(record: ScheduleRecord, **timing: Any) -> ScheduleRecord:  # noqa: ANN401
    return record.model_copy(update={"timing": ScheduleTiming(**timing)})


async def test_a_schedule_that_changes_during_its_run_is_due_at_its_new_time() -> None:
    """Nothing but the change itself tells the clock: it does not look again for an hour."""
    eventlog = memory_eventlog()
    ingest, answer = Ingest(eventlog), asyncio.Event()
    admit = ingest.requests.answerers["fairlead.api.default.session.prompt"]

    async def hold(body: bytes) -> bytes:
        await answer.wait()
        return await admit(body)

    ingest.requests.answerers["fairlead.api.default.session.prompt"] = hold
    first = schedule(now_ms())
    await eventlog.schedules.put("default", first.id, encode(first))
    sender = RunSender(eventlog, OPEN, patience_s=60)
    clock = ScheduleClock(eventlog, claims(eventlog, "one"), sender, refresh_s=NEVER_S)
    running = asyncio.create_task(clock.run())
    async with asyncio.timeout(HANG_S):
        while await eventlog.hook_states.read("default", first.id) is None:
            await asyncio.sleep(0.01)
        due = now_ms() + 300
        later = with_timing(first, at=due).model_copy(
            update={"since": due - 200, "changed": due - 200}
        )
        await eventlog.schedules.put("default", first.id, encode(later))
        await asyncio.sleep(0.1)
        answer.set()
        while len({prompt["id"] for prompt in ingest.prompts}) < 2:
            await asyncio.sleep(0.01)
    await cancel_and_wait(running)
    await clock.close()


async def test_a_schedule_that_cannot_be_read_stops_no_other_one() -> None:
    """A newer release wrote it, or this machine does not know its time zone."""
    eventlog = memory_eventlog()
    ingest, good = Ingest(eventlog), schedule(now_ms())
    zone = with_timing(good, cron="* * * * *", timezone="Mars/Olympus")
    await eventlog.schedules.put("acme", "sch_0", b'{"id": "sch_0", "timing": "on Sundays"}')
    await eventlog.schedules.put("acme", "sch_2", encode(zone))
    await eventlog.schedules.put("default", good.id, encode(good))
    sender = RunSender(eventlog, OPEN, patience_s=60)
    clock = ScheduleClock(eventlog, claims(eventlog, "one"), sender, refresh_s=NEVER_S)
    running = asyncio.create_task(clock.run())
    async with asyncio.timeout(HANG_S):
        while not ingest.prompts and not running.done():
            await asyncio.sleep(0.01)
    assert not running.done()
    await cancel_and_wait(running)
    await clock.close()


async def test_a_webhook_that_cannot_be_read_stops_no_other_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nor does the log show what it holds."""
    eventlog = memory_eventlog()
    newer = b'{"id": "whk_0", "events": ["moonrise"], "secrets": [{"secret": "whsec_hidden"}]}'
    await eventlog.webhooks.put("acme", "whk_0", newer)
    await eventlog.webhooks.put("default", "whk_1", encode(webhook("https://example.com")))
    await eventlog.hook_states.put("default", "whk_1", b"no JSON")
    lanes = Lanes(eventlog, HooksSettings(Config()))
    running = asyncio.create_task(lanes.run())
    async with asyncio.timeout(HANG_S):
        while not running.done() and not await eventlog.feed_consumers.names():
            await asyncio.sleep(0.01)
    assert not running.done()
    assert list(await eventlog.feed_consumers.names()) == ["hook=default=whk_1"]
    assert "cannot be used" in caplog.text
    assert "whsec_hidden" not in caplog.text + str([vars(one) for one in caplog.records])
    await cancel_and_wait(running)
    await lanes.close()


async def test_what_was_noted_of_a_removed_registration_goes_with_it() -> None:
    """Else a schedule that gets its id again would never run, and a purged tenant would leave a trace."""
    eventlog = memory_eventlog()
    good, gone = schedule(now_ms() + 1_000_000), "sch_gone"
    await eventlog.schedules.put("default", good.id, encode(good))
    for tenant, id_ in (("default", good.id), ("default", gone), ("acme", gone), ("acme", "whk_1")):
        await eventlog.hook_states.put(tenant, id_, b"{}")
    sender = RunSender(eventlog, OPEN, patience_s=60)
    clock = ScheduleClock(eventlog, claims(eventlog, "one"), sender, refresh_s=NEVER_S)
    running = asyncio.create_task(clock.run())
    await until_noted(eventlog, {("default", good.id), ("acme", "whk_1")})
    await eventlog.schedules.remove("default", good.id)
    await until_noted(eventlog, {("acme", "whk_1")})
    await cancel_and_wait(running)
    await clock.close()

    lanes = Lanes(eventlog, HooksSettings(Config()))
    running = asyncio.create_task(lanes.run())
    await until_noted(eventlog, set())
    await cancel_and_wait(running)
    await lanes.close()


async def until_noted(eventlog: EventLog, wanted: set[tuple[str, str]]) -> None:
    """Wait until exactly these registrations have a state."""
    async with asyncio.timeout(HANG_S):
        while True:
            states = await eventlog.hook_states.get_all_tenants()
            if {(tenant, id_) for tenant, noted in states.items() for id_ in noted} == wanted:
                return
            await asyncio.sleep(0.01)
