"""Asks the servers that are configured or run on this machine, for `fairlead doctor`."""

import argparse
import asyncio
import os
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any, Final

import httpx
import psycopg

from fairlead_cli.addresses import nats_url
from fairlead_cli.backup.backup_age import check_backups
from fairlead_cli.capacity.limits import compare_with_limits
from fairlead_cli.capacity.stack_load import read_load
from fairlead_cli.checks import Finding
from fairlead_cli.deployment import server_findings
from fairlead_cli.deployment.certificate_age import check_certificates
from fairlead_cli.embedded.postgres.access import add_password
from fairlead_client.local_stack import DEFAULT_URL
from fairlead_eventlog.condition.drift import read_drift
from fairlead_eventlog.condition.stream_sizes import JetStreamStreamSizes
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.replication import read_copies
from fairlead_eventlog.status.status_record import recorded_level
from fairlead_projector.database import Connection
from fairlead_projector.errors import ProjectorError
from fairlead_projector.migrations import is_migrated
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.tools.pool_rules import DEFAULT_POOL
from fairlead_service.config.configuration import Config

CHECK_TIMEOUT_S: Final = 5.0


async def check_servers(
    args: argparse.Namespace, config: Config | None, addresses: dict[str, Any]
) -> list[Finding]:
    """Check the servers that are configured or run on this machine, and no others."""
    nats = _nats_address(config, addresses)
    dsn = addresses.get("postgres") or _configured_dsn(config)
    http_url = args.http or os.environ.get("FAIRLEAD_HTTP") or addresses.get("http")
    ops_url = addresses.get("ops")
    pending: list[Awaitable[Finding | None]] = []
    if nats is not None:
        pools = (DEFAULT_POOL,) if config is None else config.pools.names
        pending += [
            _check_nats(nats, pools),
            _check_copies(nats),
            _check_room(nats),
            _check_format(nats),
            check_certificates(nats, timeout_s=CHECK_TIMEOUT_S),
            check_backups(nats, timeout_s=CHECK_TIMEOUT_S / 2),
        ]
    for monitor in _monitors(args, addresses):
        pending += [_check_durability(monitor), _check_clock(monitor)]
    if dsn:
        pending.append(_check_postgres(dsn))
    if http_url:
        pending.append(_check_http(http_url, "/api/health"))
    if ops_url:
        pending.append(_check_http(ops_url, "/readyz"))
    if not pending:
        return [Finding("servers", "ok", f"none configured here (default {DEFAULT_URL})")]
    findings = [finding for finding in await asyncio.gather(*pending) if finding is not None]
    return findings + (await _check_capacity(nats, dsn) if nats is not None else [])


def _monitors(args: argparse.Namespace, addresses: dict[str, Any]) -> list[str]:
    """The monitoring addresses of all nodes; an earlier release saved one."""
    if args.monitor:
        return [args.monitor]
    return addresses.get("monitors") or [addresses["monitor"]] if "monitor" in addresses else []


def _nats_address(config: Config | None, addresses: dict[str, Any]) -> NatsAddress | None:
    """The local stack's address, else what the configuration or the environment sets."""
    if "nats" in addresses:
        local = NatsAddress(nats_url(addresses), nkey_file=addresses.get("operator_nkey"))
        return local.for_identity("operator")
    if config is None or "nats" not in config.model_fields_set:
        return None
    return config.nats.address("operator")


def _configured_dsn(config: Config | None) -> str | None:
    """The address of Postgres, if the configuration or the environment sets it."""
    if config is None or "postgres" not in config.model_fields_set:
        return None
    return config.postgres.dsn


async def _check_nats(address: NatsAddress, pools: tuple[str, ...]) -> Finding:
    try:
        asked = read_drift(address, timeout_s=CHECK_TIMEOUT_S / 2, pools=pools)
        drift = await asyncio.wait_for(asked, CHECK_TIMEOUT_S)
    except (LogError, TimeoutError) as error:
        mend = server_findings.mend_nats(error, address)
        return Finding("nats", "fail", str(error) or "no answer", mend)
    if drift.sentence is not None:
        return Finding("nats", "fail", f"{address}: {drift.sentence}", "run `fairlead provision`")
    return Finding("nats", "ok", f"{address}, streams provisioned")


