"""`GET /api/session/{sessionID}/explain`: why a session moves or rests, from the log and the quotas."""

from contextlib import suppress
from typing import Final

from starlette.responses import Response

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.log.session_state import load_readable
from fairlead_gateway.log.tenant_totals import load_totals
from fairlead_gateway.log.unreadable import unreadable_place
from fairlead_schema.commands.quota import UNLIMITED, QuotaPolicy, quota_holders
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.model import Model
from fairlead_session.explain import Explanation, add_quotas, explain, explain_unreadable
from fairlead_session.explain_answer import WireExplanation

QUOTAS_TIMEOUT_S: Final = 0.5


class ExplainAnswer(Model):
    data: WireExplanation


async def _explain_session(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    readable = await load_readable(request.runtime, request.at)
    unreadable, session = unreadable_place(readable), readable.versioned.state
    if unreadable is not None:
        explanation = explain_unreadable(unreadable.reason)
    else:
        creator = None if session.profile is None else session.profile.created_by
        explanation = await _add_quotas(request, explain(session), creator)
    data = WireExplanation(**explanation.model_dump(), unreadable=unreadable)
    return answer(ExplainAnswer(data=data))


async def _add_quotas(
    request: ApiRequest[EmptyInput, EmptyInput],
    explanation: Explanation,
    creator: PrincipalName | None,
) -> Explanation:
    """Add the quotas that keep the session waiting, if the projector knows what is used."""
    tenant, runtime = request.at.tenant, request.runtime
    policy = QuotaPolicy(runtime.settings.quotas, runtime.settings.principal_quotas)
    with suppress(ServiceUnavailable):
        for holder in quota_holders(tenant, creator):
            limits = policy.limits(holder)
            if limits != UNLIMITED:
                totals = await load_totals(runtime, *holder, timeout_s=QUOTAS_TIMEOUT_S)
                explanation = add_quotas(explanation, limits, totals)
    return explanation


READ = Operation(
    id="session.explain",
    method="GET",
    path="/api/session/{sessionID}/explain",
    scope="session:read",
    summary="Why the session moves or does not, in one sentence and as values.",
    respond=_explain_session,
    answer=ExplainAnswer,
    # The look-up of the session fails for an unreadable log, and this route must explain that.
    commands=True,
    errors=(SessionNotFound, ServiceUnavailable),
)
