"""Every identity against every kind of subject, on a real server under the generated configuration."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Final

import pytest

from fairlead_eventlog.condition.self_description import NatsSelfDescription
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_eventlog.grants.services import SERVICE_IDENTITIES
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.provision import provision
from fairlead_eventlog.streams import log_stream
from fairlead_schema.identity.principal import Principal
from fairlead_schema.identity.scopes import scopes_of
from fairlead_schema.identity.verbs import VERBS
from fairlead_schema.subjects import Address, commit, log, shard
from fairlead_schema.tools.pool_rules import PoolRule, PoolRules
from fairlead_service import ids
from fairlead_service.rpc.service_api import ServiceApi
from fairlead_testing.nats import Server, run_guarded_server
from fairlead_testing.nats_probe import probe

pytestmark = pytest.mark.integration

API: Final = "$JS.API"
SUBJECTS: Final = {
    "log": "fairlead.log.acme.1.ses_x",
    "commit": "fairlead.commit.acme.1.ses_x",
    "wake": "fairlead.wake.acme.1.ses_x",
    "tools changed": "fairlead.registration",
    "source changed": "fairlead.source",
    "transforms changed": "fairlead.transform",
    "webhooks changed": "fairlead.webhook",
    "schedules changed": "fairlead.schedule",
    "free slots": "fairlead.free.runner-default",
    "free slots of workers": "fairlead.free.tools-default",
    "free slots of gpu workers": "fairlead.free.tools-gpu",
    "timer": "fairlead.timer.acme.1.ses_x",
    "due": "fairlead.due.acme.1.ses_x",
    "tool": "fairlead.tool.default.acme.ses_x",
    "tool of gpu": "fairlead.tool.gpu.acme.ses_x",
    "prompt": "fairlead.prompt.acme.ses_x",
    "receipt": "fairlead.receipt.acme.ses_x.msg_x",
    "event": "fairlead.event.acme.ses_x.session.created",
    "delta": "fairlead.delta.acme.ses_x",
    "message": "fairlead.message.acme.msg_x",
    "dead": "fairlead.dead.tests",
    "ping": "fairlead.ping.worker",
    "observe": "fairlead.observe.default",
    "observe gpu": "fairlead.observe.gpu",
    "files of gpu": "fairlead.files.gpu.capture",
    "attach to gpu": "fairlead.attach.gpu",
    "browse": "fairlead.browse.default.acme.file.list",
    "browse gpu": "fairlead.browse.gpu.acme.file.list",
    "open texts": "fairlead.open.run_1",
    "who is there": "$SRV.STATS",
    "tooling": "fairlead.tooling.default",
    "lookup": "fairlead.lookup.default",
    "spending": "fairlead.spending.acme",
    "app": "fairlead.app.acme.double",
    "job": "fairlead.job.acme.key:one.later",
    "verb of ingest": "fairlead.api.acme.session.interrupt",
    "own verb of ingest": "fairlead.as.acme.key:one.session.interrupt",
    "verb of tools": "fairlead.api.acme.tool.register",
    "own verb of tools": "fairlead.as.acme.key:one.tool.register",
    "verb of hooks": "fairlead.api.acme.webhook.test",
    "own verb of hooks": "fairlead.as.acme.key:one.webhook.test",
    "prompt for a schedule": "fairlead.api.acme.session.prompt",
    "verb of services": "fairlead.api.acme.permission.recheck",
    "snapshot": "$KV.fairlead-snapshot.acme.ses_x",
    "checkpoint": "$KV.fairlead-checkpoint.feed-0",
    "log status": "$KV.fairlead-log.level",
    "note of a backup": "$KV.fairlead-log.backup",
    "note of a failed backup": "$KV.fairlead-log.backup-failed",
    "approval": "$KV.fairlead-approval.acme.project",
    "source": "$KV.fairlead-source.acme.00",
    "transform": "$KV.fairlead-transform.acme.00",
    "webhook": "$KV.fairlead-webhook.acme.whk_1",
    "schedule": "$KV.fairlead-schedule.acme.sch_1",
    "hook state": "$KV.fairlead-hook-state.acme.whk_1",
    "undelivered": "$KV.fairlead-undelivered.acme.whk_1.dlv_1",
    "registration": "$KV.fairlead-registration.acme.a.b.-",
    "origin": "$KV.fairlead-origin.acme.ses_x",
    "output": "$O.fairlead-output.C.acme.ses_x.out.x",
    "all": ">",
    "system": "$SYS.REQ.SERVER.PING",
    "foreign inbox": "_INBOX_somebody.x",
}
STREAM_SUBJECTS: Final = {
    "read log": f"{API}.STREAM.MSG.GET.LOG-0",
    "read log in batches": f"{API}.DIRECT.GET.LOG-0",
    "purge log": f"{API}.STREAM.PURGE.LOG-0",
    "follow log": f"{API}.CONSUMER.CREATE.LOG-0.tests",
    "follow log with a filter": f"{API}.CONSUMER.CREATE.LOG-0.tests.fairlead.log.acme.1.ses_x",
    "take wakes": f"{API}.CONSUMER.MSG.NEXT.WAKES.runner-default",
    "purge wakes": f"{API}.STREAM.PURGE.WAKES",
    "take tools": f"{API}.CONSUMER.MSG.NEXT.TOOLS.tools-default",
    "ack tools": "$JS.ACK.TOOLS.tools-default.1.1.1.1.0",
    "take tools of gpu": f"{API}.CONSUMER.MSG.NEXT.TOOLS.tools-gpu",
    "ack tools of gpu": "$JS.ACK.TOOLS.tools-gpu.1.1.1.1.0",
    "take due timers": f"{API}.CONSUMER.MSG.NEXT.TIMERS.due",
    "read prompts": f"{API}.STREAM.MSG.GET.PROMPTS",
    "take prompts": f"{API}.CONSUMER.MSG.NEXT.PROMPTS.ingest",
    "read receipts in batches": f"{API}.DIRECT.GET.RECEIPTS",
    "follow log as the auditor": f"{API}.CONSUMER.CREATE.LOG-0.audit",
    "read approvals": f"{API}.STREAM.MSG.GET.KV_fairlead-approval",
    "read transforms": f"{API}.DIRECT.GET.KV_fairlead-transform",
    "read log status": f"{API}.STREAM.MSG.GET.KV_fairlead-log",
    "read snapshots": f"{API}.DIRECT.GET.KV_fairlead-snapshot",
    "read outputs": f"{API}.STREAM.MSG.GET.OBJ_fairlead-output",
    "purge outputs": f"{API}.STREAM.PURGE.OBJ_fairlead-output",
    "read dead letters": f"{API}.STREAM.MSG.GET.DEAD",
    "read webhooks": f"{API}.DIRECT.GET.KV_fairlead-webhook",
    "read feed": f"{API}.STREAM.MSG.GET.EVENTS",
    "take feed": f"{API}.CONSUMER.MSG.NEXT.EVENTS.hook=acme=whk_1",
    "make a consumer of the feed": f"{API}.CONSUMER.CREATE.EVENTS.hook=acme=whk_1",
    "delete a consumer of the feed": f"{API}.CONSUMER.DELETE.EVENTS.hook=acme=whk_1",
    "create stream": f"{API}.STREAM.CREATE.TESTS",
    "create log": f"{API}.STREAM.CREATE.LOG-0",
    "change log": f"{API}.STREAM.UPDATE.LOG-0",
    "delete log": f"{API}.STREAM.DELETE.LOG-0",
    "copy log": f"{API}.STREAM.SNAPSHOT.LOG-0",
    "restore log": f"{API}.STREAM.RESTORE.LOG-0",
    "create consumer of wakes": f"{API}.CONSUMER.CREATE.WAKES.runner-default",
    "create another consumer of wakes": f"{API}.CONSUMER.CREATE.WAKES.mine",
    "delete consumer of wakes": f"{API}.CONSUMER.DELETE.WAKES.runner-acme",
    "list streams": f"{API}.STREAM.NAMES",
    "account": f"{API}.INFO",
}
PUBLISHED: Final = SUBJECTS | STREAM_SUBJECTS

_READ: Final = {"read log", "read log in batches", "read log status"}
_WRITE: Final = _READ | {"log", "snapshot", "read snapshots", "wake", "dead"}
_WORKER: Final = _WRITE | {
    *("delta", "app", "job", "ping", "verb of ingest", "prompt for a schedule"),
    *("output", "read outputs", "purge outputs", "read approvals"),
    *("spending", "timer", "read transforms"),
}
MAY_PUBLISH: Final[dict[str, set[str]]] = {
    "ingest": _WRITE
    | {"receipt", "message", "approval", "read approvals", "take prompts", "purge wakes", "ping"}
    | {"spending", "create consumer of wakes", "read prompts", "origin", "output", "read outputs"}
    | {"observe", "lookup", "observe gpu", "browse", "browse gpu"}
    | {"webhook", "schedule", "read webhooks", "webhooks changed", "schedules changed"}
    | {"make a consumer of the feed", "delete a consumer of the feed"},
    "runner": _WRITE
    | {"take wakes", "take due timers", "timer", "tool", "delta", "observe", "tooling"}
    | {"tool of gpu", "observe gpu", "files of gpu", "attach to gpu"}
    | {"free slots of workers", "free slots of gpu workers"}
    | {"spending", "verb of ingest", "ping", "free slots", "create consumer of wakes"}
    | {"app", "read transforms"},
    "tools": _WORKER
    | {"take tools", "ack tools", "tool", "free slots of workers"}
    | {"registration", "source", "tools changed", "transform"}
    | {"source changed", "transforms changed"},
    "tools-gpu": _WORKER
    | {"take tools of gpu", "ack tools of gpu", "tool of gpu", "free slots of gpu workers"},
    "projector": _READ
    | {
        "purge log",
        "follow log",
        "follow log as the auditor",
        "wake",
        "create consumer of wakes",
        "purge wakes",
        "dead",
        "event",
        "checkpoint",
    }
    | {"read approvals", "purge outputs", "verb of services", "ping", "read dead letters"}
    | {"who is there"},
    "hooks": {"read log status", "read webhooks", "hook state", "undelivered"}
    | {"read feed", "take feed", "make a consumer of the feed", "delete a consumer of the feed"}
    | {"prompt for a schedule"},
    "gateway": _READ
    | {"verb of hooks", "prompt for a schedule"}
    | {"read snapshots", "read outputs", "spending", "verb of ingest", "verb of tools"}
    | {"open texts"},
    "audit": _READ | {"read receipts in batches", "follow log as the auditor"},
    "backup": {"copy log", "read log status", "note of a backup", "note of a failed backup"},
    "provision": {
        "create log",
        "change log",
        "log status",
        "note of a backup",
        "note of a failed backup",
        "read log status",
        "create consumer of wakes",
        "create another consumer of wakes",
        "make a consumer of the feed",
        "delete consumer of wakes",
        "purge wakes",
    },
    "operator": set(PUBLISHED) - {"all"},
}
_SERVED_BY_INGEST: Final = {
    *("verb of ingest", "own verb of ingest", "verb of services", "prompt for a schedule"),
}
MAY_SUBSCRIBE: Final[dict[str, set[str]]] = {
    "ingest": {"commit", "who is there", *_SERVED_BY_INGEST},
    "runner": {"commit", "free slots", "ping", "open texts", "tools changed", "transforms changed"}
    | {"free slots of workers", "free slots of gpu workers", "who is there"},
    "tools": {"commit", "ping", "observe", "tooling", "verb of tools", "own verb of tools"}
    | {"tools changed", "source changed", "free slots of workers", "lookup", "browse"}
    | {"who is there"},
    "tools-gpu": {"commit", "ping", "tools changed", "source changed", "who is there"}
    | {"free slots of gpu workers", "observe gpu", "files of gpu", "attach to gpu", "browse gpu"},
    "projector": {"commit", "spending", "who is there"},
    "gateway": {"commit", "delta", "who is there"},
    "hooks": {"webhooks changed", "schedules changed", "verb of hooks", "own verb of hooks"}
    | {"who is there"},
    "audit": set(),
    "backup": set(),
    "provision": set(),
    "operator": set(SUBJECTS),
}

ACME: Final = Principal("key:one", "acme", scopes_of(["admin"]))
VIEWER: Final = Principal("key:eyes", "acme", scopes_of(["viewer"]))
RIVAL: Final = Principal("service:shop", "rival", scopes_of(["admin"]))
PRINCIPALS: Final = (ACME, VIEWER, RIVAL)
POOLS: Final = PoolRules(
    (PoolRule("guests", tenants=("guest",)), PoolRule("gpu", directories=("/srv/gpu",)))
)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyDirectory:
    directory = KeyDirectory(tmp_path_factory.mktemp("nats") / "keys")
    directory.write(PRINCIPALS, pools=POOLS)
    return directory


@pytest.fixture(scope="module")
def guarded_server(keys: KeyDirectory) -> Iterator[Server]:
    """A server under the generated configuration."""
    with run_guarded_server(keys) as running:
        yield running


@pytest.mark.parametrize("identity", [*SERVICE_IDENTITIES, "tools-gpu"])
async def test_a_service_uses_its_own_subjects_and_no_others(
    identity: str, guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: a service that is taken over reaches only what it needs for its work."""
    async with probe(keys.service_address(guarded_server.url, identity)) as service:
        # A publish to a wildcard is a mistake of the client, so it is not tried.
        published = {name: subject for name, subject in PUBLISHED.items() if name != "all"}

        assert await service.publish(published) == MAY_PUBLISH[identity]
        assert await service.subscribe(SUBJECTS) == MAY_SUBSCRIBE[identity]


