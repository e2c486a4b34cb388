"""Turns the credentials of a request into its principal. HTTP and other doors share it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from typing_extensions import override

from fairlead_schema.errors import Unauthorized
from fairlead_schema.identity.principal import LOCAL, Principal
from fairlead_service.audit import audit
from fairlead_service.config.auth import AuthConfig
from fairlead_service.config.configuration import ConfigError
from fairlead_service.identity.keys import KeyRing, is_key, parse_key_ring
from fairlead_service.identity.watched_file import FileUnusable, WatchedFile
from fairlead_service.ids import now_ms

if TYPE_CHECKING:
    from fairlead_service.identity.tokens import TokenVerifier

HOW_TO_CONFIGURE = (
    "configure [auth] keys_file (write it with `fairlead token create --keys-file FILE`)"
    " or [auth] issuer, audience and jwks_file or jwks_url"
)


class Authenticator(Protocol):
    """Says who a caller is."""

    async def authenticate(self, find_credential: Callable[[], str]) -> Principal:
        """The principal of a request. `find_credential` raises Unauthorized if there is none."""


class OpenAuthenticator(Authenticator):
    """Everybody on this machine is `local`. Credentials are not looked at."""

    @override
    async def authenticate(self, find_credential: Callable[[], str]) -> Principal:
        return LOCAL


class TokenAuthenticator(Authenticator):
    """Static keys and tokens, whichever are configured."""

    def __init__(self, keys: WatchedFile[KeyRing] | None, tokens: "TokenVerifier | None") -> None:
        self._keys = keys
        self._tokens = tokens

    @override
    async def authenticate(self, find_credential: Callable[[], str]) -> Principal:
        credential = find_credential()
        if self._keys is not None and is_key(credential):
            return _holder_of(credential, self._keys)
        if self._tokens is not None:
            return await self._tokens.principal(credential, now_ms=now_ms())
        raise Unauthorized("The credentials are not a key of this server")


def _holder_of(key: str, keys: WatchedFile[KeyRing]) -> Principal:
    """The holder of a key, which may be a moment old. Raises Unauthorized."""
    known = keys.current()
    try:
        return known.principal(key, now_ms=now_ms())
    except Unauthorized:
        newer = keys.after_miss()
        if newer is known:
            raise
        return newer.principal(key, now_ms=now_ms())


def build_authenticator(config: AuthConfig) -> Authenticator:
    """The authenticator that the configuration asks for. Raises ConfigError."""
    if config.mode == "open":
        return OpenAuthenticator()
    if config.keys_file is None and config.issuer is None:
        raise ConfigError("auth", "", f"nobody could authenticate: {HOW_TO_CONFIGURE}")
    try:
        keys = None
        if config.keys_file is not None:
            path = Path(config.keys_file)
            keys = WatchedFile(path, parse_key_ring, on_change=audit_key_changes)
        return TokenAuthenticator(keys, _token_verifier(config))
    except FileUnusable as error:
        raise ConfigError("auth", "", f"{error}; {HOW_TO_CONFIGURE}") from error


def audit_key_changes(old: KeyRing, new: KeyRing) -> None:
    """One audit line for each key that a new version of the file adds, changes, revokes or removes."""
    for id_, entry in new.entries.items():
        before = old.entries.get(id_)
        if before is None:
            audit("token.create", "allowed", tenant=entry.tenant, resource=id_)
        if entry.revoked is not None and (before is None or before.revoked is None):
            audit("token.revoke", "allowed", tenant=entry.tenant, resource=id_)
        elif before is not None and before != entry:
            # Somebody edited the file: more roles perhaps, or a key that counts again.
            reason = "roles: " + ", ".join(entry.roles)
            audit("token.change", "allowed", tenant=entry.tenant, resource=id_, reason=reason)
    for id_ in old.entries.keys() - new.entries.keys():
        audit("token.remove", "allowed", tenant=old.entries[id_].tenant, resource=id_)


def _token_verifier(config: AuthConfig) -> "TokenVerifier | None":
    if config.issuer is None:
        return None
    # Signatures need 10 MB of libraries, which a server of keys alone does not load.
    from fairlead_service.identity.configured_tokens import build_verifier  # noqa: PLC0415

    return build_verifier(config)
