"""Whether the principal of a schedule may still prompt, at the moment of a run.

A key is looked up in the keys file: it may be revoked, expired, or have fewer roles. The tokens of users
and the NATS keys of services are not here, so what they proved when they wrote the schedule holds for some days.
"""

from pathlib import Path
from typing import Final

from fairlead_schema.errors import Forbidden
from fairlead_schema.identity.principal import LOCAL
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.identity.scopes import Scope
from fairlead_schema.ids import TenantId
from fairlead_schema.schedules.record import ScheduleRecord
from fairlead_service.config.auth import AuthConfig
from fairlead_service.config.configuration import ConfigError
from fairlead_service.identity.keys import KeyRing, parse_key_ring
from fairlead_service.identity.watched_file import FileUnusable, WatchedFile

NEEDED: Final[Scope] = "session:write"
DAY_MS: Final = 24 * 60 * 60 * 1000
_KEY: Final = "key:"
_USER: Final = "user:"


class CurrentRights:
    """The rights of principals as they are now."""

    def __init__(self, auth: AuthConfig, grant_days: float) -> None:
        """Read the keys file, if there is one. Raises ConfigError."""
        self._auth = auth
        self._grant_days = grant_days
        self._keys: WatchedFile[KeyRing] | None = None
        if auth.mode == "token" and auth.keys_file is not None:
            try:
                self._keys = WatchedFile(Path(auth.keys_file), parse_key_ring)
            except FileUnusable as error:
                raise ConfigError("auth", "keys_file", str(error)) from error

    def check(self, tenant: TenantId, record: ScheduleRecord, now_ms: int) -> Restrictions | None:
        """The restrictions of a run now. Raises Forbidden if its principal may not prompt any more."""
        name = record.by
        if name is None:
            return record.restrictions
        if name == LOCAL.name:
            if self._auth.mode == "open" and tenant == LOCAL.tenant:
                return None
            raise Forbidden("The schedule was made without a token, and this stack wants one now")
        if name.startswith(_KEY) and self._auth.mode == "token":
            return self._check_key(tenant, name.removeprefix(_KEY), now_ms)
        if name.startswith(_USER) and not self._is_issued(name):
            raise Forbidden(f"The issuer of {name} is not configured any more")
        if now_ms - record.changed > self._grant_days * DAY_MS:
            text = (
                f"{name} wrote the schedule more than {self._grant_days:g} days ago: write it again"
            )
            raise Forbidden(text)
        return record.restrictions

    def _check_key(self, tenant: TenantId, id_: str, now_ms: int) -> Restrictions | None:
        if self._keys is None:
            raise Forbidden("The right of a key cannot be checked: configure [auth] keys_file")
        entry = self._keys.current().entries.get(id_)
        if entry is None or entry.tenant != tenant or entry.revoked is not None:
            raise Forbidden(f"The key {id_} does not count any more: write the schedule again")
        if entry.expires_at is not None and entry.expires_at <= now_ms:
            raise Forbidden(f"The key {id_} is expired: write the schedule again with another one")
        principal = entry.principal()
        if not principal.may(NEEDED):
            raise Forbidden(f"The key {id_} has no scope {NEEDED} any more")
        return principal.restrictions

    def _is_issued(self, name: str) -> bool:
        issuer = self._auth.issuer
        return issuer is not None and name.startswith(f"{_USER}{issuer}/")
