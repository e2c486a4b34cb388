"""The section `[auth]`: how callers of the gateway prove who they are."""

from typing import Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import model_validator

from fairlead_service.config.section import Names, Section
from fairlead_service.identity.loopback import is_loopback

ASYMMETRIC_ALGORITHMS: Final = frozenset(
    {
        *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
        *("ES256", "ES384", "ES512", "EdDSA"),
    }
)
"""Signatures that need a private key. A shared secret would let every verifier sign."""


class AuthConfig(Section):
    """How callers prove who they are. `open` asks nobody, and serves this machine alone."""

    mode: Literal["token", "open"] = "token"
    keys_file: str | None = None
    issuer: str | None = None
    audience: str | None = None
    algorithms: Names = ("RS256", "ES256", "EdDSA")
    jwks_file: str | None = None
    jwks_url: str | None = None
    tenant_claim: str = "tenant"
    roles_claim: str = "roles"
    deny_file: str | None = None
    query_tokens: bool = False
    cookie_key_file: str | None = None
    """Seals the cookies of the console. Gateways that share callers share the file."""
    client_id: str | None = None
    """The console is this client of the issuer: people sign in there (code flow with PKCE)."""
    client_secret_file: str | None = None
    authorize_url: str | None = None
    token_url: str | None = None
    sign_in_scopes: str = "openid profile"
    sign_in_token: Literal["id_token", "access_token"] = "id_token"  # noqa: S105 - the name of a field
    """Which token of the issuer's answer the caller is known by. Its audience must be `audience`."""

    @model_validator(mode="after")
    def _issuer_is_complete(self) -> Self:
        weak = [name for name in self.algorithms if name not in ASYMMETRIC_ALGORITHMS]
        if weak or not self.algorithms:
            choices = ", ".join(sorted(ASYMMETRIC_ALGORITHMS))
            raise ValueError(f"algorithms: only asymmetric ones count: {choices}")
        if self.issuer is None:
            return self
        if self.audience is None:
            raise ValueError("issuer needs an audience")
        if (self.jwks_file is None) == (self.jwks_url is None):
            raise ValueError("issuer needs either jwks_file or jwks_url")
        for name in ("jwks_url", "authorize_url", "token_url"):
            if not _is_trusted(getattr(self, name)):
                raise ValueError(f"{name} must begin with https://")
        return self

    @model_validator(mode="after")
    def _client_is_complete(self) -> Self:
        if self.client_id is None:
            return self
        if self.issuer is None or self.authorize_url is None or self.token_url is None:
            raise ValueError("client_id needs issuer, authorize_url and token_url")
        return self


def _is_trusted(address: str | None) -> bool:
    """Whether an address is safe from others on the way: https, or this machine."""
    if address is None:
        return True
    url = urlsplit(address)
    return url.scheme == "https" or (url.scheme == "http" and is_loopback(url.hostname or ""))
