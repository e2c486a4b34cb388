"""Writes a backup of a running deployment: every stream that cannot be made again, in an order that fits."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeVar

from fairlead_cli.backup.directory import (
    check_space,
    prepare_directory,
    stream_file,
    write_manifest,
    writing,
)
from fairlead_cli.backup.manifest import FORMAT, VERSION, CopiedStream, Manifest
from fairlead_eventlog.backup.copy_order import COPY_ORDER, RESTORE_ORDER, WITH_CONSUMERS
from fairlead_eventlog.backup.stream_copy import open_copy
from fairlead_eventlog.condition.stream_sizes import read_size
from fairlead_eventlog.errors import (
    CredentialsRefused,
    LogUnavailable,
    StreamMissing,
    SubjectRefused,
)
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.registers.log_status import JetStreamLogStatus
from fairlead_eventlog.streams import LOG_STATUS
from fairlead_schema.identity.nats_address import NatsAddress

# A copy ends when its stream gets another leader. The next one has another.
TRIES: Final = 8
PAUSE_S: Final = 1.0

Progress = Callable[[str], None]
Answer = TypeVar("Answer")


async def write_backup(address: NatsAddress, root: Path, progress: Progress) -> Manifest:
    """Copy everything that was acknowledged before this call, and what came since as far as it fits.

    Raises CommandError, LogError. Without its manifest the directory is no backup.
    """
    prepare_directory(root)
    began = _now()
    async with open_link(address, name="fairlead-backup") as link:
        check_space(root, await _stored_bytes(link, progress))
        status = await _repeat(JetStreamLogStatus(link).read, LOG_STATUS.name, progress)
        copied: list[CopiedStream] = []
        for step in COPY_ORDER:
            copied += await asyncio.gather(*(_copy(link, root, name, progress) for name in step))
    manifest = Manifest(
        fairlead=FORMAT,
        version=VERSION,
        id=secrets.token_hex(8),
        release=version("fairlead"),
        began=began,
        ended=_now(),
        level=status.level,
        incarnation=None if status.incarnation is None else status.incarnation.id,
        streams=tuple(copied),
    )
    write_manifest(root, manifest)
    return manifest


async def _stored_bytes(link: NatsLink, progress: Progress) -> int:
    """The bytes of all streams that are copied. Raises StreamMissing."""
    total = 0
    for name in RESTORE_ORDER:
        size = await _repeat(partial(read_size, link, name), name, progress)
        if size is None:
            raise StreamMissing(name)
        total += size.bytes
    return total


async def _copy(link: NatsLink, root: Path, name: str, progress: Progress) -> CopiedStream:
    """Copy one stream. A copy that the server ended is begun again."""
    copied = await _repeat(partial(_copy_once, link, root, name), name, progress)
    progress(f"{name}: {copied.state['messages']} messages, {copied.bytes} bytes")
    return copied


async def _repeat(
    attempt: Callable[[], Awaitable[Answer]], name: str, progress: Progress
) -> Answer:
    """Try again while the servers elect a leader. A refused key does not get better."""
    for _ in range(TRIES - 1):
        try:
            return await attempt()
        except (CredentialsRefused, SubjectRefused):
            raise
        except LogUnavailable as error:
            progress(f"{name}: {error}; trying again")
            await asyncio.sleep(PAUSE_S)
    return await attempt()


async def _copy_once(link: NatsLink, root: Path, name: str) -> CopiedStream:
    digest, size = sha256(), 0
    path = root / stream_file(name)
    async with open_copy(link, name, consumers=name in WITH_CONSUMERS) as copy:
        with writing(path) as file:
            async for chunk in copy.chunks:
                file.write(chunk)
                digest.update(chunk)
                size += len(chunk)
    return CopiedStream(
        name=name,
        file=path.name,
        bytes=size,
        sha256=digest.hexdigest(),
        config=copy.config,
        state=copy.state,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
