"""The grants of Fairlead's own services: exactly what each does with the log, and no more."""

from typing import Final, Literal, TypeAlias, get_args

from fairlead_eventlog.backup.copy_order import RESTORE_ORDER
from fairlead_eventlog.grants import permissions as may
from fairlead_eventlog.grants.crossings import Crossings, crossings_of
from fairlead_eventlog.grants.granted_names import FAILED_BACKUP, LAST_BACKUP, QUEUES, copy_name
from fairlead_eventlog.grants.permissions import Permissions
from fairlead_eventlog.streams import (
    APPROVALS,
    ATTACHMENT_BUCKET,
    ATTACHMENTS,
    CHECKPOINTS,
    DEAD,
    EVENTS,
    HOOK_STATES,
    JOBS,
    LOG_STATUS,
    MESSAGES,
    ORIGINS,
    OUTPUT_BUCKET,
    OUTPUTS,
    PROMPTS,
    RECEIPTS,
    REGISTRATIONS,
    SCHEDULES,
    SNAPSHOTS,
    SOURCES,
    STREAMS,
    TIMERS,
    TOOLS,
    TRANSFORMS,
    UNDELIVERED,
    WAKES,
    WAKES_CONSUMER,
    WEBHOOKS,
    consumers,
    log_stream,
    tools_consumer,
)
from fairlead_schema.identity.nats_address import identity_inbox
from fairlead_schema.identity.verbs import LOCATION_VERBS, VERBS, VerbService
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import (
    ROOT,
    SCHEDULES_CHANGED,
    SHARDS,
    SOURCES_CHANGED,
    TOOLS_CHANGED,
    TRANSFORMS_CHANGED,
    WEBHOOKS_CHANGED,
    free_slots,
)
from fairlead_schema.tools.pool_rules import DEFAULT_POOL, worker_identity

ServiceIdentity: TypeAlias = Literal[
    "ingest",
    "runner",
    "tools",
    "projector",
    "gateway",
    "hooks",
    "audit",
    "backup",
    "provision",
    "operator",
]
"""`audit` only reads. `provision` changes the declared streams and deletes no log. `operator` is a person who may do everything."""

SERVICE_IDENTITIES: Final[tuple[ServiceIdentity, ...]] = get_args(ServiceIdentity)
READER: Final[ServiceIdentity] = "gateway"
"""It writes nothing and faces the network: it has an account of its own, as tenants have."""
AUDIT_READER: Final = "audit"
_OF_ONE_TENANT: Final = ("log", "wake", "timer", "delta", "app", "job", "api", "spending")
"""Subjects of a worker that name the tenant next."""
LOGS: Final = tuple(log_stream(shard) for shard in range(SHARDS))


def service_grants(service: ServiceIdentity, *, default_pool: str = DEFAULT_POOL) -> Permissions:
    """Everything that a service may do on NATS, its own inbox included."""
    granted = _GRANTS[service] + may.subscribe(f"{identity_inbox(service)}.>")
    if service == READER:
        # A question crosses from the platform's account, a broadcast would leave no way back.
        return granted + _DESCRIBE_ITSELF
    return granted + _serve_pool(default_pool) if service == "tools" else granted


def worker_grants(pool: str, tenants: tuple[TenantId, ...] = ()) -> Permissions:
    """What a worker of a pool may do that is not the default one: serve that pool alone.

    The workers of a pool for some tenants write no log, wake or timer of another tenant.
    """
    inbox = identity_inbox(worker_identity(pool))
    granted = _WORK + _serve_pool(pool) + may.subscribe(f"{inbox}.>")
    if not tenants:
        return granted
    narrow = tuple(f"{ROOT}.{kind}.*" for kind in _OF_ONE_TENANT)
    own = [subject for subject in granted.publish if not subject.startswith(narrow)]
    for subject in granted.publish:
        if subject.startswith(narrow):
            own += [subject.replace("*", tenant, 1) for tenant in tenants]
    return Permissions(tuple(own), granted.subscribe)


def reader_crossings() -> Crossings:
    """What crosses between the account of the reader and the platform's."""
    return crossings_of(_GRANTS[READER], served=_DESCRIBE_ITSELF.subscribe)


def _serve(service: VerbService) -> Permissions:
    """Answer every verb of a service, from other services and from tenants' own clients."""
    verbs = {verb: rule for verb, rule in VERBS.items() if rule.service == service}
    return may.subscribe(
        *(f"{ROOT}.api.*.{verb}" for verb in verbs),
        *(f"{ROOT}.as.*.*.{verb}" for verb, rule in verbs.items() if rule.scope is not None),
        *(f"{ROOT}.every.*.{verb}" for verb, rule in verbs.items() if rule.repeatable),
    )


