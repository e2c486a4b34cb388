"""The streams and consumers as data. Only provisioning creates or changes them."""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from fairlead_schema.subjects import PARTITIONS, ROOT, SHARDS

DAY_S: Final = 24 * 60 * 60
COMMIT_BYTES_MAX: Final = 8 * 1024 * 1024
# A tool request goes to another worker after this long without an extension by its worker.
TOOL_DEADLINE_S: Final = 10.0
# A published prompt goes to another ingest after this long without an extension by its ingest.
INTAKE_DEADLINE_S: Final = 3.0
# The default of `runner.wake_deadline_s`.
WAKE_DEADLINE_S: Final = 2.0
OUTPUT_BUCKET: Final = "fairlead-output"
ATTACHMENT_BUCKET: Final = "fairlead-attachment"
WAKES_CONSUMER: Final = "runner-default"
"""All runners pull from it. The name is that of an older consumer, which older releases look for."""
# Messages that were put back count as pending. A limit would stop the queue for everybody.
UNLIMITED: Final = -1


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One stream, with the options of the server's configuration."""

    name: str
    subjects: tuple[str, ...]
    description: str
    storage: Literal["file", "memory"] = "file"
    retention: Literal["limits", "workqueue"] = "limits"
    discard: Literal["old", "new"] = "old"
    one_per_subject: bool = False
    refuse_second: bool = False
    max_age_s: int = 0
    max_bytes: int = -1
    duplicate_window_s: int = 120
    allow_direct: bool = True
    allow_rollup: bool = False
    republish: tuple[str, str] | None = None
    schedules: bool = False
    lazy: bool = False
    """Acknowledge before the message is on disk: only for hints that may be lost."""


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """One durable consumer of a work queue."""

    stream: str
    name: str
    ack_wait_s: float
    max_ack_pending: int
    filter_subject: str | None = None


def log_stream(shard: int) -> str:
    """The stream of one log shard."""
    return f"LOG-{shard}"


def _log(shard: int) -> StreamSpec:
    partitions = range(shard, PARTITIONS, SHARDS)
    return StreamSpec(
        name=log_stream(shard),
        subjects=tuple(f"{ROOT}.log.*.{partition}.*" for partition in partitions),
        description="Session commits: the truth.",
        republish=(f"{ROOT}.log.>", f"{ROOT}.commit.>"),
    )


def _bucket(name: str, description: str) -> StreamSpec:
    """A key-value bucket: one message per key."""
    return StreamSpec(
        name=f"KV_{name}",
        subjects=(f"$KV.{name}.>",),
        description=description,
        one_per_subject=True,
        allow_rollup=True,
    )


WAKES: Final = StreamSpec(
    name="WAKES",
    subjects=(f"{ROOT}.wake.*.*.*",),
    description="Advisory wakes, one per session; a second is refused (docs/adr/0007).",
    retention="workqueue",
    discard="new",
    one_per_subject=True,
    refuse_second=True,
    lazy=True,
)
TIMERS: Final = StreamSpec(
    name="TIMERS",
    subjects=(f"{ROOT}.timer.*.*.*", f"{ROOT}.due.*.*.*"),
    description="Durable timers, one per session, and those whose time has come.",
    retention="workqueue",
    allow_rollup=True,
    schedules=True,
)
TOOLS: Final = StreamSpec(
    name="TOOLS",
    subjects=(f"{ROOT}.tool.*.*.*",),
    description="Tool call requests: hints like wakes (docs/adr/0021).",
    retention="workqueue",
    lazy=True,
)
PROMPTS: Final = StreamSpec(
    name="PROMPTS",
    subjects=(f"{ROOT}.prompt.*.*",),
    description="Durable intake: publish and forget.",
    retention="workqueue",
)
RECEIPTS: Final = StreamSpec(
    name="RECEIPTS",
    subjects=(f"{ROOT}.receipt.*.*.*", f"{ROOT}.receipt.*.*.*.*"),
    description="Answers of the durable intake; refusals under their publication too.",
    one_per_subject=True,
    max_age_s=7 * DAY_S,
)
EVENTS: Final = StreamSpec(
    name="EVENTS",
    subjects=(f"{ROOT}.event.*.*.>",),
    description="The public feed: one message per public event (docs/adr/0011).",
    duplicate_window_s=600,
    lazy=True,
)
MESSAGES: Final = StreamSpec(
    name="MESSAGES",
    subjects=(f"{ROOT}.message.*.*",),
    description="Message ids and the session each is bound to.",
    discard="new",
    one_per_subject=True,
    refuse_second=True,
)
DEAD: Final = StreamSpec(
    name="DEAD",
    subjects=(f"{ROOT}.dead.>",),
    description="Messages that can never be handled, with their reasons.",
    max_age_s=30 * DAY_S,
)
SNAPSHOTS: Final = _bucket("fairlead-snapshot", "Folded sessions: a cache.")
OUTPUTS: Final = StreamSpec(
    name=f"OBJ_{OUTPUT_BUCKET}",
    subjects=(f"$O.{OUTPUT_BUCKET}.C.>", f"$O.{OUTPUT_BUCKET}.M.>"),
    description="Managed outputs of tools: an object store.",
    discard="new",
    max_age_s=7 * DAY_S,
    allow_rollup=True,
)
ATTACHMENTS: Final = StreamSpec(
    name=f"OBJ_{ATTACHMENT_BUCKET}",
    subjects=(f"$O.{ATTACHMENT_BUCKET}.C.>", f"$O.{ATTACHMENT_BUCKET}.M.>"),
    description="Attachments of prompts: an object store, kept as long as their sessions.",
    discard="new",
    allow_rollup=True,
)
CHECKPOINTS: Final = _bucket("fairlead-checkpoint", "How far the public feed has come, per shard.")
LOG_STATUS: Final = _bucket("fairlead-log", "The level and the incarnation of the log.")
ORIGINS: Final = _bucket("fairlead-origin", "Who replays into a session, per session.")
APPROVALS: Final = _bucket("fairlead-approval", "What people approved for always, by project.")
SOURCES: Final = _bucket(
    "fairlead-source", "Context sources that services registered, per tenant and key."
)

