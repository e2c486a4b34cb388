"""The totals of tenants: what each session adds, and what a batch changes. Pure.

A session adds what its row says. A batch changes the totals by the difference between the rows after
and before, so the totals never depend on how the log was cut into batches. Costs are decimal numbers,
because their sums do not depend on the order.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import NamedTuple

from fairlead_projector.projection.rows import ProjectedSession, SessionRow
from fairlead_schema.events import SessionPurged, ToolStarted
from fairlead_schema.ids import TenantId
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address, shard
from fairlead_session.execution.budget import count_tokens
from fairlead_session.state.execution import CallKey


class SessionShare(NamedTuple):
    """What one session adds to the totals of its tenant."""

    sessions: int = 0
    log_bytes: int = 0
    pending: int = 0
    turns: int = 0
    calls: int = 0
    cost: Decimal = Decimal(0)
    tokens: int = 0

    def plus(self, other: "SessionShare", sign: int = 1) -> "SessionShare":
        """The sum of both shares; with sign -1 their difference."""
        return SessionShare(
            self.sessions + sign * other.sessions,
            self.log_bytes + sign * other.log_bytes,
            self.pending + sign * other.pending,
            self.turns + sign * other.turns,
            self.calls + sign * other.calls,
            self.cost + sign * other.cost,
            self.tokens + sign * other.tokens,
        )


@dataclass(frozen=True, slots=True)
class TenantChange:
    """What a batch adds to the totals of a tenant in a shard, as the statement reads it."""

    tenant: TenantId
    shard: int
    sessions: int
    log_bytes: int
    pending: int
    turns: int
    calls: int
    cost: Decimal
    tokens: int


NOTHING = SessionShare()


def share_of(row: SessionRow | None) -> SessionShare:
    """What a session adds; nothing if it does not exist. A broken one runs nothing that could end."""
    if row is None:
        return NOTHING
    is_running = row.broken is None
    return SessionShare(
        sessions=1,
        log_bytes=row.log_bytes,
        pending=row.pending,
        turns=int(is_running and row.owner is not None),
        calls=len(row.started_calls) if is_running else 0,
        cost=_exact(row.cost),
        tokens=count_tokens(row.tokens),
    )


def share_after_purge(before: SessionShare, event: SessionPurged, size: int) -> SessionShare:
    """What a purged session still adds: its cost and tokens, and the bytes of its last event.

    A last event of an earlier release does not say what the session used: the row said so.
    """
    cost = before.cost if event.cost is None else _exact(event.cost)
    tokens = before.tokens if event.tokens is None else event.tokens
    return SessionShare(log_bytes=size, cost=cost, tokens=tokens)


def tenant_changes(
    before: Mapping[Address, SessionShare], after: Mapping[Address, SessionShare]
) -> list[TenantChange]:
    """What a batch changes in the totals of each tenant and shard. Those without a change are left out."""
    totals: dict[tuple[TenantId, int], SessionShare] = {}
    for at, share in after.items():
        change, key = share.plus(before[at], -1), (at.tenant, shard(at.session_id))
        totals[key] = totals.get(key, NOTHING).plus(change)
    return [
        TenantChange(*key, **change._asdict())
        for key, change in totals.items()
        if change != NOTHING
    ]


def note_started_calls(session: ProjectedSession, events: Iterable[Recorded]) -> None:
    """Keep the calls that a worker has started and nobody has settled, after a commit."""
    row = session.row
    started = dict.fromkeys(row.started_calls)
    for recorded in events:
        if type(event := recorded.event) is ToolStarted and recorded.imported is None:
            started[CallKey(event.assistant_message_id, event.call_id)] = None
    if started:
        row.started_calls = tuple(call for call in started if call in row.execution.open_calls)


def _exact(cost: float) -> Decimal:
    """A cost as it is written. A cost that is no number counts as nothing: it would stay for ever."""
    return Decimal(repr(cost)) if isfinite(cost) else Decimal(0)