async def test_the_workers_of_one_tenant_write_no_log_of_another(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """C6: a worker that a hostile tenant takes over changes nothing of other tenants."""
    subjects = {
        f"{kind} of {tenant}": f"fairlead.{kind}.{tenant}.{rest}"
        for tenant in ("guest", "acme")
        for kind, rest in (
            ("log", "1.ses_x"),
            ("wake", "1.ses_x"),
            ("timer", "1.ses_x"),
            ("delta", "ses_x"),
            ("app", "double"),
            ("api", "session.prompt"),
        )
    }
    async with probe(keys.service_address(guarded_server.url, "tools-guests")) as worker:
        allowed = await worker.publish(subjects)

    assert allowed == {name for name in subjects if name.endswith("of guest")}


@pytest.mark.usefixtures("impatient")
async def test_a_stranger_is_refused_at_the_door(guarded_server: Server) -> None:
    """B9: nobody without a key connects, so there is no subject to try."""
    with pytest.raises(LogUnavailable, match=r"(?i)authorization violation"):
        async with open_link(guarded_server.address, name="stranger"):
            pytest.fail("a stranger connected")


@pytest.mark.parametrize("principal", PRINCIPALS, ids=lambda principal: principal.name)
async def test_a_client_of_a_tenant_reaches_nothing_of_the_platform(
    principal: Principal, guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: the log, the queues, the buckets and the API of streams belong to the services."""
    verbs = {"own verb of ingest", "own verb of tools", "own verb of hooks"}
    own = {"prompt", *verbs} if principal is ACME else set()
    heard = {"event", "receipt", "delta"} if principal.tenant == "acme" else set()
    served = {"app"} if principal is ACME else set()
    async with probe(keys.principal_address(guarded_server.url, principal)) as client:
        published = {name: subject for name, subject in PUBLISHED.items() if name != "all"}

        assert await client.publish(published) == own
        assert await client.subscribe(SUBJECTS) == heard | served


@pytest.mark.parametrize("principal", PRINCIPALS, ids=lambda principal: principal.name)
async def test_a_client_calls_the_verbs_of_its_scopes_in_its_own_name(
    principal: Principal, guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: grants follow the table of verbs, so HTTP and NATS cannot drift apart."""
    allowed = {
        verb for verb, rule in VERBS.items() if rule.scope is not None and principal.may(rule.scope)
    }
    async with probe(keys.principal_address(guarded_server.url, principal)) as client:
        for tenant, name, expected in (
            (principal.tenant, principal.name, allowed),
            (principal.tenant, "key:another", set[str]()),
            ("elsewhere", principal.name, set[str]()),
        ):
            verbs = {verb: f"fairlead.as.{tenant}.{name}.{verb}" for verb in VERBS}
            assert await client.publish(verbs) == expected


async def test_a_reply_subject_is_no_way_into_the_log(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: in one account the server would store its acknowledgement where the reply points.

    Tenants have accounts of their own, so that the reply stays in the account of the client.
    """
    await provision(keys.service_address(guarded_server.url, "provision"))
    at = Address("rival", ids.session_id())
    operator = keys.service_address(guarded_server.url, "operator")
    async with (
        connect(operator, name="test") as eventlog,
        open_link(operator, name="test") as link,
        probe(keys.principal_address(guarded_server.url, ACME)) as attacker,
    ):
        before = (await link.api("STREAM.INFO.PROMPTS"))["state"]["messages"]
        await attacker.client.publish("fairlead.prompt.acme.ses_x", b"{}", reply=log(at))
        await attacker.client.flush()
        await attacker.client.jetstream().publish("fairlead.prompt.acme.ses_x", b"{}")

        after = (await link.api("STREAM.INFO.PROMPTS"))["state"]["messages"]
        assert after - before == 2
        assert (await eventlog.log.head(at)).position == 0
        positions = [await eventlog.shards.last_position(shard) for shard in range(8)]
        assert sum(positions) == 0


async def test_the_gateway_has_no_way_into_the_log(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: the service that faces the network names the log as the reply of everything it may ask."""
    await provision(keys.service_address(guarded_server.url, "provision"))
    operator = keys.service_address(guarded_server.url, "operator")
    at = Address("acme", ids.session_id())
    async with (
        connect(operator, name="test") as eventlog,
        probe(keys.service_address(guarded_server.url, "gateway")) as attacker,
    ):
        for request in (
            f"{API}.STREAM.MSG.GET.LOG-0",
            f"{API}.DIRECT.GET.LOG-0",
            f"{API}.DIRECT.GET.KV_fairlead-snapshot",
        ):
            await attacker.client.publish(request, b'{"seq":1}', reply=log(at))
            # A request of its own comes back after the server has handled those before it.
            await attacker.client.request(f"{API}.STREAM.MSG.GET.LOG-0", b'{"seq":1}', timeout=10)

        assert (await eventlog.log.head(at)).position == 0
        assert not attacker.refused


async def test_the_gateway_reads_the_log_from_its_own_account(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: reads in one answer and in many, live commits, and the word that nobody serves a verb."""
    await provision(keys.service_address(guarded_server.url, "provision"))
    at = Address("acme", ids.session_id())
    async with (
        open_link(keys.service_address(guarded_server.url, "operator"), name="test") as writer,
        open_link(keys.service_address(guarded_server.url, "gateway"), name="test") as reader,
    ):
        live = await reader.client.subscribe(commit(at))
        await reader.client.flush()
        for number in range(3):
            await writer.store(log(at), str(number).encode())
        stream = log_stream(shard(at.session_id))
        last = await reader.last_message(stream, log(at))
        all_, _ = await reader.read_subject(stream, log(at), first=1, batch=10)

        assert last is not None
        assert last.payload == b"2"
        assert [message.payload for message in all_] == [b"0", b"1", b"2"]
        assert (await live.next_msg(timeout=10)).data == b"0"
        with pytest.raises(NoResponders):
            await reader.request("fairlead.api.acme.session.get", b"{}")


async def test_every_gateway_and_runner_says_that_it_is_there(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: gateways answer from their own account, each of them, and only the projector may ask."""
    names = ("fairlead-gateway", "fairlead-gateway", "fairlead-runner")
    described = [ServiceApi(name, name) for name in names]
    async with AsyncExitStack() as stack:

        async def join(identity: str) -> EventLog:
            address = keys.service_address(guarded_server.url, identity)
            return await stack.enter_async_context(connect(address, name="test"))

        for one in described:
            joined = await join(one.name.removeprefix("fairlead-"))
            await joined.self_description.start_answering(one.answers())
            assert await joined.log.head(Address("acme", ids.session_id()))
        projector, operator = await join("projector"), await join("operator")

        found = await projector.operations.services()
        subject = f"$SRV.PING.fairlead-gateway.{described[0].id}"
        alone = await operator.requests.request(subject, b"", timeout_s=10)
        with pytest.raises(NoResponders):
            await operator.requests.request("$SRV.PING.fairlead-nobody", b"", timeout_s=10)

    assert [(one.name, one.id) for one in found] == sorted((one.name, one.id) for one in described)
    assert {one.requests for one in found} == {0}
    assert described[0].id.encode() in alone


async def test_who_may_not_say_that_it_is_there_works_all_the_same(
    guarded_server: Server, keys: KeyDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    """A service of this release may start before the grants are written anew: the log says so."""
    await provision(keys.service_address(guarded_server.url, "provision"))
    async with open_link(keys.service_address(guarded_server.url, "audit"), name="test") as link:
        await NatsSelfDescription(link).start_answering(ServiceApi("a", "a").answers())
        await link.flush()

        assert link.client.violation is None
        async with asyncio.timeout(10):
            while "grant the subject" not in caplog.text:
                await asyncio.sleep(0.01)
        assert (await link.api("STREAM.INFO.LOG-0"))["state"]["messages"] >= 0


async def test_keys_are_private_and_outlive_a_second_writing(keys: KeyDirectory) -> None:
    """B8: only the owner reads the seeds, and a repeated command keeps them."""
    files = sorted(path for path in keys.root.iterdir())
    seeds = {path: path.read_bytes() for path in files}

    written = keys.write(PRINCIPALS, pools=POOLS)

    assert (written.created, written.exposed) == ((), ())
    assert {path: path.read_bytes() for path in files} == seeds
    assert keys.root.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
