"""The ports of the registers: small values by key, each read by its tenant alone."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from fairlead_eventlog.ports import Head
from fairlead_schema.ids import MessageId, SessionId, TenantId
from fairlead_schema.permission import SavedPermission
from fairlead_schema.subjects import Address


class MessageRegister(Protocol):
    """Binds a message id to the one session of its tenant that may use it."""

    async def bind(
        self, tenant: TenantId, message_id: MessageId, session_id: SessionId
    ) -> SessionId:
        """Bind the id unless it is bound; the answer is the session that has it."""


class Receipts(Protocol):
    """The answers of the durable intake, for their callers to find."""

    async def store(self, at: Address, message_id: MessageId, receipt: bytes) -> None:
        """Store the receipt of a message, in place of a refusal too. Raises LogUnavailable."""

    async def store_refusal(
        self, at: Address, message_id: MessageId, refusal: bytes, *, publication: int
    ) -> None:
        """Store the refusal of one publication. It replaces no answer. Raises LogUnavailable.

        The refusal stands under the sequence of its publication, and under the message id too unless
        an answer is there: the receipt of an earlier publication stays.
        """


class SourceRegister(Protocol):
    """The context sources that services registered, each key once per tenant."""

    async def add(self, tenant: TenantId, key: str, body: bytes) -> bytes:
        """Store a body under its key unless the key is taken; the answer is the stored body."""

    async def remove(self, tenant: TenantId, key: str) -> None:
        """Delete a key."""

    async def get_all(self, tenant: TenantId) -> dict[str, bytes]:
        """Every body of a tenant, in key order."""


OnToolsChanged: TypeAlias = Callable[[TenantId | None], None]
"""Runs when the tools of a tenant changed. None: those of any tenant may have changed."""


class ToolRegistrations(Protocol):
    """The tools that services of a tenant registered, as values by key."""

    async def put(self, tenant: TenantId, key: str, value: bytes) -> None:
        """Store a value under its key, and tell all who watch. Raises LogUnavailable."""

    async def remove(self, tenant: TenantId, key: str) -> None:
        """Delete a key, and tell all who watch."""

    async def get_all(self, tenant: TenantId) -> dict[str, bytes]:
        """Every value of one tenant, by key. Raises LogUnavailable.

        A process that watches sees every change that it was told of, whichever server answers.
        """

    async def watch(self, on_change: OnToolsChanged) -> None:
        """Call a function after each change from now on, in every process that watches."""


class Approvals(Protocol):
    """Permissions that people approved for always, by project."""

    async def save(
        self, tenant: TenantId, project_id: str, action: str, resources: Sequence[str]
    ) -> None:
        """Save an approval of an action for each resource pattern. A saved pattern stays as it is."""

    async def get_all(self, tenant: TenantId, project_id: str) -> tuple[SavedPermission, ...]:
        """The approvals of a project in the order of saving, read from the leader."""

    async def remove(self, tenant: TenantId, id_: str) -> None:
        """Delete one approval, if it exists."""

    async def revision(self) -> int:
        """A number that changes with every save and every removal."""


class Snapshot(NamedTuple):
    """A folded state and the head it belongs to."""

    head: Head
    state: bytes


class Snapshots(Protocol):
    """Folded states as a cache: any snapshot may disappear at any time."""

    async def load(self, at: Address) -> Snapshot | None:
        """The last stored snapshot, if there is one."""

    async def store(self, at: Address, snapshot: Snapshot) -> None:
        """Replace the snapshot. A snapshot that is too large is dropped silently."""

    async def remove(self, at: Address) -> None:
        """Delete the snapshot."""

    async def remove_all(self) -> None:
        """Delete every snapshot, because the log was restored and may not have their events."""
