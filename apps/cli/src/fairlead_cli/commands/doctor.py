"""`fairlead doctor`: checks this machine and what is configured; says how to mend what is not well."""

import argparse
import asyncio
import json
import os
import shutil
import sys
from collections.abc import Awaitable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import httpx
import psycopg
from rich.markup import escape

from fairlead_cli import checks
from fairlead_cli.addresses import DEFAULT_HTTP, add_config
from fairlead_cli.checks import Finding
from fairlead_cli.embedded.state import MEGABYTE, lock_owner, recall
from fairlead_cli.terminal import answers
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.provision import missing_streams
from fairlead_service.config.configuration import Config

MARKS: Final = {"ok": "[green]ok  [/]", "warn": "[yellow]warn[/]", "fail": "[red]fail[/]"}
PATIENCE_S: Final = 5.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--http", metavar="URL", help="also check this gateway")
    parser.add_argument("--monitor", metavar="URL", help="nats-server's monitoring address")
    parser.add_argument("--json", action="store_true", help="one line of JSON per finding")
    add_config(parser)


def run(args: argparse.Namespace) -> int:
    """Exit 1 when something fails; a warning is only said."""
    findings = asyncio.run(_examine(args))
    if args.json:
        sys.stdout.writelines(json.dumps(asdict(finding)) + "\n" for finding in findings)
    else:
        _show(findings)
    return 1 if any(finding.status == "fail" for finding in findings) else 0


async def _examine(args: argparse.Namespace) -> list[Finding]:
    state = args.state.absolute()
    running = recall(state)
    findings = [checks.python(sys.version_info[:3]), checks.packages(), *checks.binaries()]
    existing = next(path for path in (state, *state.parents) if path.exists())
    findings.append(checks.disk(existing, shutil.disk_usage(existing).free // MEGABYTE))
    named = os.environ.get("FAIRLEAD_CONFIG")
    path = args.config or (Path(named) if named else _local(running))
    finding, config = checks.configuration(path, os.environ)
    findings.append(finding)
    port = config.gateway.port if config else 8420
    findings.append(checks.http_port(port, lock_owner(state), running))
    return findings + await _servers(args, config, running)


def _local(running: dict[str, Any]) -> Path | None:
    found = running.get("config") or "fairlead.toml"
    return Path(found) if Path(found).is_file() else None


async def _servers(
    args: argparse.Namespace, config: Config | None, running: dict[str, Any]
) -> list[Finding]:
    """Connectivity, of what somebody configured or runs here; the rest is not asked."""
    nats_url = running.get("nats") or _configured(config, "nats")
    dsn = running.get("postgres") or _configured(config, "postgres")
    http_url = args.http or os.environ.get("FAIRLEAD_HTTP") or running.get("http")
    monitor = args.monitor or running.get("monitor")
    asked: list[Awaitable[Finding]] = []
    if nats_url:
        asked.append(_streams(nats_url))
    if monitor:
        asked.append(_durability(monitor))
    if dsn:
        asked.append(_postgres(dsn))
    if http_url:
        asked.append(_http(http_url))
    if not asked:
        return [Finding("servers", "ok", f"none configured here (default {DEFAULT_HTTP})")]
    return list(await asyncio.gather(*asked))


def _configured(config: Config | None, section: str) -> str | None:
    """An address, if the configuration or the environment says one."""
    if config is None or section not in config.model_fields_set:
        return None
    return config.nats.url if section == "nats" else config.postgres.dsn


async def _streams(url: str) -> Finding:
    try:
        missing = await asyncio.wait_for(missing_streams(url), PATIENCE_S)
    except (LogError, TimeoutError) as error:
        return Finding("nats", "fail", str(error) or "no answer", f"start nats-server at {url}")
    if missing:
        detail = f"{url}: {len(missing)} streams are missing ({', '.join(missing[:3])} …)"
        return Finding("nats", "fail", detail, "run `fairlead provision`")
    return Finding("nats", "ok", f"{url}, streams provisioned")


async def _durability(monitor: str) -> Finding:
    try:
        async with httpx.AsyncClient(timeout=PATIENCE_S) as http:
            return checks.durability((await http.get(f"{monitor}/varz")).json())
    except (httpx.HTTPError, ValueError):
        return Finding("sync", "warn", f"{monitor} does not answer", "set --monitor")


async def _postgres(dsn: str) -> Finding:
    try:
        connection = await psycopg.AsyncConnection.connect(dsn, connect_timeout=int(PATIENCE_S))
    except psycopg.Error as error:
        detail = " ".join(str(error).split())
        return Finding("postgres", "fail", detail, "start Postgres, or mend [postgres] dsn")
    async with connection:
        return Finding("postgres", "ok", f"version {connection.info.server_version // 10000}")


async def _http(url: str) -> Finding:
    try:
        async with httpx.AsyncClient(timeout=PATIENCE_S) as http:
            answer = await http.get(f"{url}/readyz")
    except httpx.HTTPError:
        return Finding("http", "fail", f"nothing answers at {url}", "run `fairlead up`")
    if answer.is_success:
        return Finding("http", "ok", f"{url} is ready")
    return Finding("http", "fail", f"{url} is not ready: {answer.text}", "see the gateway's log")


def _show(findings: Sequence[Finding]) -> None:
    out = answers()
    for finding in findings:
        mark = MARKS[finding.status]
        out.print(f"{mark}  {finding.name:<12} {escape(finding.detail)}", soft_wrap=True)
        if finding.mend:
            out.print(f"      {'':<12} [dim]→ {escape(finding.mend)}[/]", soft_wrap=True)
