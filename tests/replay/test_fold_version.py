"""A changed fold has a new version, so that no snapshot of the old fold is loaded."""

import json
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from fairlead_schema.record import Recorded, decode, decode_event
from fairlead_session.fold import snapshot
from fairlead_session.fold.evolve import evolve
from fairlead_session.fold.snapshot import FOLD_VERSION, freeze, thaw
from fairlead_session.state.session import Session

HERE = Path(__file__).parent
GOLDEN = HERE.parents[1] / "libs" / "schema" / "tests" / "golden"
VERSIONS = HERE / "fold_versions.txt"

SESSION = TypeAdapter(Session)


def recorded_sessions() -> list[Session]:
    """Every state of the recorded logs: after each of their events, and before the first."""
    states = []
    for log in sorted(HERE.glob("*.jsonl")):
        states.append(Session(id="ses_recorded"))
        for line in log.read_bytes().splitlines():
            for event in decode(line).events:
                states.append(evolve(states[-1], event))
    return states


def golden_events() -> list[Recorded]:
    """One golden of each event type. A later golden of a version only fills more fields."""
    events = [decode_event(json.loads(path.read_text())) for path in sorted(GOLDEN.iterdir())]
    by_type = groupby(events, key=lambda recorded: recorded.event.type)
    return [next(group) for _type, group in by_type]


def digest_of_fold() -> str:
    """A hash of what events of each kind make of sessions that are in the middle of something."""
    hash_ = sha256()
    sessions = recorded_sessions()
    for session in sessions:
        hash_.update(_text(session))
    for recorded in golden_events():
        for session in sessions[::9]:
            hash_.update(_outcome(session, recorded._replace(seq=session.seq + 1)))
    return hash_.hexdigest()


def _outcome(session: Session, recorded: Recorded) -> bytes:
    try:
        return _text(evolve(session, recorded))
    except AssertionError:
        return b"no log has this event here"


def _text(session: Session) -> bytes:
    """The session as JSON with sorted keys, because its maps have no order."""
    return json.dumps(SESSION.dump_python(session, mode="json"), sort_keys=True).encode()


def test_a_changed_fold_has_a_new_version() -> None:
    """A14: a fixed rule of the fold must not go on with states of the old rule."""
    lines = [line.split() for line in VERSIONS.read_text().splitlines()]

    assert [int(version) for version, _digest in lines] == list(range(1, len(lines) + 1))
    assert lines[-1] == [str(FOLD_VERSION), digest_of_fold()], (
        "events fold into something else than before. Add one to FOLD_VERSION in "
        "fairlead_session/fold/snapshot.py, and append `<version> <digest>` to "
        "tests/replay/fold_versions.txt. Never change a line: other releases wrote snapshots with it"
    )


def test_a_snapshot_of_another_fold_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A14: the shape of a session may be the same although a rule of the fold changed."""
    session = recorded_sessions()[-1]
    before = freeze(session)
    assert thaw(before) == session

    monkeypatch.setattr(snapshot, "FOLD_VERSION", FOLD_VERSION + 1)
    assert thaw(before) is None
    after = freeze(session)
    assert thaw(after) == session

    monkeypatch.undo()
    assert thaw(after) is None


def test_a_snapshot_without_a_version_is_of_the_first_fold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A14: the first release with snapshots wrote none, and its snapshots are still loaded."""
    session = recorded_sessions()[-1]
    stored = json.loads(freeze(session))
    del stored["fold"]
    monkeypatch.setattr(snapshot, "FOLD_VERSION", 1)

    assert thaw(json.dumps(stored).encode()) == session
