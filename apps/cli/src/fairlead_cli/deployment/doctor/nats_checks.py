"""Asks the nats-servers of a deployment, for `fairlead doctor`."""

import asyncio
from collections.abc import Awaitable
from typing import Final

from fairlead_cli.backup.backup_age import check_backups
from fairlead_cli.checks import Finding
from fairlead_cli.deployment.doctor import nats_findings
from fairlead_cli.deployment.doctor.certificate_age import check_certificates
from fairlead_eventlog.condition.drift import read_drift
from fairlead_eventlog.condition.stream_sizes import JetStreamStreamSizes
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.replication import read_copies
from fairlead_eventlog.status.status_record import recorded_level
from fairlead_schema.identity.nats_address import NatsAddress

TIMEOUT_S: Final = 5.0


def nats_checks(address: NatsAddress, pools: tuple[str, ...]) -> list[Awaitable[Finding | None]]:
    """Every check of the nats-servers. The first one says why nobody can connect."""
    return [
        _check_nats(address, pools),
        _check_copies(address),
        _check_room(address),
        _check_format(address),
        check_certificates(address, timeout_s=TIMEOUT_S),
        check_backups(address, timeout_s=TIMEOUT_S / 2),
    ]


async def _check_nats(address: NatsAddress, pools: tuple[str, ...]) -> Finding:
    try:
        asked = read_drift(address, timeout_s=TIMEOUT_S / 2, pools=pools)
        drift = await asyncio.wait_for(asked, TIMEOUT_S)
    except (LogError, TimeoutError) as error:
        mend = nats_findings.mend_nats(error, address)
        return Finding("nats", "fail", str(error) or "no answer", mend)
    if drift.sentence is not None:
        return Finding("nats", "fail", f"{address}: {drift.sentence}", "run `fairlead provision`")
    return Finding("nats", "ok", f"{address}, streams provisioned")


async def _check_copies(nats: NatsAddress) -> Finding | None:
    try:
        return nats_findings.check_copies(await read_copies(nats))
    except LogError:
        return None  # The check of the connection says why.


async def _check_room(address: NatsAddress) -> Finding | None:
    """How full are the streams?"""
    try:
        timeout_s = TIMEOUT_S / 2
        async with open_link(address, name="fairlead-doctor", timeout_s=timeout_s) as link:
            return nats_findings.check_room(await JetStreamStreamSizes(link).read_all())
    except LogError:
        return None  # The check of the connection says why.


async def _check_format(address: NatsAddress) -> Finding | None:
    """Which level of the log's format is finalised, and does this release know it?"""
    try:
        level = await recorded_level(address, timeout_s=TIMEOUT_S / 2)
    except LogError:
        return None  # The check of the connection says why.
    return nats_findings.check_format(level)
