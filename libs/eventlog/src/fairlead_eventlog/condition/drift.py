"""What differs from the declared streams and consumers: somebody deleted or changed them by hand."""

from dataclasses import dataclass
from typing import Any, Final

from fairlead_eventlog.jetstream.link import NO_CONSUMER, NatsLink, ServerRefusal
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.provision import read_stream_config, stream_config, zero_value
from fairlead_eventlog.streams import STREAMS, StreamSpec, consumers
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.tools.pool_rules import DEFAULT_POOL

# An operator chooses the copies, and how a stream is persisted follows from them. Limits may be wider.
_FREE: Final = frozenset(
    {"num_replicas", "persist_mode", "description", "max_age", "max_bytes", "duplicate_window"}
)


@dataclass(frozen=True, slots=True)
class Drift:
    """How the server differs from the declarations. Nothing differs if all parts are empty."""

    missing: tuple[str, ...] = ()
    """Streams that do not exist."""
    changed: tuple[str, ...] = ()
    """Streams that are other than declared, each with what differs."""
    consumers: tuple[str, ...] = ()
    """Consumers that do not exist, each as `stream/consumer`."""

    @property
    def sentence(self) -> str | None:
        """What differs, in words; None if nothing does."""
        parts = [
            f"{len(items)} {what}: {', '.join(items[:3])}{' …' if len(items) > 3 else ''}"  # noqa: PLR2004
            for what, items in (
                ("streams are missing", self.missing),
                ("streams were changed by hand", self.changed),
                ("consumers are missing", self.consumers),
            )
            if items
        ]
        return "; ".join(parts) or None


async def read_drift(
    address: NatsAddress, *, timeout_s: float = 5.0, pools: tuple[str, ...] = (DEFAULT_POOL,)
) -> Drift:
    """Compare the server with the declarations. Raises LogUnavailable."""
    async with open_link(address, name="fairlead-doctor", timeout_s=timeout_s) as link:
        found = {spec.name: await read_stream_config(link, spec.name) for spec in STREAMS}
        changed = [
            f"{spec.name} ({reason})"
            for spec in STREAMS
            if (config := found[spec.name]) is not None and (reason := _difference(spec, config))
        ]
        missing = tuple(name for name, config in found.items() if config is None)
        gone = [
            f"{spec.stream}/{spec.name}"
            for spec in consumers(pools=pools)
            if spec.stream not in missing and not await _has_consumer(link, spec.stream, spec.name)
        ]
    return Drift(missing, tuple(changed), tuple(gone))


def _difference(spec: StreamSpec, current: dict[str, Any]) -> str:
    """What differs between a stream and its declaration; empty if nothing does."""
    wanted = stream_config(spec, int(current.get("num_replicas", 1)))
    return ", ".join(
        f"{key} is {current.get(key)!r} instead of {value!r}"
        for key, value in wanted.items()
        if key not in _FREE and current.get(key, zero_value(value)) != value
    )


async def _has_consumer(link: NatsLink, stream: str, consumer: str) -> bool:
    try:
        await link.api(f"CONSUMER.INFO.{stream}.{consumer}")
    except ServerRefusal as refusal:
        if refusal.code != NO_CONSUMER:
            raise
        return False
    return True
