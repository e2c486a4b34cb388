"""Totals of tenants as a process knows them, and the quota of running work. FINDINGS B11."""

import asyncio
import json
from collections.abc import Callable

from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_eventlog.quotas.running_quota import WAIT_S, WAIT_S_MAX, RunningQuota, wait_s
from fairlead_eventlog.quotas.tenant_totals import ADDED_SPAN_S, TenantTotalsReader, TotalsTimings
from fairlead_schema import subjects
from fairlead_schema.commands.quota import QuotaLimits, QuotaPolicy

ALWAYS_FRESH = TotalsTimings(fresh_s=60.0, lag_s=60.0)
NEVER_FRESH = TotalsTimings(fresh_s=0.0, kept_s=60.0, lag_s=0.0)


class Projector:
    """Answers with totals, and counts the questions."""

    def __init__(self, **totals: int) -> None:
        self.requests = MemoryRequests()
        self.totals: dict[str, int | str] = dict(totals)
        self.asked = 0
        self.principal: str | None = None
        self.answer_principal = False
        self.requests.answerers[subjects.tenant_usage("acme")] = self.answer

    async def answer(self, body: bytes) -> bytes:
        self.asked += 1
        self.principal = json.loads(body).get("principal")
        await asyncio.sleep(0)
        named = {"principal": self.principal} if self.answer_principal else {}
        return json.dumps({"data": self.totals | named}).encode()


def quota_of(
    projector: Projector, allowed: int | None, on_unknown: Callable[[], None] = lambda: None
) -> RunningQuota:
    totals = TenantTotalsReader(projector.requests, ALWAYS_FRESH)
    return RunningQuota("turns", totals, policy_of(allowed), on_unknown=on_unknown)


def policy_of(tenant: int | None, principal: int | None = None) -> QuotaPolicy:
    whole, own = QuotaLimits(turns=tenant), QuotaLimits(turns=principal)
    return QuotaPolicy(lambda _tenant: whole, lambda _tenant: own)


async def test_many_questions_at_once_are_one_request() -> None:
    projector = Projector(turns=3, logBytes=7)
    totals = TenantTotalsReader(projector.requests, ALWAYS_FRESH)

    answers = await asyncio.gather(*(totals.load("acme") for _ in range(20)))

    assert {answer and (answer.turns, answer.log_bytes) for answer in answers} == {(3, 7)}
    assert projector.asked == 1


async def test_a_principal_has_totals_of_its_own() -> None:
    """B11: what one principal adds counts for neither the tenant nor another principal."""
    projector = Projector(sessions=3)
    totals = TenantTotalsReader(projector.requests, ALWAYS_FRESH)
    tenant = await totals.load("acme")
    projector.totals = {"sessions": 1, "principal": "key:ann"}
    ann = await totals.load("acme", "key:ann")
    totals.add("acme", "sessions", principal="key:ann")

    added = await totals.load("acme", "key:ann")

    assert projector.principal == "key:ann"
    assert (tenant and tenant.sessions, ann and ann.sessions, added and added.sessions) == (3, 1, 2)
    assert await totals.load("acme") == tenant


async def test_an_answer_for_the_tenant_is_no_answer_for_a_principal() -> None:
    """A projector of an earlier release does not read the question, and nobody may be refused."""
    totals = TenantTotalsReader(Projector(sessions=99).requests, ALWAYS_FRESH)

    assert await totals.load("acme", "key:ann") is None


async def test_an_old_answer_holds_while_a_new_one_is_on_its_way() -> None:
    """Only the first question waits for the projector, so prompts stay quick."""
    projector = Projector(turns=1)
    totals = TenantTotalsReader(projector.requests, NEVER_FRESH)
    await totals.load("acme")
    projector.totals = {"turns": 2}

    held = await totals.load("acme")
    awaited = await totals.load("acme", fresh_s=0.0)

    assert held is not None
    assert awaited is not None
    assert (held.turns, awaited.turns) == (1, 2)


async def test_only_the_first_question_waits_for_a_silent_projector() -> None:
    """A paused projector delays one prompt, and not every prompt of its pause."""
    requests, asked, silence = MemoryRequests(), asyncio.Semaphore(0), asyncio.Event()

    async def answer(_body: bytes) -> bytes:
        asked.release()
        await silence.wait()
        return b""

    requests.answerers[subjects.tenant_usage("acme")] = answer
    timings = TotalsTimings(fresh_s=0.0, kept_s=0.0, timeout_s=0.05)
    totals = TenantTotalsReader(requests, timings)
    assert await totals.load("acme") is None

    second = asyncio.create_task(totals.load("acme"))
    await asyncio.sleep(0)

    assert second.done()
    assert second.result() is None
    async with asyncio.timeout(5):
        await asked.acquire()
        await asked.acquire()


async def test_additions_count_until_an_answer_includes_them() -> None:
    projector = Projector(sessions=1)
    totals = TenantTotalsReader(projector.requests, NEVER_FRESH)
    totals.add("acme", "sessions")
    await totals.load("acme")
    totals.add("acme", "sessions")
    totals.add("acme", "log_bytes", 10)
    totals.add("acme", "sessions")

    before = await totals.load("acme")
    projector.totals = {"sessions": 3, "logBytes": 10}
    await asyncio.sleep(2 * ADDED_SPAN_S)
    after = await totals.load("acme", fresh_s=0.0)

    assert before is not None
    assert after is not None
    assert (before.sessions, before.log_bytes) == (3, 10)
    assert (after.sessions, after.log_bytes) == (3, 10)


