"""Fair sharing on a real server: a crowd of one tenant delays no other, and slots are a bound."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeAlias

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.streams.fair_queue import PUT_BACK_S, PUT_BACK_S_MAX, put_back_s
from fairlead_eventlog.ports import Job
from fairlead_eventlog.provision import provision
from fairlead_eventlog.slots import Slots
from fairlead_schema import subjects
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration

CROWD = 10_000
SLOTS = 4
TENANTS = 10_000
ACTIVE = 500
TURN_S = 0.2

Put: TypeAlias = Callable[[EventLog, Address], Awaitable[object]]
Take: TypeAlias = Callable[[Slots], AsyncIterator[Job]]


async def put_wake(eventlog: EventLog, at: Address) -> object:
    return await eventlog.wakes.wake(at)


async def put_request(eventlog: EventLog, at: Address) -> None:
    await eventlog.work.put(subjects.tool(at, "default"), b"{}")


def take_from(eventlog: EventLog, put: Put) -> Take:
    if put is put_wake:
        return eventlog.wakes.take
    return partial(eventlog.work.take_fairly, "TOOLS", "tools-default")


async def put_for(eventlog: EventLog, put: Put, tenants: list[str]) -> None:
    """A message of a new session for each named tenant, some hundred at a time."""
    window = asyncio.Semaphore(256)

    async def put_one(tenant: str) -> None:
        async with window:
            await put(eventlog, Address(tenant, ids.session_id()))

    await asyncio.gather(*(put_one(tenant) for tenant in tenants))


class Process:
    """Takes messages with a few slots, and works on each for a while."""

    def __init__(self, take: Take, slots: int, *, turn_s: float = TURN_S) -> None:
        self.begun: list[str] = []
        self.held = self.held_max = 0
        self._turn_s = turn_s
        self._take = take
        self._slots = Slots(slots)
        self._jobs: set[asyncio.Task[None]] = set()
        self._taking = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for job in self._take(self._slots):
            self.begun.append(subjects.tenant(job.subject))
            self.held += 1
            self.held_max = max(self.held, self.held_max)
            task = asyncio.create_task(self._work(job))
            self._jobs.add(task)
            task.add_done_callback(self._jobs.discard)

    async def _work(self, job: Job) -> None:
        async with job:
            end = time.monotonic() + self._turn_s
            while (left_s := end - time.monotonic()) > 0:
                await asyncio.sleep(min(left_s, 0.7))
                await job.extend()
            await job.ack()
            self.held -= 1

    async def stop(self) -> None:
        for task in (self._taking, *self._jobs):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def begun_by(processes: list[Process]) -> list[str]:
    return [tenant for process in processes for tenant in process.begun]


def has_begun(processes: list[Process], tenant: str) -> bool:
    return tenant in begun_by(processes)


async def wait_until(condition: Callable[[], bool], *, within_s: float = 60.0) -> None:
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("put", [put_wake, put_request], ids=["wakes", "requests"])
async def test_a_single_message_passes_a_crowd_of_another_tenant(
    own_server: Server, put: Put
) -> None:
    """A19: at most two rounds of slots of the crowd begin before it, though it came last."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        await put_for(eventlog, put, ["crowd"] * CROWD)
        processes = [Process(take_from(eventlog, put), SLOTS) for _ in range(2)]
        await wait_until(lambda: len(begun_by(processes)) > 20 * SLOTS)

        for number in range(5):
            before = Counter(begun_by(processes))["crowd"]
            await put_for(eventlog, put, [f"alone{number}"])
            await wait_until(partial(has_begun, processes, f"alone{number}"))
            passed = Counter(begun_by(processes))["crowd"] - before
            print(f"{passed} of the crowd began meanwhile")  # noqa: T201
            assert passed <= 2 * 2 * SLOTS
        for process in processes:
            await process.stop()
        assert max(process.held_max for process in processes) <= SLOTS


