"""The translation for OpenCode's terminal client: golden pairs, and one law for all logs (WIRE-TUI)."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from fairlead_gateway.opencode_view.translation.changes import View, changes, fragment, snapshot
from fairlead_gateway.opencode_view.translation.messages import view_messages
from fairlead_gateway.opencode_view.translation.sessions import pending_message, setting_of
from fairlead_schema.delta import TextDelta
from fairlead_schema.message import Message
from fairlead_schema.record import Recorded, decode
from fairlead_schema.session_info import SessionInfo
from fairlead_session.fold.evolve import evolve
from fairlead_session.state.session import Session
from services.gateway.tests.opencode_view.sample_lives import TURNS
from services.gateway.tests.opencode_view.sample_turns import MODEL, SESSION, TEXT, record

GOLDEN = Path(__file__).parent / "golden"
DAY = Path(__file__).parents[4] / "tests/replay/a_working_day.jsonl"

Json = dict[str, Any]


def with_defaults(info: SessionInfo) -> SessionInfo:
    return info.model_copy(update={"agent": info.agent or "build", "model": info.model or MODEL})


def fold(session: Session, events: Iterable[Recorded]) -> Session:
    for recorded in events:
        session = evolve(session, recorded)
    return session


def translate(commits: list[tuple[Recorded, ...]]) -> list[list[Json]]:
    """What a client is told of each commit."""
    session, told = Session(id=SESSION), []
    for commit in commits:
        after = fold(session, commit)
        told.append(changes(session, View(after, with_defaults)))
        session = after
    return told


class ClientStore:
    """What the terminal client keeps: it puts messages and parts in by id, and takes removed ones out."""

    def __init__(self) -> None:
        self.messages: dict[str, Json] = {}
        self.parts: dict[str, dict[str, Json]] = {}

    def read(self, messages: dict[str, tuple[Json, list[Json]]]) -> None:
        """Take a list of messages instead of what is here."""
        self.messages = {id_: info for id_, (info, _) in messages.items()}
        self.parts = {
            id_: {part["id"]: part for part in parts} for id_, (_, parts) in messages.items()
        }

    def apply(self, event: Json) -> None:
        given = event["properties"]
        match event["type"]:
            case "message.updated":
                known = self.messages.get(given["info"]["id"])
                # Another time of creation would show the message twice.
                assert known is None or known["time"]["created"] == given["info"]["time"]["created"]
                self.messages[given["info"]["id"]] = given["info"]
            case "message.part.updated":
                part = given["part"]
                assert part["messageID"] in self.messages
                self.parts.setdefault(part["messageID"], {})[part["id"]] = part
            case "message.part.removed":
                assert given["partID"] in self.parts[given["messageID"]]
                del self.parts[given["messageID"]][given["partID"]]
            case "message.removed":
                assert given["messageID"] in self.messages
                del self.messages[given["messageID"]]
                self.parts.pop(given["messageID"], None)
            case _:
                assert given["sessionID"]

    def shown(self) -> dict[str, tuple[Json, list[Json]]]:
        """The messages with their parts in the order of the ids, as the client draws them."""
        return {
            id_: (info, [part for _, part in sorted(self.parts.get(id_, {}).items())])
            for id_, info in self.messages.items()
        }


def listed(session: Session) -> dict[str, tuple[Json, list[Json]]]:
    """What `GET /session/{id}/message` serves."""
    messages: list[Message] = [line.message for line in session.transcript.lines]
    pending = (pending_message(one) for one in session.inbox.pending)
    messages += [one for one in pending if one is not None]
    viewed = view_messages(messages, setting_of(session, with_defaults, {}))
    return {one.info["id"]: (one.info, list(one.parts)) for one in viewed}


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_is_told_as_the_golden_file_says(name: str) -> None:
    path = GOLDEN / f"{name}.json"
    told = translate(record(TURNS[name]))

    assert told == json.loads(path.read_text())


@pytest.mark.parametrize("name", TURNS)
def test_the_events_of_a_turn_leave_a_client_with_what_the_list_serves(name: str) -> None:
    session, store = Session(id=SESSION), ClientStore()
    for events in record(TURNS[name]):
        after = fold(session, events)
        for event in changes(session, View(after, with_defaults)):
            store.apply(event)
        session = after
        shown, expected = store.shown(), listed(session)

        assert {id_: shown[id_] for id_ in expected} == expected


@pytest.mark.parametrize("name", TURNS)
def test_a_client_that_comes_at_any_moment_ends_with_what_the_list_serves(name: str) -> None:
    """It reads the list, and is told of the newest turn. The hub may not have known the session before."""
    commits = record(TURNS[name])
    for moment in range(1, len(commits)):
        session, store = Session(id=SESSION), ClientStore()
        for events in commits[:moment]:
            session = fold(session, events)
        store.read(listed(session))
        for event in snapshot(View(session, with_defaults), whole=True):
            store.apply(event)
        for index, events in enumerate(commits[moment:]):
            after = fold(session, events)
            for event in changes(session, View(after, with_defaults), is_met=index == 0):
                store.apply(event)
            session = after

        shown, expected = store.shown(), listed(session)
        assert {id_: shown[id_] for id_ in expected} == expected


def test_the_events_of_a_day_leave_a_client_with_what_the_list_serves() -> None:
    """The client never reads a session again, so that every state must follow from events."""
    session, store = Session(id=SESSION), ClientStore()
    for line in DAY.read_bytes().splitlines():
        after = fold(session, decode(line).events)
        for event in changes(session, View(after, with_defaults)):
            store.apply(event)
        session = after
        shown, expected = store.shown(), listed(session)

        assert {id_: shown[id_] for id_ in expected} == expected

    assert store.messages


def test_a_part_that_is_finished_is_told_once() -> None:
    """`run` prints a text when it is finished. A second event would print it again."""
    told = [event for commit in translate(record(TEXT)) for event in commit]
    finished = [
        event
        for event in told
        if event["type"] == "message.part.updated"
        and "end" in event["properties"]["part"].get("time", {})
    ]

    assert [event["properties"]["part"]["text"] for event in finished] == ["Good morning."]
    assert told[-1]["properties"] == {"sessionID": SESSION, "status": {"type": "idle"}}


def test_a_client_that_comes_in_the_middle_gets_the_text_so_far() -> None:
    session = Session(id=SESSION)
    for commit in record(TEXT[:4]):
        session = fold(session, commit)
    told = snapshot(View(session, with_defaults, {("msg_2", "t1"): "Good mor"}), whole=True)
    piece = fragment(session, TextDelta(assistant_message_id="msg_2", text_id="t1", delta="ning"))

    text = [one["properties"]["part"] for one in told if "part" in one["properties"]][-1]
    assert (text["text"], "end" in text["time"]) == ("Good mor", False)
    assert piece is not None
    assert piece["properties"]["partID"] == text["id"]
    assert told[-1]["properties"]["status"] == {"type": "busy"}
