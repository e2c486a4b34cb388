"""The ports beside log and queues, tested in memory and on JetStream alike."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import AppendConflict, NoResponders
from fairlead_eventlog.ports import START, FeedItem, FeedState, Head, LogEntry
from fairlead_eventlog.register_ports import Snapshot
from fairlead_eventlog.replicas.tenant_broadcasts import TenantListener
from fairlead_schema import subjects
from fairlead_schema.delta import Delta, TextDelta
from fairlead_schema.events import SyntheticAdded
from fairlead_schema.record import Draft, decode
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.events import drafts


async def test_an_instance_is_gone_until_it_answers(eventlog: EventLog) -> None:
    instance = ids.runner_id()

    assert await eventlog.liveness.ping(instance, timeout_s=2) == "gone"
    await eventlog.liveness.start_answering(instance)
    assert await eventlog.liveness.ping(instance, timeout_s=2) == "alive"


async def test_a_message_id_belongs_to_the_first_session_that_binds_it(
    eventlog: EventLog,
) -> None:
    """A-18."""
    message, mine, other = ids.message_id(), ids.session_id(), ids.session_id()

    assert await eventlog.message_ids.bind("default", message, mine) == mine
    assert await eventlog.message_ids.bind("default", message, other) == mine
    assert await eventlog.message_ids.bind("default", message, mine) == mine
    assert await eventlog.message_ids.bind("elsewhere", message, other) == other


async def until_loaded(eventlog: EventLog, at: Address, expected: Snapshot | None) -> None:
    """Wait for a snapshot: one is read from any copy, and a copy may lag."""
    async with asyncio.timeout(30):
        while await eventlog.snapshots.load(at) != expected:
            await asyncio.sleep(0.02)


async def test_a_snapshot_is_the_last_one_stored(eventlog: EventLog, at: Address) -> None:
    assert await eventlog.snapshots.load(at) is None
    await eventlog.snapshots.store(at, Snapshot(Head(1, 2), b"old\nlines"))
    await eventlog.snapshots.store(at, Snapshot(Head(3, 4), b"new\nlines"))

    await until_loaded(eventlog, at, Snapshot(Head(3, 4), b"new\nlines"))


async def test_a_dropped_snapshot_is_gone(eventlog: EventLog, at: Address) -> None:
    await eventlog.snapshots.store(at, Snapshot(Head(1, 2), b"state"))

    for _ in range(2):
        await eventlog.snapshots.remove(at)

    await until_loaded(eventlog, at, None)


async def test_all_snapshots_can_be_dropped(eventlog: EventLog, at: Address) -> None:
    await eventlog.snapshots.store(at, Snapshot(Head(1, 2), b"state"))

    await eventlog.snapshots.remove_all()

    await until_loaded(eventlog, at, None)


async def test_the_entries_of_a_session_are_read_as_they_are(
    eventlog: EventLog, at: Address
) -> None:
    stored = [await eventlog.log.append(at, ids.commit_id(), drafts(1), after=START)]
    for _ in range(120):
        head = stored[-1].head
        stored.append(await eventlog.log.append(at, ids.commit_id(), drafts(1), after=head))

    entries = [entry async for entry in eventlog.shards.session_entries(at, after=0)]

    assert [(entry.position, entry.at) for entry in entries] == [
        (commit.position, at) for commit in stored
    ]
    assert [decode(entry.payload) for entry in entries] == [commit.commit for commit in stored]
    after = stored[-2].position
    assert [e async for e in eventlog.shards.session_entries(at, after=after)] == entries[-1:]
    shard = subjects.shard(at.session_id)
    assert await eventlog.shards.entry_at(shard, entries[3].position) == entries[3]
    beyond = await eventlog.shards.last_position(shard) + 1
    assert await eventlog.shards.entry_at(shard, beyond) is None
    assert await eventlog.shards.next_position(shard, after=beyond - 1) is None
    before = entries[3].position - 1
    assert await eventlog.shards.next_position(shard, after=before) == entries[3].position


async def test_the_state_of_a_feed_changes_only_for_who_saw_the_last(
    eventlog: EventLog, at: Address
) -> None:
    shard = 6
    _state, revision = await eventlog.feed.state(shard)
    wanted = FeedState("a1b2", {at: 7})

    saved = await eventlog.feed.save_state(shard, wanted, revision=revision)

    assert await eventlog.feed.state(shard) == (wanted, saved)
    with pytest.raises(AppendConflict):
        await eventlog.feed.save_state(shard, FeedState(), revision=revision)
    assert await eventlog.feed.state(shard) == (wanted, saved)


async def test_deltas_reach_who_listens_now(eventlog: EventLog, at: Address) -> None:
    received: asyncio.Queue[Delta] = asyncio.Queue()

    async def listen() -> None:
        async for delta in eventlog.deltas.listen(at):
            received.put_nowait(delta)

    listening = asyncio.create_task(listen())
    sent = TextDelta(assistant_message_id="msg_a", text_id="t", delta="hi")
    huge = sent.model_copy(update={"delta": "x" * 9 * 1024 * 1024})
    try:
        # A fragment that is too large for a message is dropped, and the turn goes on.
        await eventlog.deltas.send(at, huge)
        for _ in range(200):
            await eventlog.deltas.send(at, sent)
            await asyncio.sleep(0.01)
            if not received.empty():
                break
        assert received.get_nowait() == sent
    finally:
        listening.cancel()


async def test_everything_of_a_tenant_reaches_who_listens(eventlog: EventLog) -> None:
    """Commits and fragments of all sessions of one tenant, and of no other tenant."""
    at = Address("tenant-of-its-own", ids.session_id())
    received: list[tuple[Address, object]] = []
    listener = TenantListener(
        on_commit=lambda at, commit: received.append((at, commit.payload)),
        on_delta=lambda at, delta: received.append((at, delta)),
        on_loss=lambda: None,
    )
    stop = await eventlog.tenant_broadcasts.listen(at.tenant, listener)
    delta = TextDelta(assistant_message_id="msg_a", text_id="t", delta="hi")
    foreign = Address(f"{at.tenant}x", at.session_id)
    said = SyntheticAdded(message_id="msg_1", text="said")
    try:
        async with asyncio.timeout(20):
            while len(received) < 2:  # The nodes of a cluster tell each other of a subscription.
                for each in (foreign, at):
                    await eventlog.deltas.send(each, delta)
                    head = await eventlog.log.head(each)
                    draft = Draft(ids.event_id(), 1, said)
                    await eventlog.log.append(each, ids.commit_id(), (draft,), after=head)
                await asyncio.sleep(0.05)
    finally:
        stop()

    assert {to for to, _what in received} == {at}
    assert delta in [what for _to, what in received]
    assert any(isinstance(what, bytes) and b"said" in what for _to, what in received)


async def test_a_request_that_nobody_serves_says_so(eventlog: EventLog) -> None:
    with pytest.raises(NoResponders):
        await eventlog.requests.request("fairlead.api.default.nothing", b"", timeout_s=2)


async def test_a_registration_is_kept_for_its_tenant_until_it_is_dropped(
    eventlog: EventLog,
) -> None:
    tenant = ids.session_id()
    assert await eventlog.tool_registrations.get_all(tenant) == {}

    await eventlog.tool_registrations.put(tenant, "svc.one.-", b"1")
    await eventlog.tool_registrations.put(tenant, "svc.two.-", b"2")
    await eventlog.tool_registrations.put(tenant, "svc.one.-", b"new")
    assert await eventlog.tool_registrations.get_all(tenant) == {
        "svc.one.-": b"new",
        "svc.two.-": b"2",
    }
    assert await eventlog.tool_registrations.get_all(f"{tenant}x") == {}

    for _ in range(2):
        await eventlog.tool_registrations.remove(tenant, "svc.one.-")
    assert await eventlog.tool_registrations.get_all(tenant) == {"svc.two.-": b"2"}


async def test_whoever_watches_is_told_of_each_change_of_a_tenants_tools(
    eventlog: EventLog,
) -> None:
    """D5: and reads the change then."""
    tenant, changed = ids.session_id(), asyncio.Queue[str | None]()
    await eventlog.tool_registrations.watch(changed.put_nowait)

    async def told() -> dict[str, bytes]:
        async with asyncio.timeout(20):
            while await changed.get() != tenant:
                pass
        return await eventlog.tool_registrations.get_all(tenant)

    await eventlog.tool_registrations.put(tenant, "svc.one.-", b"1")
    assert await told() == {"svc.one.-": b"1"}
    await eventlog.tool_registrations.put(tenant, "svc.one.-", b"2")
    assert await told() == {"svc.one.-": b"2"}
    await eventlog.tool_registrations.remove(tenant, "svc.one.-")
    assert await told() == {}


async def test_whoever_watches_is_told_of_each_change_of_a_source(eventlog: EventLog) -> None:
    """P-14: by tenant and key."""
    tenant, changed = ids.session_id(), asyncio.Queue[tuple[str | None, str | None]]()
    await eventlog.sources.watch(lambda *change: changed.put_nowait(change))

    await eventlog.sources.announce(tenant, "acme/the weather.today")

    async with asyncio.timeout(20):
        assert await changed.get() == (tenant, "acme/the weather.today")


async def test_the_transforms_of_all_tenants_are_read_at_once(eventlog: EventLog) -> None:
    """P-20: a runner reads them once, and again after each change that it is told of."""
    one, other = ids.session_id(), ids.session_id()
    changed = asyncio.Queue[str | None]()
    await eventlog.transforms.watch(changed.put_nowait)

    async def told(tenant: str) -> dict[str, dict[str, bytes]]:
        async with asyncio.timeout(20):
            while await changed.get() != tenant:
                pass
        found = await eventlog.transforms.get_all_tenants()
        return {name: found[name] for name in (one, other) if name in found}

    await eventlog.transforms.put(one, "aa", b"1")
    assert await told(one) == {one: {"aa": b"1"}}
    await eventlog.transforms.put(other, "bb", b"2")
    assert await told(other) == {one: {"aa": b"1"}, other: {"bb": b"2"}}
    await eventlog.transforms.remove(one, "aa")
    assert await told(one) == {other: {"bb": b"2"}}
    assert await eventlog.tool_registrations.get_all(other) == {}, "they are no tools"


async def test_a_shard_is_followed_in_order_from_any_position(
    eventlog: EventLog, at: Address
) -> None:
    head = START
    for _ in range(5):
        head = (await eventlog.log.append(at, ids.commit_id(), drafts(), after=head)).head
    shard = subjects.shard(at.session_id)

    async def follow_session(after: int, count: int) -> list[LogEntry]:
        entries: list[LogEntry] = []
        batches: AsyncIterator[Sequence[LogEntry]] = eventlog.shards.follow(
            shard, after=after, reader="contract"
        )
        async with asyncio.timeout(20):
            async for batch in batches:
                entries += [entry for entry in batch if entry.at == at]
                if len(entries) >= count:
                    break
        return entries

    everything = await follow_session(0, 5)
    assert [entry.position for entry in everything] == sorted(e.position for e in everything)
    assert await follow_session(everything[2].position, 2) == everything[3:]
    assert await eventlog.shards.last_position(shard) >= head.position


async def test_a_feed_checkpoint_moves_only_for_who_saw_the_last(eventlog: EventLog) -> None:
    shard = 7
    position, revision = await eventlog.feed.checkpoint(shard)

    moved = await eventlog.feed.advance(shard, position + 10, revision=revision)

    with pytest.raises(AppendConflict):
        await eventlog.feed.advance(shard, position + 99, revision=revision)
    assert await eventlog.feed.checkpoint(shard) == (position + 10, moved)


async def test_a_feed_item_published_twice_is_there_once(eventlog: EventLog, at: Address) -> None:
    item = FeedItem(subjects.event(at, "step.ended"), ids.event_id(), b"{}")

    await eventlog.feed.publish([item, item])
    await eventlog.feed.publish([item])


async def test_a_closed_session_keeps_its_last_item_alone(eventlog: EventLog, at: Address) -> None:
    """Closing is repeatable, because a publisher that crashed begins again."""
    items = [FeedItem(subjects.event(at, "step.ended"), ids.event_id(), b"{}") for _ in range(3)]
    await eventlog.feed.publish(items)
    last = FeedItem(subjects.event(at, "session.purged"), ids.event_id(), b"{}")

    for _ in range(2):
        await eventlog.feed.close(at, last)


async def test_a_dead_letter_is_kept(eventlog: EventLog) -> None:
    await eventlog.dead_letters.add(
        "prompt", "fairlead.prompt.default.ses_x", b"\xffrubbish", "why"
    )


async def test_an_approval_is_kept_once_per_project(eventlog: EventLog) -> None:
    """K-16, K-28: one per pattern, in order, and a duplicate is ignored."""
    approvals, project = eventlog.approvals, ids.session_id()
    await approvals.save("default", project, "bash", ["git *", "ls", "git *"])
    await approvals.save("default", project, "bash", ["ls"])
    await approvals.save("default", project, "edit", ["ls"])

    saved = await approvals.get_all("default", project)

    assert [(approval.action, approval.resource) for approval in saved] == [
        ("bash", "git *"),
        ("bash", "ls"),
        ("edit", "ls"),
    ]
    assert len({approval.id for approval in saved}) == len(saved)
    assert {approval.project_id for approval in saved} == {project}


async def test_approvals_of_other_projects_and_tenants_are_none_of_ours(eventlog: EventLog) -> None:
    """K-16: an approval is the project's, and a tenant's projects are its own."""
    approvals, project = eventlog.approvals, ids.session_id()
    await approvals.save("default", project, "bash", ["*"])

    assert await approvals.get_all("other", project) == ()
    assert await approvals.get_all("default", f"{project}x") == ()


async def test_an_approval_is_taken_back_by_its_id(eventlog: EventLog) -> None:
    """K-28: removed, and removing it again, or what never was, changes nothing."""
    approvals, project = eventlog.approvals, ids.session_id()
    await approvals.save("default", project, "bash", ["a", "b"])
    first, second = await approvals.get_all("default", project)

    await approvals.remove("other", first.id)
    assert await approvals.get_all("default", project) == (first, second)
    for id_ in (first.id, first.id, "psv_", "psv_*_x", "nothing", "psv_ab_cd_ef"):
        await approvals.remove("default", id_)

    assert await approvals.get_all("default", project) == (second,)


async def test_approvals_saved_side_by_side_all_stay(eventlog: EventLog) -> None:
    """K-28: several people approve at once, and no approval undoes another."""
    approvals, project = eventlog.approvals, ids.session_id()

    await asyncio.gather(
        *(approvals.save("default", project, "bash", [str(number)]) for number in range(8))
    )

    saved = await approvals.get_all("default", project)
    assert {approval.resource for approval in saved} == {str(number) for number in range(8)}


async def test_the_revision_tells_that_approvals_changed(eventlog: EventLog) -> None:
    """K-17: what was looked at before must be looked at again."""
    approvals, project = eventlog.approvals, ids.session_id()
    before = await approvals.revision()

    await approvals.save("default", project, "bash", ["*"])

    assert await approvals.revision() > before


async def test_a_source_is_registered_once_until_it_is_taken_back(eventlog: EventLog) -> None:
    """F-20, F-21: a key belongs to the first service, and after a removal to the next."""
    pool, key = ids.message_id(), "acme/wea..ther.-/x."

    assert await eventlog.sources.get_all(pool) == {}
    assert await eventlog.sources.add(pool, key, b"one") == b"one"
    assert await eventlog.sources.add(pool, key, b"two") == b"one"
    assert await eventlog.sources.add(pool, "acme/a", b"a") == b"a"
    wanted = [("acme/a", b"a"), (key, b"one")]
    async with asyncio.timeout(20):
        # A replica may lag behind the acknowledgement.
        while (found := list((await eventlog.sources.get_all(pool)).items())) != wanted:
            assert set(found) <= set(wanted)
            await asyncio.sleep(0.01)
    await eventlog.sources.remove(pool, key)
    assert await eventlog.sources.add(pool, key, b"two") == b"two"
    assert await eventlog.sources.get_all(ids.message_id()) == {}


async def test_many_sources_are_all_found(eventlog: EventLog) -> None:
    """F-19: more than one page of them, in key order."""
    pool = ids.message_id()
    keys = [f"acme/{index:04}" for index in range(300)]
    for key in reversed(keys):
        await eventlog.sources.add(pool, key, key.encode())

    assert list(await eventlog.sources.get_all(pool)) == keys
