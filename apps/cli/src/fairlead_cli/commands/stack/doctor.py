"""`fairlead doctor`: checks this machine and the configured servers, and says how to repair them."""

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.markup import escape

from fairlead_cli import checks
from fairlead_cli.checks import Finding
from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.embedded.state_directory import MEGABYTE, load_addresses, lock_owner
from fairlead_cli.json_output import print_json_lines
from fairlead_cli.terminal import stdout_console
from fairlead_service.config.configuration import Config

MARKS: Final = {"ok": "[green]ok  [/]", "warn": "[yellow]warn[/]", "fail": "[red]fail[/]"}


def run(args: argparse.Namespace) -> int:
    """Print the findings. The exit code is 1 when a check fails; warnings do not count."""
    addresses = load_addresses(args.state.absolute())
    machine, config = _check_machine(args, addresses)
    # A person reads these while the servers are asked.
    _show(machine, as_json=args.json)
    with keep_modules():
        from fairlead_cli.deployment.doctor.server_checks import check_servers  # noqa: PLC0415
    servers = asyncio.run(check_servers(args, config, addresses))
    _show(servers, as_json=args.json)
    return 1 if any(finding.status == "fail" for finding in (*machine, *servers)) else 0


def _check_machine(
    args: argparse.Namespace, addresses: dict[str, Any]
) -> tuple[list[Finding], Config | None]:
    """What this machine says, without any server, and the configuration if it can be used."""
    state = args.state.absolute()
    findings = [
        checks.check_python(sys.version_info[:3]),
        checks.check_packages(),
        *checks.check_server_binaries(),
    ]
    existing = next(path for path in (state, *state.parents) if os.access(path, os.F_OK))
    findings.append(checks.check_disk(existing, shutil.disk_usage(existing).free // MEGABYTE))
    config_variable = os.environ.get("FAIRLEAD_CONFIG")
    path = args.config or (Path(config_variable) if config_variable else _local_config(addresses))
    finding, config = checks.check_configuration(path, os.environ)
    findings.append(finding)
    if config is not None:
        findings.append(checks.check_sandbox(config))
    port = config.gateway.port if config else 8420
    findings.append(checks.check_http_port(port, lock_owner(state), addresses))
    if addresses.get("services"):
        findings.append(checks.check_services(addresses["services"]))
    return findings, config


def _local_config(addresses: dict[str, Any]) -> Path | None:
    path = addresses.get("config") or "fairlead.toml"
    return Path(path) if Path(path).is_file() else None


def _show(findings: Sequence[Finding], *, as_json: bool) -> None:
    if as_json:
        print_json_lines(asdict(finding) for finding in findings)
        return
    out = stdout_console()
    for finding in findings:
        mark = MARKS[finding.status]
        out.print(f"{mark}  {finding.name:<12} {escape(finding.detail)}", soft_wrap=True)
        if finding.mend:
            out.print(f"      {'':<12} [dim]→ {escape(finding.mend)}[/]", soft_wrap=True)
