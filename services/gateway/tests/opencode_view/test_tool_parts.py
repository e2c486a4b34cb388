"""What the terminal client draws of each tool, from the input and the structured result (WIRE-TUI 4)."""

from typing import Any

import pytest

from fairlead_gateway.opencode_view.translation.sessions import view_permission
from fairlead_gateway.opencode_view.translation.tool_part import tool_part
from fairlead_schema.message import CallSpan, ToolBlock
from fairlead_schema.permission import PermissionRequest
from fairlead_schema.tools.content import CompletedCall, TextContent

PATCH = "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+two\n"
DIFF = {"file": "a", "status": "modified", "patch": PATCH, "additions": 1, "deletions": 1}
MOVED = {"type": "move", "resource": "b", "target": "/work/b", "origin": "a"}


def draw(name: str, given: dict[str, Any], **structured: object) -> dict[str, Any]:
    """The state of a completed call."""
    state = CompletedCall(
        input=given, structured=structured, content=(TextContent(text="as the model sees it"),)
    )
    block = ToolBlock(id="call_1", name=name, state=state, time=CallSpan(created=1, completed=2))
    drawn: dict[str, Any] = tool_part(block)["state"]
    return drawn


@pytest.mark.parametrize(
    ("name", "given", "structured", "metadata"),
    [
        ("write", {"path": "a", "content": "x"}, {}, {"diagnostics": {}}),
        ("edit", {"path": "a"}, {"files": [DIFF]}, {"diff": PATCH}),
        ("bash", {"command": "ls"}, {"exit": 0}, {"output": "as the model sees it", "exit": 0}),
        ("glob", {"pattern": "*"}, {"value": [{"path": "a"}, {"path": "b"}]}, {"count": 2}),
        ("grep", {"pattern": "x"}, {"value": [{"path": "a", "line": 1}]}, {"matches": 1}),
        (
            "websearch",
            {"query": "q", "numResults": 3},
            {"provider": "exa"},
            {"numResults": 3, "provider": "exa"},
        ),
        ("task", {"agent": "general"}, {"sessionID": "ses_2"}, {"sessionId": "ses_2"}),
        ("todowrite", {"todos": []}, {"todos": [{"content": "x"}]}, {"todos": [{"content": "x"}]}),
        ("question", {"questions": []}, {"answers": [["a"]]}, {"answers": [["a"]]}),
        ("application_tool", {"a": 1}, {"b": 2}, {"b": 2}),
    ],
)
def test_a_tool_has_the_metadata_that_its_line_needs(
    name: str, given: dict[str, Any], structured: dict[str, Any], metadata: dict[str, Any]
) -> None:
    drawn = draw(name, given, **structured)["metadata"]

    assert {key: drawn[key] for key in metadata} == metadata


def test_a_patch_shows_the_lines_of_each_file_and_where_a_file_came_from() -> None:
    added = {"type": "add", "resource": "c", "target": "/work/c"}
    lines = {**DIFF, "status": "added", "deletions": 0}

    drawn = draw("apply_patch", {"patchText": "…"}, applied=[MOVED, added], files=[DIFF, lines])

    moved, new = drawn["metadata"]["files"]
    assert (moved["type"], moved["filePath"], moved["relativePath"]) == ("move", "a", "b")
    assert (moved["movePath"], moved["patch"], moved["deletions"]) == ("/work/b", PATCH, 1)
    assert (new["type"], new["filePath"], new["deletions"]) == ("add", "/work/c", 0)
    assert "movePath" not in new


def test_inputs_have_the_names_that_the_client_knows() -> None:
    assert draw("read", {"path": "a", "limit": 2})["input"] == {"filePath": "a", "limit": 2}
    assert draw("task", {"agent": "general"})["input"]["subagent_type"] == "general"
    assert draw("grep", {"path": "a"})["input"] == {"path": "a"}


def test_a_dialog_about_an_edit_names_the_files() -> None:
    def ask(action: str) -> dict[str, Any]:
        return view_permission(
            PermissionRequest(
                id="per_1",
                session_id="ses_1",
                action=action,
                resources=("a", "b"),
                metadata={"diff": PATCH},
            )
        )

    assert ask("edit")["metadata"] == {"filepath": "a, b", "diff": PATCH}
    assert ask("read")["metadata"] == {"diff": PATCH}
