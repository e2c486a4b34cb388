"""P-08: every row of the tables of hosted content holds from the stream to the next requests."""

import json
from pathlib import Path
from typing import Any

import pytest
from libs.session.tests.conftest import (
    CREATED,
    INITIALISED,
    MODEL,
    dispatched,
    promoted,
    step_ended,
    step_started,
    then,
)
from libs.session.tests.conftest import given as session_of
from libs.session.tests.hosted.native_answers import AFTER, ANSWERS, LONG, PLAIN, SECRET
from libs.session.tests.hosted.native_frames import answer, play
from libs.session.tests.hosted.request_json import calls_without_a_partner, has_object, shape

from fairlead_llm import sse
from fairlead_llm.protocol import PROTOCOLS
from fairlead_schema.catalog import ModelRef
from fairlead_schema.events import SessionEvent
from fairlead_schema.message import AssistantMessage
from fairlead_schema.provider.events import ProviderEvent, StepFinish
from fairlead_session.compaction.pruning import prune
from fairlead_session.compaction.serialise import entry
from fairlead_session.hosted.rule import HostedRule
from fairlead_session.hosted.tables import TABLES
from fairlead_session.state.session import Session
from fairlead_session.turn.request import ModelIdentity, build
from fairlead_session.turn.stream import TurnStream

OTHER = ModelRef(provider_id="other", id="slow")
NOTE = "was left out here"
SHARED = Path(__file__).resolve().parents[4].parent / "shared" / "recordings"
ROWS = [
    pytest.param(protocol, rule, id=f"{protocol}-{rule.type}")
    for protocol, table in TABLES.items()
    for rule in table.values()
]


def turn(events: list[ProviderEvent], id_: str = "msg_a") -> list[SessionEvent]:
    """The durable events of one turn."""
    stream = TurnStream(id_, "build", MODEL)
    durable = [event for received in events for event in stream.receive(received)[0]]
    return [dispatched(id_), *durable, *stream.complete()]


def session_after(events: list[ProviderEvent]) -> Session:
    """A session after an answer and the next prompt."""
    first = session_of(CREATED, INITIALISED, promoted("msg_1"), *turn(events))
    return then(first, promoted("msg_2", "go on"))


def session_for(protocol: str, rule: HostedRule) -> Session:
    step = {rule.type: [{"note": SECRET}]} if rule.place == "step" else None
    return session_after(answer(protocol, ANSWERS[protocol].get(rule.type, []), step))


def body(session: Session, protocol: str, model: ModelRef = MODEL) -> str:
    request = build(session, ModelIdentity(model, "gemini-3-pro"))
    return json.dumps(PROTOCOLS[protocol].body(request), ensure_ascii=False)


def without_old_results(session: Session) -> Session:
    """The session after a short turn and the pruning of everything before it."""
    later = then(session, dispatched("msg_b"), step_started("msg_b"), step_ended("msg_b"))
    event = prune(later, turns=1, over_bytes=4096)
    return later if event is None else then(later, event)


@pytest.mark.parametrize(("protocol", "rule"), ROWS)
def test_its_own_model_gets_it_back_as_it_came(protocol: str, rule: HostedRule) -> None:
    """P-08, O-12: whole and in order, or never."""
    sent = body(session_for(protocol, rule), protocol)

    if rule.to_same == "never":
        assert SECRET not in sent
        return
    for native in ANSWERS[protocol][rule.type]:
        assert json.dumps(native)[1:-1] in sent or has_object(json.loads(sent), native), native
    assert AFTER in sent


@pytest.mark.parametrize(("protocol", "rule"), ROWS)
def test_another_model_gets_what_it_can_read(protocol: str, rule: HostedRule) -> None:
    """P-08, D11: lowered, as a note, or not at all; and nothing that only the provider reads."""
    session = session_for(protocol, rule)

    for other in PROTOCOLS:
        sent = body(session, other, OTHER)
        assert SECRET not in sent
        assert AFTER in sent
        assert (NOTE in sent) == (rule.to_others == "note")
        if rule.to_others != "dropped":
            assert (PLAIN in sent) == (rule.to_others == "lowered")
        assert calls_without_a_partner(json.loads(sent)) == set()