async def _check_copies(nats: NatsAddress) -> Finding | None:
    try:
        return server_findings.check_copies(await read_copies(nats))
    except LogError:
        return None  # The check of the connection says why.


async def _check_room(address: NatsAddress) -> Finding | None:
    """How full are the streams?"""
    try:
        timeout_s = CHECK_TIMEOUT_S / 2
        async with open_link(address, name="fairlead-doctor", timeout_s=timeout_s) as link:
            return server_findings.check_room(await JetStreamStreamSizes(link).read_all())
    except LogError:
        return None  # The check of the connection says why.


async def _check_format(address: NatsAddress) -> Finding | None:
    """Which level of the log's format is finalised, and does this release know it?"""
    try:
        level = await recorded_level(address, timeout_s=CHECK_TIMEOUT_S / 2)
    except LogError:
        return None  # The check of the connection says why.
    return server_findings.check_format(level)


async def _check_capacity(address: NatsAddress, dsn: str | None) -> list[Finding]:
    """How near is the stack to the limits of its parts?"""
    try:
        dsn = add_password(dsn) if dsn else None
        return compare_with_limits(await read_load(address, dsn, timeout_s=CHECK_TIMEOUT_S / 2))
    except LogError:
        return []  # The check of the connection says why.


async def _check_durability(monitor: str) -> Finding:
    try:
        async with httpx.AsyncClient(timeout=CHECK_TIMEOUT_S, trust_env=False) as http:
            return server_findings.check_durability((await http.get(f"{monitor}/varz")).json())
    except (httpx.HTTPError, ValueError):
        return Finding("sync", "warn", f"{monitor} does not answer", "set --monitor")


async def _check_clock(monitor: str) -> Finding | None:
    try:
        async with httpx.AsyncClient(timeout=CHECK_TIMEOUT_S, trust_env=False) as http:
            varz = (await http.get(f"{monitor}/varz")).json()
        return server_findings.check_clock(varz, datetime.now(UTC))
    except (httpx.HTTPError, ValueError, KeyError):
        return None  # The check of its durability says that it does not answer.


async def _check_postgres(dsn: str) -> Finding:
    try:
        connection = await psycopg.AsyncConnection.connect(
            add_password(dsn), connect_timeout=int(CHECK_TIMEOUT_S), autocommit=True
        )
    except psycopg.Error as error:
        detail = " ".join(str(error).split())
        return Finding("postgres", "fail", detail, "start Postgres, or correct [postgres] dsn")
    async with connection:
        about = f"version {connection.info.server_version // 10000}, role {connection.info.user}"
        return await _check_tables(connection, about)


async def _check_tables(connection: Connection, about: str) -> Finding:
    """Are the tables up to date? The role of the gateway may not see that, and need not."""
    try:
        migrated = await is_migrated(connection)
    except psycopg.errors.InsufficientPrivilege:
        return Finding("postgres", "ok", about)
    except ProjectorError as error:
        return Finding("postgres", "fail", f"{about}: {error}", "install the newest release")
    if migrated:
        return Finding("postgres", "ok", f"{about}, tables up to date")
    return Finding("postgres", "warn", f"{about}, migrations are missing", "run `fairlead migrate`")


async def _check_http(url: str, path: str) -> Finding:
    try:
        async with httpx.AsyncClient(timeout=CHECK_TIMEOUT_S, trust_env=False) as http:
            response = await http.get(f"{url}{path}")
    except httpx.HTTPError:
        return Finding("http", "fail", f"nothing answers at {url}", "run `fairlead up`")
    if response.is_success:
        return Finding("http", "ok", f"{url} is ready")
    return Finding("http", "fail", f"{url} is not ready: {response.text}", "see the gateway's log")
