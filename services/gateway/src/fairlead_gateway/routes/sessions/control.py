"""Interrupt, resume, compact and wait: what people ask of a session's execution."""

from typing import Annotated

from pydantic import BeforeValidator, Field
from starlette.responses import Response

from fairlead_gateway.http.answers import done
from fairlead_gateway.http.incoming import Nothing
from fairlead_gateway.http.operation import Call, Operation
from fairlead_gateway.log.commands import tell
from fairlead_gateway.log.session_state import until
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.model import InputModel
from fairlead_session.execution.commands import is_at_rest

WAIT_S_DEFAULT = 60.0
WAIT_S_MAX = 600.0
_ERRORS = (SessionNotFound, ServiceUnavailable)


def _seconds(value: object) -> object:
    if isinstance(value, str) and not value.replace(".", "", 1).isdecimal():
        raise ValueError("seconds in decimal digits are expected")
    return value


class WaitQuery(InputModel):
    timeout_s: Annotated[
        float,
        BeforeValidator(_seconds, json_schema_input_type=float),
        Field(gt=0, le=WAIT_S_MAX, alias="timeout_s"),
    ] = WAIT_S_DEFAULT


async def _interrupt(call: Call[Nothing, Nothing]) -> Response:
    await tell(call.runtime, call.at, "session.interrupt", _command(call))
    # It is durable now; a client that is told so should also find it done, if it is soon.
    timeout_s = call.runtime.settings.request_timeout_s
    await until(
        call.runtime, call.at, lambda found: not found.execution.interrupted, timeout_s=timeout_s
    )
    return done()


async def _resume(call: Call[Nothing, Nothing]) -> Response:
    await tell(call.runtime, call.at, "session.resume", _command(call))
    return done(202)


async def _compact(call: Call[Nothing, Nothing]) -> Response:
    await tell(call.runtime, call.at, "session.compact", _command(call))
    return done()


async def _wait(call: Call[WaitQuery, Nothing]) -> Response:
    timeout_s = call.query.timeout_s
    if not await until(call.runtime, call.at, is_at_rest, timeout_s=timeout_s):
        text = f"The session is not at rest after {timeout_s:g} s: wait again"
        raise ServiceUnavailable(text, service="session.wait")
    return done()


async def _shell(call: Call[Nothing, Nothing]) -> Response:
    await tell(call.runtime, call.at, "session.shell", _command(call))
    return done()


async def _skill(call: Call[Nothing, Nothing]) -> Response:
    await tell(call.runtime, call.at, "session.skill", _command(call))
    return done()


def _command(call: Call[Nothing, Nothing]) -> SessionCommand:
    return SessionCommand(session_id=call.at.session_id)


INTERRUPT = Operation(
    id="session.interrupt",
    method="POST",
    path="/api/session/{sessionID}/interrupt",
    summary="Stop the active drain and keep the inbox; an idle session stays as it is.",
    respond=_interrupt,
    query=Nothing,
    body=Nothing,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)

RESUME = Operation(
    id="session.resume",
    method="POST",
    path="/api/session/{sessionID}/resume",
    summary="Run at least one turn, or join the one that runs.",
    respond=_resume,
    query=Nothing,
    body=Nothing,
    answer=None,
    status=202,
    commands=True,
    errors=_ERRORS,
)

COMPACT = Operation(
    id="session.compact",
    method="POST",
    path="/api/session/{sessionID}/compact",
    summary="Ask for active history to be replaced by a summary.",
    respond=_compact,
    query=Nothing,
    body=Nothing,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)

WAIT = Operation(
    id="session.wait",
    method="POST",
    path="/api/session/{sessionID}/wait",
    summary="Answer when the session is at rest.",
    respond=_wait,
    query=WaitQuery,
    body=Nothing,
    answer=None,
    status=204,
    errors=_ERRORS,
)

SHELL = Operation(
    id="session.shell",
    method="POST",
    path="/api/session/{sessionID}/shell",
    summary="A shell command of the user: not available.",
    respond=_shell,
    query=Nothing,
    body=Nothing,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)

SKILL = Operation(
    id="session.skill",
    method="POST",
    path="/api/session/{sessionID}/skill",
    summary="A skill put in by hand: not available.",
    respond=_skill,
    query=Nothing,
    body=Nothing,
    answer=None,
    status=204,
    commands=True,
    errors=_ERRORS,
)
