"""Where the copies of each stream are, and whether they are complete."""

import asyncio
from dataclasses import dataclass
from typing import Any

from fairlead_eventlog.errors import LogUnavailable, SubjectRefused
from fairlead_eventlog.jetstream.link import NO_STREAM, NatsLink, ServerRefusal
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.streams import STREAMS
from fairlead_schema.identity.nats_address import NatsAddress


@dataclass(frozen=True, slots=True)
class StreamCopies:
    """The copies of one stream."""

    stream: str
    copies: int = 0
    leader: str | None = None
    """The server that accepts writes; None while no majority has elected one."""
    cluster: str | None = None
    """None: its server belongs to no cluster."""
    behind: tuple[str, ...] = ()
    """The servers whose copy is away or incomplete."""


async def read_copies(address: NatsAddress, *, timeout_s: float = 2.0) -> tuple[StreamCopies, ...]:
    """The copies of every declared stream that exists. Raises LogUnavailable."""
    async with open_link(address, name="fairlead-doctor", timeout_s=timeout_s) as link:
        found = await asyncio.gather(*(_read_copies(link, spec.name) for spec in STREAMS))
    return tuple(copies for copies in found if copies is not None)


def parse_copies(stream: str, info: dict[str, Any]) -> StreamCopies:
    """The copies of a stream, from what its leader says of it."""
    cluster = info.get("cluster") or {}
    behind = tuple(
        replica["name"]
        for replica in cluster.get("replicas") or ()
        if replica.get("offline") or not replica.get("current")
    )
    copies = int(info["config"].get("num_replicas", 1))
    return StreamCopies(stream, copies, cluster.get("leader"), cluster.get("name"), behind)


async def _read_copies(link: NatsLink, stream: str) -> StreamCopies | None:
    try:
        return parse_copies(stream, await link.api(f"STREAM.INFO.{stream}"))
    except SubjectRefused:
        raise
    except LogUnavailable:
        # Only a leader answers.
        return StreamCopies(stream)
    except ServerRefusal as refusal:
        return None if refusal.code == NO_STREAM else StreamCopies(stream)
