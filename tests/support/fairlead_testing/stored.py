"""Stored sessions for tests: markers, and the commits that a restore writes behind them."""

from collections.abc import Sequence

from fairlead_schema.events import SessionStored
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Commit, ImportMark, Recorded
from fairlead_schema.session_values.stored_file import StoredFile, StoredProfile

DIGEST = "0123456789abcdef" * 4
PROFILE = StoredProfile(
    title="A session",
    project_id="prj_1",
    location=LocationRef(directory="/work"),
    created=1,
    updated=2,
    cost=0.5,
)


def stored_file(seq: int, digest: str = DIGEST) -> StoredFile:
    return StoredFile(name=f"ses_1.{digest[:16]}.fairlead.jsonl", digest=digest, bytes=100, seq=seq)


def marker(seq: int, digest: str = DIGEST) -> SessionStored:
    """The marker of a session whose last event has this seq."""
    return SessionStored(file=stored_file(seq, digest), profile=PROFILE)


def recorded_marker(seq: int, *, time: int = 9, id_: str = "evt_marker") -> Recorded:
    return Recorded(id_, 0, time, marker(seq))


def replayed(events: Sequence[Recorded]) -> list[Recorded]:
    """The events as a restore brings them back."""
    mark = ImportMark(events[-1].seq)
    return [event._replace(imported=mark) for event in events]


def replay_commits(events: Sequence[Recorded], size: int = 2) -> list[Commit]:
    """The commits of a restore, with so many events each."""
    back = replayed(events)
    return [
        Commit(f"cmt_back_{start}", tuple(back[start : start + size]))
        for start in range(0, len(back), size)
    ]
