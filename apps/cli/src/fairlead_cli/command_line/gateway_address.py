"""The gateway that the arguments of a command name."""

import argparse

from fairlead_cli.errors import Untrusted, UsageError
from fairlead_client.credentials import clean_token
from fairlead_client.errors import AddressInvalid, ServerUntrusted, TokenUnavailable
from fairlead_client.local_stack import Gateway, check_address, find_gateway
from fairlead_schema.identity.nats_address import redact_url


def address_of(args: argparse.Namespace) -> Gateway:
    """The address and token that the arguments name. Raises UsageError, Untrusted."""
    gateway = find_gateway(args.http, args.token, state=args.state)
    try:
        check_address(gateway.url)
        if isinstance(gateway.token, str):
            clean_token(gateway.token)
    except AddressInvalid as error:
        named = f"{'--http' if args.http else '$FAIRLEAD_HTTP'}: {redact_url(gateway.url)!r}"
        raise UsageError(
            f"{named} is no address of a server ({error.reason}): write it as http://host:port"
        ) from error
    except TokenUnavailable as error:
        named = "--token" if args.token else "$FAIRLEAD_TOKEN"
        raise UsageError(f"{named}: {error.reason}") from error
    if gateway.url.lower().startswith("https:"):
        _check_trust(gateway.url)
    return gateway


def _check_trust(url: str) -> None:
    """Raise Untrusted if nobody could check the server."""
    # Only addresses with TLS need its library.
    from fairlead_client.tls_trust import trust_of  # noqa: PLC0415

    try:
        trust_of(url)
    except ServerUntrusted as error:
        raise Untrusted(str(error)) from error