REGISTRATIONS: Final = _bucket("fairlead-registration", "The tools that services registered.")
TRANSFORMS: Final = _bucket(
    "fairlead-transform", "Transforms that services registered, per tenant and name."
)
WEBHOOKS: Final = _bucket("fairlead-webhook", "Webhooks with their secrets, per tenant.")
SCHEDULES: Final = _bucket("fairlead-schedule", "Scheduled prompts, per tenant.")
HOOK_STATES: Final = _bucket(
    "fairlead-hook-state", "What became of webhooks and schedules: written by the hooks service."
)
UNDELIVERED: Final = replace(
    _bucket("fairlead-undelivered", "Deliveries to webhooks that were given up, with reasons."),
    max_age_s=30 * DAY_S,
)
JOBS: Final = StreamSpec(
    name="JOBS",
    subjects=(f"{ROOT}.job.*.>",),
    description="Calls of queued application tools, for the services that registered them.",
    retention="workqueue",
    duplicate_window_s=3600,
)

STREAMS: Final = (
    *(_log(shard) for shard in range(SHARDS)),
    WAKES,
    TIMERS,
    TOOLS,
    PROMPTS,
    RECEIPTS,
    EVENTS,
    MESSAGES,
    DEAD,
    SNAPSHOTS,
    OUTPUTS,
    ATTACHMENTS,
    CHECKPOINTS,
    LOG_STATUS,
    APPROVALS,
    REGISTRATIONS,
    JOBS,
    SOURCES,
    ORIGINS,
    TRANSFORMS,
    WEBHOOKS,
    SCHEDULES,
    HOOK_STATES,
    UNDELIVERED,
)


def tools_consumer(pool: str) -> str:
    """The consumer that the workers of one pool share."""
    return f"tools-{pool}"


def _tools(pool: str) -> ConsumerSpec:
    return ConsumerSpec(
        TOOLS.name,
        tools_consumer(pool),
        ack_wait_s=TOOL_DEADLINE_S,
        max_ack_pending=UNLIMITED,
        filter_subject=f"{ROOT}.tool.{pool}.>",
    )


def wakes_consumer(deadline_s: float) -> ConsumerSpec:
    """The one consumer of wakes: all runners share it, and all tenants."""
    return ConsumerSpec(
        WAKES.name,
        WAKES_CONSUMER,
        ack_wait_s=deadline_s,
        max_ack_pending=UNLIMITED,
        filter_subject=WAKES.subjects[0],
    )


def consumer_config(spec: ConsumerSpec) -> dict[str, Any]:
    """A declared consumer, as the server's request to create it."""
    config: dict[str, Any] = {
        "durable_name": spec.name,
        "name": spec.name,
        "ack_policy": "explicit",
        "ack_wait": int(spec.ack_wait_s * 1_000_000_000),
        "max_ack_pending": spec.max_ack_pending,
        "max_waiting": 4096,
        "deliver_policy": "all",
    }
    if spec.filter_subject is not None:
        config["filter_subject"] = spec.filter_subject
    return {"stream_name": spec.stream, "config": config}


def consumers(
    *, wake_deadline_s: float = WAKE_DEADLINE_S, pools: tuple[str, ...] = ("default",)
) -> tuple[ConsumerSpec, ...]:
    """The durable consumers: wakes, due timers, intake, and one per pool."""
    return (
        wakes_consumer(wake_deadline_s),
        ConsumerSpec(
            "TIMERS",
            "due",
            ack_wait_s=5.0,
            max_ack_pending=10_000,
            filter_subject=f"{ROOT}.due.*.*.*",
        ),
        ConsumerSpec("PROMPTS", "ingest", ack_wait_s=INTAKE_DEADLINE_S, max_ack_pending=UNLIMITED),
        *(_tools(pool) for pool in pools),
    )