async def test_a_tenant_that_comes_last_to_a_standing_crowd_is_found(own_server: Server) -> None:
    """The crowd and the single wake were there before any runner: ten thousand are ahead of it."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        await put_for(eventlog, put_wake, ["crowd"] * CROWD)
        await put_for(eventlog, put_wake, ["alone"])
        process = Process(eventlog.wakes.take, SLOTS, turn_s=0.5)

        await wait_until(lambda: "alone" in process.begun)

        await process.stop()
        assert process.begun.index("alone") <= 3 * SLOTS


async def test_ten_thousand_tenants_share_one_consumer(own_server: Server) -> None:
    """A4, A8: nobody is refused, nobody is left, and the slots are a hard bound."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        await put_for(eventlog, put_wake, [f"tenant{number}" for number in range(TENANTS)])
        processes = [Process(eventlog.wakes.take, 64, turn_s=0.0) for _ in range(2)]

        await wait_until(lambda: len(begun_by(processes)) >= TENANTS)

        for process in processes:
            await process.stop()
        tenants = set(begun_by(processes))
        assert len(tenants) == TENANTS
        assert max(process.held_max for process in processes) <= 64
    async with open_link(own_server.address, name="test") as link:
        names = await link.api("CONSUMER.NAMES.WAKES")
    assert names["total"] == 1


async def test_five_hundred_active_tenants_take_turns(own_server: Server) -> None:
    """No tenant is served twice more often than another while all of them wait."""
    await provision(own_server.address)
    each = 6
    async with connect(own_server.address, name="test") as eventlog:
        tenants = [f"tenant{number}" for number in range(ACTIVE) for _ in range(each)]
        await put_for(eventlog, put_wake, tenants)
        process = Process(eventlog.wakes.take, 64, turn_s=0.02)
        await wait_until(lambda: len(process.begun) >= 2 * ACTIVE)

        counts = Counter(process.begun[: 2 * ACTIVE])
        await wait_until(lambda: len(process.begun) >= ACTIVE * each)

        await process.stop()
        assert len(counts) >= ACTIVE * 0.9, "nobody waits until others are done"
        assert Counter(process.begun) == Counter(tenants), "each wake was served once"


async def test_a_full_process_does_not_ask_for_the_same_messages_over_and_over(
    own_server: Server,
) -> None:
    """A19: what waits is delivered once, and then more and more seldom."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        await put_for(eventlog, put_request, ["crowd"] * CROWD)
        take = take_from(eventlog, put_request)
        process = Process(take, SLOTS, turn_s=60.0)
        await asyncio.sleep(4.0)
        async with open_link(own_server.address, name="test") as link:
            consumer = await link.api("CONSUMER.INFO.TOOLS.tools-default")
        await process.stop()

    assert len(process.begun) == SLOTS
    assert consumer["delivered"]["consumer_seq"] <= CROWD + SLOTS
    assert consumer["num_pending"] == 0, "it looked at all of them"


def test_a_message_that_was_put_back_often_waits_longer() -> None:
    delays = [put_back_s(deliveries, 1000.3, spread=0.0) for deliveries in (1, 2, 3, 4, 100)]

    assert delays == sorted(delays)
    assert PUT_BACK_S / 2 <= put_back_s(1, 1000.3, spread=1.0) < PUT_BACK_S <= delays[0]
    assert PUT_BACK_S_MAX <= delays[-1] <= PUT_BACK_S_MAX + 1
    assert {round((1000.3 + delay) % 1.0, 6) for delay in delays} == {0.0}


async def test_a_process_with_free_slots_gets_what_a_full_one_put_back(own_server: Server) -> None:
    """A new process says that it has free slots, so nothing waits until it comes by itself."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        await put_for(eventlog, put_wake, ["crowd"] * 20)
        full = Process(eventlog.wakes.take, 2, turn_s=60.0)
        await wait_until(lambda: len(full.begun) == 2)
        await asyncio.sleep(1.0)
        began = time.monotonic()

        free = Process(eventlog.wakes.take, 32, turn_s=60.0)
        await wait_until(lambda: len(free.begun) == 18, within_s=PUT_BACK_S_MAX)

        assert time.monotonic() - began < PUT_BACK_S / 2 - 1.0
        await full.stop()
        await free.stop()


