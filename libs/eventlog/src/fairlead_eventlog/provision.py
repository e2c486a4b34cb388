"""Applies the stream declarations: creates missing streams, makes safe changes, refuses the others."""

from collections.abc import Callable
from typing import Any, Final

from fairlead_eventlog.condition.retention import (
    DEFAULT_RETENTION,
    Retention,
    describe_limits,
    limited_streams,
)
from fairlead_eventlog.condition.stream_move import is_moving, move_stream
from fairlead_eventlog.errors import LogUnavailable, TooFewServers, UnsafeChange
from fairlead_eventlog.jetstream.link import NO_CONSUMER, NO_STREAM, NatsLink, ServerRefusal
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.status.status_record import record_status
from fairlead_eventlog.streams import (
    STREAMS,
    WAKE_DEADLINE_S,
    WAKES,
    WAKES_CONSUMER,
    ConsumerSpec,
    StreamSpec,
    consumer_config,
    consumers,
)
from fairlead_schema.identity.nats_address import NatsAddress

_SECOND_NS: Final = 1_000_000_000
# Changing one of these in place would drop messages or break readers.
_FIXED: Final = ("storage", "retention")
# Narrower limits drop messages, so an operator has to ask for them.
_LIMITS: Final = ("max_age", "max_bytes")
# The server is alone, and copies need other servers.
NO_CLUSTER: Final = 10074
# The server's name for acknowledging a message after it is on disk.
_SYNC_PERSIST: Final = "default"


async def provision(  # noqa: PLR0913 - one setting each
    address: NatsAddress,
    *,
    replicas: int = 1,
    wake_deadline_s: float = WAKE_DEADLINE_S,
    pools: tuple[str, ...] = ("default",),
    finalise: bool = False,
    retention: Retention = DEFAULT_RETENTION,
    shrink: bool = False,
    progress: Callable[[str], None] = lambda _line: None,
) -> None:
    """Create and update the declared streams and consumers. Safe to repeat.

    When it returns, every stream and consumer has a leader. `finalise` allows the newest events of
    this release, `shrink` limits that drop messages. Raises UnsafeChange, TooFewServers, LogUnavailable.
    """
    async with open_link(address, name="fairlead-provision") as link:
        wanted = consumers(wake_deadline_s=wake_deadline_s, pools=pools)
        try:
            for spec in limited_streams(retention):
                outcome = await _apply(link, spec, replicas, shrink=shrink)
                limits = describe_limits(spec.max_age_s, spec.max_bytes)
                progress(f"stream {spec.name}{limits and f' ({limits})'}: {outcome}")
            for name in await _remove_old_lanes(link):
                progress(f"consumer {WAKES.name}/{name}: removed")
            for consumer in wanted:
                outcome = await _apply_consumer(link, consumer)
                progress(f"consumer {consumer.stream}/{consumer.name}: {outcome}")
        except ServerRefusal as refusal:
            if refusal.code == NO_CLUSTER:
                raise TooFewServers(str(address), replicas) from refusal
            raise LogUnavailable(f"NATS refused to provision: {refusal}") from refusal
        await record_status(link, finalise=finalise, progress=progress)


async def missing_streams(address: NatsAddress, *, timeout_s: float = 5.0) -> tuple[str, ...]:
    """The declared streams that do not exist yet."""
    async with open_link(address, name="fairlead-provision", timeout_s=timeout_s) as link:
        return tuple(
            [spec.name for spec in STREAMS if await read_stream_config(link, spec.name) is None]
        )


def stream_config(spec: StreamSpec, replicas: int) -> dict[str, Any]:
    """The configuration of a declared stream, as the server reads it."""
    config: dict[str, Any] = {
        "name": spec.name,
        "subjects": list(spec.subjects),
        "description": spec.description,
        "storage": spec.storage,
        "retention": spec.retention,
        "discard": spec.discard,
        "discard_new_per_subject": spec.refuse_second,
        "max_msgs_per_subject": 1 if spec.one_per_subject else -1,
        "max_age": spec.max_age_s * _SECOND_NS,
        "max_bytes": spec.max_bytes,
        "duplicate_window": _window(spec) * _SECOND_NS,
        "allow_direct": spec.allow_direct,
        "allow_rollup_hdrs": spec.allow_rollup,
        "num_replicas": replicas,
    }
    if spec.schedules:
        config["allow_msg_schedules"] = True
    if spec.lazy and replicas == 1:
        # The server refuses this mode for replicated streams.
        config["persist_mode"] = "async"
    if spec.republish is not None:
        source, target = spec.republish
        config["republish"] = {"src": source, "dest": target}
    return config