def _call(*verbs: str) -> Permissions:
    """Call some verbs for any tenant."""
    return may.publish(*(f"{ROOT}.api.*.{verb}" for verb in verbs))


_READ_LOG: Final = (
    may.read_last(*LOGS, LOG_STATUS.name)
    + may.read_many(*LOGS)
    + may.subscribe(f"{ROOT}.commit.*.*.*")
)
_WRITE_LOG: Final = _READ_LOG + may.publish(f"{ROOT}.log.*.*.*") + may.read_state(*LOGS)
_CHANGE_STATUS: Final = may.read_last(LOG_STATUS.name) + may.publish(*LOG_STATUS.subjects)
_READ_SNAPSHOTS: Final = may.read_many(SNAPSHOTS.name)
_WRITE_SNAPSHOTS: Final = _READ_SNAPSHOTS + may.publish(*SNAPSHOTS.subjects)
# Services of the release before this one list the consumers before they leave a wake.
_LEAVE_WAKES: Final = may.publish(*WAKES.subjects, f"{may.API}.CONSUMER.NAMES.{WAKES.name}")
# Who finds the consumer of wakes gone makes it again.
_KEEP_WAKES_CONSUMER: Final = may.inspect_consumer(
    WAKES.name, WAKES_CONSUMER
) + may.create_consumer(WAKES.name, WAKES_CONSUMER)
_RENEW_WAKES: Final = (
    _LEAVE_WAKES + _KEEP_WAKES_CONSUMER + may.read_last(WAKES.name) + may.purge(WAKES.name)
)
_SHARE_FAIRLY: Final = may.publish(f"{ROOT}.free.*") + may.subscribe(f"{ROOT}.free.*")
_PING: Final = may.publish(f"{ROOT}.ping.*")
_ANSWER_PINGS: Final = may.subscribe(f"{ROOT}.ping.*")
_DEAD_LETTERS: Final = may.publish(f"{ROOT}.dead.*")
_READ_APPROVALS: Final = may.read_last(APPROVALS.name)
_READ_OUTPUTS: Final = may.read_last(OUTPUTS.name) + may.read_many(OUTPUTS.name)
_READ_ATTACHMENTS: Final = may.read_last(ATTACHMENTS.name) + may.read_many(ATTACHMENTS.name)
_STORE_ATTACHMENTS: Final = (
    _READ_ATTACHMENTS
    + may.publish(f"$O.{ATTACHMENT_BUCKET}.>")
    + may.read_state(ATTACHMENTS.name)
    + may.purge(ATTACHMENTS.name)
)
_REMOVE_OUTPUTS: Final = may.read_state(OUTPUTS.name, ATTACHMENTS.name) + may.purge(
    OUTPUTS.name, ATTACHMENTS.name
)
_ASK_TOTALS: Final = may.publish(f"{ROOT}.spending.*")
_ASK_SERVICES: Final = may.publish("$SRV.STATS")
_DESCRIBE_ITSELF: Final = may.subscribe("$SRV.>")
# A shard needs no acknowledgement. But the server remembers each reply that an identity may not use.
_FOLLOW_SHARDS: Final = may.publish(
    *(f"{may.API}.CONSUMER.{act}.{stream}.*" for stream in LOGS for act in ("CREATE", "DELETE")),
    *(subject for stream in LOGS for subject in may.take(stream, "*").publish),
)

# The auditor reads each shard with one consumer of its own name, and no consumer of another reader is in its reach.
_AUDIT_SHARDS: Final = may.publish(
    *(
        f"{may.API}.CONSUMER.{act}.{stream}.{AUDIT_READER}"
        for stream in LOGS
        for act in ("CREATE", "DELETE", "INFO")
    ),
    *(subject for stream in LOGS for subject in may.take(stream, AUDIT_READER).publish),
)

_REGISTER_HOOKS: Final = (
    may.read_last(WEBHOOKS.name, SCHEDULES.name, HOOK_STATES.name)
    + may.read_many(WEBHOOKS.name, SCHEDULES.name)
    + may.publish(*WEBHOOKS.subjects, *SCHEDULES.subjects, WEBHOOKS_CHANGED, SCHEDULES_CHANGED)
    + may.purge(WEBHOOKS.name, SCHEDULES.name)
    + may.read_state(EVENTS.name)
)
# Names of consumers are one token, so a grant cannot name those of webhooks alone.
_READ_FEED: Final = (
    may.publish(
        f"{may.API}.CONSUMER.NAMES.{EVENTS.name}",
        *(f"{may.API}.CONSUMER.{act}.{EVENTS.name}.*" for act in ("INFO", "CREATE", "DELETE")),
    )
    + may.take(EVENTS.name, "*")
    + may.read_last(EVENTS.name)
)

