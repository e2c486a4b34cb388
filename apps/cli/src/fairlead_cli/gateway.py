"""A client of the gateway for the length of a command. What it raises becomes a sentence that helps."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Final, TypeVar

from pydantic import ValidationError

from fairlead_cli.command_line.gateway_address import address_of
from fairlead_cli.command_line.module_loader import load_http
from fairlead_cli.errors import (
    AccessRefused,
    CommandError,
    OtherRelease,
    ServerRefused,
    TokenUnusable,
    Unreachable,
    Untrusted,
)
from fairlead_cli.gateway_absence import absence_notes
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_client.async_client.http_transport import AsyncHttpTransport
from fairlead_client.errors import (
    ClientError,
    MalformedAnswer,
    NotFairlead,
    ServerAway,
    ServerUntrusted,
    TokenUnavailable,
)
from fairlead_client.local_stack import Gateway
from fairlead_schema.errors import (
    Forbidden,
    InvalidRequest,
    ProviderNotFound,
    Refused,
    SessionNotFound,
    Unauthorized,
)
from fairlead_schema.identity.nats_address import redact_url

Result = TypeVar("Result")
PATIENCE_S: Final = 1.0
"""A person waits: a server that is away for longer is away."""


def run_with_client(
    args: argparse.Namespace,
    work: Callable[[AsyncFairlead], Awaitable[Result]],
    note: Callable[[str], None] | None = None,
) -> Result:
    """Do the work of a command with a client of the gateway that the arguments name.

    `note` is for work that follows a stream: it hears when the server goes away and comes back.
    """

    async def run() -> Result:
        async with open_client(gateway_of(args), note) as client:
            return await work(client)

    return asyncio.run(run())


def run_with_connection(
    args: argparse.Namespace, work: Callable[[AsyncHttpConnection], Awaitable[Result]]
) -> Result:
    """Do the work of a command with requests that the client has no method for."""

    async def run() -> Result:
        async with open_connection(gateway_of(args)) as connection:
            return await work(connection)

    return asyncio.run(run())


def gateway_of(args: argparse.Namespace) -> Gateway:
    """The gateway that the arguments name, with what speaks to it. Raises UsageError."""
    load_http()
    return address_of(args)


@asynccontextmanager
async def open_client(
    gateway: Gateway, note: Callable[[str], None] | None = None
) -> AsyncIterator[AsyncFairlead]:
    """A client for the length of a block."""
    async with open_connection(gateway) as connection:
        client = AsyncFairlead(transport=AsyncHttpTransport(connection))
        async with nullcontext() if note is None else absence_notes(connection, note):
            yield client


@asynccontextmanager
async def open_connection(gateway: Gateway) -> AsyncIterator[AsyncHttpConnection]:
    """Requests of any kind for the length of a block."""
    connection = AsyncHttpConnection(gateway.url, gateway.token, patience_s=PATIENCE_S)
    with explain_errors(gateway.url, has_token=gateway.token is not None):
        try:
            yield connection
        finally:
            await connection.aclose()


@contextmanager
def explain_errors(url: str, *, has_token: bool = True) -> Iterator[None]:
    """Turn what the client raises into errors of commands. They name the address without its password."""
    url = redact_url(url)
    try:
        yield
    except Refused as refusal:
        raise refusal_error(refusal, has_token=has_token) from refusal
    except ServerAway as error:
        raise Unreachable(url) from error
    except ServerUntrusted as error:
        raise Untrusted(str(error)) from error
    except TokenUnavailable as error:
        raise TokenUnusable(str(error)) from error
    except NotFairlead as error:
        raise OtherRelease(url, str(error)) from error
    except (MalformedAnswer, ValidationError) as error:
        reason = " ".join(str(error).split())[:200]
        raise OtherRelease(url, reason) from error
    except ClientError as error:
        raise CommandError(str(error)) from error


def refusal_error(refusal: Refused, *, has_token: bool = True) -> ServerRefused:
    """The error of a refusal: its message, and what a person in a terminal can do."""
    kind = AccessRefused if isinstance(refusal, Unauthorized | Forbidden) else ServerRefused
    hint = _hint(refusal) if has_token else _hint_without_token(refusal)
    message = refusal.body.message + (f" ({hint})" if hint else "")
    return kind(refusal.status, message, refusal.body.tag)


def _hint_without_token(refusal: Refused) -> str | None:
    if isinstance(refusal, Unauthorized):
        return (
            "name the directory of the stack with --state, such as ~/project/.fairlead,"
            " or a key with --token or $FAIRLEAD_TOKEN"
        )
    return _hint(refusal)


def _hint(refusal: Refused) -> str | None:
    match refusal:
        case Unauthorized():
            return "name a key with --token or $FAIRLEAD_TOKEN"
        case Forbidden():
            return "an operator makes keys: `fairlead token create`"
        case ProviderNotFound():
            return "`fairlead models --http URL` lists what the server has"
        case SessionNotFound():
            return "`fairlead sessions` lists those that exist"
        case InvalidRequest() if refusal.body.field == "sessionID":
            return "an id begins with ses: `fairlead sessions` lists them"
        case InvalidRequest() if "route" in refusal.body.message:
            return "the server is of another release: compare `fairlead --version`"
        case _:
            return None
