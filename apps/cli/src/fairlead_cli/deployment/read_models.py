"""Drops the read models and rebuilds them from the log, and the register of message ids."""

from functools import partial
from pathlib import Path

import psycopg
from psycopg import errors

from fairlead_cli.cold.files import read_commits
from fairlead_cli.embedded.postgres.access import add_password
from fairlead_cli.errors import CommandError
from fairlead_cli.message_ids import restore_message_ids
from fairlead_cli.terminal import stderr_console
from fairlead_eventlog.jetstream.connect import connect_over
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_projector.errors import WorkerDied
from fairlead_projector.projection.rebuild import RebuildProgress, digest, rebuild
from fairlead_projector.projection.stored.stored_files import project_files
from fairlead_projector.projection.workers.crew import Staffing
from fairlead_service.config.configuration import Config
from fairlead_service.postgres_failure import explain_postgres_failure


async def rebuild_read_models(
    link: NatsLink, config: Config, processes_max: int, cold: Path | None
) -> str:
    """Rebuild, and return the digest of the read models. Raises CommandError and LogError."""
    try:
        return await _rebuild(link, config, processes_max, cold)
    except WorkerDied as error:
        raise CommandError(str(error)) from error
    except psycopg.OperationalError as error:
        raise CommandError(explain_postgres_failure(error)) from error
    except errors.InsufficientPrivilege as error:
        raise CommandError(
            f"only the migrator may rebuild ({error.diag.message_primary}):"
            " set postgres.migrate_dsn to its address"
        ) from error


async def _rebuild(link: NatsLink, config: Config, processes_max: int, cold: Path | None) -> str:
    notes, last = stderr_console(), RebuildProgress(-1, -1)

    def report(progress: RebuildProgress) -> None:
        nonlocal last
        if progress != last:
            notes.print(f"{progress.applied} of {progress.total} commits", style="dim")
        last = progress

    # Only the owner of the tables may drop them and make them again.
    dsn = add_password(config.postgres.migrate_dsn or config.postgres.dsn)
    async with connect_over(link) as eventlog:
        staffing = Staffing(config.nats.address("operator"), processes_max)
        await rebuild(dsn, eventlog, progress=report, staffing=staffing)
        missing = await project_files(dsn, eventlog, partial(read_commits, cold))
        restored = await restore_message_ids(eventlog)
    for session in missing:
        notes.print(
            f"{session.at.session_id} (tenant {session.at.tenant}) is stored in {session.stored.name}:"
            " its messages are not in the read models. Name the directory of its file with --cold",
            markup=False,
        )
    notes.print(f"{restored.found} message ids of callers are bound", style="dim")
    for twice in restored.used_twice:
        notes.print(
            f"{twice.message_id} was admitted by {twice.session_id} too and stays bound to"
            f" {twice.bound_to}",
            markup=False,
        )
    return await digest(dsn)
