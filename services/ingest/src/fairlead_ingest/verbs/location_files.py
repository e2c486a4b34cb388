"""Verbs about a location: ingest asks a worker of the pool that serves it, on behalf of the caller."""

import asyncio
import json
from typing import Final, TypeVar

from fairlead_eventlog.errors import LogError, NoResponders
from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.location_catalog import ListSkills, Skills
from fairlead_schema.commands.location_files import (
    FileEntries,
    FilePart,
    FindFiles,
    ListFiles,
    ReadFile,
)
from fairlead_schema.errors import Refused, ServiceUnavailable
from fairlead_schema.ids import TenantId
from fairlead_schema.model import Model
from fairlead_schema.subjects import RESTRICTIONS_HEADER
from fairlead_service.locations import choose_pool
from fairlead_service.rpc.caller import current_caller, current_restrictions
from fairlead_service.rpc.server import TenantParam
from fairlead_session.relocation.pools import silent_pool

TIMEOUT_S: Final = 10.0
EARLIER_S: Final = 1.0
"""A worker of the release before answers the caller itself. It gets so long to do so."""

Answer = TypeVar("Answer", bound=Model)


async def list_files(context: ContextDep, tenant: TenantParam, command: ListFiles) -> FileEntries:
    """The entries of a directory. Raises Refused."""
    return await _ask(context, tenant, "file.list", command, FileEntries)


async def read_file(context: ContextDep, tenant: TenantParam, command: ReadFile) -> FilePart:
    """A part of a file. Raises Refused."""
    return await _ask(context, tenant, "file.read", command, FilePart)


async def find_files(context: ContextDep, tenant: TenantParam, command: FindFiles) -> FileEntries:
    """The entries that fit some letters. Raises Refused."""
    return await _ask(context, tenant, "file.find", command, FileEntries)


async def list_skills(context: ContextDep, tenant: TenantParam, command: ListSkills) -> Skills:
    """The skills of a location. Raises Refused."""
    return await _ask(context, tenant, "skill.list", command, Skills)


async def _ask(
    context: CommandContext,
    tenant: TenantId,
    verb: str,
    command: ListFiles | ReadFile | FindFiles | ListSkills,
    answer: type[Answer],
) -> Answer:
    """The answer of a worker, which checks what the caller may see. Raises Refused."""
    pool = choose_pool(context.settings.config.pools, tenant, command.location.directory)
    restrictions = json.dumps(current_restrictions().wire())
    try:
        raw = await context.eventlog.requests.request(
            subjects.browse(pool, tenant, verb),
            command.model_dump_json(by_alias=True, exclude_none=True).encode(),
            timeout_s=TIMEOUT_S,
            by=current_caller(),
            headers={RESTRICTIONS_HEADER: restrictions},
        )
        answered = CommandAnswer[answer].model_validate_json(raw)  # type: ignore[valid-type]
    except NoResponders as error:
        await asyncio.sleep(EARLIER_S)
        raise _unavailable(verb, pool, error) from error
    except (LogError, ValueError) as error:
        raise _unavailable(verb, pool, error) from error
    if answered.error is not None:
        raise Refused.from_wire(answered.error)
    found: Answer | None = answered.data
    if found is None:
        raise ServiceUnavailable("The tools service gave no answer", service=verb)
    return found


def _unavailable(verb: str, pool: str, error: Exception) -> ServiceUnavailable:
    reason = silent_pool(pool)
    return ServiceUnavailable(f"{reason[0].upper()}{reason[1:]} ({error})", service=verb)