async def test_a_flood_of_additions_is_kept_as_a_few_numbers() -> None:
    """A check must not become slow because this process admits much."""
    totals = TenantTotalsReader(Projector().requests, ALWAYS_FRESH)
    await totals.load("acme")

    for _ in range(20_000):
        totals.add("acme", "pending")
        totals.add("acme", "log_bytes", 3)
        await totals.load("acme")

    found = await totals.load("acme")
    assert found is not None
    assert (found.pending, found.log_bytes) == (20_000, 60_000)


async def test_of_work_that_begins_at_once_only_as_much_runs_as_the_quota_allows() -> None:
    """B11: the burst is bounded in one process although the projector knows nothing of it yet."""
    quota = quota_of(Projector(turns=1), 3)

    waits = await asyncio.gather(*(quota.take("acme", number) for number in range(6)))

    assert [wait is None for wait in waits] == [True, True, False, False, False, False]
    reached = [wait.reached for wait in waits if wait is not None]
    assert {(one.quota, one.used, one.allowed) for one in reached} == {("turns", 3, 3)}


async def test_work_that_ended_makes_room_at_once() -> None:
    projector = Projector(turns=0)
    totals = TenantTotalsReader(projector.requests, NEVER_FRESH)
    quota = RunningQuota("turns", totals, policy_of(1))
    assert await quota.take("acme", "first") is None
    assert await quota.take("acme", "second") is not None

    quota.release("acme", "first")

    assert await quota.take("acme", "second") is None


async def test_without_a_projector_a_process_keeps_the_quota_for_itself() -> None:
    """B11: quotas fail open, and still one process cannot begin without bound."""
    projector, unknown = Projector(), list[int]()
    projector.requests.answerers.clear()
    quota = quota_of(projector, 2, lambda: unknown.append(1))

    waits = [await quota.take("acme", number) for number in range(3)]

    assert [wait is None for wait in waits] == [True, True, False]
    assert len(unknown) == 3


async def test_without_a_limit_nobody_is_asked() -> None:
    projector = Projector(turns=99)
    quota = quota_of(projector, None)

    assert await quota.take("acme", "any") is None
    assert projector.asked == 0


async def test_work_that_the_projector_counts_too_is_not_counted_twice() -> None:
    projector = Projector(turns=0)
    totals = TenantTotalsReader(projector.requests, NEVER_FRESH)
    quota = RunningQuota("turns", totals, policy_of(2))
    await quota.take("acme", "first")
    projector.totals = {"turns": 1}
    await totals.load("acme", fresh_s=0.0)

    assert await quota.take("acme", "second") is None


async def test_work_of_other_processes_counts() -> None:
    """B11: the quota holds over all processes, as the projector counts them."""
    quota = quota_of(Projector(turns=2), 2)

    assert await quota.take("acme", "one more") is not None
    assert await quota.take("other", "another tenant") is None


async def test_a_principal_at_its_quota_leaves_room_for_the_others_of_its_tenant() -> None:
    """B11: work counts for its principal and for the tenant, and the refusal says whose quota it is."""
    projector = Projector(turns=0)
    totals = TenantTotalsReader(projector.requests, ALWAYS_FRESH)
    quota = RunningQuota("turns", totals, policy_of(4, principal=2))

    ann = [await quota.take("acme", f"ann {number}", "key:ann") for number in range(3)]
    bob = [await quota.take("acme", f"bob {number}", "key:bob") for number in range(3)]
    nobody = await quota.take("acme", "a session of nobody")

    waits = [wait.reached for wait in (*ann, *bob, nobody) if wait is not None]
    assert [wait is None for wait in (*ann, *bob)] == [True, True, False, True, True, False]
    assert [(reached.name, reached.used) for reached in waits] == [
        ("principal.turns", 2),
        ("turns", 4),
        ("turns", 4),
    ]


async def test_work_of_a_principal_that_ended_makes_room_for_the_principal_and_its_tenant() -> None:
    totals = TenantTotalsReader(Projector(turns=0).requests, NEVER_FRESH)
    quota = RunningQuota("turns", totals, policy_of(1, principal=1))
    await quota.take("acme", "first", "key:ann")
    assert await quota.take("acme", "second", "key:ann") is not None

    quota.release("acme", "first", "key:ann")

    assert await quota.take("acme", "second", "key:ann") is None
    assert await quota.take("acme", "third", "key:bob") is not None


async def test_what_other_processes_run_for_a_principal_counts() -> None:
    """B11: the projector counts for each principal, and the tenant alone may still have room."""
    projector = Projector(turns=2)
    projector.answer_principal = True
    totals = TenantTotalsReader(projector.requests, ALWAYS_FRESH)
    quota = RunningQuota("turns", totals, policy_of(100, principal=2))

    wait = await quota.take("acme", "one more", "key:ann")

    assert wait is not None
    assert (wait.reached.name, projector.principal) == ("principal.turns", "key:ann")


def test_where_many_wait_each_looks_less_often() -> None:
    assert wait_s(1) == WAIT_S
    assert wait_s(2) > wait_s(1)
    assert wait_s(10_000) == WAIT_S_MAX
