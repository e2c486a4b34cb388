"""Tries subjects of NATS as one identity, and says which of them the server refused."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg

from fairlead_schema.identity.nats_address import NatsAddress

# nats-py turns the server's words into small letters.
_VIOLATION: Final = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"')


class Probe:
    """A connection of one identity, and the subjects that the server refused it."""

    def __init__(self, client: Client, refused: set[tuple[str, str]]) -> None:
        self.client = client
        self.refused = refused

    async def publish(self, subjects: Mapping[str, str]) -> set[str]:
        """The names of the subjects to which the identity may publish."""
        for subject in subjects.values():
            await self.client.publish(subject, b"")
        return await self._accepted("publish", subjects)

    async def subscribe(self, subjects: Mapping[str, str]) -> set[str]:
        """The names of the subjects to which the identity may subscribe."""
        for subject in subjects.values():
            await self.client.subscribe(subject, cb=_ignore)
        return await self._accepted("subscription", subjects)

    async def _accepted(self, kind: str, subjects: Mapping[str, str]) -> set[str]:
        # The second answer comes after everything that the server has said about the subjects.
        for _ in range(2):
            await self.client.flush()
        return {
            name
            for name, subject in subjects.items()
            if (kind, subject.lower()) not in self.refused
        }


@asynccontextmanager
async def probe(
    address: NatsAddress,
    *,
    token: str | None = None,
    user: str | None = None,
    password: str | None = None,
) -> AsyncIterator[Probe]:
    """Connect as an ordinary client would, with a key file or a token, and an inbox of its own."""
    refused: set[tuple[str, str]] = set()

    async def on_error(error: Exception) -> None:
        match = _VIOLATION.search(str(error))
        if match is not None:
            refused.add((match[1], match[2]))

    client = Client()
    try:
        await client.connect(
            address.servers,
            nkeys_seed=address.nkey_file,
            inbox_prefix=address.inbox_prefix,
            error_cb=on_error,
            allow_reconnect=False,
            token=token,
            user=user,
            password=password,
        )
        yield Probe(client, refused)
    finally:
        # A refused client holds its socket until somebody closes the transport.
        transport = client._transport  # noqa: SLF001 - nats-py has no other way
        await client.close()
        if transport is not None:
            transport.close()  # type: ignore[no-untyped-call]


async def _ignore(_msg: Msg) -> None: ...
