"""Saved approvals in a key-value bucket: one value per project, changed by whoever saw it last."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, TypeAlias

from pydantic import TypeAdapter

from fairlead_eventlog.errors import LogUnavailable, Unanswered
from fairlead_eventlog.jetstream.link import (
    EXPECTED_LAST,
    WRONG_LAST_SEQUENCE,
    Link,
    NoAnswer,
    ServerRefusal,
    missing,
)
from fairlead_eventlog.streams import APPROVALS
from fairlead_schema.ids import TenantId
from fairlead_schema.permission import SavedPermission

WRITE_TRIES: Final = 32

Saved: TypeAlias = tuple[SavedPermission, ...]
_SAVED: Final[TypeAdapter[Saved]] = TypeAdapter(Saved)


def approval_id(project_id: str, action: str, resource: str) -> str:
    """The same for the same approval, and it tells where the approval is kept."""
    return f"psv_{_token(project_id)}_{_token(action, resource)}"


def added(known: Saved, project_id: str, action: str, resources: Sequence[str]) -> Saved:
    """The approvals with these among them, each once."""
    fresh = {
        id_: SavedPermission(id=id_, project_id=project_id, action=action, resource=resource)
        for resource in resources
        if (id_ := approval_id(project_id, action, resource))
    }
    kept = {one.id for one in known}
    return (*known, *(one for id_, one in fresh.items() if id_ not in kept))


class JetStreamApprovals:
    """Approvals over NATS."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def save(
        self, tenant: TenantId, project_id: str, action: str, resources: Sequence[str]
    ) -> None:
        subject = _subject(tenant, _token(project_id))
        await self._change(subject, lambda known: added(known, project_id, action, resources))

    async def saved(self, tenant: TenantId, project_id: str) -> Saved:
        known, _revision = await self._load(_subject(tenant, _token(project_id)))
        return known

    async def remove(self, tenant: TenantId, id_: str) -> None:
        parts = id_.split("_")
        if len(parts) != len(("psv", "project", "approval")) or not parts[1].isalnum():
            return
        subject = _subject(tenant, parts[1])
        await self._change(subject, lambda known: tuple(one for one in known if one.id != id_))

    async def revision(self) -> int:
        try:
            answer = await self._link.api(f"STREAM.INFO.{APPROVALS.name}")
        except ServerRefusal as refusal:
            raise missing(refusal, APPROVALS.name) from refusal
        return int(answer["state"]["last_seq"])

    async def _load(self, subject: str) -> tuple[Saved, int]:
        got = await self._link.last(APPROVALS.name, subject)
        return ((), 0) if got is None else (_SAVED.validate_json(got.payload), got.sequence)

    async def _change(self, subject: str, change: Callable[[Saved], Saved]) -> None:
        for _ in range(WRITE_TRIES):
            known, revision = await self._load(subject)
            wanted = change(known)
            if wanted == known:
                return
            try:
                body = _SAVED.dump_json(wanted, by_alias=True)
                await self._link.store(subject, body, headers={EXPECTED_LAST: str(revision)})
            except ServerRefusal as refusal:
                if refusal.code not in WRONG_LAST_SEQUENCE:
                    raise missing(refusal, APPROVALS.name) from refusal
                continue  # Somebody changed it first, or our own write landed unheard.
            except (NoAnswer, Unanswered) as error:
                raise LogUnavailable("the approval was not acknowledged") from error
            return
        raise LogUnavailable("the project's approvals are too busy to change")


def _subject(tenant: TenantId, project: str) -> str:
    return f"$KV.fairlead-approval.{tenant}.{project}"


def _token(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:20]
