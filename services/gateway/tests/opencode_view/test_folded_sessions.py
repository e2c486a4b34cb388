"""The hub for terminal clients meets a session in the middle of its life (WIRE-TUI)."""

from itertools import pairwise
from typing import Any

import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import StoredCommit
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_gateway.opencode_view.folded_sessions import FoldedSessions, ViewSources
from fairlead_schema.events import (
    InputCancelled,
    PermissionAsked,
    PermissionReplied,
    PromptAdmitted,
    SessionArchived,
)
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.permission import PermissionRequest
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import encode
from fairlead_schema.subjects import Address
from fairlead_testing.read_model import MemoryReadModel
from services.gateway.tests.conftest import Append
from services.gateway.tests.opencode_view.sample_turns import MODEL, TEXT

AT = Address(DEFAULT_TENANT, "ses_1")
ASK = PermissionRequest(id="per_1", session_id="ses_1", action="bash", resources=("ls",))


@pytest.fixture
def sessions(eventlog: EventLog, read: MemoryReadModel) -> FoldedSessions:
    return FoldedSessions(
        ViewSources(
            eventlog.tenant_broadcasts,
            eventlog.log,
            eventlog.snapshots,
            eventlog.open_texts,
            read,
            lambda info: info.model_copy(update={"agent": "build", "model": MODEL}),
        )
    )


def _admit(id_: str) -> PromptAdmitted:
    return PromptAdmitted(message_id=id_, prompt=Prompt(text=id_), delivery="steer")


def _hint(stored: StoredCommit, previous: StoredCommit) -> CommitHint:
    return CommitHint(stored.position, previous.position, encode(stored.commit))


async def _tell(sessions: FoldedSessions, *commits: StoredCommit) -> list[dict[str, Any]]:
    """What clients are told of the commits after the first one."""
    found: list[dict[str, Any]] = []
    for previous, stored in pairwise(commits):
        told = await sessions.fold(AT, _hint(stored, previous))
        found += [] if told is None else told.events
    return found


def _ids(events: list[dict[str, Any]], type_: str) -> list[str]:
    found = [one["properties"] for one in events if one["type"] == type_]
    return [one["info"]["id"] if "info" in one else one["messageID"] for one in found]


async def test_commits_that_came_before_the_first_was_handled_are_told_too(
    sessions: FoldedSessions, append: Append
) -> None:
    """The log is ahead of the first broadcast: what came meanwhile belongs to the later ones."""
    commits = [await append("ses_1", *events) for events in TEXT]

    told = await _tell(sessions, *commits)

    assert list(dict.fromkeys(_ids(told, "message.updated"))) == ["msg_1", "msg_2"]
    assert told[-1]["properties"]["status"] == {"type": "idle"}


async def test_a_session_that_is_met_tells_nothing_of_its_old_messages(
    sessions: FoldedSessions, append: Append
) -> None:
    """Clients have read them, and `run` would print them again."""
    commits = [await append("ses_1", *events) for events in TEXT]
    commits.append(await append("ses_1", _admit("msg_3")))

    told = await _tell(sessions, *commits[-2:])

    assert _ids(told, "message.updated") == ["msg_3"]
    assert told[0]["type"] == "session.updated"


async def test_what_leaves_a_session_just_when_it_is_met_leaves_the_clients_too(
    sessions: FoldedSessions, append: Append
) -> None:
    """A client has read the input and the ask before, and keeps both until it hears of their ends."""
    asked = PermissionAsked(request=ASK, agent="build")
    first = await append("ses_1", _admit("msg_1"), asked)
    second = await append(
        "ses_1",
        InputCancelled(message_id="msg_1"),
        PermissionReplied(request_id="per_1", reply="once"),
    )

    told = await _tell(sessions, first, second)

    assert _ids(told, "message.removed") == ["msg_1"]
    assert "permission.replied" in [one["type"] for one in told]


async def test_an_archived_session_does_not_come_back_into_the_list(
    sessions: FoldedSessions, append: Append
) -> None:
    first = await append("ses_1", SessionArchived())
    second = await append("ses_1", _admit("msg_1"))

    assert await _tell(sessions, first, second) == []
