"""The ports of what is kept by key, each for its tenant alone: registers and managed outputs."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

from fairlead_eventlog.ports import Head
from fairlead_eventlog.quotas.stored_bytes import StoredBytes
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import MessageId, OutputId, SessionId, TenantId
from fairlead_schema.permission import SavedPermission
from fairlead_schema.subjects import Address


class MessageRegister(Protocol):
    """Binds a message id to the one session of its tenant that may use it."""

    async def bind(
        self, tenant: TenantId, message_id: MessageId, session_id: SessionId
    ) -> SessionId:
        """Bind the id unless it is bound; the answer is the session that has it."""

    async def find(self, tenant: TenantId, message_id: MessageId) -> SessionId | None:
        """The session that an id is bound to, from the leader; None if it is not bound."""


class Origins(Protocol):
    """Who replays into a session. A session without an origin takes replays from everybody."""

    async def find(self, at: Address) -> str | None:
        """The origin of a session, from the leader."""

    async def claim(self, at: Address, origin: str, *, overwrite: bool = False) -> str:
        """Set the origin of a session that has none, or in place of another one.

        The answer is the origin that the session has. Raises LogUnavailable.
        """


@dataclass(frozen=True, slots=True)
class StoredReceipt:
    """An answer of the durable intake, and where it is stored."""

    position: int
    at: Address
    message_id: MessageId
    answer: bytes


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

    async def last_position(self) -> int:
        """The position of the last answer, 0 if there was none. Raises LogUnavailable."""

    async def read_after(self, position: int) -> Sequence[StoredReceipt]:
        """The next answers after a position, oldest first. Raises LogUnavailable."""


OnSourceChanged: TypeAlias = Callable[[TenantId | None, str | None], None]
"""Runs when a source of a tenant changed. None: any source of any tenant may have changed."""


class SourceRegister(Protocol):
    """The context sources that services registered, each key once per tenant."""

    async def add(self, tenant: TenantId, key: str, body: bytes) -> bytes:
        """Store a body under its key unless the key is taken; the answer is the stored body."""

    async def remove(self, tenant: TenantId, key: str) -> None:
        """Delete a key."""

    async def get_all(self, tenant: TenantId) -> dict[str, bytes]:
        """Every body of a tenant, in key order."""

    async def announce(self, tenant: TenantId, key: str) -> None:
        """Tell all who watch that a source changed. Raises LogUnavailable if that is not sure."""

    async def watch(self, on_change: OnSourceChanged) -> None:
        """Call a function after each announced change, in every process that watches."""


OnRegistrationsChanged: TypeAlias = Callable[[TenantId | None], None]
"""Runs when a tenant's registrations changed. None: those of any tenant may have changed."""


class Registrations(Protocol):
    """What services of a tenant registered, tools or transforms, as values by key."""

    async def put(self, tenant: TenantId, key: str, value: bytes) -> None:
        """Store a value under its key, and tell all who watch. Raises LogUnavailable."""

    async def remove(self, tenant: TenantId, key: str) -> None:
        """Delete a key, and tell all who watch."""

    async def get_all(self, tenant: TenantId) -> dict[str, bytes]:
        """Every value of one tenant, by key. Raises LogUnavailable.

        A process that watches sees every change that it was told of, whichever server answers.
        """

    async def get_all_tenants(self) -> dict[TenantId, dict[str, bytes]]:
        """Every value of every tenant, by key. Raises LogUnavailable, StreamMissing."""

    async def watch(self, on_change: OnRegistrationsChanged) -> None:
        """Call a function after each change from now on, in every process that watches."""


class VersionedValue(NamedTuple):
    """The value of a record, and the revision that guards its next change."""

    value: bytes
    revision: int


NO_RECORD: Final = 0
"""The revision of a key that has no record."""


class Records(Registrations, Protocol):
    """Registrations that several writers change: each change names the revision that it replaces."""

    async def read(self, tenant: TenantId, key: str) -> VersionedValue | None:
        """The record of a key, from the leader; None if there is none. Raises LogUnavailable."""

    async def replace(self, tenant: TenantId, key: str, value: bytes, *, revision: int) -> int:
        """Store a value in place of a revision, and tell all who watch; the answer is its revision.

        Raises RecordChanged if the record has another revision, LogUnavailable.
        """


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


class StoredOutput(NamedTuple):
    """The size and the type of a managed output."""

    bytes: int
    mime: str


@dataclass(frozen=True, slots=True)
class OutputPart:
    """One part of an output that comes in parts, in order."""

    upload: str
    """Tells the parts of one try from those of another."""
    number: int
    first_bytes: int
    """The length of the first part."""
    data: bytes


@dataclass(frozen=True, slots=True)
class OutputParts:
    """All parts of an output: what makes them readable."""

    upload: str
    first_bytes: int
    count: int
    size: int
    digest: bytes
    mime: str


class OutputStore(Protocol):
    """Managed outputs: complete results that are too long for a log, kept for some days."""

    async def put(
        self,
        at: Address,
        output_id: OutputId,
        pieces: AsyncIterator[bytes],
        *,
        mime: str,
        principal: PrincipalName | None = None,
    ) -> StoredOutput:
        """Store an output of a session, in pieces of any size. It counts for the principal.

        Raises LogUnavailable, StreamMissing; after that nobody can read a part of it.
        """

    async def put_part(
        self,
        at: Address,
        output_id: OutputId,
        part: OutputPart,
        *,
        principal: PrincipalName | None = None,
    ) -> None:
        """Store one part. A part that is sent again within two minutes is stored once."""

    async def finish_parts(
        self,
        at: Address,
        output_id: OutputId,
        parts: OutputParts,
        *,
        principal: PrincipalName | None = None,
    ) -> None:
        """Make the parts of one try an output that can be read."""

    def read_parts(
        self,
        at: Address,
        output_id: OutputId,
        parts: OutputParts,
        *,
        principal: PrincipalName | None = None,
    ) -> AsyncIterator[bytes]:
        """The parts of one try, as far as they are there, before they are an output."""

    async def drop_parts(
        self,
        at: Address,
        output_id: OutputId,
        parts: OutputParts,
        *,
        principal: PrincipalName | None = None,
    ) -> None:
        """Delete the parts of one try."""

    async def remove_unfinished(self, *, idle_s: float) -> int:
        """Delete parts that belong to no output and to which nothing was added for so long.

        The answer is of how many tries. Raises LogUnavailable, StreamMissing.
        """

    async def stat(self, tenant: TenantId, output_id: OutputId) -> StoredOutput | None:
        """The size and type of an output of this tenant; None if it is not stored, or no longer."""

    def get(self, tenant: TenantId, output_id: OutputId, *, first: int = 0) -> AsyncIterator[bytes]:
        """An output from byte `first` on, piece by piece; nothing if it is not stored.

        Raises LogUnavailable, also for an output that ends too early.
        """

    async def stored_bytes(self, tenant: TenantId) -> StoredBytes:
        """The bytes of all outputs of a tenant. A long output counts up to one chunk too much.

        Raises LogUnavailable, StreamMissing.
        """

    async def remove_all(self, at: Address) -> None:
        """Delete every output of a session, also outputs that no event names.

        Raises LogUnavailable; a second call deletes the rest.
        """
