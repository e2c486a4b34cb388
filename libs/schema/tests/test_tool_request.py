"""Requests to tool workers: the wire names that other releases read."""

from fairlead_schema.location import LocationRef
from fairlead_schema.tools.request import CallSnapshot, ToolRequest

SNAPSHOT = CallSnapshot(
    position=7,
    seq=3,
    runner="run_1",
    generation=1,
    project_id="prj_1",
    location=LocationRef(directory="/srv"),
    tool="read",
    input={},
    agent="build",
    retry="pure",
    called_seq=3,
)


def test_the_snapshot_of_a_call_is_called_brief_on_the_wire() -> None:
    request = ToolRequest(
        session_id="ses_1", assistant_message_id="msg_1", call_id="c", snapshot=SNAPSHOT
    )

    wire = request.wire()

    assert wire["brief"] == SNAPSHOT.wire()
    assert "snapshot" not in wire
    assert ToolRequest.model_validate(wire) == request


def test_a_request_without_a_snapshot_has_no_brief() -> None:
    request = ToolRequest(session_id="ses_1", assistant_message_id="msg_1", call_id="c")

    assert "brief" not in request.wire()
