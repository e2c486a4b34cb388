"""Commits: the log returns what it stored, and an unreadable commit names its reason."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from fairlead_schema import record as module
from fairlead_schema.context import SnapshotEntry
from fairlead_schema.events import (
    ContextSnapshotAdvanced,
    PromptAdmitted,
    SessionArchived,
    SessionEvent,
    StepEnded,
    TextEnded,
    ToolCalled,
    ToolSucceeded,
)
from fairlead_schema.record import (
    Commit,
    Draft,
    MalformedCommit,
    RecordError,
    UnknownEvent,
    decode,
    decode_event,
    encode,
    event_json,
    record,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**80), max_value=2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
objects = st.dictionaries(st.text(), values, max_size=4)


def event_strategy(
    kind: type[SessionEvent], **fields: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    """Events of one kind. (`st.builds` would read the wire names from pydantic's signature.)"""
    return st.fixed_dictionaries(fields).map(kind.model_validate)


call = {"assistant_message_id": st.just("msg_1"), "call_id": st.text(min_size=1, max_size=256)}
events: st.SearchStrategy[SessionEvent] = st.one_of(
    event_strategy(
        PromptAdmitted,
        message_id=st.just("msg_1"),
        prompt=st.fixed_dictionaries({"text": st.text()}),
        delivery=st.sampled_from(["steer", "queue"]),
    ),
    event_strategy(
        ToolCalled,
        **call,
        tool=st.text(),
        input=objects,
        provider=st.fixed_dictionaries({"executed": st.booleans(), "metadata": objects}),
    ),
    event_strategy(
        ToolSucceeded,
        **call,
        structured=objects,
        content=st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": st.text()})),
        output_paths=st.none() | st.lists(st.text()),
        result=values,
        provider=st.just({}),
    ),
    event_strategy(
        ContextSnapshotAdvanced,
        snapshot=st.dictionaries(
            st.sampled_from(["fairlead/date", "acme/rules"]),
            st.fixed_dictionaries({"value": values, "removed": st.none() | st.just("gone")}),
        ),
    ),
)
commits = st.builds(
    lambda drafts, after: Commit("cmt_1", record(tuple(drafts), after=after)),
    st.lists(
        st.builds(Draft, st.just("evt_1"), st.integers(0, 2**53), events), min_size=1, max_size=3
    ),
    st.integers(0, 2**53),
)


@settings(max_examples=50)
@given(commits)
def test_a_commit_reads_back_as_it_was_written(commit: Commit) -> None:
    assert decode(encode(commit)) == commit


def test_drafts_are_numbered_after_the_head() -> None:
    drafts = tuple(Draft(f"evt_{n}", n, SessionArchived()) for n in (1, 2, 3))

    recorded = record(drafts, after=41)

    assert [(event.id, event.seq, event.time) for event in recorded] == [
        ("evt_1", 42, 1),
        ("evt_2", 43, 2),
        ("evt_3", 44, 3),
    ]


def test_a_source_whose_value_is_null_survives_the_log() -> None:
    event = ContextSnapshotAdvanced(snapshot={"fairlead/git": SnapshotEntry(value=None)})
    commit = Commit("cmt_1", record((Draft("evt_1", 1, event),), after=0))

    assert decode(encode(commit)) == commit


def stored_event(**changes: object) -> dict[str, Any]:
    raw = {"id": "evt_1", "seq": 1, "type": "session.archived", "version": 1, "time": 5, "data": {}}
    return {**raw, **changes}


def payload(*events: object, **changes: object) -> bytes:
    return to_json({"id": "cmt_1", "events": events, **changes})


@pytest.mark.parametrize(
    ("type_", "version"), [("session.teleported", 1), ("session.archived", 2), ("step.ended", 0)]
)
def test_an_unknown_event_stops_the_reader_and_names_itself(type_: str, version: int) -> None:
    with pytest.raises(UnknownEvent, match="newer release wrote it") as error_info:
        decode(payload(stored_event(type=type_, version=version)))

    assert (error_info.value.type, error_info.value.version) == (type_, version)


def test_one_unknown_event_refuses_the_whole_commit() -> None:
    with pytest.raises(UnknownEvent):
        decode(payload(stored_event(), stored_event(seq=2, type="session.teleported")))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe",
        b"{",
        b"null",
        b"[]",
        b"7",
        b'"text"',
        b"{}",
        payload(),
        payload(stored_event(), id=7),
        payload(stored_event(), id=None),
        to_json({"id": "cmt_1", "events": None}),
        to_json({"id": "cmt_1", "events": {"a": 1}}),
        payload("session.archived"),
        payload({"id": "evt_1"}),
        payload(stored_event(type=["session.archived"])),
        payload(stored_event(seq="1")),
        payload(stored_event(seq=True)),
        payload(stored_event(time=None)),
        payload(stored_event(id=1)),
        payload(stored_event(data=None)),
        payload(stored_event(data=[])),
        payload(stored_event(type="text.ended", data={"text": "no ids"})),
        payload(stored_event(type="revert.committed", data={"messageID": "ses_1"})),
    ],
)
def test_rubbish_is_a_malformed_commit_and_nothing_else(raw: bytes) -> None:
    with pytest.raises(MalformedCommit, match="malformed commit"):
        decode(raw)


