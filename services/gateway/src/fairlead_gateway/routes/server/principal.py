"""`GET /api/principal`: who the caller is, and what it may do."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_schema.identity.principal import Principal
from fairlead_schema.identity.scopes import SCOPES, Scope
from fairlead_schema.model import Model


class PrincipalInfo(Model):
    """A caller as it may see itself."""

    name: str
    tenant: str
    scopes: tuple[Scope, ...]
    expires_at: int | None = None
    """When its credentials end, in epoch milliseconds."""


class PrincipalAnswer(Model):
    data: PrincipalInfo


def describe_principal(principal: Principal) -> PrincipalInfo:
    """The caller in the form that clients read."""
    return PrincipalInfo(
        name=principal.name,
        tenant=principal.tenant,
        scopes=tuple(scope for scope in SCOPES if principal.may(scope)),
        expires_at=principal.expires_at,
    )


async def _read(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    return answer(PrincipalAnswer(data=describe_principal(request.principal)))


READ = Operation(
    id="principal.read",
    method="GET",
    path="/api/principal",
    scope="session:read",
    summary="The caller: its name, its tenant and its scopes.",
    respond=_read,
    answer=PrincipalAnswer,
)
