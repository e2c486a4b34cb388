"""The destination of a move: the tools service of the location says whether the directory is there."""

import logging
from typing import Final

from fairlead_eventlog.errors import LogError
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.verbs.profile.location import FIELD
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.errors import InvalidRequest
from fairlead_schema.ids import TenantId
from fairlead_schema.location import LocationRef
from fairlead_schema.tools.location_view import LocationView, ObserveLocation

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 2.0
_ANSWER: Final = CommandAnswer[LocationView]


async def require_directory(
    context: CommandContext, tenant: TenantId, location: LocationRef, pool: str
) -> None:
    """Refuse a directory that the workers of a pool do not find. Raises InvalidRequest.

    While none of them answers, nobody knows, and the move is accepted.
    """
    question = ObserveLocation(location=location, tenant=tenant, with_directory=True)
    subject = subjects.observe(pool)
    body = question.model_dump_json(by_alias=True, exclude_none=True).encode()
    try:
        raw = await context.eventlog.requests.request(subject, body, timeout_s=TIMEOUT_S)
        view = _ANSWER.model_validate_json(raw).data
    except (LogError, ValueError) as error:
        log.warning(
            "no worker of the pool says whether a directory is there: the move is accepted",
            extra={"directory": location.directory, "pool": pool, "reason": str(error)},
        )
        return
    if view is not None and view.is_directory is False:
        text = f"There is no directory {location.directory} where the tools of the session run"
        raise InvalidRequest(text, kind="Body", field=FIELD)
