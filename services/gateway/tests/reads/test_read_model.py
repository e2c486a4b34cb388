"""One suite judges both read models: the twin and a real Postgres."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from fairlead_gateway.reads import postgres
from fairlead_gateway.reads.postgres import PostgresReadModel
from fairlead_gateway.reads.read_model import (
    AskKind,
    Order,
    ReadModel,
    SessionAnchor,
    SessionFilter,
)
from fairlead_projector.migrations import migrate
from fairlead_schema.location import LocationRef
from fairlead_schema.session_info import SessionInfo, SessionTime
from fairlead_schema.subjects import Address
from fairlead_testing.read_model import MemoryReadModel, SessionRows

TOKENS = {"input": 1, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}}
MESSAGES: dict[int, dict[str, Any]] = {
    5: {"id": "msg_1", "type": "user", "text": "one", "time": {"created": 1}},
    7: {
        "id": "msg_2",
        "type": "compaction",
        "reason": "auto",
        "summary": "s",
        "recent": "r",
        "time": {"created": 2},
    },
    9: {"id": "msg_3", "type": "system", "text": "three", "time": {"created": 3}},
}
SESSIONS = {
    "ses_a": SessionInfo(
        id="ses_a",
        project_id="p1",
        time=SessionTime(created=1, updated=2),
        title="Fix the Parser",
        location=LocationRef(directory="/a", workspace_id="wrk_1"),
    ),
    "ses_b": SessionInfo(
        id="ses_b",
        parent_id="ses_a",
        project_id="p2",
        time=SessionTime(created=2, updated=2),
        title="100% done",
        location=LocationRef(directory="/b"),
    ),
    "ses_c": SessionInfo(
        id="ses_c",
        parent_id="ses_b",
        project_id="p2",
        time=SessionTime(created=2, updated=3),
        title="other",
        location=LocationRef(directory="/b"),
    ),
}
ARCHIVED = SessionInfo(
    id="ses_d",
    parent_id="ses_a",
    project_id="p3",
    time=SessionTime(created=1, updated=3, archived=3),
    title="archived",
    location=LocationRef(directory="/d"),
)
AT = Address("default", "ses_a")
SYSTEM_MESSAGES: dict[int, dict[str, Any]] = {
    seq: {"id": f"msg_t{seq}", "type": "system", "text": "update", "time": {"created": seq}}
    for seq in (2, 4, 8)
}
"""System messages of another session: before its epoch, before its compaction, after it."""
EPOCH, COMPACTED = 3, 6
SYSTEM_MESSAGES[COMPACTED] = {**MESSAGES[7], "id": "msg_t6"}
ASKS: dict[str, dict[AskKind, tuple[dict[str, Any], ...]]] = {
    "ses_a": {"permission": ({"id": "per_a"},)},
    "ses_b": {"permission": ({"id": "per_b"},), "question": ({"id": "que_b"},)},
    "ses_c": {"permission": ({"id": "per_c"},)},
}


def _twin() -> MemoryReadModel:
    read = MemoryReadModel()
    for session_id, session in SESSIONS.items():
        read.rows[Address("default", session_id)] = SessionRows(session, 9)
    read.rows[Address("default", "ses_d")] = SessionRows(ARCHIVED, 9)
    read.rows[Address("default", "ses_b")].asked_for = True
    rows = read.rows[AT]
    rows.owner = "run_1"
    rows.messages.update(MESSAGES)
    rows.deliveries["msg_1"] = "queue"
    compacted = read.rows[Address("default", "ses_c")]
    compacted.messages.update(SYSTEM_MESSAGES)
    compacted.epoch = EPOCH
    for session_id, asks in ASKS.items():
        for kind, requests in asks.items():
            read.rows[Address("default", session_id)].asks[kind] = list(requests)
    return read


async def _fill(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await migrate(connection)
        for session_id, session in [*SESSIONS.items(), (ARCHIVED.id, ARCHIVED)]:
            await connection.execute(
                "INSERT INTO projection.session (tenant, session_id, seq, position, project_id,"
                " title, directory, workspace_id, tokens, created_at, updated_at, owner, parent_id,"
                " archived_at, work_requested, pending)"
                " VALUES ('default', %s, 9, 1, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                (
                    session_id,
                    session.project_id,
                    session.title,
                    session.location.directory,
                    session.location.workspace_id,
                    json.dumps(TOKENS),
                    session.time.created,
                    session.time.updated,
                    "run_1" if session_id == "ses_a" else None,
                    session.parent_id,
                    session.time.archived,
                    session_id == "ses_b",
                    int(session_id == "ses_b"),
                ),
            )
        for session_id, asks in ASKS.items():
            for kind, (request,) in asks.items():
                await connection.execute(
                    "INSERT INTO projection.session_ask VALUES"
                    " ('default', %s, %s, %s, 1, NULL, NULL, %s, 1)",
                    (session_id, request["id"], kind, json.dumps(request)),
                )
        for session_id, messages in (("ses_a", MESSAGES), ("ses_c", SYSTEM_MESSAGES)):
            for seq, message in messages.items():
                await connection.execute(
                    "INSERT INTO projection.session_message VALUES ('default', %s, %s, %s, %s, %s)",
                    (session_id, message["id"], seq, message["type"], json.dumps(message)),
                )
        for seq, type_ in ((1, "context.initialised"), (EPOCH, "context.replaced"), (5, "other")):
            await connection.execute(
                "INSERT INTO projection.session_event VALUES"
                " ('default', 'ses_c', %s, %s, %s, 1, 1, '{}')",
                (seq, f"evt_{seq}", type_),
            )
        await connection.execute(
            "INSERT INTO projection.session_event SELECT tenant, session_id, seq,"
            " 'evt_' || session_id, 'step.ended', 1, updated_at, '{}' FROM projection.session"
        )
        await connection.execute(
            "UPDATE projection.session AS session SET asks = (SELECT count(*)"
            " FROM projection.session_ask AS ask WHERE ask.session_id = session.session_id)"
        )
        await connection.execute(
            "INSERT INTO projection.session_input (tenant, session_id, message_id, admitted_seq,"
            " delivery, prompt, created_at)"
            " VALUES ('default', 'ses_a', 'msg_1', 2, 'queue', '{}', 1)"
        )


@pytest.fixture(
    params=["memory", pytest.param("postgres", marks=pytest.mark.integration)],
)
async def model(request: pytest.FixtureRequest) -> AsyncIterator[ReadModel]:
    if request.param == "memory":
        yield _twin()
        return
    dsn: str = request.getfixturevalue("dsn")
    await _fill(dsn)
    read = PostgresReadModel(dsn, connections_max=2, timeout_s=5)
    async with read.open():
        while read.complaint() is not None:
            await asyncio.sleep(0.01)
        yield read


@pytest.mark.integration
async def test_a_role_without_rights_is_told_who_gives_them(dsn: str) -> None:
    await _fill(dsn)
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("CREATE ROLE stranger LOGIN")
    read = PostgresReadModel(make_conninfo(dsn, user="stranger"), connections_max=1, timeout_s=5)
    try:
        async with asyncio.timeout(20), read.open():
            while "fairlead migrate" not in (read.complaint() or ""):
                await asyncio.sleep(0.01)
    finally:
        with psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute("DROP ROLE stranger")


async def test_overviews_have_the_states_of_their_sessions(model: ReadModel) -> None:
    found = await model.overviews("default", SessionFilter(), order="asc", after=None, limit=10)
    searched = await model.overviews(
        "default", SessionFilter(search="parser"), order="desc", after=None, limit=10
    )
    named = await model.overviews_by_id("default", ["ses_d", "ses_a", "ses_none"])

    assert [(session.id, session.status.state, session.status.asks) for session in found] == [
        ("ses_a", "running", 1),
        ("ses_b", "waiting", 2),
        ("ses_c", "waiting", 1),
    ]
    assert [session.id for session in searched] == ["ses_a"]
    assert all(session.seq for session in (*found, *searched, *named))
    assert [(session.id, session.status.state) for session in named] == [
        ("ses_d", "archived"),
        ("ses_a", "running"),
    ]
    assert await model.state_counts("default") == (1, 3, 4, 0)
    assert await model.overviews_by_id("other", ["ses_a"]) == []


async def test_asks_are_read_with_their_sessions_and_nothing_of_other_tenants(
    model: ReadModel,
) -> None:
    asks = await model.asks_with_sessions("default", limit=10)

    assert {(ask.kind, ask.request["id"], ask.title) for ask in asks} == {
        ("permission", "per_a", "Fix the Parser"),
        ("permission", "per_b", "100% done"),
        ("question", "que_b", "100% done"),
        ("permission", "per_c", "other"),
    }
    assert len(await model.asks_with_sessions("default", limit=2)) == 2
    assert await model.asks_with_sessions("other", limit=10) == []
    assert await model.activity("default", since=0) == (0, 0, 0)
    assert await model.broken_sessions("default", limit=10) == []
    assert await model.recoveries("default", since=0, limit=10) == []


async def test_a_session_is_read_with_its_progress(model: ReadModel) -> None:
    session, progress = await model.session(AT), await model.progress(AT)

    assert session is not None
    assert progress is not None
    assert (session.title, session.location.workspace_id) == ("Fix the Parser", "wrk_1")
    assert (progress.seq, progress.broken) == (9, None)
    assert await model.session(Address("other", "ses_a")) is None
    assert await model.progress(Address("default", "ses_x")) is None


async def test_i26_sessions_are_ordered_by_creation_then_id(model: ReadModel) -> None:
    async def ids(anchor: SessionAnchor | None = None, *, up: bool = False, **by: str) -> list[str]:
        order: Order = "asc" if up else "desc"
        wanted = SessionFilter(**by)  # type: ignore[arg-type]  # texts filter by texts
        sessions = await model.sessions("default", wanted, order=order, after=anchor, limit=2)
        return [session.id for session in sessions]

    assert await ids() == ["ses_c", "ses_b"]
    assert await ids(SessionAnchor(2, "ses_b")) == ["ses_a"]
    assert await ids(up=True) == ["ses_a", "ses_b"]
    assert await ids(SessionAnchor(2, "ses_b"), up=True) == ["ses_c"]
    assert await ids(search="parser") == await ids(workspace="wrk_1") == ["ses_a"]
    assert await ids(search="%") == ["ses_b"]
    assert await ids(search="O") == ["ses_c", "ses_b"]
    assert await ids(search="er") == ["ses_c", "ses_a"]
    assert await ids(SessionAnchor(2, "ses_c"), search="er") == ["ses_a"]
    assert await ids(search="parser", project="p2") == await ids(search="parses") == []
    assert await ids(directory="/b", project="p2") == ["ses_c", "ses_b"]
    assert await model.active("default") == ["ses_a", "ses_b"]


async def test_archived_sessions_and_children_are_listed_as_asked_for(model: ReadModel) -> None:
    """D16, D17: archived ones are hidden, shown or alone; children of one, or none."""

    async def ids(wanted: SessionFilter) -> list[str]:
        found = await model.sessions("default", wanted, order="asc", after=None, limit=9)
        return [session.id for session in found]

    assert await ids(SessionFilter()) == ["ses_a", "ses_b", "ses_c"]
    assert await ids(SessionFilter(archived="include")) == ["ses_a", "ses_d", "ses_b", "ses_c"]
    assert await ids(SessionFilter(archived="only")) == ["ses_d"]
    assert await ids(SessionFilter(archived="only", search="arch")) == ["ses_d"]
    assert await ids(SessionFilter(search="arch")) == []
    assert await ids(SessionFilter(roots=True)) == ["ses_a"]
    assert await ids(SessionFilter(parent="ses_a")) == ["ses_b"]
    assert await ids(SessionFilter(parent="ses_a", archived="include")) == ["ses_d", "ses_b"]


async def test_sessions_that_changed_are_found_by_their_newest_event(model: ReadModel) -> None:
    """An archived session is in no list."""
    found = await model.recent_sessions("default", since=2, limit=9)

    assert found[0] == "ses_c"
    assert sorted(found) == ["ses_a", "ses_b", "ses_c"]
    assert await model.recent_sessions("default", since=3, limit=9) == ["ses_c"]
    assert await model.recent_sessions("default", since=2, limit=1) == ["ses_c"]
    assert await model.recent_sessions("other", since=0, limit=9) == []


async def test_messages_are_ordered_by_sequence(model: ReadModel) -> None:
    async def ids(after: int | None = None, *, up: bool = False) -> list[str]:
        order: Order = "asc" if up else "desc"
        messages = await model.messages(AT, order=order, after=after, limit=2)
        return [message.id for message in messages]

    assert await ids() == ["msg_3", "msg_2"]
    assert await ids(7) == ["msg_1"]
    assert await ids(up=True) == ["msg_1", "msg_2"]
    assert await ids(7, up=True) == ["msg_3"]
    assert [message.id for message in await model.context(AT)] == ["msg_2", "msg_3"]


@pytest.mark.integration
async def test_a_page_of_large_messages_ends_early_and_goes_on(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page is bounded by bytes too. It has at least one message, so the list always goes on."""
    monkeypatch.setattr(postgres, "MESSAGE_PAGE_BYTES", 100)
    await _fill(dsn)
    read = PostgresReadModel(dsn, connections_max=2, timeout_s=5)
    async with read.open():
        while read.complaint() is not None:
            await asyncio.sleep(0.01)
        first = await read.messages(AT, order="asc", after=None, limit=3)
        rest = await read.messages(AT, order="asc", after=5, limit=3)
        back = await read.messages(AT, order="desc", after=None, limit=3)

    assert [message.id for message in first] == ["msg_1", "msg_2"]
    assert [message.id for message in rest] == ["msg_2"]
    assert [message.id for message in back] == ["msg_3", "msg_2"]


