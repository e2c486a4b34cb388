"""`fairlead verify`: read the log with other eyes than the services do, and say what is wrong."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TextIO

from rich.console import Console

from fairlead_cli import commits
from fairlead_cli.addresses import add_config, effective_config
from fairlead_cli.commits import Entry
from fairlead_cli.errors import CommandError, UsageError
from fairlead_cli.terminal import answers, remarks
from fairlead_eventlog.jetstream.connect import connect
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.record import RecordError, decode
from fairlead_schema.subjects import Address
from fairlead_session.verify.verify import Reading, Violation

TOLD_EVERY: Final = 10_000


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("session", metavar="SESSION", nargs="?", help="only this session (default: the whole log)")
    add("--tenant", default=DEFAULT_TENANT, help="whose session it is")
    add("--file", type=Path, metavar="FILE", help="verify an exported file instead of the log")
    add("--export", type=Path, metavar="FILE", help="also write every commit read, one line each")
    add("--json", action="store_true", help="one line of JSON per violation, and one at the end")
    add_config(parser)


def run(args: argparse.Namespace) -> int:
    """Exit 1 when something is wrong."""
    if args.file is not None and args.session is not None:
        raise UsageError("name a session or a file, not both")
    found = asyncio.run(_examine(args))
    if args.json:
        sys.stdout.writelines(json.dumps(line) + "\n" for line in _lines(found))
    else:
        _show(found, answers())
    return 1 if found.violations else 0


@dataclass(slots=True)
class Findings:
    """What was read so far, and what was wrong with it."""

    commits: int = 0
    events: int = 0
    sessions: dict[Address, Reading] = field(default_factory=dict)
    violations: list[tuple[Address, Violation]] = field(default_factory=list)

    def read(self, entry: Entry) -> None:
        """Verify one more commit of its session."""
        self.commits += 1
        reading = self.sessions.setdefault(entry.at, Reading())
        try:
            events = decode(entry.payload).events
        except RecordError as error:
            self.violations.append((entry.at, Violation(0, "readable", str(error))))
            return
        for recorded in events:
            self.events += 1
            self.violations += [(entry.at, found) for found in reading.read(recorded)]


async def _examine(args: argparse.Namespace) -> Findings:
    found = Findings()
    with ExitStack() as opened:
        export = opened.enter_context(_writing(args.export)) if args.export else None
        if args.file is not None:
            for entry in commits.exported(args.file):
                _take(found, entry, export)
            return found
        async with aclosing(_source(args, found)) as entries:
            async for entry in entries:
                _take(found, entry, export)
    if args.session is not None and not found.commits:
        raise CommandError(f"the log holds no session {args.session} of tenant {args.tenant}")
    return found


def _take(found: Findings, entry: Entry, export: TextIO | None) -> None:
    found.read(entry)
    if export is not None:
        commits.write(export, entry)


async def _source(args: argparse.Namespace, found: Findings) -> AsyncGenerator[Entry, None]:
    config, notes = effective_config(args), remarks()
    async with connect(config.nats.url, name="fairlead-verify") as eventlog:
        if args.session is not None:
            async for entry in commits.one(eventlog, Address(args.tenant, args.session)):
                yield entry
            return
        total = await commits.size(eventlog)
        async for entry in commits.whole(eventlog):
            yield entry
            if found.commits % TOLD_EVERY == 0:
                notes.print(f"{found.commits} of {total} commits", style="dim")


def _writing(path: Path) -> TextIO:
    try:
        return path.open("w")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error


def _lines(found: Findings) -> Iterator[dict[str, Any]]:
    for at, violation in found.violations:
        yield {
            "tenant": at.tenant,
            "sessionID": at.session_id,
            "seq": violation.seq,
            "rule": violation.rule,
            "detail": violation.detail,
        }
    yield _counts(found)


def _counts(found: Findings) -> dict[str, int]:
    return {
        "sessions": len(found.sessions),
        "commits": found.commits,
        "events": found.events,
        "violations": len(found.violations),
    }


def _show(found: Findings, out: Console) -> None:
    for at, violation in found.violations:
        where = f"{at.session_id} (tenant {at.tenant}) at {violation.seq}"
        out.print(f"{where}: {violation.rule}: {violation.detail}", markup=False, soft_wrap=True)
    told = ", ".join(f"{count} {name}" for name, count in _counts(found).items())
    out.print(told, markup=False)
