"""Says how near a stack is to the limits of its parts, for `fairlead doctor`."""

from typing import Final

from fairlead_cli.capacity.limits import compare_with_limits
from fairlead_cli.capacity.stack_load import read_load
from fairlead_cli.checks import Finding
from fairlead_cli.embedded.postgres.access import add_password
from fairlead_eventlog.errors import LogError
from fairlead_schema.identity.nats_address import NatsAddress

TIMEOUT_S: Final = 2.5


async def check_capacity(address: NatsAddress, dsn: str | None) -> list[Finding]:
    """How near is the stack to the limits of its parts?"""
    try:
        dsn = add_password(dsn) if dsn else None
        return compare_with_limits(await read_load(address, dsn, timeout_s=TIMEOUT_S))
    except LogError:
        return []  # The check of the connection says why.
