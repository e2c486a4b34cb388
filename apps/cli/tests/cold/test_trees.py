"""Sessions leave with their sub-agents: a file that a marker may name is never removed."""

from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from fairlead_cli.cold.files import ColdFile
from fairlead_cli.cold.sessions import SessionRequests
from fairlead_cli.cold.trees import store_tree
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_schema.commands.session_status import SessionOverview
from fairlead_schema.errors import Conflict, Refused, SessionIsStored
from fairlead_schema.ids import SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.session_info import SessionInfo, SessionTime
from fairlead_testing.exports import PARENT, export_lines, parent_life

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
