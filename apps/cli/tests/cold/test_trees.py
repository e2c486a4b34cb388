"""Sessions leave with their sub-agents: a file that a marker may name is never removed."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from fairlead_cli.cold.files import ColdFile
from fairlead_cli.cold.sessions import SessionRequests
from fairlead_cli.cold.trees import store_tree
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_schema.commands.session_status import SessionOverview, SessionStatus
from fairlead_schema.errors import Conflict, Refused, SessionIsStored
from fairlead_schema.ids import SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.session_info import SessionInfo, SessionTime
from fairlead_schema.session_values.stored_file import StoredState
from fairlead_testing.exports import PARENT, export_lines, parent_life
from fairlead_testing.stored import stored_file

LINES = export_lines({PARENT: parent_life()}, scope="session")


def count_files(directory: Path) -> int:
    return len(list(directory.iterdir()))


class RefusingGateway(SessionRequests):
    """A gateway with one session, which it refuses to store."""

    def __init__(self, refusal: Refused | None = None) -> None:
        super().__init__(AsyncHttpConnection("http://127.0.0.1:1", None, patience_s=0), wait_s=0)
        self._refusal = refusal

    @override
    async def find(self, session_id: SessionId) -> SessionInfo | None:
        return SessionInfo(
            id=session_id,
            project_id="prj_1",
            title="A session",
            location=LocationRef(directory="/"),
            time=SessionTime(created=1, updated=1),
        )

    @override
    async def find_busy_child(self, root: SessionId) -> SessionOverview | None:
        return None

    @override
    async def export(self, session_id: SessionId, file: Any) -> None:
        file.writelines(LINES)

    @override
    async def store(self, session_id: SessionId, file: ColdFile) -> None:
        raise self._refusal or SessionIsStored(session_id, file.path.name)


async def test_a_file_that_a_marker_names_stays_whatever_ingest_says(tmp_path: Path) -> None:
    """The same request was served before, and its first answer was lost."""
    with pytest.raises(SessionIsStored):
        await store_tree(RefusingGateway(), PARENT, tmp_path)

    assert count_files(tmp_path) == 1


@pytest.mark.parametrize(
    "refusal", [Conflict("it works", PARENT), SessionIsStored(PARENT, "another.fairlead.jsonl")]
)
async def test_a_file_that_no_marker_names_goes(tmp_path: Path, refusal: Refused) -> None:
    with pytest.raises(type(refusal)):
        await store_tree(RefusingGateway(refusal), PARENT, tmp_path)

    assert count_files(tmp_path) == 0


class ListedSessions(SessionRequests):
    """A gateway that lists some sessions, the oldest first."""

    def __init__(self, *sessions: SessionOverview) -> None:
        super().__init__(AsyncHttpConnection("http://127.0.0.1:1", None, patience_s=0), wait_s=0)
        self._sessions = sessions

    @override
    async def _list(self, filters: dict[str, str]) -> AsyncIterator[SessionOverview]:
        for session in self._sessions:
            yield session


def listed(
    session_id: SessionId, parent: SessionId | None = None, *, stored: bool = False
) -> SessionOverview:
    return SessionOverview(
        id=session_id,
        parent_id=parent,
        project_id="prj_1",
        title="A session",
        location=LocationRef(directory="/"),
        time=SessionTime(created=1, updated=1),
        status=SessionStatus(state="idle", code="idle"),
        stored=StoredState(**dict(stored_file(3)), time=1) if stored else None,
    )


async def test_a_run_goes_on_with_sub_agents_that_an_earlier_one_left() -> None:
    """It died behind the marker of their parent, which nobody would choose again."""
    requests = ListedSessions(
        listed("ses_stored", stored=True),
        listed("ses_here"),
        listed("ses_left", "ses_stored"),
        listed("ses_below", "ses_here"),
        listed("ses_gone", "ses_stored", stored=True),
    )

    assert [one.id async for one in requests.roots(before=2)] == ["ses_here", "ses_left"]
