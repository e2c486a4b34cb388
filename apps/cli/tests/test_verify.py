"""`fairlead verify`: its sources, its output and its exit code."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typing_extensions import override

from fairlead_cli import commits
from fairlead_cli.__main__ import main
from fairlead_cli.audit.commit_file import EncodedCommit, read_export, write_commit
from fairlead_cli.audit.log_report import LogReport
from fairlead_eventlog.errors import ConsumerMissing, LogUnavailable
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.ports import START, LogEntry
from fairlead_schema.events import ExecutionClaimed, SessionCreated, SessionEvent
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Commit, Draft, encode, record
from fairlead_schema.subjects import Address
from fairlead_testing.exports import tree_export

AT = Address("default", "ses_1")
CREATED = SessionCreated(title="One", project_id="prj_1", location=LocationRef(directory="/work"))
CLAIMED = ExecutionClaimed(generation=1, runner="run_a")


def drafts(*events: SessionEvent, first: int = 1) -> tuple[Draft, ...]:
    return tuple(Draft(f"evt_{number}", 1, event) for number, event in enumerate(events, first))


def commit_of(*events: SessionEvent, after: int = 0) -> EncodedCommit:
    commit = Commit(f"cmt_{after}", record(drafts(*events, first=after + 1), after=after))
    return EncodedCommit(AT, encode(commit))


def write_export(path: Path, *exported_commits: EncodedCommit) -> Path:
    with path.open("wb") as file:
        for commit in exported_commits:
            write_commit(file, commit)
    return path


def verify(*argv: str) -> int:
    return main(["verify", *argv])


def test_a_sound_file_exits_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_export(tmp_path / "log.jsonl", commit_of(CREATED), commit_of(CLAIMED, after=1))

    assert verify("--file", str(file)) == 0
    assert capsys.readouterr().out == "1 sessions, 2 commits, 2 events, 0 violations\n"


def test_an_exact_repeat_of_the_last_commit_is_sound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """H-16, D7: the file holds it, and no rule is broken."""
    last = commit_of(CLAIMED, after=1)
    file = write_export(tmp_path / "log.jsonl", commit_of(CREATED), last, last)

    assert verify("--file", str(file)) == 0
    assert capsys.readouterr().out == "1 sessions, 3 commits, 3 events, 0 violations\n"


def test_a_violation_is_listed_and_exits_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_export(
        tmp_path / "log.jsonl", commit_of(CREATED), commit_of(CLAIMED, CLAIMED, after=1)
    )

    assert verify("--file", str(file)) == 1
    assert "ses_1 (tenant default) at 3: generation: 1 follows 1" in capsys.readouterr().out


def test_findings_as_json_are_one_per_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_export(tmp_path / "log.jsonl", commit_of(CREATED), commit_of(CLAIMED, after=2))

    assert verify("--file", str(file), "--json") == 1

    violation, totals = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (violation["sessionID"], violation["seq"], violation["rule"]) == ("ses_1", 3, "sequence")
    assert totals == {"sessions": 1, "commits": 2, "events": 2, "violations": 1}


def test_what_is_exported_reads_back_the_same(tmp_path: Path) -> None:
    file = write_export(tmp_path / "log.jsonl", commit_of(CREATED), commit_of(CLAIMED, after=1))
    again = tmp_path / "again.jsonl"

    assert verify("--file", str(file), "--export", str(again)) == 0
    assert again.read_text() == file.read_text()


def test_an_unreadable_commit_is_a_violation_of_its_session_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = json.loads(commit_of(CREATED).payload)
    unknown["events"][0]["type"] = "session.dreamt"
    other = EncodedCommit(Address("default", "ses_2"), json.dumps(unknown).encode())
    file = write_export(tmp_path / "log.jsonl", commit_of(CREATED), other)

    assert verify("--file", str(file)) == 1
    assert "ses_2 (tenant default) at 0: readable: unknown event" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["nonsense\n", "[]\n", '{"tenant": "t"}\n', "\x00\n"])
def test_a_file_that_is_no_export_is_refused_with_its_line(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text(text)

    assert verify("--file", str(file)) == 1
    assert f"{file}:1 is not an exported commit" in capsys.readouterr().err


def test_a_missing_file_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify("--file", str(tmp_path / "none")) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_session_and_a_file_do_not_go_together() -> None:
    assert verify("ses_1", "--file", "x") == 2


async def test_a_changed_word_of_the_log_is_a_violation(tmp_path: Path) -> None:
    """D17: every commit has a checksum, and an exported file keeps it."""
    eventlog = memory_eventlog()
    await eventlog.log.append(AT, "cmt_1", drafts(CREATED), after=START)
    (sound,) = [commit async for commit in commits.read_session(eventlog, AT)]
    changed = sound._replace(payload=sound.payload.replace(b"One", b"Two"))

    file = write_export(tmp_path / "log.jsonl", changed)
    report = LogReport()
    for commit in (sound, *read_export(file)):
        report.add(commit)

    assert [(violation.seq, violation.rule) for _at, violation in report.violations] == [
        (1, "checksum"),
        (1, "sequence"),
        (1, "event-id"),
        (1, "created-first"),
    ]


def test_a_file_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    fields = {"tenant": "default", "session": "ses_1", **json.loads(commit_of(CREATED).payload)}
    file.write_text(json.dumps(fields) + "\n")

    assert [commit.payload for commit in read_export(file)] == [commit_of(CREATED).payload]


async def test_one_session_and_the_whole_log_are_read_in_order() -> None:
    eventlog = memory_eventlog()
    first = await eventlog.log.append(AT, "cmt_1", drafts(CREATED), after=START)
    await eventlog.log.append(AT, "cmt_2", drafts(CLAIMED, first=2), after=first.head)

    alone = [commit async for commit in commits.read_session(eventlog, AT)]
    everything = [commit async for commit in commits.read_all(eventlog)]

    assert [commit.payload for commit in alone] == [commit.payload for commit in everything]
    assert await commits.count_commits(eventlog) == 2


async def test_what_cannot_be_read_of_one_session_is_a_violation_like_in_the_whole_log(
    tmp_path: Path,
) -> None:
    """H-19: verify reads the commits around it too, and an export keeps its bytes."""
    eventlog, garbage = memory_eventlog(), b"\xff not even JSON"
    first = await eventlog.log.append(AT, "cmt_1", drafts(CREATED), after=START)
    assert isinstance(eventlog.log, MemoryLog)
    await eventlog.log.append_raw(AT, garbage)
    other = Address("default", "ses_2")
    await eventlog.log.append(other, "cmt_2", drafts(CREATED), after=START)
    await eventlog.log.append_raw(AT, commit_of(CLAIMED, after=first.head.seq).payload)

    alone = [commit async for commit in commits.read_session(eventlog, AT)]

    assert [commit.at for commit in alone] == [AT] * 3
    assert alone[1].payload == garbage
    report = LogReport()
    file = tmp_path / "log.jsonl"
    with file.open("wb") as export:
        for commit in alone:
            report.add(commit)
            write_commit(export, commit)
    assert [violation.rule for _at, violation in report.violations] == ["readable"]
    assert report.events == 2
    assert [commit.payload for commit in read_export(file)][1] == garbage


class LossyLog(MemoryLog):
    """A log whose first readers are lost after a commit each, as in a cluster without a leader."""

    def __init__(self) -> None:
        super().__init__()
        self.losses = 2
        self.silent = False
        self.away = False

    @override
    async def follow(
        self, shard: int, *, after: int, reader: str = "projector", bytes_max: int = 1
    ) -> AsyncIterator[Sequence[LogEntry]]:
        async for batch in super().follow(shard, after=after, reader=reader, bytes_max=bytes_max):
            if self.away:
                raise ConsumerMissing("LOG-0", reader)
            if self.losses == 0:
                yield batch
                continue
            self.losses -= 1
            yield batch[:1]
            if self.silent:
                await asyncio.Event().wait()
            raise ConsumerMissing("LOG-0", reader)


@pytest.mark.parametrize("silent", [False, True])
async def test_a_reader_that_is_lost_begins_again_and_skips_nothing(
    silent: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A6: nothing heard is not the end of the log."""
    monkeypatch.setattr(commits, "QUIET_S", 0.05)
    monkeypatch.setattr(commits, "AGAIN_S", 0.0)
    log = LossyLog()
    log.silent = silent
    head = START
    for number in range(4):
        event = CREATED if number == 0 else CLAIMED
        stored = await log.append(AT, f"cmt_{number}", drafts(event, first=number + 1), after=head)
        head = stored.head
    eventlog = replace(memory_eventlog(), log=log, shards=log)

    everything = [commit async for commit in commits.read_all(eventlog)]

    assert len(everything) == 4
    assert log.losses == 0


