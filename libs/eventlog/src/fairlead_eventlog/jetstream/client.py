"""Makes the clients of NATS: who they are, how they encrypt, and how they reconnect."""

import asyncio
import logging
import ssl
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import nats.errors
import nkeys
from typing_extensions import override

from fairlead_eventlog.errors import (
    CertificateRefused,
    CredentialsRefused,
    CredentialsUnusable,
    LogUnavailable,
)
from fairlead_eventlog.jetstream.light_import import allow_web_sockets
from fairlead_eventlog.jetstream.thin.thin_client import ThinClient
from fairlead_schema.identity.nats_address import NatsAddress, redact_url

log = logging.getLogger(__name__)

CONNECT_S: Final = 3.0
REASONS_MAX: Final = 8
SLOW_REPORT_S: Final = 10.0
REFUSED: Final = "authorization violation"
UNTRUSTED: Final = "certificate verify failed"
GIVE_KEY: Final = "give this process its own key of this deployment (`fairlead secrets` makes them)"
RENEW: Final = "renew it with `fairlead secrets`, and reload the nats-servers"

Callback: TypeAlias = Callable[[], Awaitable[None]]

SELF_DESCRIPTION: Final = '"$srv.'
"""No request waits for such a subject: grants of a release before only leave this process out of lists."""
_AUTH_ERRORS: Final = ("authorization violation", "authentication", "user ")
"""How the server's errors begin that end a connection because of its user."""


class NatsClient(ThinClient):
    """A client that reads its key again for each connection, and reconnects after it was revoked."""

    nkey_file: str | None = None
    demands_tls = False
    violation: str | None = None
    """What the server said when it refused a subject for the last time."""

    @property
    def server_info(self) -> dict[str, Any]:
        """What the server said of itself at the last connection or reload."""
        return self._server_info

    @override
    def _connect_command(self) -> bytes:
        # nats-py goes on without encryption if the server offers none.
        if self.demands_tls and not self._server_info.get("tls_required"):
            raise nats.errors.Error("the server offers no TLS, and the settings demand it")
        if self.nkey_file is not None:
            # nats-py signs with the seed of now, but announces the public key of the first connection.
            self._public_nkey = _public_key(self.nkey_file)
        return super()._connect_command()

    @override
    async def _process_err(self, err_msg: str) -> None:
        # nats-py would close the connection for ever. The key file may hold a new key already.
        if self.is_connected and err_msg.strip("' ").lower().startswith(_AUTH_ERRORS):
            await self._process_op_err(nats.errors.AuthorizationError())
            return
        await super()._process_err(err_msg)


class SlowConsumers:
    """Reports subscriptions that lose messages, each subject once in a while."""

    def __init__(self) -> None:
        self._lost: Counter[str] = Counter()
        self._reported_at = float("-inf")

    def report(self, subject: str) -> None:
        """Count a lost message, and log all losses since the last report."""
        self._lost[subject] += 1
        if time.monotonic() - self._reported_at < SLOW_REPORT_S:
            return
        for lossy, messages in self._lost.items():
            log.warning(
                "this process reads too slowly, so messages from NATS were dropped: readers of the log"
                " see the gap and read again, hints come again later, live fragments stay lost",
                extra={"subject": lossy, "messages": messages},
            )
        self._lost.clear()
        self._reported_at = time.monotonic()


