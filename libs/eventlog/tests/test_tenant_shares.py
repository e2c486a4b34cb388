"""The shares of tenants: who may have a slot, and whose message comes next."""

from fairlead_eventlog.slots import Slot, Slots
from fairlead_eventlog.tenant_shares import RECALL_S, TenantShares

LATER = 100.0


class Process:
    """A process with slots, and the jobs that it has."""

    def __init__(self, limit: int) -> None:
        self.slots = Slots(limit)
        self.shares: TenantShares[str] = TenantShares(self.slots)
        self.jobs: list[tuple[str, Slot]] = []

    def deliver(self, tenant: str, now: float = 0.0, *, was_put_back: bool = False) -> bool:
        started = self.shares.start(tenant, now, was_put_back=was_put_back)
        if started:
            self.jobs.append((tenant, self.slots.occupy()))
        return started

    def deliver_or_put_back(self, tenant: str, name: str, now: float = 0.0) -> None:
        if not self.deliver(tenant, now):
            self.shares.put_back(tenant, name, until=now + LATER)

    def finish(self, tenant: str) -> None:
        index = next(i for i, (running, _) in enumerate(self.jobs) if running == tenant)
        _, slot = self.jobs.pop(index)
        slot.release()
        self.shares.end(tenant)


def crowded(limit: int, waiting: int) -> Process:
    """A process that one tenant has filled, with more of the tenant's messages put back."""
    process = Process(limit)
    for number in range(limit + waiting):
        process.deliver_or_put_back("crowd", f"crowd {number}")
    return process


def test_one_tenant_may_fill_a_process_that_nobody_else_uses() -> None:
    assert len(crowded(16, 5).jobs) == 16


def test_no_tenant_ever_gets_more_than_the_slots() -> None:
    """A8: the slots are a hard bound, for nine hundred tenants too."""
    process = Process(16)
    for number in range(900):
        process.deliver_or_put_back(f"tenant{number}", "one")

    assert len(process.jobs) == 16
    assert process.slots.free == 0
    assert process.shares.waiting == 884


def test_the_next_free_slot_goes_to_the_tenant_that_waits_with_one_message() -> None:
    process = crowded(4, 10_000)
    process.deliver_or_put_back("alone", "alone 0")

    process.finish("crowd")
    recalled = process.shares.recall(0.0)
    for _ in range(2):
        process.finish("crowd")
    recalled += process.shares.recall(0.0)

    assert recalled == ["alone 0", "crowd 4"], "the third slot is the reserve"


def test_messages_come_back_one_of_each_tenant_in_turn_and_in_their_order() -> None:
    process = crowded(1, 3)
    for tenant in ("a", "b"):
        for number in range(2):
            process.deliver_or_put_back(tenant, f"{tenant} {number}")

    assert process.shares.give_away(7, 0.0) == [
        "a 0",
        "b 0",
        "crowd 1",
        "a 1",
        "b 1",
        "crowd 2",
        "crowd 3",
    ]


def test_a_reserve_waits_for_tenants_that_run_nothing() -> None:
    """A crowd that came to a shared process leaves one slot in sixteen to others."""
    process = Process(16)
    process.deliver("alone")
    process.finish("alone")
    for number in range(100):
        process.deliver_or_put_back("crowd", str(number))
    held = len(process.jobs)

    assert held == 15
    assert process.shares.is_full
    assert process.deliver("alone")
    assert not process.deliver("other"), "a full process is full for everybody"


def test_a_new_message_does_not_overtake_those_that_wait() -> None:
    process = crowded(4, 2)
    process.finish("crowd")
    process.finish("crowd")

    assert not process.deliver("crowd"), "it came last"
    assert process.shares.recall(0.0) == ["crowd 4", "crowd 5"]
    assert not process.deliver("crowd"), "the slots belong to the recalled ones"
    assert process.deliver("crowd", was_put_back=True)


def test_the_recalled_message_of_another_process_may_come_instead() -> None:
    """The queue gives a message to any process that asks, so the two exchange theirs."""
    process = crowded(2, 1)
    process.finish("crowd")
    process.shares.recall(0.0)

    assert process.deliver("elsewhere", was_put_back=True)
    assert process.slots.free == 0


def test_a_recalled_message_that_went_elsewhere_frees_its_slot_again() -> None:
    process = crowded(2, 4)
    process.finish("crowd")

    assert process.shares.recall(0.0) == ["crowd 2"]
    assert process.shares.recall(RECALL_S / 2) == []
    assert "crowd 3" in process.shares.recall(RECALL_S)


def test_more_and_more_is_recalled_while_other_processes_take_it() -> None:
    """They have free slots then. A message that comes back without a slot says the opposite."""
    process = crowded(1, 100)
    process.finish("crowd")

    counts = [len(process.shares.recall(RECALL_S * tick)) for tick in range(5)]
    process.deliver("crowd", was_put_back=True)
    process.deliver("crowd", was_put_back=True)

    assert counts == [1, 2, 3, 5, 9]
    assert process.shares.recall(RECALL_S * 4.5) == []


def test_a_process_that_keeps_its_reserve_free_stops_giving_messages_away() -> None:
    """Messages that come back to a process without a slot for them say that nobody else has one."""
    process = Process(16)
    process.deliver("alone")
    process.finish("alone")
    for number in range(100):
        process.deliver_or_put_back("crowd", str(number))
    process.finish("crowd")
    process.shares.recall(0.0)
    given_away = process.shares.recall(RECALL_S)
    for _ in given_away:
        process.deliver("crowd", RECALL_S, was_put_back=True)

    process.deliver("crowd", RECALL_S, was_put_back=True)

    assert process.slots.free == 1, "the reserve"
    assert process.shares.recall(RECALL_S) == []


def test_a_message_that_comes_by_itself_is_not_recalled() -> None:
    """Another process may have it by then, and a recall would take it away."""
    process = crowded(1, 2)
    process.finish("crowd")

    assert process.shares.recall(LATER) == []
    assert process.shares.waiting == 0


def test_a_process_asks_for_what_it_may_start() -> None:
    process = Process(16)
    assert process.shares.capacity == 16
    process.deliver("a")
    process.deliver("b")

    assert process.shares.capacity == 13, "one slot is the reserve"
