"""Reads and changes records of a tenant by compare-and-set, as typed values."""

from collections.abc import Callable
from typing import Final, TypeVar

from fairlead_eventlog.errors import RecordChanged
from fairlead_eventlog.register_ports import NO_RECORD, Records
from fairlead_schema.errors import Conflict, LimitReached, ServiceUnavailable
from fairlead_schema.ids import TenantId
from fairlead_schema.model import Model

CHANGE_TRIES: Final = 16

Stored = TypeVar("Stored", bound=Model)


async def add_record(  # noqa: PLR0913
    records: Records,
    tenant: TenantId,
    id_: str,
    record: Stored,
    *,
    count_max: int,
    kind: str,
    is_repeat: Callable[[Stored], bool],
) -> tuple[Stored, bool]:
    """Store a new record, and say whether it is new: an exact retry gets the record of the first try.

    Raises Conflict if the id stands for something else, and LimitReached.
    """
    known = await read_record(records, tenant, id_, type(record))
    if known is None:
        if len(await records.get_all(tenant)) >= count_max:
            raise LimitReached(f"The tenant has {count_max} {kind} already: remove one first")
        try:
            await records.replace(tenant, id_, encode(record), revision=NO_RECORD)
        except RecordChanged:
            known = await read_record(records, tenant, id_, type(record))
        else:
            return record, True
    if known is not None and is_repeat(known):
        return known, False
    raise Conflict("The id is in use: choose another one, or none", id_)


async def change_record(
    records: Records,
    tenant: TenantId,
    key: str,
    kind: type[Stored],
    change: Callable[[Stored], Stored],
) -> Stored | None:
    """Change a record, again after another writer was first. None if there is no such record."""
    for _ in range(CHANGE_TRIES):
        found = await records.read(tenant, key)
        if found is None:
            return None
        changed = change(kind.model_validate_json(found.value))
        try:
            await records.replace(tenant, key, encode(changed), revision=found.revision)
        except RecordChanged:
            continue
        return changed
    raise ServiceUnavailable("Too many callers change it now: try again", service="nats")


async def read_record(
    records: Records, tenant: TenantId, key: str, kind: type[Stored]
) -> Stored | None:
    """One record of a tenant, from the leader."""
    found = await records.read(tenant, key)
    return None if found is None else kind.model_validate_json(found.value)


async def read_all(records: Records, tenant: TenantId, kind: type[Stored]) -> list[Stored]:
    """Every record of a tenant, oldest first: ids begin with their time."""
    values = await records.get_all(tenant)
    return [kind.model_validate_json(values[key]) for key in sorted(values)]


def encode(record: Model) -> bytes:
    return record.model_dump_json(by_alias=True, exclude_none=True).encode()
