"""Reads what tenants registered. A record that cannot be read stops nothing but itself."""

import logging
from collections.abc import Iterator, Mapping
from typing import Generic, TypeAlias, TypeVar

from pydantic import ValidationError

from fairlead_schema.ids import TenantId
from fairlead_schema.model import Model

log = logging.getLogger(__name__)

Key: TypeAlias = tuple[TenantId, str]
Stored: TypeAlias = Mapping[TenantId, Mapping[str, bytes]]
Record = TypeVar("Record", bound=Model)
State = TypeVar("State", bound=Model)


class RecordReader(Generic[Record, State]):
    """The records of all tenants with their states."""

    def __init__(self, record: type[Record], state: type[State]) -> None:
        self._record = record
        self._state = state
        self._reported: dict[Key, bytes] = {}

    def read(self, records: Stored, states: Stored) -> Iterator[tuple[Key, Record, State | None]]:
        """Every record that can be read. A state that cannot be read counts as none."""
        for tenant, values in records.items():
            for id_, value in values.items():
                key = tenant, id_
                try:
                    record = self._record.model_validate_json(value)
                except ValidationError as error:
                    self.report(key, value, _fields(error))
                else:
                    yield key, record, self._read_state(states.get(tenant, {}).get(id_))

    def report(self, key: Key, value: bytes, reason: str) -> None:
        """Say once that a record cannot be used. Its text may hold secrets, so it stays out of the log."""
        if self._reported.get(key) == value:
            return
        self._reported[key] = value
        log.error(
            "a registration cannot be used: upgrade this service, or write it again",
            extra={"tenant": key[0], "registration": key[1], "reason": reason},
        )

    def _read_state(self, value: bytes | None) -> State | None:
        if value is None:
            return None
        try:
            return self._state.model_validate_json(value)
        except ValidationError:
            return None


def _fields(error: ValidationError) -> str:
    """Which fields are wrong, without their values."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return ", ".join(".".join(map(str, one["loc"])) or "the record" for one in found[:5])
