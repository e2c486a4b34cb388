"""Verifies commits, and prints the violations: those of a file, and those that somebody else reads."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from rich.console import Console

from fairlead_cli.audit.commit_file import EncodedCommit, read_export, write_commit
from fairlead_cli.errors import CommandError
from fairlead_cli.exports.export_file import is_export
from fairlead_cli.exports.export_file import verify_file as verify_export
from fairlead_cli.terminal import stdout_console
from fairlead_schema.record import RecordError, claimed_seq, decode
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.checksum import ChecksumState, check_checksum
from fairlead_session.verify.verify import LogReading, Violation

CHANGED: Final = "the commit that ends here is not the one that was written"


def verify_file(args: argparse.Namespace) -> int:
    """Verify the file of the arguments: an export, or commits. Raises CommandError."""
    if is_export(args.file):
        return _verify_export(args)
    report = LogReport()
    with open_export(args.export) as export:
        for commit in read_export(args.file):
            verify_commit(report, commit, export)
    return show_report(args, report)


def show_report(args: argparse.Namespace, report: "LogReport") -> int:
    """Print the violations. The exit code is 1 if there is one."""
    if args.json:
        sys.stdout.writelines(json.dumps(line) + "\n" for line in _json_lines(report))
    else:
        _show(report, stdout_console())
    return 1 if report.violations else 0


def _verify_export(args: argparse.Namespace) -> int:
    """Print what an export holds. Raises CommandError at the first line that cannot be used."""
    summary = verify_export(args.file)
    header, sessions = summary.header, summary.sessions.values()
    counts = {
        "sessions": len(sessions),
        "events": sum(session.seq for session in sessions),
        "outputs": sum(bool(size) for session in sessions for size in session.outputs.values()),
        "violations": 0,
    }
    if args.json:
        sys.stdout.write(json.dumps({"export": header.wire(), **counts}) + "\n")
        return 0
    totals = ", ".join(f"{count} {name}" for name, count in counts.items())
    source = f"tenant {header.tenant}, by {header.by or 'nobody'}"
    stdout_console().print(f"an export of {source}: {totals}", markup=False)
    return 0


@dataclass(slots=True)
class LogReport:
    """The commits read so far, and their violations."""

    commits: int = 0
    events: int = 0
    sessions: dict[Address, LogReading] = field(default_factory=dict)
    violations: list[tuple[Address, Violation]] = field(default_factory=list)

    def add(self, commit: EncodedCommit) -> None:
        """Verify the next commit of a session."""
        self.commits += 1
        reading = self.sessions.setdefault(commit.at, LogReading())
        if check_checksum(commit.at, commit.payload) is ChecksumState.WRONG:
            changed = Violation(claimed_seq(commit.payload), "checksum", CHANGED)
            self.violations.append((commit.at, changed))
        try:
            events = decode(commit.payload).events
        except RecordError as error:
            self.violations.append((commit.at, Violation(0, "readable", str(error))))
            return
        for recorded in events:
            self.events += 1
            self.violations += [(commit.at, violation) for violation in reading.read(recorded)]


def verify_commit(report: LogReport, commit: EncodedCommit, export: BinaryIO | None) -> None:
    """Verify one commit, and write it to the export if there is one."""
    report.add(commit)
    if export is not None:
        write_commit(export, commit)


def open_export(path: Path | None) -> AbstractContextManager[BinaryIO | None]:
    """The file to which commits are written, if there is one. Raises CommandError."""
    try:
        return nullcontext() if path is None else path.open("wb")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error


def _json_lines(report: LogReport) -> Iterator[dict[str, Any]]:
    for at, violation in report.violations:
        yield {
            "tenant": at.tenant,
            "sessionID": at.session_id,
            "seq": violation.seq,
            "rule": violation.rule,
            "detail": violation.detail,
        }
    yield _counts(report)


def _counts(report: LogReport) -> dict[str, int]:
    return {
        "sessions": len(report.sessions),
        "commits": report.commits,
        "events": report.events,
        "violations": len(report.violations),
    }


def _show(report: LogReport, out: Console) -> None:
    for at, violation in report.violations:
        where = f"{at.session_id} (tenant {at.tenant}) at {violation.seq}"
        out.print(f"{where}: {violation.rule}: {violation.detail}", markup=False, soft_wrap=True)
    totals = ", ".join(f"{count} {name}" for name, count in _counts(report).items())
    out.print(totals, markup=False)
