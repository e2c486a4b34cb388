"""Asks the servers that are configured or run on this machine, for `fairlead doctor`.

What speaks to a kind of server is loaded where there is one.
"""

import argparse
import asyncio
import os
from collections.abc import Awaitable
from typing import Any, TypeAlias

from fairlead_cli.addresses import nats_url
from fairlead_cli.checks import Finding
from fairlead_client.local_stack import DEFAULT_URL
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.tools.pool_rules import DEFAULT_POOL
from fairlead_service.config.configuration import Config

Check: TypeAlias = Awaitable[Finding | None]


async def check_servers(
    args: argparse.Namespace, config: Config | None, addresses: dict[str, Any]
) -> list[Finding]:
    """Check the servers that are configured or run on this machine, and no others."""
    nats, dsn = _nats_address(config, addresses), _postgres_dsn(config, addresses)
    checks = [
        *_nats_checks(nats, config),
        *_http_checks(args, addresses),
        *_postgres_checks(dsn),
    ]
    if not checks:
        return [Finding("servers", "ok", f"none configured here (default {DEFAULT_URL})")]
    findings = [finding for finding in await asyncio.gather(*checks) if finding is not None]
    answers = any((finding.name, finding.status) == ("nats", "ok") for finding in findings)
    return findings + (await _check_capacity(nats, dsn) if nats is not None and answers else [])


def _nats_checks(address: NatsAddress | None, config: Config | None) -> list[Check]:
    if address is None:
        return []
    from fairlead_cli.deployment.doctor.nats_checks import nats_checks  # noqa: PLC0415

    return nats_checks(address, (DEFAULT_POOL,) if config is None else config.pools.names)


def _http_checks(args: argparse.Namespace, addresses: dict[str, Any]) -> list[Check]:
    url = args.http or os.environ.get("FAIRLEAD_HTTP") or addresses.get("http")
    ops_url, monitors = addresses.get("ops"), _monitors(args, addresses)
    if not (url or ops_url or monitors):
        return []
    from fairlead_cli.deployment.doctor.http_checks import (  # noqa: PLC0415
        check_clock,
        check_durability,
        check_http,
    )

    checks: list[Check] = []
    for monitor in monitors:
        checks += [check_durability(monitor), check_clock(monitor)]
    checks += [check_http(url, "/api/health")] if url else []
    return checks + ([check_http(ops_url, "/readyz")] if ops_url else [])


def _postgres_checks(dsn: str | None) -> list[Check]:
    if dsn is None:
        return []
    from fairlead_cli.deployment.doctor.postgres_checks import check_postgres  # noqa: PLC0415

    return [check_postgres(dsn)]


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


def _postgres_dsn(config: Config | None, addresses: dict[str, Any]) -> str | None:
    """The local stack's address, else what the configuration or the environment sets."""
    if addresses.get("postgres"):
        return str(addresses["postgres"])
    if config is None or "postgres" not in config.model_fields_set:
        return None
    return config.postgres.dsn


async def _check_capacity(address: NatsAddress, dsn: str | None) -> list[Finding]:
    from fairlead_cli.deployment.doctor.capacity_check import check_capacity  # noqa: PLC0415

    return await check_capacity(address, dsn)
