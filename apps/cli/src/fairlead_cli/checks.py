"""The checks of `fairlead doctor`: each gives a finding and how to repair it."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from fairlead_cli.embedded import ports
from fairlead_cli.embedded.state_directory import DISK_FREE_MB_MIN
from fairlead_cli.errors import BinaryMissing, UsageError
from fairlead_cli.first_use.found_provider import find_keys
from fairlead_cli.local_stack.server_programs import find_nats_server, find_postgres
from fairlead_cli.service_names import SERVICES, SOLO
from fairlead_service.config.configuration import Config, ConfigError, load
from fairlead_tools.shell.confinement import ADVICE, find_confinement
from fairlead_tools.shell.sandbox import SandboxUnavailable

Status: TypeAlias = Literal["ok", "warn", "fail"]
PYTHON_MIN: Final = (3, 11)
DISK_COMFORT_MB: Final = 2_000
DISTRIBUTIONS: Final = (
    "fairlead",
    *(f"fairlead-{name}" for name in ("schema", "session", "eventlog", "llm", "service")),
    *(f"fairlead-{name}" for name in SERVICES),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report; `mend` says how to repair the problem."""

    name: str
    status: Status
    detail: str
    mend: str | None = None


def check_python(current: tuple[int, ...]) -> Finding:
    """Is this Python new enough?"""
    number = ".".join(str(part) for part in current[:3])
    if current[:2] >= PYTHON_MIN:
        return Finding("python", "ok", f"{number} ({sys.executable})")
    return Finding("python", "fail", number, "install Python 3.11 or later")


def check_packages(names: Sequence[str] = DISTRIBUTIONS) -> Finding:
    """Are all packages of one release installed?"""
    missing = [name for name in names if _version(name) is None]
    if missing:
        return Finding("packages", "fail", f"missing: {', '.join(missing)}", "run `make sync`")
    versions = sorted({str(_version(name)) for name in names})
    if len(versions) > 1:
        detail = f"mixed versions: {', '.join(versions)}"
        return Finding("packages", "warn", detail, "install one release: run `make sync`")
    return Finding("packages", "ok", f"{len(names)} packages, {versions[0]}")


def check_server_binaries() -> list[Finding]:
    """Are the programs of the embedded servers installed?"""
    findings: list[Finding] = []
    for name, find in (("nats-server", find_nats_server), ("postgres", find_postgres)):
        try:
            findings.append(Finding(name, "ok", str(find())))
        except BinaryMissing as error:
            mend = "run `make sync`; needed only for `fairlead up` and `demo`"
            findings.append(Finding(name, "warn", str(error), mend))
    return findings


def check_disk(path: Path, free_mb: int) -> Finding:
    """Is there enough free disk space?"""
    detail = f"{free_mb} MB free at {path}"
    if free_mb < DISK_FREE_MB_MIN:
        mend = f"free some space: `fairlead up` needs {DISK_FREE_MB_MIN} MB"
        return Finding("disk", "fail", detail, mend)
    if free_mb < DISK_COMFORT_MB:
        return Finding("disk", "warn", detail, "the log only grows: free some space soon")
    return Finding("disk", "ok", detail)


def check_http_port(port: int, owner: int | None, addresses: Mapping[str, Any]) -> Finding:
    """Is the HTTP port free, or in use by our own stack?"""
    if owner is not None and addresses:
        return Finding("port", "ok", f"our stack (pid {owner}) serves {addresses.get('http')}")
    if not ports.is_taken(port):
        return Finding("port", "ok", f"{port} is free")
    return Finding(
        "port", "warn", f"{port} is taken by another program", "choose one: `fairlead up --port 0`"
    )


def check_configuration(path: Path | None, env: Mapping[str, str]) -> tuple[Finding, Config | None]:
    """Is the configuration valid, and are its keys set?"""
    try:
        config = load(path, env)
    except ConfigError as error:
        return Finding("config", "fail", str(error), f"correct {error.key or error.origin}"), None
    missing = [
        f"{provider.api_key_env} ([provider.{name}])"
        for name, provider in config.provider.items()
        if provider.api_key_env and not env.get(provider.api_key_env, "").strip()
    ]
    if missing:
        detail, mend = f"no value for {', '.join(missing)}", "set the variable before `fairlead up`"
        return Finding("config", "warn", detail, mend), config
    if path is None:
        return _without_file(env), config
    providers = ", ".join(config.provider) or "none"
    return Finding("config", "ok", f"{path}, providers: {providers}"), config


def _without_file(env: Mapping[str, str]) -> Finding:
    """What `fairlead up` does without a file: it uses the first key that it finds."""
    try:
        found = find_keys(env)
    except UsageError as error:
        return Finding("config", "fail", str(error), "correct the variable")
    if found:
        preset = found[0].preset
        detail = (
            f"no file: `fairlead up` uses {preset.name}/{preset.default} with {found[0].origin}"
        )
        return Finding("config", "ok", detail)
    mend = "run `fairlead init`, or use `fairlead up --sim`"
    return Finding("config", "warn", "no configuration file", mend)


def check_services(services: Mapping[str, Sequence[int]]) -> Finding:
    """Has each service of the local stack a process of its own?"""
    if SOLO in services:
        detail = "one process for all: tools share its memory with the keys of providers"
        return Finding("services", "ok", f"{detail} (--solo)")
    processes = sum(len(services.get(name, ())) for name in SERVICES)
    return Finding("services", "ok", f"{processes} processes, each with its own secrets")


def check_sandbox(config: Config) -> Finding:
    """Are the commands of models confined on this machine?"""
    try:
        confinement = find_confinement(config.tools)
    except SandboxUnavailable as error:
        return Finding("sandbox", "fail", error.reason, "install bubblewrap")
    if confinement.sandbox is None:
        return Finding("sandbox", "warn", confinement.line, ADVICE)
    return Finding("sandbox", "ok", confinement.line)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
