"""Message ids, receipts, tools, context sources, approvals and the log's status in memory."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from typing_extensions import override

from fairlead_eventlog.approvals import add_approvals
from fairlead_eventlog.errors import RecordChanged
from fairlead_eventlog.register_ports import (
    NO_RECORD,
    OnRegistrationsChanged,
    OnSourceChanged,
    StoredReceipt,
    VersionedValue,
)
from fairlead_eventlog.status.log_status import Incarnation, LogStatus, next_incarnation
from fairlead_schema import subjects
from fairlead_schema.ids import MessageId, SessionId, TenantId
from fairlead_schema.permission import SavedPermission
from fairlead_schema.subjects import Address


class MemoryMessageIds:
    """Message ids in a dictionary."""

    def __init__(self) -> None:
        self._bound: dict[tuple[TenantId, MessageId], SessionId] = {}

    async def bind(
        self, tenant: TenantId, message_id: MessageId, session_id: SessionId
    ) -> SessionId:
        return self._bound.setdefault((tenant, message_id), session_id)

    async def find(self, tenant: TenantId, message_id: MessageId) -> SessionId | None:
        return self._bound.get((tenant, message_id))


class MemoryOrigins:
    """Origins in a dictionary."""

    def __init__(self) -> None:
        self._origins: dict[Address, str] = {}

    async def find(self, at: Address) -> str | None:
        return self._origins.get(at)

    async def claim(self, at: Address, origin: str, *, overwrite: bool = False) -> str:
        if overwrite:
            self._origins[at] = origin
        return self._origins.setdefault(at, origin)


class MemoryReceipts:
    """Answers by subject."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}

    async def store(self, at: Address, message_id: MessageId, receipt: bytes) -> None:
        self.answers[subjects.receipt(at, message_id)] = receipt

    async def store_refusal(
        self, at: Address, message_id: MessageId, refusal: bytes, *, publication: int
    ) -> None:
        self.answers[subjects.refusal(at, message_id, publication)] = refusal
        self.answers.setdefault(subjects.receipt(at, message_id), refusal)

    async def last_position(self) -> int:
        return len(self.answers)

    async def read_after(self, position: int) -> Sequence[StoredReceipt]:
        found = []
        for index, (subject, answer) in enumerate(self.answers.items(), 1):
            _root, _kind, tenant, session_id, message_id, *publication = subject.split(".")
            if index > position and not publication:
                found.append(StoredReceipt(index, Address(tenant, session_id), message_id, answer))
        return found


class MemoryRegistrations:
    """Registrations in a dictionary."""

    def __init__(self) -> None:
        self.values: dict[tuple[TenantId, str], bytes] = {}
        self._watchers: list[OnRegistrationsChanged] = []

    async def put(self, tenant: TenantId, key: str, value: bytes) -> None:
        self.values[tenant, key] = value
        self._announce(tenant)

    async def remove(self, tenant: TenantId, key: str) -> None:
        self.values.pop((tenant, key), None)
        self._announce(tenant)

    async def watch(self, on_change: OnRegistrationsChanged) -> None:
        self._watchers.append(on_change)

    def _announce(self, tenant: TenantId) -> None:
        for on_change in self._watchers:
            on_change(tenant)

    async def get_all(self, tenant: TenantId) -> dict[str, bytes]:
        return {key: value for (owner, key), value in self.values.items() if owner == tenant}

    async def get_all_tenants(self) -> dict[TenantId, dict[str, bytes]]:
        return {owner: await self.get_all(owner) for owner, _key in self.values}


class MemoryRecords(MemoryRegistrations):
    """Records in a dictionary, with one counter for all revisions."""

    def __init__(self) -> None:
        super().__init__()
        self._revisions: dict[tuple[TenantId, str], int] = {}
        self._last = NO_RECORD

    async def read(self, tenant: TenantId, key: str) -> VersionedValue | None:
        value = self.values.get((tenant, key))
        return None if value is None else VersionedValue(value, self._revisions[tenant, key])

    async def replace(self, tenant: TenantId, key: str, value: bytes, *, revision: int) -> int:
        known = NO_RECORD if (tenant, key) not in self.values else self._revisions[tenant, key]
        if known != revision:
            raise RecordChanged(key, expected=revision)
        await self.put(tenant, key, value)
        return self._last

    @override
    async def put(self, tenant: TenantId, key: str, value: bytes) -> None:
        self._last += 1
        self._revisions[tenant, key] = self._last
        await super().put(tenant, key, value)


class MemorySources:
    """Registered sources in a dictionary."""

    def __init__(self) -> None:
        self._sources: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
        self._watchers: list[OnSourceChanged] = []

    async def add(self, tenant: TenantId, key: str, body: bytes) -> bytes:
        return self._sources[tenant].setdefault(key, body)

    async def remove(self, tenant: TenantId, key: str) -> None:
        self._sources[tenant].pop(key, None)

    async def get_all(self, tenant: TenantId) -> dict[str, bytes]:
        return dict(sorted(self._sources[tenant].items()))

    async def announce(self, tenant: TenantId, key: str) -> None:
        for on_change in self._watchers:
            on_change(tenant, key)

    async def watch(self, on_change: OnSourceChanged) -> None:
        self._watchers.append(on_change)


class MemoryApprovals:
    """Approvals in lists by project."""

    def __init__(self) -> None:
        self._projects: dict[tuple[TenantId, str], tuple[SavedPermission, ...]] = {}
        self._revision = 0

    async def save(
        self, tenant: TenantId, project_id: str, action: str, resources: Sequence[str]
    ) -> None:
        saved = await self.get_all(tenant, project_id)
        self._projects[tenant, project_id] = add_approvals(saved, project_id, action, resources)
        self._revision += 1

    async def get_all(self, tenant: TenantId, project_id: str) -> tuple[SavedPermission, ...]:
        return self._projects.get((tenant, project_id), ())

    async def remove(self, tenant: TenantId, id_: str) -> None:
        for (owner, project_id), saved in self._projects.items():
            if owner == tenant:
                rest = tuple(permission for permission in saved if permission.id != id_)
                self._projects[owner, project_id] = rest
        self._revision += 1

    async def revision(self) -> int:
        return self._revision


class MemoryLogStatus:
    """The status of a log in memory, in its first incarnation."""

    def __init__(self) -> None:
        self.current = LogStatus(incarnation=next_incarnation(None, ()))
        self._on_restore: set[Callable[[], None]] = set()

    async def read(self) -> LogStatus:
        return self.current

    async def finalise(self, level: int) -> None:
        self.current = self.current._replace(level=max(level, self.current.level))

    async def begin_incarnation(
        self, common: Sequence[int] = (), *, after: Incarnation | None
    ) -> Incarnation:
        known = self.current.incarnation
        if known is not None and known != after:
            return known
        begun = next_incarnation(after, common)
        self.current = self.current._replace(incarnation=begun)
        for notify in tuple(self._on_restore):
            notify()
        return begun

    def on_restore(self, notify: Callable[[], None]) -> Callable[[], None]:
        self._on_restore.add(notify)
        return lambda: self._on_restore.discard(notify)
