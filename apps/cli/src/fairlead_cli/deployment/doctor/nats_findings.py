"""What `fairlead doctor` finds in the answers of nats-servers, and how to repair it."""

from collections.abc import Sequence

from fairlead_cli.checks import Finding
from fairlead_eventlog.condition.stream_sizes import ALARM_SHARE, StreamSize
from fairlead_eventlog.errors import (
    CredentialsRefused,
    CredentialsUnusable,
    ServerUnfit,
    SubjectRefused,
)
from fairlead_eventlog.replication import StreamCopies
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.record import LEVEL_NEWEST


def mend_nats(error: Exception, address: NatsAddress) -> str:
    """How to repair a connection to NATS that failed."""
    match error:
        case CredentialsUnusable():
            return f"correct {error.setting}; `fairlead provision --nats-auth DIR` makes keys"
        case CredentialsRefused():
            return (
                "take the key from the directory of `fairlead provision --nats-auth`, and reload"
                " nats-server with the auth.conf of that directory"
            )
        case ServerUnfit():
            return error.cure
        case SubjectRefused():
            return "set nats.nkey_file to operator.nk: the keys of services may not list streams"
        case _:
            return f"start nats-server at {address}, or correct [nats]"


def check_format(level: int) -> Finding:
    """Is the level of the log's format finalised that this release can write?"""
    if level > LEVEL_NEWEST:
        detail = f"level {level} is finalised, and this release knows {LEVEL_NEWEST}"
        return Finding("format", "fail", detail, "install the release that finalised it")
    if level < LEVEL_NEWEST:
        detail = f"level {level} is finalised, and this release has {LEVEL_NEWEST}"
        mend = "run `fairlead provision --finalise` when no older release will run again"
        return Finding("format", "warn", detail, mend)
    return Finding("format", "ok", f"level {level}, finalised")


def check_room(sizes: Sequence[StreamSize]) -> Finding:
    """Has every stream room for more?"""
    full = [f"{size.stream} ({size.share:.0%})" for size in sizes if size.share >= ALARM_SHARE]
    if full:
        mend = "purge sessions, or raise the limits in [streams] and run `fairlead provision`"
        return Finding("room", "warn", f"nearly full: {', '.join(full)}", mend)
    limited = sum(bool(size.bytes_max) for size in sizes)
    total = sum(size.bytes for size in sizes)
    return Finding("room", "ok", f"{total:,} bytes, {limited} of {len(sizes)} streams are limited")


def check_copies(found: Sequence[StreamCopies]) -> Finding | None:
    """Has every stream a leader and complete copies? None where a single server has them all."""
    without_leader = [copies.stream for copies in found if copies.leader is None]
    if without_leader:
        detail = f"{len(without_leader)} streams have no leader ({', '.join(without_leader[:3])} …)"
        return Finding("copies", "fail", detail, "start more nodes: a majority elects leaders")
    if not any(copies.cluster for copies in found):
        return None
    single = [copies.stream for copies in found if copies.copies == 1]
    if single:
        detail = f"{len(single)} streams have one copy: without its node a stream stands still"
        return Finding("copies", "warn", detail, "run `fairlead provision --replicas 3`")
    behind = sorted({server for copies in found for server in copies.behind})
    if behind:
        detail = f"{', '.join(behind)}: away, or not caught up yet"
        mend = (
            "start it, and free its disk if that is full (its log says so); it catches up by itself"
        )
        return Finding("copies", "warn", detail, mend)
    fewest = min(copies.copies for copies in found)
    return Finding("copies", "ok", f"{fewest} copies of each stream, all complete")
