"""Saved approvals in a key-value bucket: one value per project, changed by compare-and-set."""

from collections.abc import Callable, Sequence
from typing import Final

from pydantic import TypeAdapter

from fairlead_eventlog.approvals import SavedPermissions, add_approvals, hash_token, project_key
from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import (
    EXPECTED_LAST,
    WRONG_LAST_SEQUENCE,
    NatsLink,
    NoAnswer,
    ServerRefusal,
    stream_error,
)
from fairlead_eventlog.replicas.patience import Patience
from fairlead_eventlog.streams import APPROVALS
from fairlead_schema.ids import TenantId

# How long a change is tried again while other writers change the same project.
PATIENCE_S: Final = 15.0

_SAVED: Final[TypeAdapter[SavedPermissions]] = TypeAdapter(SavedPermissions)


class JetStreamApprovals:
    """Approvals over NATS."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def save(
        self, tenant: TenantId, project_id: str, action: str, resources: Sequence[str]
    ) -> None:
        subject = _subject(tenant, hash_token(project_id))
        await self._change(
            subject, lambda saved: add_approvals(saved, project_id, action, resources)
        )

    async def get_all(self, tenant: TenantId, project_id: str) -> SavedPermissions:
        saved, _revision = await self._load(_subject(tenant, hash_token(project_id)))
        return saved

    async def remove(self, tenant: TenantId, id_: str) -> None:
        project = project_key(id_)
        if project is None:
            return
        await self._change(
            _subject(tenant, project),
            lambda saved: tuple(permission for permission in saved if permission.id != id_),
        )

    async def revision(self) -> int:
        try:
            answer = await self._link.api(f"STREAM.INFO.{APPROVALS.name}")
        except ServerRefusal as refusal:
            raise stream_error(refusal, APPROVALS.name) from refusal
        return int(answer["state"]["last_seq"])

    async def _load(self, subject: str) -> tuple[SavedPermissions, int]:
        message = await self._link.last_message(APPROVALS.name, subject)
        if message is None:
            return (), 0
        return _SAVED.validate_json(message.payload), message.sequence

    async def _change(
        self, subject: str, change: Callable[[SavedPermissions], SavedPermissions]
    ) -> None:
        patience = Patience(PATIENCE_S)
        while True:
            saved, revision = await self._load(subject)
            wanted = change(saved)
            if wanted == saved:
                return
            try:
                body = _SAVED.dump_json(wanted, by_alias=True)
                await self._link.store(subject, body, headers={EXPECTED_LAST: str(revision)})
            except ServerRefusal as refusal:
                if refusal.code not in WRONG_LAST_SEQUENCE:
                    raise stream_error(refusal, APPROVALS.name) from refusal
            except (NoAnswer, NoResponders) as error:
                raise LogUnavailable("the approval was not acknowledged") from error
            else:
                return
            # Another writer was first and may not be stored yet, or our own write had no answer.
            if not await patience.pause():
                raise LogUnavailable("too many writers change the approvals of this project")


def _subject(tenant: TenantId, project: str) -> str:
    return f"$KV.fairlead-approval.{tenant}.{project}"
