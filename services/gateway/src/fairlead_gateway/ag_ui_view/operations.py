"""The route of AG-UI. The application mounts it beside its own."""

from pydantic import BaseModel
from starlette.responses import Response

from fairlead_gateway.ag_ui_view.run_body import RunBody
from fairlead_gateway.http.caller import require_scope
from fairlead_gateway.http.operation import AnyOperation, ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_schema.errors import (
    Conflict,
    ServiceUnavailable,
    SessionNotFound,
)


class RunEvent(BaseModel):
    """One event of AG-UI, as its package defines it."""

    type: str


async def _run(request: ApiRequest[EmptyInput, RunBody]) -> Response:
    # The package of the protocol loads with the first run: a gateway without front ends stays small.
    from fairlead_gateway.ag_ui_view.run import start_run, stream_run  # noqa: PLC0415

    require_scope(request.principal, "session:read")
    request.runtime.nats()
    return stream_run(request, await start_run(request))


RUN = Operation(
    id="ag-ui.run",
    method="POST",
    path="/ag-ui",
    scope="session:write",
    summary="Run a thread of AG-UI: one prompt, and its turn as server-sent events.",
    respond=_run,
    body=RunBody,
    answer=RunEvent,
    errors=(
        SessionNotFound,
        Conflict,
        ServiceUnavailable,
    ),
    media="text/event-stream",
)


def ag_ui_operations() -> tuple[AnyOperation, ...]:
    """The routes of the view."""
    return (RUN,)
