"""The summary of a session: the files and lines that its tools have changed."""

from typing import Any

import pytest
from hypothesis import given as hypothesis
from hypothesis import strategies as st
from libs.session.tests.conftest import (
    CREATED,
    PROPERTY,
    claimed,
    dispatched,
    given,
    promoted,
    step_ended,
    step_started,
    then,
)

from fairlead_schema.events import (
    RevertCommitted,
    RevertStaged,
    SessionEvent,
    ToolCalled,
    ToolInputStarted,
    ToolSucceeded,
)
from fairlead_schema.session_info import ChangeSummary
from fairlead_schema.session_values.revert_state import RevertState
from fairlead_schema.tools.content import Executor
from fairlead_session.info import info
from fairlead_session.state.file_changes import (
    FILES_MAX,
    FileChanges,
    change_summary,
    changes_after,
    changes_through,
    settle_changes,
)


def diff(file: str, additions: int, deletions: int) -> dict[str, Any]:
    return {"file": file, "status": "modified", "additions": additions, "deletions": deletions}


def settled(call_id: str, tool: str, structured: dict[str, Any]) -> tuple[SessionEvent, ...]:
    at: dict[str, Any] = {"assistant_message_id": "msg_a", "call_id": call_id}
    return (
        ToolInputStarted(**at, name=tool),
        ToolCalled(**at, tool=tool, input={}, provider=Executor()),
        ToolSucceeded(**at, structured=structured, content=(), provider=Executor()),
    )


def test_files_and_lines_of_all_tools_add_up() -> None:
    """P-28: a file that changed twice is one file; reading changes nothing."""
    session = given(
        CREATED,
        claimed(),
        dispatched(),
        step_started(),
        *settled("c1", "edit", {"files": [diff("a.py", 2, 1)], "replacements": 1}),
        *settled("c2", "apply_patch", {"files": [diff("a.py", 1, 0), diff("b.py", 0, 4)]}),
        *settled("c3", "write", {"resource": "c.py", "additions": 9, "deletions": 0}),
        *settled("c4", "read", {"files": [diff("d.py", 5, 5)]}),
    )

    assert info(session).summary == ChangeSummary(files=3, additions=12, deletions=5)


def test_only_so_many_files_are_told_apart() -> None:
    changes = FileChanges()
    for number in range(FILES_MAX + 2):
        changes = changes_after(
            changes, "edit", {"files": [diff(f"f{number}", 1, 0)]}, message_seq=1
        )

    assert change_summary(changes) == ChangeSummary(
        files=FILES_MAX, additions=FILES_MAX + 2, deletions=0, more=True
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["file", "files", "resource", "additions", "deletions"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@hypothesis(
    tool=st.sampled_from(["write", "edit", "apply_patch", "bash"]),
    structured=st.dictionaries(st.sampled_from(["files", "resource", "additions"]), JSON),
)
@PROPERTY
def test_a_result_of_any_shape_is_counted_or_left_out(
    tool: str, structured: dict[str, Any]
) -> None:
    """The fold never rejects, whatever a tool of another release wrote."""
    changes = changes_after(FileChanges(), tool, structured, message_seq=1)

    assert changes.additions >= 0
    assert changes.deletions >= 0


@pytest.mark.parametrize("tool", ["bash", "read", "acme_edit"])
def test_other_tools_change_no_files(tool: str) -> None:
    before = FileChanges(("a",), 1, 1)

    structured = {"files": [diff("b", 1, 1)], "resource": "c"}
    assert changes_after(before, tool, structured, message_seq=1) is before


def test_a_committed_revert_takes_the_changes_of_its_messages_away() -> None:
    """P-28: a file that an earlier message changed too stays, and a compaction settles the rest."""
    changes, states = FileChanges(), [FileChanges()]
    for seq, files in enumerate([["a"], ["b", "a"], ["b", "c"]], start=1):
        structured = {"files": [diff(file, seq, 1) for file in files]}
        changes = changes_after(changes, "edit", structured, message_seq=seq)
        states.append(changes)

    for seq in range(4):
        assert changes_through(changes, seq) == states[seq]
    assert changes_through(settle_changes(changes), 0) == settle_changes(changes)


def test_the_summary_follows_a_revert() -> None:
    """P-28: staged, the counts stay; committed, they are those of the messages that stay."""
    edited = settled("c1", "edit", {"files": [diff("a.py", 2, 1)]})
    staged = given(
        CREATED,
        promoted("msg_1"),
        claimed(),
        dispatched(),
        step_started(),
        *edited,
        step_ended(),
        RevertStaged(revert=RevertState(message_id="msg_1", snapshot="t", files=())),
    )

    committed = then(staged, RevertCommitted(message_id="msg_1"))

    assert info(staged).summary == ChangeSummary(files=1, additions=2, deletions=1)
    assert info(committed).summary is None
