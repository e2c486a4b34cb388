"""NATS subjects and the partition function. Both are contracts, so this module has all of them."""

import zlib
from functools import lru_cache
from typing import NamedTuple

from fairlead_schema.identity.subject_token import (
    parse_principal_token,
    principal_consumer_part,
    principal_token,
)
from fairlead_schema.ids import MessageId, SessionId, TenantId

PARTITIONS = 64
SHARDS = 8

ROOT = "fairlead"
TOOLS_CHANGED = f"{ROOT}.registration"
"""A worker publishes here that a tenant's tools changed, so that nobody offers the old ones."""
SOURCES_CHANGED = f"{ROOT}.source"
"""A worker publishes here that a registered context source changed: `<t> <key in hexadecimal>`."""
TRANSFORMS_CHANGED = f"{ROOT}.transform"
"""A worker publishes here that a tenant's transforms changed, so that no runner uses the old ones."""
WEBHOOKS_CHANGED = f"{ROOT}.webhook"
"""Ingest publishes here that a webhook of a tenant changed."""
SCHEDULES_CHANGED = f"{ROOT}.schedule"
"""Ingest publishes here that a schedule of a tenant changed."""
BY_HEADER = "Fairlead-By"
"""The header with the principal of a request. It counts only on subjects of services."""
RESTRICTIONS_HEADER = "Fairlead-Restrictions"
"""The header with the restrictions of that principal, as JSON. It counts where `BY_HEADER` does."""
KEY_HEADER = "Idempotency-Key"
"""The header with a caller's own key for one command. It counts on every subject."""
KEY_LENGTH_MAX = 255


class Address(NamedTuple):
    """One session of one tenant."""

    tenant: TenantId
    session_id: SessionId


@lru_cache(maxsize=4096)
def partition(session_id: SessionId) -> int:
    """The partition of a session. It never changes, because subjects contain it."""
    return zlib.crc32(session_id.encode()) % PARTITIONS


def shard(session_id: SessionId) -> int:
    """The log shard of a session."""
    return partition(session_id) % SHARDS


def log(at: Address) -> str:
    return f"{ROOT}.log.{at.tenant}.{partition(at.session_id)}.{at.session_id}"


def commit(at: Address) -> str:
    """The subject on which the server republishes a stored commit for live readers."""
    return f"{ROOT}.commit.{at.tenant}.{partition(at.session_id)}.{at.session_id}"


def wake(at: Address) -> str:
    return f"{ROOT}.wake.{at.tenant}.{partition(at.session_id)}.{at.session_id}"


def tool(at: Address, pool: str) -> str:
    return f"{ROOT}.tool.{pool}.{at.tenant}.{at.session_id}"


def prompt(at: Address) -> str:
    return f"{ROOT}.prompt.{at.tenant}.{at.session_id}"


def receipt(at: Address, message_id: MessageId) -> str:
    return f"{ROOT}.receipt.{at.tenant}.{at.session_id}.{message_id}"


def refusal(at: Address, message_id: MessageId, publication: int) -> str:
    """The refusal of one publication, named by its sequence in the intake."""
    return f"{receipt(at, message_id)}.{publication}"


def event(at: Address, type_: str) -> str:
    return f"{ROOT}.event.{at.tenant}.{at.session_id}.{type_}"


def every_event(tenant: TenantId, type_: str) -> str:
    """The subjects of one type of event in all sessions of a tenant."""
    return f"{ROOT}.event.{tenant}.*.{type_}"


def delta(at: Address) -> str:
    return f"{ROOT}.delta.{at.tenant}.{at.session_id}"


def every_commit(tenant: TenantId) -> str:
    """The subjects of all commits of a tenant, as the server republishes them."""
    return f"{ROOT}.commit.{tenant}.*.*"


def every_delta(tenant: TenantId) -> str:
    """The subjects of all live fragments of a tenant."""
    return f"{ROOT}.delta.{tenant}.*"


def message(tenant: TenantId, message_id: MessageId) -> str:
    """The subject that binds a message id to the one session that may use it."""
    return f"{ROOT}.message.{tenant}.{message_id}"


def api(tenant: TenantId, verb: str) -> str:
    return f"{ROOT}.api.{tenant}.{verb}"


def every_server(tenant: TenantId, verb: str) -> str:
    """The subject on which every server of a repeatable verb answers, not only one of them."""
    return f"{ROOT}.every.{tenant}.{verb}"


