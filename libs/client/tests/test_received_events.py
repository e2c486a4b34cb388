"""Events as the client hands them out: typed where the type is known, and raw otherwise."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead_client.errors import MalformedAnswer
from fairlead_client.received_event import event_of, parse_event
from fairlead_schema.delta import TextDelta
from fairlead_schema.events import ExecutionReleased, PermissionAsked
from fairlead_schema.public_events import EventEnvelope, public_delta, public_event_json
from fairlead_schema.record import decode_event

GOLDEN = sorted((Path(__file__).parents[2] / "schema/tests/golden").glob("*.json"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_event_that_clients_see_comes_back_as_its_model(path: Path) -> None:
    """What the gateway makes of an event of the log, the client makes undone."""
    recorded = decode_event(json.loads(path.read_text()))
    if recorded.event.visibility == "private":
        return
    received = event_of(public_event_json("ses_a", recorded))

    typed: Any = received.to_model()

    expected: Any = recorded.event
    hidden = {"raised", "withdrawn"} & type(expected).model_fields.keys()
    expected = expected.model_copy(update=dict.fromkeys(hidden))
    if isinstance(expected, PermissionAsked):
        expected = expected.model_copy(update={"agent": ""})
    if isinstance(expected, ExecutionReleased):
        expected = expected.model_copy(update={"generation": 0})
    assert typed == expected
    assert received.seq == recorded.seq


def test_a_fragment_is_typed_and_live() -> None:
    delta = TextDelta(assistant_message_id="msg_x", text_id="t", delta="He", index=0)
    envelope = public_delta("ses_a", "evt_live", delta, at=1)

    received = event_of(envelope.wire())

    assert received.is_live
    assert received.to_model() == delta


def test_an_event_of_a_newer_server_is_passed_on_raw() -> None:
    envelope = EventEnvelope.model_validate(
        {
            "id": "evt_1",
            "type": "session.next.hologram.shown",
            "data": {"size": 3},
            "durable": {"aggregateID": "ses_a", "seq": 4, "version": 1},
        }
    )

    received = event_of(envelope.wire())

    assert (received.type, received.data, received.seq) == ("hologram.shown", {"size": 3}, 4)
    assert received.to_model() is None


@pytest.mark.parametrize(
    "data", [b"", b"nonsense", b"[]", b'{"type": 3}', b'{"id":"evt_1","type":"x","data":"\xff"}']
)
def test_what_is_no_event_names_its_place(data: bytes) -> None:
    with pytest.raises(MalformedAnswer) as raised:
        parse_event(data, seq="12")

    assert raised.value.seq == 12
