"""The gateway that the arguments of a command name."""

import argparse

from fairlead_cli.errors import UsageError
from fairlead_client.credentials import clean_token
from fairlead_client.errors import AddressInvalid, TokenUnavailable
from fairlead_client.local_stack import Gateway, check_address, find_gateway


def address_of(args: argparse.Namespace) -> Gateway:
    """The address and token that the arguments name. Raises UsageError."""
    gateway = find_gateway(args.http, args.token, state=args.state)
    try:
        check_address(gateway.url)
        if isinstance(gateway.token, str):
            clean_token(gateway.token)
    except AddressInvalid as error:
        raise UsageError(f"--http: {error}") from error
    except TokenUnavailable as error:
        raise UsageError(f"--token: {error}") from error
    return gateway
