"""Answers what operators look at first: services, streams and dead letters."""

import asyncio
from typing import Annotated, Final, TypeAlias

from faststream import Context

from fairlead_eventlog.condition.operations import OperationsReader
from fairlead_schema.commands.operations import AskOperations, OperationsReport
from fairlead_service.rpc.server import TenantParam

OPERATIONS: Final = "operations"
OperationsDep: TypeAlias = Annotated[OperationsReader, Context(OPERATIONS)]


async def report_operations(
    operations: OperationsDep, tenant: TenantParam, command: AskOperations
) -> OperationsReport:
    """`operations`: what the servers say now, and the dead letters of one tenant."""
    services, streams, letters = await asyncio.gather(
        operations.services(),
        operations.streams(),
        operations.dead_letters(tenant, limit=command.dead_letters_max),
    )
    return OperationsReport(services=services, streams=streams, dead_letters=letters)