def unsafe_change(current: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    """Why applying `wanted` over `current` could lose data; None when it cannot."""
    for key in _FIXED:
        if current.get(key) != wanted[key]:
            return f"{key} is {current.get(key)} and would become {wanted[key]}"
    dropped = set(current.get("subjects", ())) - set(wanted["subjects"])
    if dropped:
        return f"subjects would be dropped: {', '.join(sorted(dropped))}"
    for key in (*_LIMITS, "max_msgs_per_subject"):
        if _shrinks(current.get(key, 0), wanted[key]):
            return f"{key} would shrink from {current.get(key)} to {wanted[key]}"
    if current.get("num_replicas", 1) > wanted["num_replicas"]:
        return f"replicas would shrink from {current['num_replicas']} to {wanted['num_replicas']}"
    return None


async def _apply(link: NatsLink, spec: StreamSpec, replicas: int, *, shrink: bool) -> str:
    wanted = stream_config(spec, replicas)
    if spec.lazy and await is_moving(link, spec):
        await move_stream(link, spec, wanted)
        return "moved"
    current = await read_stream_config(link, spec.name)
    if current is None:
        await link.api(f"STREAM.CREATE.{spec.name}", wanted)
        return "created"
    narrower = [key for key in _LIMITS if _shrinks(current.get(key, 0), wanted[key])]
    kept = {} if shrink else {key: current.get(key, 0) for key in narrower}
    outcome = await _change(link, spec, current, wanted | kept, shrink=shrink)
    if not kept:
        return outcome
    return f"{outcome}, {' and '.join(kept)} wider than configured: `--shrink` drops the rest"


async def _change(
    link: NatsLink,
    spec: StreamSpec,
    current: dict[str, Any],
    wanted: dict[str, Any],
    *,
    shrink: bool,
) -> str:
    """Change an existing stream, if it differs. Raises UnsafeChange."""
    if all(current.get(key, zero_value(value)) == value for key, value in wanted.items()):
        return "unchanged"
    limits = {key: wanted[key] for key in _LIMITS} if shrink else {}
    reason = unsafe_change(current | limits, wanted)
    if reason is not None:
        raise UnsafeChange(f"{spec.name}: {reason}; nothing was changed")
    if current.get("persist_mode", _SYNC_PERSIST) != wanted.get("persist_mode", _SYNC_PERSIST):
        return await _recreate(link, spec, wanted)
    await link.api(f"STREAM.UPDATE.{spec.name}", {**current, **wanted})
    return "updated"


async def _recreate(link: NatsLink, spec: StreamSpec, wanted: dict[str, Any]) -> str:
    """Make a stream anew, because its persist mode cannot change.

    A queue of hints is emptied: what they were about is in the log, and they are made again. The
    messages of every other stream are moved.
    """
    if spec.retention != "workqueue":
        await move_stream(link, spec, wanted)
        return "moved"
    await link.api(f"STREAM.DELETE.{spec.name}")
    await link.api(f"STREAM.CREATE.{spec.name}", wanted)
    return "created again"


async def _remove_old_lanes(link: NatsLink) -> list[str]:
    """Delete the consumers that earlier releases made for each tenant; the answer is their names.

    A queue allows no two consumers for one message. The wakes stay, and go to the one consumer.
    """
    names: list[str] = []
    while True:
        page = await link.api(f"CONSUMER.NAMES.{WAKES.name}", {"offset": len(names)})
        names += page.get("consumers") or ()
        if not page.get("consumers") or len(names) >= int(page.get("total", 0)):
            break
    lanes = [name for name in names if name != WAKES_CONSUMER]
    for name in lanes:
        await link.api(f"CONSUMER.DELETE.{WAKES.name}.{name}")
    return lanes


async def _apply_consumer(link: NatsLink, spec: ConsumerSpec) -> str:
    config = consumer_config(spec)["config"]
    try:
        current = await link.api(f"CONSUMER.INFO.{spec.stream}.{spec.name}")
    except ServerRefusal as refusal:
        if refusal.code != NO_CONSUMER:
            raise
        current = {"config": {}}
    if all(current["config"].get(key) == value for key, value in config.items()):
        return "unchanged"
    body = {"stream_name": spec.stream, "config": {**current["config"], **config}}
    await link.api(f"CONSUMER.CREATE.{spec.stream}.{spec.name}", body)
    return "applied"


async def read_stream_config(link: NatsLink, name: str) -> dict[str, Any] | None:
    """The configuration of a stream as its server has it; None if it does not exist."""
    try:
        answer = await link.api(f"STREAM.INFO.{name}")
    except ServerRefusal as refusal:
        if refusal.code == NO_STREAM:
            return None
        raise
    config: dict[str, Any] = answer["config"]
    return config


def _window(spec: StreamSpec) -> int:
    """The duplicate window must not exceed the age of the messages."""
    return (
        min(spec.duplicate_window_s, spec.max_age_s) if spec.max_age_s else spec.duplicate_window_s
    )


def _shrinks(current: int, wanted: int) -> bool:
    unlimited = current <= 0
    return wanted > 0 and (unlimited or wanted < current)


def zero_value(value: object) -> object:
    """The value of a setting that the server leaves out of its answer."""
    return type(value)() if isinstance(value, bool | int | str) else None
