"""Reads the log of a deployment over a link, and verifies every commit."""

import argparse
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from fairlead_cli import commits
from fairlead_cli.audit.commit_file import EncodedCommit
from fairlead_cli.audit.log_report import LogReport, open_export, show_report, verify_commit
from fairlead_cli.errors import CommandError
from fairlead_cli.terminal import stderr_console
from fairlead_eventlog.jetstream.connect import connect_over
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_schema.subjects import Address

PROGRESS_EVERY: Final = 10_000


async def verify_log(args: argparse.Namespace, link: NatsLink) -> int:
    """Verify the log, or one session of it. Raises CommandError and LogError."""
    report = LogReport()
    with open_export(args.export) as export:
        async with aclosing(_read_log(args, link, report)) as entries:
            async for commit in entries:
                verify_commit(report, commit, export)
    if args.session is not None and not report.commits:
        raise CommandError(f"the log holds no session {args.session} of tenant {args.tenant}")
    return show_report(args, report)


async def _read_log(
    args: argparse.Namespace, link: NatsLink, report: LogReport
) -> AsyncGenerator[EncodedCommit, None]:
    console = stderr_console()
    async with connect_over(link) as eventlog:
        if args.session is not None:
            async for commit in commits.read_session(eventlog, Address(args.tenant, args.session)):
                yield commit
            return
        total = await commits.count_commits(eventlog)
        async for commit in commits.read_all(eventlog):
            yield commit
            if report.commits % PROGRESS_EVERY == 0:
                console.print(f"{report.commits} of {total} commits", style="dim")