async def test_a_shard_that_never_comes_is_an_error_and_not_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commits, "AGAIN_S", 0.0)
    log = LossyLog()
    await log.append(AT, "cmt_0", drafts(CREATED), after=START)
    log.away = True
    eventlog = replace(memory_eventlog(), log=log, shards=log)

    with pytest.raises(LogUnavailable, match="cannot be read beyond position 0"):
        _ = [commit async for commit in commits.read_all(eventlog)]


def test_an_export_is_verified_without_servers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tree.jsonl"
    file.write_bytes(b"".join(tree_export()))

    assert verify(str(file)) == 0
    assert capsys.readouterr().out == (
        "an export of tenant default, by key:ann: 2 sessions, 25 events, 1 outputs, 0 violations\n"
    )
    assert verify("--file", str(file), "--json") == 0
    totals = json.loads(capsys.readouterr().out)
    assert (totals["export"]["by"], totals["events"]) == ("key:ann", 25)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda whole: whole.replace(b"Look around", b"Look abound"), "Checksum"),
        (lambda whole: whole[:-200], "Truncated"),
        (lambda whole: whole.replace(b'"scope":"tree"', b'"scope":"oak"'), "Malformed"),
    ],
)
def test_a_damaged_export_is_named_with_its_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[bytes], bytes],
    fault: str,
) -> None:
    """D17"""
    file = tmp_path / "tree.jsonl"
    file.write_bytes(change(b"".join(tree_export())))

    assert verify(str(file)) == 1
    error = capsys.readouterr().err
    assert f"{fault}: line " in error
    assert error.count("\n") == 1
    assert main(["import", str(file)]) == 1
