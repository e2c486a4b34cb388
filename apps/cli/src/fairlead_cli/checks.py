"""The checks of `fairlead doctor`: each gives a finding and how to repair it."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from fairlead_cli.embedded import nats, ports
from fairlead_cli.embedded.postgres import server as postgres
from fairlead_cli.embedded.services import SOLO
from fairlead_cli.embedded.state_directory import DISK_FREE_MB_MIN
from fairlead_cli.errors import BinaryMissing
from fairlead_cli.service_names import SERVICES
from fairlead_eventlog.condition.stream_sizes import ALARM_SHARE, StreamSize
from fairlead_eventlog.errors import (
    CredentialsRefused,
    CredentialsUnusable,
    ServerUnfit,
    SubjectRefused,
)
from fairlead_eventlog.replication import StreamCopies
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_service.config.configuration import Config, ConfigError, load
from fairlead_tools.shell.confinement import ADVICE, find_confinement
from fairlead_tools.shell.sandbox import SandboxUnavailable

Status: TypeAlias = Literal["ok", "warn", "fail"]
PYTHON_MIN: Final = (3, 11)
CLOCK_S_MAX: Final = 5.0
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
    for name, find in (("nats-server", nats.find_binary), ("postgres", postgres.find_install)):
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
        if provider.api_key_env and not env.get(provider.api_key_env)
    ]
    if missing:
        detail, mend = f"no value for {', '.join(missing)}", "set the variable before `fairlead up`"
        return Finding("config", "warn", detail, mend), config
    if path is None:
        mend = "run `fairlead init`, or use `fairlead up --sim`"
        return Finding("config", "warn", "no configuration file", mend), config
    providers = ", ".join(config.provider) or "none"
    return Finding("config", "ok", f"{path}, providers: {providers}"), config


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


def mend_nats(error: Exception, address: NatsAddress) -> str:
    """How to repair a connection to NATS that failed."""
    match error:
        case CredentialsUnusable():
            return f"correct {error.setting}; `fairlead provision --nats-auth DIR` makes keys"
        case CredentialsRefused():
            return (
                "take the key from the directory of `fairlead provision --nats-auth`, and reload"
                " nats-server with the auth.conf of that directory"
            )
        case ServerUnfit():
            return error.cure
        case SubjectRefused():
            return "set nats.nkey_file to operator.nk: the keys of services may not list streams"
        case _:
            return f"start nats-server at {address}, or correct [nats]"


def check_format(level: int) -> Finding:
    """Is the level of the log's format finalised that this release can write?"""
    if level > LEVEL_NEWEST:
        detail = f"level {level} is finalised, and this release knows {LEVEL_NEWEST}"
        return Finding("format", "fail", detail, "install the release that finalised it")
    if level < LEVEL_NEWEST:
        detail = f"level {level} is finalised, and this release has {LEVEL_NEWEST}"
        mend = "run `fairlead provision --finalise` when no older release will run again"
        return Finding("format", "warn", detail, mend)
    return Finding("format", "ok", f"level {level}, finalised")


def check_durability(varz: Mapping[str, Any]) -> Finding:
    """Does nats-server sync a commit to disk before it acknowledges? Read from `/varz`."""
    jetstream = varz.get("jetstream") or {}
    settings = jetstream.get("config") or {}
    if settings.get("sync_always"):
        return Finding("sync", "ok", "sync_always: an acknowledged commit is on disk")
    return Finding(
        "sync",
        "warn",
        "sync_interval is not `always`: a power failure may lose acknowledged commits",
        "set `sync_interval: always` in the jetstream block of every nats-server",
    )


def check_clock(varz: Mapping[str, Any], now: datetime) -> Finding:
    """Has a nats-server the time of this machine? Read from `/varz`."""
    name = str(varz.get("server_name", "nats-server"))
    ahead_s = (datetime.fromisoformat(str(varz["now"])) - now).total_seconds()
    if abs(ahead_s) <= CLOCK_S_MAX:
        return Finding("clock", "ok", f"{name} has the time of this machine")
    which = "ahead of" if ahead_s > 0 else "behind"
    detail = f"the clock of {name} is {abs(ahead_s):,.0f} s {which} that of this machine"
    mend = "keep both clocks right (NTP): timers, expiries and ages go by them, the log does not"
    return Finding("clock", "warn", detail, mend)


def check_room(sizes: Sequence[StreamSize]) -> Finding:
    """Has every stream room for more?"""
    full = [f"{size.stream} ({size.share:.0%})" for size in sizes if size.share >= ALARM_SHARE]
    if full:
        mend = "purge sessions, or raise the limits in [streams] and run `fairlead provision`"
        return Finding("room", "warn", f"nearly full: {', '.join(full)}", mend)
    limited = sum(bool(size.bytes_max) for size in sizes)
    total = sum(size.bytes for size in sizes)
    return Finding("room", "ok", f"{total:,} bytes, {limited} of {len(sizes)} streams are limited")


def check_copies(found: Sequence[StreamCopies]) -> Finding | None:
    """Has every stream a leader and complete copies? None where a single server has them all."""
    without_leader = [copies.stream for copies in found if copies.leader is None]
    if without_leader:
        detail = f"{len(without_leader)} streams have no leader ({', '.join(without_leader[:3])} …)"
        return Finding("copies", "fail", detail, "start more nodes: a majority elects leaders")
    if not any(copies.cluster for copies in found):
        return None
    single = [copies.stream for copies in found if copies.copies == 1]
    if single:
        detail = f"{len(single)} streams have one copy: without its node a stream stands still"
        return Finding("copies", "warn", detail, "run `fairlead provision --replicas 3`")
    behind = sorted({server for copies in found for server in copies.behind})
    if behind:
        detail = f"{', '.join(behind)}: away, or not caught up yet"
        mend = (
            "start it, and free its disk if that is full (its log says so); it catches up by itself"
        )
        return Finding("copies", "warn", detail, mend)
    fewest = min(copies.copies for copies in found)
    return Finding("copies", "ok", f"{fewest} copies of each stream, all complete")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
