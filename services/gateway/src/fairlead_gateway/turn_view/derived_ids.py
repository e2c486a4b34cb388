"""Ids of ours that follow from ids of another protocol, so that a repeated request is exact. Pure."""

import hashlib

from fairlead_schema.ids import MessageId, SessionId, TenantId


def derived_session_id(tenant: TenantId, protocol: str, foreign_id: str) -> SessionId:
    """The session of a conversation that another protocol named."""
    return f"ses_{_digest(tenant, protocol, 'session', foreign_id)}"


def derived_message_id(tenant: TenantId, protocol: str, *foreign_ids: str) -> MessageId:
    """The prompt of a request that another protocol named."""
    return f"msg_{_digest(tenant, protocol, 'message', *foreign_ids)}"


def _digest(*parts: str) -> str:
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    # No seal ends in an underscore, so nobody takes a derived id for a minted one.
    return f"{digest}_"
