"""Managed outputs in memory."""

from collections.abc import AsyncIterator

from fairlead_eventlog.quotas.stored_bytes import StoredBytes
from fairlead_eventlog.register_ports import OutputPart, OutputParts, StoredOutput
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import OutputId, TenantId
from fairlead_schema.subjects import Address

PIECE_BYTES = 64 * 1024


class MemoryOutputs:
    """Managed outputs as bytes."""

    def __init__(self) -> None:
        self.outputs: dict[tuple[TenantId, OutputId], tuple[bytes, str]] = {}
        self._sessions: dict[OutputId, Address] = {}
        self._principals: dict[OutputId, PrincipalName | None] = {}
        self._parts: dict[tuple[Address, OutputId, str, int], bytes] = {}

    async def put(
        self,
        at: Address,
        output_id: OutputId,
        pieces: AsyncIterator[bytes],
        *,
        mime: str,
        principal: PrincipalName | None = None,
    ) -> StoredOutput:
        whole = b"".join([piece async for piece in pieces])
        self.outputs[at.tenant, output_id] = (whole, mime)
        self._sessions[output_id], self._principals[output_id] = at, principal
        return StoredOutput(len(whole), mime)

    async def put_part(
        self,
        at: Address,
        output_id: OutputId,
        part: OutputPart,
        *,
        principal: PrincipalName | None = None,
    ) -> None:
        self._principals[output_id] = principal
        self._parts[at, output_id, part.upload, part.number] = part.data

    async def finish_parts(
        self,
        at: Address,
        output_id: OutputId,
        parts: OutputParts,
        *,
        principal: PrincipalName | None = None,
    ) -> None:
        keys = [(at, output_id, parts.upload, number) for number in range(parts.count)]
        whole = b"".join(self._parts.pop(key) for key in keys)
        self.outputs[at.tenant, output_id] = (whole, parts.mime)
        self._sessions[output_id], self._principals[output_id] = at, principal

    async def read_parts(
        self,
        at: Address,
        output_id: OutputId,
        parts: OutputParts,
        *,
        principal: PrincipalName | None = None,  # noqa: ARG002 - the port names it
    ) -> AsyncIterator[bytes]:
        for number in range(parts.count):
            yield self._parts.get((at, output_id, parts.upload, number), b"")

    async def drop_parts(
        self,
        at: Address,
        output_id: OutputId,
        parts: OutputParts,
        *,
        principal: PrincipalName | None = None,  # noqa: ARG002 - the port names it
    ) -> None:
        for number in range(parts.count):
            self._parts.pop((at, output_id, parts.upload, number), None)

    async def remove_unfinished(self, *, idle_s: float) -> int:
        """Forget the parts of every try. They have no time here, so that only 0 removes them."""
        tries = {key[:3] for key in self._parts} if idle_s <= 0 else set()
        self._parts = {} if tries else self._parts
        return len(tries)

    async def stat(self, tenant: TenantId, output_id: OutputId) -> StoredOutput | None:
        output = self.outputs.get((tenant, output_id))
        return None if output is None else StoredOutput(len(output[0]), output[1])

    async def get(
        self, tenant: TenantId, output_id: OutputId, *, first: int = 0
    ) -> AsyncIterator[bytes]:
        rest = self.outputs.get((tenant, output_id), (b"", ""))[0][first:]
        for start in range(0, len(rest), PIECE_BYTES):
            yield rest[start : start + PIECE_BYTES]

    async def stored_bytes(self, tenant: TenantId) -> StoredBytes:
        stored = StoredBytes()
        for (owner, output_id), (whole, _) in self.outputs.items():
            if owner == tenant:
                stored = stored.plus(self._principals.get(output_id), len(whole))
        return stored

    async def remove_all(self, at: Address) -> None:
        for output_id in [id_ for id_, session in self._sessions.items() if session == at]:
            del self._sessions[output_id]
            self.outputs.pop((at.tenant, output_id), None)
