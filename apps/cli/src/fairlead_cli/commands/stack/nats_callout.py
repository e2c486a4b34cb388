"""`fairlead nats-callout`: let clients connect to NATS with the keys and tokens of HTTP."""

import argparse
import asyncio
import logging
import signal
from dataclasses import replace

from fairlead_cli.addresses import effective_config
from fairlead_cli.errors import UsageError
from fairlead_cli.nats_access.callout import Callout
from fairlead_cli.nats_access.callout_tenants import FILE, parse_tenants
from fairlead_eventlog.grants.callout import CALLOUT
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_eventlog.jetstream.auth_callout import serve_callout
from fairlead_schema.identity.nats_address import NatsAddress, identity_inbox
from fairlead_service.config.configuration import Config
from fairlead_service.identity.authenticator import HOW_TO_CONFIGURE, build_authenticator
from fairlead_service.identity.watched_file import FileUnusable, WatchedFile
from fairlead_service.logs import configure as configure_logs
from fairlead_service.process_memory import keep_memory_private

log = logging.getLogger(__name__)


def run(args: argparse.Namespace) -> int:
    """Answer the servers until SIGINT or SIGTERM. Log lines go to standard error."""
    keep_memory_private()
    config = effective_config(args)
    keys = KeyDirectory(args.nats_auth)
    callout = build_callout(config, keys)
    address = replace(
        config.nats.address(CALLOUT),
        url=args.nats or config.nats.url,
        nkey_file=str(keys.seed_file(CALLOUT)),
        creds_file=None,
        inbox_prefix=identity_inbox(CALLOUT),
    )
    configure_logs("nats-callout", config.log.level)
    asyncio.run(_serve(callout, address))
    return 0


def build_callout(config: Config, keys: KeyDirectory) -> Callout:
    """The callout of a configuration. Raises UsageError, ConfigError and CredentialsUnusable."""
    auth = config.auth
    if auth.mode == "open" or (auth.keys_file is None and auth.issuer is None):
        raise UsageError(
            f"the callout would know nobody: set [auth] mode to token, and {HOW_TO_CONFIGURE}"
        )
    try:
        tenants = WatchedFile(keys.root / FILE, parse_tenants)
    except FileUnusable as error:
        advice = "run `fairlead provision --nats-auth DIR --callout --tenant NAME` first"
        raise UsageError(f"{error}; {advice}") from error
    return Callout(build_authenticator(auth), keys.callout_issuer(), tenants)


async def _serve(callout: Callout, address: NatsAddress) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sig in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sig, stop.set)
    async with serve_callout(address, callout.decide):
        log.info("ready: clients connect with keys and tokens", extra={"nats": str(address)})
        await stop.wait()
