"""When the last backups began: the note that `fairlead backup` leaves, so that somebody can miss one."""

from typing import Final, NamedTuple, Protocol

from pydantic import TypeAdapter, ValidationError

from fairlead_eventlog.errors import (
    LogUnavailable,
    NoResponders,
    StreamMissing,
    SubjectRefused,
)
from fairlead_eventlog.grants.granted_names import FAILED_BACKUP, LAST_BACKUP
from fairlead_eventlog.jetstream.link import NatsLink, NoAnswer, ServerRefusal, stream_error
from fairlead_eventlog.streams import LOG_STATUS

FAILURE_CHARS_MAX: Final = 500


class BackupAttempt(NamedTuple):
    """One run of `fairlead backup`, by the time it began, in seconds since 1970."""

    began: float
    failure: str | None = None
    """Why it failed; None if it is complete."""


class LastBackups(NamedTuple):
    """The last backup that is complete, and the last one that failed."""

    complete: BackupAttempt | None = None
    failed: BackupAttempt | None = None


class BackupRegister(Protocol):
    """Holds the last backups of the deployment."""

    async def read(self) -> LastBackups:
        """The last backups. Raises LogUnavailable."""

    async def note(self, attempt: BackupAttempt) -> None:
        """Replace the note of the last complete or the last failed backup. Raises LogError."""


class JetStreamBackupRegister:
    """The notes in the bucket of the log's status."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def read(self) -> LastBackups:
        return LastBackups(await self._load(LAST_BACKUP), await self._load(FAILED_BACKUP))

    async def note(self, attempt: BackupAttempt) -> None:
        failure = attempt.failure
        bounded = attempt._replace(failure=failure and failure[:FAILURE_CHARS_MAX])
        subject = LAST_BACKUP if failure is None else FAILED_BACKUP
        try:
            await self._link.store(subject, _STORED.dump_json(bounded))
        except ServerRefusal as refusal:
            raise stream_error(refusal, LOG_STATUS.name) from refusal
        except (NoAnswer, NoResponders) as error:
            if self._link.client.violation is not None:
                raise SubjectRefused(self._link.client.violation) from error
            raise LogUnavailable("the note of the backup was not stored") from error

    async def _load(self, subject: str) -> BackupAttempt | None:
        try:
            message = await self._link.last_message(LOG_STATUS.name, subject)
        except StreamMissing:
            return None
        try:
            return None if message is None else _STORED.validate_json(message.payload)
        except ValidationError:
            # A note that nobody can read tells of no backup, and the alert says so.
            return None


class MemoryBackupRegister:
    """The notes in memory."""

    def __init__(self) -> None:
        self._last = LastBackups()

    async def read(self) -> LastBackups:
        return self._last

    async def note(self, attempt: BackupAttempt) -> None:
        if attempt.failure is None:
            self._last = self._last._replace(complete=attempt)
        else:
            self._last = self._last._replace(failed=attempt)


_STORED: Final = TypeAdapter(BackupAttempt)
