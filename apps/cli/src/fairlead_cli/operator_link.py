"""The link of a command of operators to NATS, which it opens before it loads its work."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_schema.identity.nats_address import NatsAddress

if TYPE_CHECKING:
    from fairlead_eventlog.jetstream.link import NatsLink


@asynccontextmanager
async def operator_link(address: NatsAddress, name: str) -> AsyncIterator["NatsLink"]:
    """A link for the length of a block. Raises LogError."""
    with keep_modules():
        from fairlead_eventlog.jetstream.link_lifetime import open_link  # noqa: PLC0415
    async with open_link(address, name=name) as link:
        yield link
