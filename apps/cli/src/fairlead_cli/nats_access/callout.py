"""Decides about connections to NATS with the credentials of HTTP."""

import time
from typing import Final

from fairlead_cli.nats_access.callout_tenants import CalloutTenants
from fairlead_eventlog.grants.callout import CalloutIssuer, CalloutRequest
from fairlead_schema.errors import Unauthorized
from fairlead_schema.identity.principal import Principal
from fairlead_service.audit import audit
from fairlead_service.identity.authenticator import Authenticator
from fairlead_service.identity.watched_file import WatchedFile

LIFETIME_S_MAX: Final = 3600
ACTION: Final = "nats.connect"


class Callout:
    """Answers a server with a user that lives as long as its key or token, and at most an hour."""

    def __init__(
        self,
        authenticator: Authenticator,
        issuer: CalloutIssuer,
        tenants: WatchedFile[CalloutTenants],
    ) -> None:
        self._authenticator = authenticator
        self._issuer = issuer
        self._tenants = tenants

    async def decide(self, request: CalloutRequest) -> bytes:
        """The signed answer to a question. A refusal is an audit line."""
        now_s = int(time.time())
        try:
            principal = await self._authenticator.authenticate(lambda: _credential(request))
        except Unauthorized as error:
            return self._refuse(request, None, str(error), now_s)
        reason = refusal(principal, self._tenants.current())
        expires_s = _expires_s(principal, now_s)
        if reason is None and expires_s <= now_s:
            reason = "The credentials expire within this second: ask for new ones"
        if reason is not None:
            return self._refuse(request, principal, reason, now_s)
        audit(ACTION, "allowed", principal=principal.name, tenant=principal.tenant)
        return self._issuer.allow(request, principal, now_s=now_s, expires_s=expires_s)

    def _refuse(
        self, request: CalloutRequest, principal: Principal | None, reason: str, now_s: int
    ) -> bytes:
        audit(
            ACTION,
            "refused",
            principal=None if principal is None else principal.name,
            tenant=None if principal is None else principal.tenant,
            resource=request.host or None,
            reason=reason,
        )
        return self._issuer.refuse(request, reason, now_s=now_s)


def refusal(principal: Principal, allowed: CalloutTenants) -> str | None:
    """Why a principal may not connect to NATS; None if it may."""
    limits = {"roots": principal.roots, "agents": principal.agents, "cost": principal.cost}
    restricted = ", ".join(name for name, value in limits.items() if value is not None)
    if restricted:
        return f"NATS cannot enforce the {restricted} of {principal.name}: use HTTP"
    if principal.tenant not in allowed.tenants:
        return (
            f"The tenant {principal.tenant} has no callout: run"
            f" `fairlead provision --nats-auth --tenant {principal.tenant}`, reload the servers"
        )
    return None


def _credential(request: CalloutRequest) -> str:
    """The key or the token (JWT) that a client shows."""
    if request.credential is None:
        raise Unauthorized("The client shows neither a token nor a password")
    return request.credential


def _expires_s(principal: Principal, now_s: int) -> int:
    longest = now_s + LIFETIME_S_MAX
    if principal.expires_at is None:
        return longest
    return min(longest, principal.expires_at // 1000)
