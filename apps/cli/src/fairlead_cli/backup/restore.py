"""Brings a verified backup back into a deployment that has no log yet.

Each stream is restored whole or not at all, and carries the id of its backup until the end. So a restore
that was cut off is repeated and goes on. The log comes last: nothing can work on half a restore.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fairlead_cli.backup.directory import read_chunks
from fairlead_cli.backup.manifest import CopiedStream, Manifest
from fairlead_cli.errors import CommandError
from fairlead_eventlog.backup.copy_order import LEFT_OUT, RESTORE_ORDER
from fairlead_eventlog.backup.stream_copy import restore_copy
from fairlead_eventlog.condition.operations import JetStreamOperations
from fairlead_eventlog.errors import LogUnavailable, TooFewServers
from fairlead_eventlog.jetstream.link import NO_STREAM, NatsLink, ServerRefusal
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.provision import NO_CLUSTER, stream_config
from fairlead_eventlog.streams import CHECKPOINTS, LOG_STATUS, STREAMS
from fairlead_schema.identity.nats_address import NatsAddress

MARK: Final = "fairlead-restore"
# Provisioning writes these, so they are never empty.
_OWN: Final = frozenset({LOG_STATUS.name, CHECKPOINTS.name})
_SPECS: Final = {spec.name: spec for spec in STREAMS}
_LIMITS: Final = ("max_age", "max_bytes", "discard", "duplicate_window")

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Found:
    """A stream as the servers have it."""

    messages: int
    last_position: int
    mark: str | None
    config: dict[str, Any]


async def restore_streams(
    address: NatsAddress, root: Path, manifest: Manifest, *, replicas: int, progress: Progress
) -> None:
    """Make every stream of a backup. Raises CommandError if the deployment is not empty or works."""
    streams = {stream.name: stream for stream in manifest.streams}
    order = [streams[name] for name in RESTORE_ORDER if name in streams]
    async with open_link(address, name="fairlead-restore") as link:
        await _refuse_services(link)
        found = {name: await _find(link, name) for name in (*streams, *LEFT_OUT)}
        last = found[order[-1].name]
        if last is not None and last.mark == manifest.id:
            # All was restored before, and `remove_marks` may have begun, in the same order.
            progress("every stream was restored before")
            return
        _refuse_data(address, manifest, found)
        for name in LEFT_OUT:
            if found[name] is not None:
                await link.api(f"STREAM.PURGE.{name}")
        for stream in order:
            existing = found[stream.name]
            if existing is not None and existing.mark == manifest.id:
                progress(f"{stream.name}: restored before")
                continue
            if existing is not None:
                await link.api(f"STREAM.DELETE.{stream.name}")
            await _restore(link, root, stream, manifest.id, replicas=replicas, address=address)
            progress(f"{stream.name}: {stream.state['messages']} messages")


async def remove_marks(address: NatsAddress) -> None:
    """Forget which backup the streams came from: the restore is complete."""
    async with open_link(address, name="fairlead-restore") as link:
        for name in RESTORE_ORDER:
            found = await _find(link, name)
            if found is not None and found.mark is not None:
                metadata = {
                    key: value
                    for key, value in found.config.get("metadata", {}).items()
                    if key != MARK
                }
                await link.api(f"STREAM.UPDATE.{name}", found.config | {"metadata": metadata})


async def _restore(
    link: NatsLink,
    root: Path,
    stream: CopiedStream,
    backup: str,
    *,
    replicas: int,
    address: NatsAddress,
) -> None:
    config = restored_config(stream, backup, replicas)
    try:
        state = await restore_copy(link, config, stream.state, read_chunks(root, stream))
    except LogUnavailable as error:
        if str(NO_CLUSTER) in str(error):
            raise TooFewServers(str(address), replicas) from error
        raise
    if int(state["last_seq"]) < stream.last_position:
        raise CommandError(
            f"{stream.name} ends at {state['last_seq']} after its restore, and the backup at"
            f" {stream.last_position}: empty the servers and restore again"
        )


def restored_config(stream: CopiedStream, backup: str, replicas: int) -> dict[str, Any]:
    """A stream as this release declares it, with the limits that it had, and a mark."""
    wanted = stream_config(_SPECS[stream.name], replicas)
    kept = {key: stream.config[key] for key in _LIMITS if key in stream.config}
    mode = {"persist_mode": wanted.get("persist_mode", "default")}
    metadata = {**stream.config.get("metadata", {}), MARK: backup}
    return stream.config | wanted | kept | mode | {"metadata": metadata}


async def _refuse_services(link: NatsLink) -> None:
    """Services would write into the streams that are deleted and made again."""
    running = await JetStreamOperations(link).services()
    if running:
        names = ", ".join(sorted({service.name for service in running}))
        raise CommandError(f"services run on these servers ({names}): stop all of them first")


def _refuse_data(address: NatsAddress, manifest: Manifest, found: dict[str, _Found | None]) -> None:
    """Only what is empty, or what an earlier try of this restore made, is replaced."""
    for name, stream in found.items():
        if stream is None or name in _OWN or name in LEFT_OUT or stream.mark == manifest.id:
            continue
        if stream.messages or (name.startswith("LOG-") and stream.last_position):
            raise CommandError(
                f"{address} is not empty: {name} has {stream.messages} messages; a backup goes"
                " into new servers, or into a new --state"
            )


async def _find(link: NatsLink, name: str) -> _Found | None:
    try:
        info = await link.api(f"STREAM.INFO.{name}")
    except ServerRefusal as refusal:
        if refusal.code == NO_STREAM:
            return None
        raise LogUnavailable(str(refusal)) from refusal
    config: dict[str, Any] = info["config"]
    return _Found(
        int(info["state"]["messages"]),
        int(info["state"]["last_seq"]),
        (config.get("metadata") or {}).get(MARK),
        config,
    )