# What every worker does, whatever its pool.
_WORK: Final = (
    _WRITE_LOG
    + _WRITE_SNAPSHOTS
    + _LEAVE_WAKES
    + _PING
    + _ANSWER_PINGS
    + _DEAD_LETTERS
    + _DESCRIBE_ITSELF
    + _ASK_TOTALS
    + may.subscribe(TOOLS_CHANGED, SOURCES_CHANGED)
    + _STORE_ATTACHMENTS
    + may.publish(f"{ROOT}.delta.*.*", f"{ROOT}.app.*.>", *JOBS.subjects)
    + may.publish(f"{ROOT}.timer.*.*.*")
    + _call("session.create", "session.prompt", "session.interrupt")
    + _READ_APPROVALS
    + _READ_OUTPUTS
    + _REMOVE_OUTPUTS
    + may.publish(f"$O.{OUTPUT_BUCKET}.>")
    + may.read_many(REGISTRATIONS.name, SOURCES.name, TRANSFORMS.name)
    + may.read_last(SOURCES.name)
)
# Tenants register tools, sources and transforms with workers of the default pool.
_REGISTER: Final = (
    _serve("tools")
    # Workers of the release before this one answer these verbs themselves.
    + may.subscribe(
        *(f"{ROOT}.{door}.{verb}" for door in ("api.*", "as.*.*") for verb in LOCATION_VERBS)
    )
    + may.publish(TOOLS_CHANGED, SOURCES_CHANGED, TRANSFORMS_CHANGED)
    + may.create_consumer(JOBS.name, "*")
    + may.purge(REGISTRATIONS.name, SOURCES.name, TRANSFORMS.name)
    + may.publish(*REGISTRATIONS.subjects, *SOURCES.subjects, *TRANSFORMS.subjects)
)


def _serve_pool(pool: str) -> Permissions:
    """Serve the locations of one pool, and no other."""
    consumer = tools_consumer(pool)
    free = free_slots(consumer)
    return (
        may.subscribe(
            *(f"{ROOT}.{asked}.{pool}" for asked in ("observe", "tooling", "attach", "lookup")),
            f"{ROOT}.files.{pool}.*",
            f"{ROOT}.browse.{pool}.>",
            free,
        )
        + may.take(TOOLS.name, consumer)
        + may.publish(f"{ROOT}.tool.{pool}.>", free)
    )


