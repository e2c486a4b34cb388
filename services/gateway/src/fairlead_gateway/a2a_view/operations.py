"""The routes of A2A, if its package is installed. The application mounts them beside its own."""

from importlib.util import find_spec

from starlette.responses import Response

from fairlead_gateway.http.caller import require_scope
from fairlead_gateway.http.operation import AnyOperation, ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_schema.errors import ServiceUnavailable

PACKAGE = "a2a"


async def _serve(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    # The package of the protocol loads with the first request: a gateway without agents stays small.
    from fairlead_gateway.a2a_view.rpc import serve  # noqa: PLC0415

    require_scope(request.principal, "session:read")
    return await serve(request)


async def _show_card(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    from fairlead_gateway.a2a_view.rpc import card_answer  # noqa: PLC0415

    return card_answer(request)


SERVE = Operation(
    id="a2a.rpc",
    method="POST",
    path="/a2a",
    scope="session:write",
    summary="JSON-RPC of A2A: send a message, and get, follow and cancel its task.",
    respond=_serve,
    answer=None,
    errors=(ServiceUnavailable,),
)
CARD = Operation(
    id="a2a.card",
    method="GET",
    path="/.well-known/agent-card.json",
    scope=None,
    summary="The card by which other agents find this one.",
    respond=_show_card,
    answer=None,
)


def a2a_operations() -> tuple[AnyOperation, ...]:
    """The routes of the view; none without its package, which is an extra of the gateway."""
    return () if find_spec(PACKAGE) is None else (SERVE, CARD)