@given(st.binary())
def test_no_bytes_can_raise_anything_but_a_record_error(raw: bytes) -> None:
    with pytest.raises(RecordError):
        decode(raw)


def lift_words(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "text": " ".join(data["words"])}


def name_words(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "words": data["w"]}


OLD = {"assistantMessageID": "msg_1", "textID": "txt_1", "w": ["hello", "world"]}


def test_an_old_version_is_lifted_step_by_step_to_the_one_of_today(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """H-38, H-39, P-30: readers and projections see only the version of today."""
    lifts = {("text.ended", -1): name_words, ("text.ended", 0): lift_words}
    monkeypatch.setattr(module, "UPCASTERS", lifts)

    recorded = decode_event(stored_event(type="text.ended", version=-1, data=OLD))

    assert recorded.event == TextEnded(
        assistant_message_id="msg_1", text_id="txt_1", text="hello world"
    )
    assert event_json(recorded)["version"] == TextEnded.version


def test_an_old_version_without_its_upcaster_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UPCASTERS", {("text.ended", -1): name_words})

    with pytest.raises(UnknownEvent, match=r"text\.ended\.0"):
        decode_event(stored_event(type="text.ended", version=-1, data=OLD))


def test_a_lift_that_gives_a_wrong_shape_is_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UPCASTERS", {("step.ended", 0): dict})

    with pytest.raises(MalformedCommit, match=r"step\.ended\.1"):
        decode_event(stored_event(type=StepEnded.type, version=0, data={"finish": "stop"}))


def test_a_commit_names_its_caller_once() -> None:
    drafts = (Draft("evt_1", 1, SessionArchived()), Draft("evt_2", 2, SessionArchived()))
    commit = Commit("cmt_1", record(drafts, after=0, by="key:ci"))

    payload = encode(commit)

    assert payload.count(b"key:ci") == 1
    assert decode(payload) == commit
    assert decode(payload).by == "key:ci"


def test_a_commit_without_a_caller_keeps_its_old_bytes() -> None:
    commit = Commit("cmt_1", record((Draft("evt_1", 1, SessionArchived()),), after=0))

    assert b'"by"' not in encode(commit)
    assert decode(encode(commit)).by is None


def test_a_caller_that_is_no_text_is_malformed() -> None:
    payload = encode(
        Commit("cmt_1", record((Draft("evt_1", 1, SessionArchived()),), after=0, by="local"))
    )

    with pytest.raises(MalformedCommit, match="by is 7"):
        decode(payload.replace(b'"by":"local"', b'"by":7'))


@given(st.binary() | st.builds(lambda seq: to_json({"events": [{"seq": seq}]}), scalars))
def test_the_seq_that_any_bytes_claim_can_be_followed_by_another(payload: bytes) -> None:
    """D7: a purge takes the next one, whatever stands in the log."""
    assert 0 <= module.claimed_seq(payload) < module.SEQ_MAX
