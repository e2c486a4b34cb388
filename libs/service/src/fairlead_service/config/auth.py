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
        if self.jwks_url is not None:
            url = urlsplit(self.jwks_url)
            if url.scheme != "https" and not (
                url.scheme == "http" and is_loopback(url.hostname or "")
            ):
                raise ValueError("jwks_url must begin with https://")
        return self
