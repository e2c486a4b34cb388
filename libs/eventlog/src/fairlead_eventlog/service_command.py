"""Sends a command from one service to another, and reads the answer: done, refused, or later."""

from pydantic import ValidationError
from pydantic_core import to_json

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.ports import Requests
from fairlead_eventlog.refusals import UNREADABLE
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.errors import Refused, ServiceUnavailable
from fairlead_schema.identity.principal import PrincipalName

_ANSWER = CommandAnswer[object]


async def send_service_command(
    requests: Requests,
    subject: str,
    command: object,
    *,
    timeout_s: float,
    by: PrincipalName | None = None,
) -> None:
    """Send a command, on behalf of `by`, and read its answer.

    Raises the refusal of the service, and LogError if a later try may succeed: nobody serves the
    command, or the service answered that it is unavailable, or with something that is no answer.
    """
    raw = await requests.request(subject, to_json(command), timeout_s=timeout_s, by=by)
    try:
        error = _ANSWER.model_validate_json(raw).error
    except ValidationError as invalid:
        raise LogUnavailable(f"the answer to {subject} cannot be read") from invalid
    if error is None:
        return
    if error.tag == ServiceUnavailable.tag and error.kind != UNREADABLE:
        raise LogUnavailable(f"{subject}: {error.message}")
    raise Refused.from_wire(error)