def as_principal(tenant: TenantId, principal: str, verb: str) -> str:
    """The subject of a verb for a tenant's own client. NATS grants it to that principal alone."""
    return f"{ROOT}.as.{tenant}.{principal_token(principal)}.{verb}"


def principal_of(subject: str) -> str | None:
    """The principal that the subject of a tenant's own client names; None for other subjects."""
    tokens = subject.split(".", 4)
    return parse_principal_token(tokens[3]) if tokens[:2] == [ROOT, "as"] else None


def feed_consumer(tenant: TenantId, principal: str) -> str:
    """The consumer of the public feed that belongs to a tenant's own client."""
    return f"feed-{tenant}-{principal_consumer_part(principal)}"


def job_consumer(tenant: TenantId, principal: str) -> str:
    """The consumer of the queued calls of the tools that a tenant's own client registered."""
    return f"jobs-{tenant}-{principal_consumer_part(principal)}"


def application_tool_prefix(tenant: TenantId) -> str:
    """The prefix of the subjects of a tenant's application tools."""
    return f"{ROOT}.app.{tenant}."


def queued_tool_prefix(tenant: TenantId) -> str:
    """The prefix of the subjects of a tenant's queued application tools."""
    return f"{ROOT}.job.{tenant}."


def observe(pool: str) -> str:
    """The subject on which the tools service of a pool answers context observations."""
    return f"{ROOT}.observe.{pool}"


def look_up(pool: str) -> str:
    """The subject on which the tools service of a pool answers what the names in a prompt lead to."""
    return f"{ROOT}.lookup.{pool}"


def attach(pool: str) -> str:
    """The subject on which the tools service of a pool takes the attachments of prompts."""
    return f"{ROOT}.attach.{pool}"


def tool_catalog(pool: str) -> str:
    """The subject on which the tools service of a pool lists the tools that may be called."""
    return f"{ROOT}.tooling.{pool}"


def file_snapshot(pool: str, act: str) -> str:
    """The subject on which the tools service of a pool takes snapshots of files, or restores them."""
    return f"{ROOT}.files.{pool}.{act}"


def browse(pool: str, tenant: TenantId, verb: str) -> str:
    """The subject on which the tools service of a pool answers a verb about a location of a tenant."""
    return f"{ROOT}.browse.{pool}.{tenant}.{verb}"


def tenant_usage(tenant: TenantId) -> str:
    """The subject on which the projector answers how much a tenant has used."""
    return f"{ROOT}.spending.{tenant}"


def operations(tenant: TenantId) -> str:
    """The subject on which the projector reports services, streams and the dead letters of a tenant."""
    return f"{ROOT}.operations.{tenant}"


def ping(instance: str) -> str:
    """The subject on which a runner or tool worker answers that it is alive."""
    return f"{ROOT}.ping.{instance}"


def open_texts(instance: str) -> str:
    """The subject on which a runner answers what the open blocks of its sessions say so far."""
    return f"{ROOT}.open.{instance}"


def timer(at: Address) -> str:
    """The subject that sets a session's one timer. A second timer replaces the first."""
    return f"{ROOT}.timer.{at.tenant}.{partition(at.session_id)}.{at.session_id}"


def timer_due(at: Address) -> str:
    """The subject on which a session's timer fires."""
    return f"{ROOT}.due.{at.tenant}.{partition(at.session_id)}.{at.session_id}"


def free_slots(consumer: str) -> str:
    """The subject on which a process says that it has free slots for the messages of a consumer."""
    return f"{ROOT}.free.{consumer}"


def dead_letter(source: str) -> str:
    """The subject for messages from `source` that no service can ever handle."""
    return f"{ROOT}.dead.{source}"


def tenant(subject: str) -> TenantId:
    """The tenant in a wake or a tool subject."""
    tokens = subject.split(".")
    return tokens[3] if tokens[1] == "tool" else tokens[2]


def delta_address(subject: str) -> Address:
    """The session in the subject of a live fragment."""
    root, kind, tenant, session_id = subject.split(".")
    assert (root, kind) == (ROOT, "delta"), subject
    return Address(tenant, session_id)


def event_address(subject: str) -> Address:
    """The session in the subject of an event of the feed."""
    root, kind, tenant, session_id, _type = subject.split(".", 4)
    assert (root, kind) == (ROOT, "event"), subject
    return Address(tenant, session_id)


def address(subject: str) -> Address:
    """The session in a log, commit, wake or timer subject."""
    root, kind, tenant, _partition, session_id = subject.split(".")
    assert root == ROOT, subject
    assert kind in {"log", "commit", "wake", "timer", "due"}, subject
    return Address(tenant, session_id)
