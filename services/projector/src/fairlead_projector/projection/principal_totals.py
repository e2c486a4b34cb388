"""The totals of principals: a session counts for the principal that created it. Pure.

A purged session counts for nobody. Its log no longer says who created it, and a rebuild must give the
same rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fairlead_projector.projection.tenant_totals import NOTHING, SessionShare
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address, shard


@dataclass(frozen=True, slots=True)
class PrincipalChange:
    """What a batch adds to the totals of a principal in a shard, as the statement reads it."""

    tenant: TenantId
    principal: PrincipalName
    shard: int
    sessions: int
    log_bytes: int
    pending: int
    turns: int
    calls: int


def principal_changes(
    creators: Mapping[Address, PrincipalName | None],
    before: Mapping[Address, SessionShare],
    after: Mapping[Address, SessionShare],
) -> list[PrincipalChange]:
    """What a batch changes in the totals of each principal, with what its sessions add after it."""
    totals: dict[tuple[TenantId, PrincipalName, int], SessionShare] = {}
    for at, share in after.items():
        if (creator := creators.get(at)) is not None:
            change = share.plus(before[at], -1)
            key = (at.tenant, creator, shard(at.session_id))
            totals[key] = totals.get(key, NOTHING).plus(change)
    return [
        PrincipalChange(*key, *_counts(change))
        for key, change in totals.items()
        if any(_counts(change))
    ]


def _counts(share: SessionShare) -> tuple[int, int, int, int, int]:
    """What counts for a principal. Cost and tokens count for the tenant alone."""
    return share.sessions, share.log_bytes, share.pending, share.turns, share.calls