async def test_context_is_what_the_model_sees(model: ReadModel) -> None:
    """I-29, F-39: updates of the epoch in force, also those that an older baseline still needs."""
    messages = await model.context(Address("default", "ses_c"))

    assert [message.id for message in messages] == ["msg_t4", "msg_t6", "msg_t8"]


async def test_i38_a_message_is_found_only_in_its_session(model: ReadModel) -> None:
    other = Address("default", "ses_b")

    message = await model.message(AT, "msg_1")

    assert message is not None
    assert (message.id, await model.message_seq(AT, "msg_1")) == ("msg_1", 5)
    assert await model.message(other, "msg_1") is None
    assert await model.message_seq(other, "msg_1") is None
    assert await model.delivery(AT, "msg_1") == "queue"
    assert await model.delivery(AT, "msg_2") is None


async def test_what_waits_for_people_is_read_by_place_and_by_family(model: ReadModel) -> None:
    """K-14, N-24: of one kind, of one directory, of the sessions below one."""

    async def ask_ids(kind: AskKind, directory: str | None = None) -> list[str]:
        return [ask["id"] for ask in await model.asks("default", kind, directory=directory)]

    async def child_ask_ids(session_id: str, kind: AskKind = "permission") -> list[str]:
        asks = await model.child_asks(Address("default", session_id), kind)
        return sorted(ask["id"] for ask in asks)

    assert await ask_ids("permission") == ["per_a", "per_b", "per_c"]
    assert await ask_ids("permission", "/b") == ["per_b", "per_c"]
    assert await ask_ids("question") == ["que_b"]
    assert await child_ask_ids("ses_a") == ["per_b", "per_c"]
    assert await child_ask_ids("ses_a", "question") == ["que_b"]
    assert await child_ask_ids("ses_b") == ["per_c"]
    assert await child_ask_ids("ses_c") == []
    assert await model.asks("other", "permission", directory=None) == []
    assert await model.child_asks(Address("other", "ses_a"), "permission") == []
