"""Holds what clients were promised against the whole log of a deployment."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fairlead_cli.audit.commit_file import read_export
from fairlead_schema.record import Recorded, decode
from fairlead_session.verify.verify import verify
from fairlead_testing.session_driver import events_of
from tests.chaos.promises import work_left
from tests.rehearsal.load import Acknowledged

Logs = Mapping[str, Sequence[Recorded]]


def read_logs(export: Path) -> dict[str, list[Recorded]]:
    """Every session of a file that `fairlead verify --export` wrote."""
    logs: dict[str, list[Recorded]] = {}
    for commit in read_export(export):
        logs.setdefault(commit.at.session_id, []).extend(decode(commit.payload).events)
    return logs


def find_unfinished(logs: Logs) -> dict[str, tuple[str, ...]]:
    """The sessions that should still move, and what is left to do in each."""
    unfinished = {session: work_left(list(log)) for session, log in logs.items()}
    return {session: left for session, left in unfinished.items() if left}


def judge(logs: Logs, acknowledged: Iterable[Acknowledged]) -> dict[str, list[str]]:
    """Broken promises by kind: acknowledged and lost, done twice, never finished, another rule broken."""
    broken: dict[str, list[str]] = {"lost": [], "doubled": [], "stranded": [], "other": []}
    broken["stranded"] = [
        f"{session}: {left}"
        for session, all_left in find_unfinished(logs).items()
        for left in all_left
    ]
    for each in acknowledged:
        events = list(logs.get(each.session, ()))
        for type_, none in (("prompt.admitted", "lost"), ("prompt.promoted", "stranded")):
            count = Counter(event.message_id for event in events_of(events, type_))[each.message]
            if count != 1:
                kind = "doubled" if count else none
                broken[kind].append(f"{each.session}: {count} {type_} of {each.message}")
    for session, log in logs.items():
        for violation in verify(list(log)):
            kind = "doubled" if violation.rule.endswith("-once") else "other"
            broken[kind].append(
                f"{session} at {violation.seq}: {violation.rule}: {violation.detail}"
            )
    return broken
