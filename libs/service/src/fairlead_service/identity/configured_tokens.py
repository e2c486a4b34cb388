"""Builds the verifier of tokens that the configuration asks for."""

from pathlib import Path

from fairlead_service.config.auth import AuthConfig
from fairlead_service.identity.jwks import JwksFile, JwksUrl, KeySource
from fairlead_service.identity.tokens import TokenRules, TokenVerifier, parse_deny_list
from fairlead_service.identity.watched_file import WatchedFile


def build_verifier(config: AuthConfig) -> TokenVerifier:
    """The verifier of the configured issuer's tokens. Raises FileUnusable."""
    assert config.issuer is not None, "the caller has looked"
    assert config.audience is not None, "the configuration asks for both"
    rules = TokenRules(
        config.issuer,
        config.audience,
        config.algorithms,
        config.tenant_claim,
        config.roles_claim,
    )
    denied = None
    if config.deny_file is not None:
        denied = WatchedFile(Path(config.deny_file), parse_deny_list)
    return TokenVerifier(rules, _key_source(config), denied)


def _key_source(config: AuthConfig) -> KeySource:
    if config.jwks_file is not None:
        return JwksFile(Path(config.jwks_file))
    assert config.jwks_url is not None, "the configuration asks for one of both"
    return JwksUrl(config.jwks_url)