async def test_a_process_that_leaves_returns_what_it_put_back(own_server: Server) -> None:
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        await put_for(eventlog, put_wake, ["crowd"] * 20)
        leaving = Process(eventlog.wakes.take, 2, turn_s=60.0)
        await wait_until(lambda: len(leaving.begun) == 2)
        await asyncio.sleep(1.0)
        await leaving.stop()
        async with open_link(own_server.address, name="test") as link:
            consumer = await link.api("CONSUMER.INFO.WAKES.runner-default")
            body = b'{"batch": 100, "no_wait": true}'
            returned: list[str] = []

            async def receive(msg: object) -> None:
                returned.append(getattr(msg, "subject", ""))

            await link.client.subscribe("returned", cb=receive)
            next_ = "$JS.API.CONSUMER.MSG.NEXT.WAKES.runner-default"
            await link.send(next_, body, reply="returned")
            await wait_until(lambda: len(returned) >= 18, within_s=PUT_BACK_S / 2 - 1.0)
        assert consumer["num_ack_pending"] == 20


async def test_a_runner_of_the_release_before_works_beside_a_new_one(own_server: Server) -> None:
    """It pulls from every consumer of wakes that it finds, in the order of arrival."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        tenants = [f"tenant{number % 7}" for number in range(700)]
        await put_for(eventlog, put_wake, tenants)
        old_take = partial(eventlog.work.take, "WAKES", "runner-default")
        old, new = (Process(take, 4, turn_s=0.01) for take in (old_take, eventlog.wakes.take))

        await wait_until(lambda: len(old.begun) + len(new.begun) >= len(tenants))

        await old.stop()
        await new.stop()
    assert Counter([*old.begun, *new.begun]) == Counter(tenants)
    assert old.begun
    assert new.begun


async def test_no_more_is_taken_than_there_are_slots(own_server: Server) -> None:
    """A8: many tenants, and a single one, have no more jobs at once than there are slots."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        await put_for(eventlog, put_wake, [f"tenant{number}" for number in range(900)])
        process = Process(eventlog.wakes.take, 16, turn_s=60.0)
        await wait_until(lambda: process.held == 16)
        await asyncio.sleep(1.0)
        await process.stop()

    assert process.held_max == 16


async def test_a_full_runner_takes_the_next_wake_as_soon_as_a_slot_is_free(
    own_server: Server,
) -> None:
    """Wakes wait for turns, not for a periodic check: one every quarter second would need 10 s."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        await put_for(eventlog, put_wake, ["default"] * 40)
        process = Process(eventlog.wakes.take, 1, turn_s=0.01)
        await wait_until(lambda: len(process.begun) == 40, within_s=8.0)
        await process.stop()


async def test_a_full_worker_takes_the_next_request_as_soon_as_a_slot_is_free(
    own_server: Server,
) -> None:
    """Calls wait for one another, not for a periodic check."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        await put_for(eventlog, put_request, ["default"] * 80)
        process = Process(take_from(eventlog, put_request), 2, turn_s=0.01)
        await wait_until(lambda: len(process.begun) == 80, within_s=8.0)
        await process.stop()


async def test_a_defect_while_a_full_process_looks_is_raised(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The taker reports it and starts again. A queue that is silent would stand still for ever."""

    async def fail(*_arguments: object) -> list[object]:
        raise ZeroDivisionError("our fault")

    monkeypatch.setattr("fairlead_eventlog.jetstream.streams.fair_queue.fetch_waiting", fail)
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        await put_for(eventlog, put_wake, ["default"])
        jobs = eventlog.wakes.take(Slots(1))
        await anext(jobs)

        with pytest.raises(ZeroDivisionError):
            async with asyncio.timeout(10):
                await anext(jobs)


async def test_prompts_that_are_put_back_do_not_stop_the_queue_for_others(
    own_server: Server,
) -> None:
    """A13, A20: a thousand prompts may wait for one session that only a newer release can read."""
    await provision(own_server.address)
    async with connect(own_server.address, name="test") as eventlog:
        held, other = (subjects.prompt(Address("default", f"ses_{n}")) for n in ("held", "other"))
        for number in range(1100):
            await eventlog.work.put(held if number < 1099 else other, b"{}")
        jobs = eventlog.work.take("PROMPTS", "ingest", Slots(64))
        async with asyncio.timeout(60):
            async for job in jobs:
                if job.subject == other:
                    break
                async with job:
                    await job.retry_later(60.0)
