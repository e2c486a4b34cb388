"""`fairlead rebuild`: drop the read models and rebuild them from the log."""

import argparse
import asyncio

import psycopg

from fairlead_cli.addresses import add_config, effective_config
from fairlead_cli.errors import CommandError
from fairlead_cli.terminal import answers, remarks
from fairlead_eventlog.jetstream.connect import connect
from fairlead_projector.projection.rebuild import Progress, digest, rebuild
from fairlead_service.config.configuration import Config


def configure(parser: argparse.ArgumentParser) -> None:
    add_config(parser)


def run(args: argparse.Namespace) -> int:
    """Print the digest of what was built: equal logs give equal digests."""
    try:
        built = asyncio.run(_rebuild(effective_config(args)))
    except psycopg.OperationalError as error:
        raise CommandError(f"Postgres cannot be used: {error}; run `fairlead doctor`") from error
    answers().print(built, markup=False)
    return 0


async def _rebuild(config: Config) -> str:
    notes, told = remarks(), Progress(-1, -1)

    def tell(progress: Progress) -> None:
        nonlocal told
        if progress != told:
            notes.print(f"{progress.applied} of {progress.total} commits", style="dim")
        told = progress

    async with connect(config.nats.url, name="fairlead-rebuild") as eventlog:
        await rebuild(config.postgres.dsn, eventlog, progress=tell)
    return await digest(config.postgres.dsn)