@pytest.mark.parametrize(("protocol", "rule"), ROWS)
def test_old_and_large_results_shrink_only_where_the_table_says(
    protocol: str, rule: HostedRule
) -> None:
    """P-08: calls keep their results, and nothing else in the request changes."""
    session = session_for(protocol, rule)
    pruned = without_old_results(session)
    whole, sent = body(session, protocol), body(pruned, protocol)

    assert (pruned.requests.prune_cutoff is None) == (rule.when_old == "whole")
    assert (NOTE in sent) == (rule.when_old != "whole")
    if rule.when_old == "whole":
        assert sent == whole
    else:
        assert calls_without_a_partner(json.loads(sent)) == set()
        assert len(sent) < len(whole) - 4096
        assert LONG not in sent
    if rule.when_old == "shortened":
        assert shape(json.loads(sent)) == shape(json.loads(whole))


@pytest.mark.parametrize(("protocol", "rule"), ROWS)
def test_a_summary_reads_it_like_another_model(protocol: str, rule: HostedRule) -> None:
    """P-08: the text for a summary has no secret of a provider."""
    lines = session_for(protocol, rule).transcript.lines
    (text,) = [
        entry(line.message, excerpt=9000)
        for line in lines
        if isinstance(line.message, AssistantMessage)
    ]

    assert SECRET not in text
    if rule.place == "call":
        assert (NOTE in text) == (rule.to_others == "note")
        assert (PLAIN in text) == (rule.to_others == "lowered")


@pytest.mark.parametrize("protocol", TABLES)
def test_each_row_has_an_answer(protocol: str) -> None:
    rows = {rule.type for rule in TABLES[protocol].values() if rule.place != "step"}

    assert rows == set(ANSWERS[protocol])


@pytest.mark.parametrize(
    ("protocol", "native"),
    [
        (
            "anthropic-messages",
            [
                {"type": "server_tool_use", "id": "srv_1", "name": "new", "input": {}},
                {
                    "type": "new_tool_result",
                    "tool_use_id": "srv_1",
                    "content": {"a": SECRET + LONG},
                },
            ],
        ),
        ("anthropic-messages", [{"type": "of_tomorrow", "value": SECRET + LONG}]),
        (
            "openai-responses",
            [{"id": "i", "type": "new_call", "status": "completed", "x": SECRET + LONG}],
        ),
        ("gemini", [{"ofTomorrow": {"value": SECRET + LONG}}]),
    ],
    ids=["anthropic-result", "anthropic-block", "responses", "gemini"],
)
def test_a_type_that_no_table_has_stays_with_its_model(
    protocol: str, native: list[dict[str, Any]]
) -> None:
    """P-08: whole for its own model, also when old; a note for every other one."""
    session = session_after(answer(protocol, native))

    sent = body(without_old_results(session), protocol)
    assert all(has_object(json.loads(sent), part) for part in native)
    for other in PROTOCOLS:
        lowered = body(session, other, OTHER)
        assert SECRET not in lowered
        assert NOTE in lowered


def test_metadata_of_a_step_is_kept_and_never_sent() -> None:
    """P-08, E8: pages and tools that a provider names are told with the step."""
    for protocol, table in TABLES.items():
        for rule in table.values():
            if rule.place == "step":
                end = answer(protocol, [], {rule.type: [{"note": SECRET}]})[-1]
                assert isinstance(end, StepFinish)
                assert end.metadata is not None
                assert rule.type in end.metadata


RECORDED = [
    ("openai-responses", "openai/gpt-5-5-reasoning-continuation.1.json", "encrypted_content"),
    ("gemini", "google/streams-tool-call.json", "thoughtSignature"),
]


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no recordings at {SHARED}")
@pytest.mark.parametrize(("protocol", "name", "field"), RECORDED)
def test_recorded_secrets_go_back_to_their_model_alone(
    protocol: str, name: str, field: str
) -> None:
    """P-08: encrypted reasoning and signatures of real answers."""
    recorded = (SHARED / protocol / name).read_text()
    body_text = json.loads(recorded)["response"]["body_text"].encode()
    frames = [frame.data for frame in sse.feed(sse.START, body_text)[1]]
    session = session_after(play(protocol, list(frames)))

    assert field in body(session, protocol)
    for other in PROTOCOLS:
        sent = body(session, other, OTHER)
        assert "gAAAA" not in sent
        assert not (field in sent and "skip_thought_signature_validator" not in sent)
