"""Verifies tokens (JWT) of one configured issuer, and remembers the verified ones until they end."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import jwt
from pydantic import StringConstraints, TypeAdapter, ValidationError

from fairlead_schema.errors import Unauthorized
from fairlead_schema.identity.principal import Principal, PrincipalName
from fairlead_schema.identity.scopes import ROLES, SCOPES, scopes_of
from fairlead_schema.ids import TenantId
from fairlead_service.identity.jwks import JwksUrl, KeySet, KeySource
from fairlead_service.identity.watched_file import WatchedFile

LIFETIME_S_MAX: Final = 3600
LEEWAY_S: Final = 30
CACHE_TOKENS_MAX: Final = 4096

_TENANT: Final[TypeAdapter[str]] = TypeAdapter(TenantId)
_NAME: Final[TypeAdapter[str]] = TypeAdapter(PrincipalName)
_KEY_ID: Final[TypeAdapter[str]] = TypeAdapter(Annotated[str, StringConstraints(max_length=256)])


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token must be to count."""

    issuer: str
    audience: str
    algorithms: tuple[str, ...]
    tenant_claim: str
    roles_claim: str


@dataclass(frozen=True, slots=True)
class _Verified:
    principal: Principal
    token_id: str | None


class TokenVerifier:
    """Turns tokens into principals. A repeated token costs a look-up."""

    def __init__(
        self, rules: TokenRules, keys: KeySource, denied: WatchedFile[frozenset[str]] | None
    ) -> None:
        self._rules = rules
        self._keys = keys
        self._denied = denied
        self._verified: OrderedDict[str, _Verified] = OrderedDict()
        self._verified_with: KeySet | None = None

    async def principal(self, token: str, *, now_ms: int) -> Principal:
        """The caller that a token speaks for. Raises Unauthorized."""
        if isinstance(self._keys, JwksUrl) and self._keys.is_old():
            await self._keys.refresh()
        keys = self._keys.current()
        if keys is not self._verified_with:
            # A key that left the set takes its tokens with it.
            self._verified.clear()
            self._verified_with = keys
        verified = self._verified.get(token)
        if verified is None:
            verified = self._check(token, await self._find_key(token))
            self._remember(token, verified)
        self._check_still_valid(verified, now_ms)
        return verified.principal

    async def _find_key(self, token: str) -> jwt.PyJWK:
        key_id = _key_id(token, self._rules.algorithms)
        key = self._keys.current().find(key_id)
        if key is None:
            await self._keys.refresh()
            key = self._keys.current().find(key_id)
        if key is None:
            raise Unauthorized("The token is signed with a key that its issuer does not publish")
        return key

    def _check(self, token: str, key: jwt.PyJWK) -> _Verified:
        rules = self._rules
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=list(rules.algorithms),
                issuer=rules.issuer,
                audience=rules.audience,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
            lifetime_s = int(claims["exp"]) - int(claims["iat"])
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
            raise Unauthorized(f"The token is not valid: {error}") from error
        if lifetime_s > LIFETIME_S_MAX:
            raise Unauthorized(f"The token lives longer than {LIFETIME_S_MAX} s: ask for a shorter")
        token_id = claims.get("jti")
        if self._denied is not None and not isinstance(token_id, str):
            raise Unauthorized("The token has no jti, and this server keeps a deny list")
        return _Verified(self._principal(claims), token_id)

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        rules = self._rules
        if not claims["sub"]:
            # Everybody without a name would be one principal.
            raise Unauthorized("The token is not valid: Its subject is empty")
        try:
            name = _NAME.validate_python(f"user:{claims['iss']}/{claims['sub']}")
            tenant = _TENANT.validate_python(claims.get(rules.tenant_claim))
            # The name travels in a header between services.
            name.encode("ascii")
        except (ValidationError, UnicodeEncodeError) as error:
            reason = f"Its subject or its claim {rules.tenant_claim!r} cannot be used"
            raise Unauthorized(f"The token is not valid: {reason}") from error
        return Principal(
            name,
            tenant,
            scopes_of(_known_roles(claims.get(rules.roles_claim))),
            expires_at=int(claims["exp"]) * 1000,
        )

    def _check_still_valid(self, verified: _Verified, now_ms: int) -> None:
        expires_at = verified.principal.expires_at
        if expires_at is not None and expires_at + LEEWAY_S * 1000 <= now_ms:
            raise Unauthorized("The token is expired: ask for a new one")
        if self._denied is not None and verified.token_id in self._denied.current():
            raise Unauthorized("The token is on the deny list: ask for a new one")

    def _remember(self, token: str, verified: _Verified) -> None:
        self._verified[token] = verified
        if len(self._verified) > CACHE_TOKENS_MAX:
            self._verified.popitem(last=False)


def _key_id(token: str, algorithms: tuple[str, ...]) -> str | None:
    """The key id in the header of a token. Every other hint about keys is ignored."""
    try:
        header = jwt.get_unverified_header(token)
        key_id = header.get("kid")
        named = None if key_id is None else _KEY_ID.validate_python(key_id)
    except (jwt.PyJWTError, ValidationError) as error:
        raise Unauthorized("The credentials are neither a key nor a token") from error
    if header.get("alg") not in algorithms:
        raise Unauthorized(f"The algorithm of the token is not one of {', '.join(algorithms)}")
    if "crit" in header:
        raise Unauthorized("The token has a critical header that this server does not know")
    return named


def _known_roles(claim: object) -> list[str]:
    """The roles and scopes in a claim. An issuer also has roles that mean nothing here."""
    names = claim.split() if isinstance(claim, str) else claim
    if not isinstance(names, list):
        return []
    return [name for name in names if isinstance(name, str) and (name in ROLES or name in SCOPES)]


def parse_deny_list(text: str) -> frozenset[str]:
    """The token ids of a deny list, one a line. A line that begins with # is a comment."""
    lines = (line.strip() for line in text.splitlines())
    return frozenset(line for line in lines if line and not line.startswith("#"))