_GRANTS: Final[dict[ServiceIdentity, Permissions]] = {
    "tools": _WORK + _REGISTER,
    "ingest": _WRITE_LOG
    + _WRITE_SNAPSHOTS
    + _RENEW_WAKES
    + _PING
    + _DEAD_LETTERS
    + _DESCRIBE_ITSELF
    + _serve("ingest")
    + _ASK_TOTALS
    + may.publish(f"{ROOT}.observe.*", f"{ROOT}.lookup.*", f"{ROOT}.browse.>")
    + may.take(PROMPTS.name, "ingest")
    + may.read_last(PROMPTS.name)
    + may.publish(*RECEIPTS.subjects, *MESSAGES.subjects)
    + may.read_last(MESSAGES.name)
    + may.read_last(ORIGINS.name)
    + may.read_last(CHECKPOINTS.name)
    + may.publish(*ORIGINS.subjects, f"$O.{OUTPUT_BUCKET}.>")
    + _READ_OUTPUTS
    + _STORE_ATTACHMENTS
    + _READ_APPROVALS
    + may.publish(*APPROVALS.subjects)
    + may.create_consumer(EVENTS.name, "*")
    + may.publish(f"{may.API}.CONSUMER.DELETE.{EVENTS.name}.*")
    + may.publish(f"{may.API}.CONSUMER.INFO.{EVENTS.name}.*")
    + _REGISTER_HOOKS,
    "runner": _WRITE_LOG
    + _WRITE_SNAPSHOTS
    + _LEAVE_WAKES
    + _KEEP_WAKES_CONSUMER
    + may.take(WAKES.name, WAKES_CONSUMER)
    + _SHARE_FAIRLY
    + may.subscribe(TOOLS_CHANGED, TRANSFORMS_CHANGED)
    + may.read_many(TRANSFORMS.name)
    + may.publish(f"{ROOT}.app.*.>")
    + may.take(TIMERS.name, "due")
    + may.publish(f"{ROOT}.timer.*.*.*", *TOOLS.subjects, f"{ROOT}.delta.*.*")
    + may.publish(f"{ROOT}.observe.*", f"{ROOT}.tooling.*", f"{ROOT}.attach.*", f"{ROOT}.files.*.*")
    + _READ_ATTACHMENTS
    + may.subscribe(f"{ROOT}.open.*")
    + _ASK_TOTALS
    + _call("session.interrupt")
    + _PING
    + _ANSWER_PINGS
    + _DESCRIBE_ITSELF
    + _DEAD_LETTERS,
    "projector": _READ_LOG
    + may.read_state(*(stream.name for stream in STREAMS))
    + may.list_consumers(*QUEUES)
    + may.read_last(*QUEUES)
    + may.purge(*LOGS)
    + may.publish("$KV.fairlead-log.incarnation")
    + _FOLLOW_SHARDS
    + may.purge(SNAPSHOTS.name)
    + _RENEW_WAKES
    + _PING
    + _REMOVE_OUTPUTS
    + _DEAD_LETTERS
    + _DESCRIBE_ITSELF
    + may.publish(*EVENTS.subjects)
    + may.purge(EVENTS.name)
    + may.read_last(CHECKPOINTS.name)
    + may.publish(*CHECKPOINTS.subjects)
    + _READ_APPROVALS
    + may.read_state(APPROVALS.name)
    + _call("permission.recheck", "ask.expire")
    + may.read_last(DEAD.name)
    + _ASK_SERVICES
    + may.subscribe(f"{ROOT}.spending.*", f"{ROOT}.operations.*"),
    "gateway": _READ_LOG
    + _READ_SNAPSHOTS
    + _READ_OUTPUTS
    + _READ_ATTACHMENTS
    + _ASK_TOTALS
    + may.publish(f"{ROOT}.operations.*")
    + may.subscribe(f"{ROOT}.delta.*.*")
    + may.publish(f"{ROOT}.open.*")
    + _call(*(verb for verb, rule in VERBS.items() if rule.scope is not None))
    + may.publish(*(f"{ROOT}.every.*.{verb}" for verb, rule in VERBS.items() if rule.repeatable)),
    # It reaches addresses outside, so it changes no registration and no log.
    "hooks": _READ_FEED
    + _DESCRIBE_ITSELF
    + _serve("hooks")
    + may.read_last(LOG_STATUS.name, WEBHOOKS.name, SCHEDULES.name)
    + may.read_many(WEBHOOKS.name, SCHEDULES.name)
    + may.subscribe(WEBHOOKS_CHANGED, SCHEDULES_CHANGED)
    + may.read_last(HOOK_STATES.name, UNDELIVERED.name)
    + may.read_many(HOOK_STATES.name, UNDELIVERED.name)
    + may.publish(*HOOK_STATES.subjects, *UNDELIVERED.subjects)
    + may.purge(HOOK_STATES.name, UNDELIVERED.name)
    + _call("session.create", "session.prompt"),
    "audit": may.read_last(*LOGS, LOG_STATUS.name)
    + may.read_many(*LOGS, RECEIPTS.name)
    + may.read_state(*LOGS, RECEIPTS.name)
    + _AUDIT_SHARDS,
    # It reads everything that cannot be made again, whole, and writes nothing but when it did so.
    "backup": may.read_state(*RESTORE_ORDER)
    + may.read_last(LOG_STATUS.name)
    + may.publish(LAST_BACKUP, FAILED_BACKUP)
    + may.copy(*RESTORE_ORDER),
    "provision": may.publish(
        *(
            f"{may.API}.STREAM.{action}.{stream.name}"
            for action in ("INFO", "CREATE", "UPDATE")
            for stream in STREAMS
        ),
        # A stream of hints is made anew if its persist mode changes. Nobody deletes the log.
        *(f"{may.API}.STREAM.DELETE.{stream.name}" for stream in STREAMS if stream.lazy),
        # The others of that kind move through a copy, with their consumers (docs/adr/0035).
        *(
            f"{may.API}.STREAM.{action}.{copy_name(stream.name)}"
            for action in ("INFO", "CREATE", "UPDATE", "DELETE")
            for stream in STREAMS
            if stream.lazy
        ),
        f"{may.API}.CONSUMER.LIST.{EVENTS.name}",
        f"{may.API}.CONSUMER.CREATE.{EVENTS.name}.*",
        *(
            f"{may.API}.CONSUMER.{action}.{stream}.*"
            for action in ("INFO", "CREATE")
            for stream in dict.fromkeys(consumer.stream for consumer in consumers())
        ),
        # Earlier releases made a consumer of wakes for each tenant.
        f"{may.API}.CONSUMER.NAMES.{WAKES.name}",
        f"{may.API}.CONSUMER.DELETE.{WAKES.name}.*",
    )
    + may.purge(SNAPSHOTS.name, WAKES.name)
    + _CHANGE_STATUS,
    "operator": Permissions((">",), (">",)),
}
