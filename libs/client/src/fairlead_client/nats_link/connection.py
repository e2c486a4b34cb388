"""Opens and closes connections of nats-py, which never reconnect by themselves."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from fairlead_client.errors import ClientError, ExtraMissing, ServerAway, TokenUnavailable
from fairlead_client.nats_login import CONNECT_S, NatsLogin
from fairlead_client.tls_trust import NATS_AUTHORITY, distrust_of
from fairlead_schema.errors import Refused, Unauthorized

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

CLOSE_S: Final = 2.0
PING_S: Final = 10
_REFUSED: Final = ("authorization", "authentication")


async def open_connection(
    login: NatsLogin,
    token: str | None,
    *,
    on_answer: Callable[["Msg"], Awaitable[None]],
    on_error: Callable[[Exception], Awaitable[None]],
    on_closed: Callable[[], Awaitable[None]],
) -> tuple["Client", str]:
    """A connection, and its inbox, which `on_answer` hears. Each server is tried once.

    Raises ServerAway, ServerUntrusted, Unauthorized, TokenUnavailable, ExtraMissing.
    """
    try:
        from nats.aio.client import Client  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ExtraMissing("nats") from error
    errors: list[Exception] = []

    async def note(error: Exception) -> None:
        errors.append(error)
        await on_error(error)

    for server in login.servers:
        client = Client()
        try:
            await client.connect(
                server,
                name="fairlead-client",
                allow_reconnect=False,
                # nats-py would try a server that is away sixty times.
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=CONNECT_S,
                ping_interval=PING_S,
                inbox_prefix=login.inbox_prefix,
                error_cb=note,
                closed_cb=on_closed,
                tls=login.tls,
                **_credentials(login, token),
            )
            inbox = client.new_inbox()
            await client.subscribe(f"{inbox}.*", cb=on_answer)
        except Exception as error:  # noqa: BLE001 - nats-py has many errors for a lost server
            # It notes why, and raises that no servers are available.
            errors = errors or [error]
            await close_connection(client)
        except BaseException:
            await close_connection(client)
            raise
        else:
            return client, inbox
    refused = [error for error in errors if _is_refusal(error)]
    raise _opening_error(login, (refused or errors)[-1])


async def close_connection(client: "Client | None") -> None:
    """Close a connection. nats-py waits for a server that reads nothing, for ever."""
    if client is not None:
        with suppress(Exception):
            async with asyncio.timeout(CLOSE_S):
                await client.close()


def _credentials(login: NatsLogin, token: str | None) -> dict[str, Any]:
    proofs = {
        "nkeys_seed": login.nkey_file and str(login.nkey_file),
        "user_credentials": login.creds_file and str(login.creds_file),
        "token": token,
    }
    return {name: proof for name, proof in proofs.items() if proof is not None}


def _opening_error(login: NatsLogin, error: Exception) -> ClientError | Refused:
    """Why nobody could connect."""
    if type(error).__module__.startswith(("nkeys", "binascii")):
        return TokenUnavailable(str(login.nkey_file), "not an nkey seed")
    untrusted = distrust_of(error, login.address, NATS_AUTHORITY)
    if untrusted is not None:
        return untrusted
    if _is_refusal(error):
        text = f"NATS refused the credentials of {login.principal} of the tenant {login.tenant}"
        return Unauthorized(f"{text}: the key is not in its auth.conf, or has expired")
    return ServerAway(login.address, str(error) or type(error).__name__, was_sent=False)


def _is_refusal(error: Exception) -> bool:
    """Whether a server refused the credentials."""
    return any(word in str(error).lower() for word in _REFUSED)
