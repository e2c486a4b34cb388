"""Addresses: an address is a contract, so every subject and the partition function are here."""

import zlib
from typing import NamedTuple

from fairlead_schema.ids import MessageId, SessionId, TenantId

PARTITIONS = 64
SHARDS = 8

ROOT = "fairlead"


class Address(NamedTuple):
    """One session of one tenant."""

    tenant: TenantId
    session_id: SessionId


def partition(session_id: SessionId) -> int:
    """The partition of a session: stable for ever, because subjects carry it."""
    return zlib.crc32(session_id.encode()) % PARTITIONS


def shard(session_id: SessionId) -> int:
    """The log shard that holds a session."""
    return partition(session_id) % SHARDS


def log(at: Address) -> str:
    return f"{ROOT}.log.{at.tenant}.{partition(at.session_id)}.{at.session_id}"


def commit(at: Address) -> str:
    """Where a stored commit is republished for live tails."""
    return f"{ROOT}.commit.{at.tenant}.{partition(at.session_id)}.{at.session_id}"


def wake(at: Address) -> str:
    return f"{ROOT}.wake.{at.tenant}.{partition(at.session_id)}.{at.session_id}"


def tool(at: Address, pool: str) -> str:
    return f"{ROOT}.tool.{pool}.{at.tenant}.{at.session_id}"


def prompt(at: Address) -> str:
    return f"{ROOT}.prompt.{at.tenant}.{at.session_id}"


def receipt(at: Address, message_id: MessageId) -> str:
    return f"{ROOT}.receipt.{at.tenant}.{at.session_id}.{message_id}"


def event(at: Address, type_: str) -> str:
    return f"{ROOT}.event.{at.tenant}.{at.session_id}.{type_}"


def delta(at: Address) -> str:
    return f"{ROOT}.delta.{at.tenant}.{at.session_id}"


def message(tenant: TenantId, message_id: MessageId) -> str:
    """Where a message id is bound to the one session that may use it."""
    return f"{ROOT}.message.{tenant}.{message_id}"


def api(tenant: TenantId, verb: str) -> str:
    return f"{ROOT}.api.{tenant}.{verb}"


def application(tenant: TenantId) -> str:
    """What the subjects of a tenant's own tools begin with."""
    return f"{ROOT}.app.{tenant}."


def job(tenant: TenantId) -> str:
    """What the subjects of a tenant's queued tools begin with."""
    return f"{ROOT}.job.{tenant}."


def observe(pool: str) -> str:
    """Where the tools service that owns a location answers context observations."""
    return f"{ROOT}.observe.{pool}"


def tooling(pool: str) -> str:
    """Where the tools service that owns a location answers which tools may be called."""
    return f"{ROOT}.tooling.{pool}"


def source(pool: str, verb: str) -> str:
    """Where services register context sources of their own, and take them back."""
    return f"{ROOT}.source.{pool}.{verb}"


def spending(tenant: TenantId) -> str:
    """Where the projector answers what a tenant has used."""
    return f"{ROOT}.spending.{tenant}"


def ping(instance: str) -> str:
    """Where a runner or tool worker says that it lives."""
    return f"{ROOT}.ping.{instance}"


def timer(at: Address) -> str:
    """Where a session's one timer is set; setting it again replaces it."""
    return f"{ROOT}.timer.{at.tenant}.{partition(at.session_id)}.{at.session_id}"


def due(at: Address) -> str:
    """Where a session's timer says that its time has come."""
    return f"{ROOT}.due.{at.tenant}.{partition(at.session_id)}.{at.session_id}"


def dead(source: str) -> str:
    """Where a poison message from `source` goes, with its reason."""
    return f"{ROOT}.dead.{source}"


def address(subject: str) -> Address:
    """The session a log, commit, wake or timer subject speaks of."""
    root, kind, tenant, _partition, session_id = subject.split(".")
    assert root == ROOT, subject
    assert kind in {"log", "commit", "wake", "timer", "due"}, subject
    return Address(tenant, session_id)
