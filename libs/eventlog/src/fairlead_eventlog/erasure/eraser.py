"""Counts and removes the messages of a place. Doing it twice does no harm."""

from collections.abc import AsyncIterator, Callable
from typing import Final

import orjson

from fairlead_eventlog.erasure.places import NamedIn, StoredPlace, logs_of_tenant
from fairlead_eventlog.jetstream.link import (
    NO_MESSAGE,
    NatsLink,
    ServerRefusal,
    StoredMessage,
    stream_error,
)
from fairlead_eventlog.jetstream.messages import purge_subject
from fairlead_eventlog.streams import DEAD
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address

# The server's code for a position without a message.
_GONE: Final = frozenset({NO_MESSAGE, 10043})


async def count_messages(link: NatsLink, place: StoredPlace) -> int:
    """How many messages there are. Raises StreamMissing, LogUnavailable."""
    return sum((await read_counts(link, place)).values())


async def read_counts(link: NatsLink, place: StoredPlace) -> dict[str, int]:
    """The messages of each subject of a place, as the leader counts them."""
    counts: dict[str, int] = {}
    while True:
        wanted = {"subjects_filter": place.subject, "offset": len(counts)}
        try:
            info = await link.api(f"STREAM.INFO.{place.stream}", wanted)
        except ServerRefusal as refusal:
            raise stream_error(refusal, place.stream) from refusal
        page: dict[str, int] = info["state"].get("subjects") or {}
        counts |= page
        if not page or len(counts) >= info.get("total", 0):
            return counts


async def remove_messages(link: NatsLink, place: StoredPlace) -> int:
    """Remove all messages of a place; the answer is how many there were."""
    found = await count_messages(link, place)
    if found:
        await purge_subject(link, place.stream, place.subject)
    return found


async def sessions_of_tenant(link: NatsLink, tenant: TenantId) -> list[Address]:
    """Every session that the log knows, purged ones too."""
    found: list[Address] = []
    for place in logs_of_tenant(tenant):
        counts = await read_counts(link, place)
        found += [Address(tenant, subject.rpartition(".")[2]) for subject in counts]
    return sorted(found)


async def find_mentions(link: NatsLink, named: NamedIn) -> list[int]:
    """The positions of the messages that name a word."""
    word = named.word.encode()
    return [
        message.sequence
        async for message in _messages(link, named.stream)
        if word in message.payload or named.word in message.subject
    ]


async def find_letters_of_tenant(link: NatsLink, tenant: TenantId) -> list[int]:
    """The positions of the dead letters of a tenant: what they hold was sent to one of its subjects."""
    is_own = _is_of_tenant(tenant)
    return [message.sequence async for message in _messages(link, DEAD.name) if is_own(message)]


async def remove_at(link: NatsLink, stream: str, positions: list[int]) -> None:
    """Remove single messages."""
    for position in positions:
        try:
            await link.api(f"STREAM.MSG.DELETE.{stream}", {"seq": position})
        except ServerRefusal as refusal:
            if refusal.code not in _GONE:
                raise stream_error(refusal, stream) from refusal


def _is_of_tenant(tenant: TenantId) -> Callable[[StoredMessage], bool]:
    def check(message: StoredMessage) -> bool:
        try:
            letter = orjson.loads(message.payload)
            return tenant in str(letter["subject"]).split(".")
        except (ValueError, KeyError, TypeError):
            return False

    return check


async def _messages(link: NatsLink, stream: str) -> AsyncIterator[StoredMessage]:
    position = 1
    while (message := await link.next_message(stream, position)) is not None:
        yield message
        position = message.sequence + 1