async def open_client(
    address: NatsAddress,
    *,
    name: str,
    on_reconnect: Callback | None = None,
    on_disconnect: Callback | None = None,
) -> NatsClient:
    """A connection that reconnects for ever.

    Raises LogUnavailable if the first connect fails, CredentialsRefused and CredentialsUnusable.
    """
    reasons: deque[str] = deque(maxlen=REASONS_MAX)
    client, slow = NatsClient(), SlowConsumers()

    async def on_error(error: Exception) -> None:
        reason = redact_url(str(error) or type(error).__name__)
        if not client.is_connected:
            reasons.append(reason)
        if "permissions violation" in reason.lower():
            if SELF_DESCRIPTION not in reason.lower():
                client.violation = reason
            log.error(
                "NATS refused a subject: the request fails; grant the subject to this identity",
                extra={"reason": reason},
            )
        elif isinstance(error, nats.errors.SlowConsumerError):
            slow.report(error.subject)
        else:
            log.debug("NATS error", extra={"reason": reason})

    allow_web_sockets(address.servers)
    client.nkey_file = address.nkey_file
    client.demands_tls = address.demands_tls
    connection = client.connect(
        address.servers,
        name=name,
        allow_reconnect=True,
        max_reconnect_attempts=-1,
        reconnect_time_wait=1,
        ping_interval=10,
        connect_timeout=2,
        inbox_prefix=address.inbox_prefix,
        reconnected_cb=on_reconnect,
        disconnected_cb=on_disconnect,
        error_cb=on_error,
        **_credentials(address),
    )
    try:
        # The client would try for ever. The caller wants to log that it waits.
        await asyncio.wait_for(connection, CONNECT_S)
    except (OSError, nats.errors.Error, TimeoutError) as error:
        with suppress(Exception):  # A refused client may hold its socket still.
            await client.close()
        raise _unreachable(address, tuple(reasons)) from error
    client.use_thin_path()
    return client


def _unreachable(address: NatsAddress, reasons: tuple[str, ...]) -> LogUnavailable:
    """Why nobody could connect. A refused key counts more than a connection that was cut."""
    refused = [reason for reason in reasons if REFUSED in reason.lower()]
    if refused:
        return CredentialsRefused(str(address), _credential(address), refused[-1])
    if certificate := [reason for reason in reasons if UNTRUSTED in reason.lower()]:
        is_expired = "expired" in certificate[-1]
        cure = RENEW if is_expired else "correct nats.tls_ca, and the names (`--nats-host`)"
        return CertificateRefused(str(address), _plain(certificate[-1]), cure)
    reason = f": {reasons[-1]}" if reasons else ""
    cure = "start nats-server there, or correct nats.url"
    return LogUnavailable(f"NATS at {address} cannot be reached{reason}; {cure}")


def _plain(reason: str) -> str:
    """What the check of a certificate found, without the words of the library."""
    return reason.rpartition(f"{UNTRUSTED}: ")[2].partition(" (_ssl")[0]


def _credential(address: NatsAddress) -> str:
    """The credential that a client has shown, by its file."""
    if address.nkey_file is not None:
        return f"the key in nats.nkey_file {address.nkey_file}"
    if address.creds_file is not None:
        return f"the user in nats.creds_file {address.creds_file}"
    return "a connection without nats.nkey_file and nats.creds_file"


def _credentials(address: NatsAddress) -> dict[str, Any]:
    """The options of the client that prove who connects. Raises CredentialsUnusable."""
    options: dict[str, Any] = {}
    if address.nkey_file is not None:
        _public_key(address.nkey_file)
        options["nkeys_seed"] = address.nkey_file
    if address.creds_file is not None:
        if not Path(address.creds_file).is_file():
            raise CredentialsUnusable("nats.creds_file", address.creds_file, "no such file")
        options["user_credentials"] = address.creds_file
    if address.demands_tls:
        options["tls"] = _tls(address)
    return options


def _tls(address: NatsAddress) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=address.tls_ca)
    except OSError as error:
        reason = f"{error}; name the ca.crt that `fairlead secrets` made"
        raise CredentialsUnusable("nats.tls_ca", str(address.tls_ca), reason) from error
    if address.tls_cert is not None:
        try:
            context.load_cert_chain(address.tls_cert, address.tls_key)
        except OSError as error:
            files = f"{address.tls_cert} and {address.tls_key}"
            raise CredentialsUnusable("nats.tls_cert", files, str(error)) from error
    return context


def _public_key(nkey_file: str) -> str:
    """The public key of a seed file. Raises CredentialsUnusable, which never shows the seed."""
    try:
        seed = bytearray(Path(nkey_file).read_bytes().strip())
        pair = nkeys.from_seed(seed)
        public: bytes = pair.public_key
        pair.wipe()
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise CredentialsUnusable("nats.nkey_file", nkey_file, f"{reason}; {GIVE_KEY}") from error
    except (nkeys.NkeysError, ValueError):
        reason = f"not an nkey seed; {GIVE_KEY}"
        raise CredentialsUnusable("nats.nkey_file", nkey_file, reason) from None
    return public.decode()
