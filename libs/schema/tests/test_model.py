"""The base models: camelCase on the wire, absent keys left out, nulls refused."""

import pytest
from pydantic import BaseModel, ValidationError

from fairlead_schema.catalog import ModelRef
from fairlead_schema.commands.input import AdmitPrompt, PromptBody
from fairlead_schema.commands.session import CreateSession
from fairlead_schema.events import AttemptDispatched, ToolCalled
from fairlead_schema.location import LocationRef
from fairlead_schema.model import Model, build_models, wire_name
from fairlead_schema.prompt import FileInput, PromptInput
from fairlead_schema.tools.content import Executor


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("id", "id"),
        ("text", "text"),
        ("message_id", "messageID"),
        ("assistant_message_id", "assistantMessageID"),
        ("output_paths", "outputPaths"),
        ("is_retryable", "isRetryable"),
        ("identity", "identity"),
        ("request_hash", "requestHash"),
    ],
)
def test_names_are_spelled_as_clients_spell_them(name: str, wire: str) -> None:
    assert wire_name(name) == wire


def test_absent_keys_are_not_written() -> None:
    assert ModelRef(id="fast", provider_id="acme").wire() == {"id": "fast", "providerID": "acme"}


def test_a_null_inside_free_json_is_kept() -> None:
    event = ToolCalled(
        assistant_message_id="msg_1",
        call_id="call",
        tool="read",
        input={"path": None, "lines": [None, {"from": None}]},
        provider=Executor(),
    )

    assert event.wire()["input"] == {"path": None, "lines": [None, {"from": None}]}


def test_values_do_not_change() -> None:
    ref = ModelRef(id="fast", provider_id="acme")

    with pytest.raises(ValidationError, match="frozen"):
        ref.id = "slow"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (CreateSession, {"agent": None}),
        (CreateSession, {"location": None}),
        (CreateSession, {"location": {"directory": "/srv", "workspaceID": None}}),
        (CreateSession, {"model": {"id": "fast", "providerID": "acme", "variant": None}}),
        (PromptBody, {"prompt": {"text": "hi"}, "delivery": None}),
        (PromptBody, {"prompt": {"text": "hi", "files": None}}),
        (PromptBody, {"prompt": {"text": "hi", "files": [{"uri": "file:///a", "name": None}]}}),
        (PromptBody, {"prompt": {"text": "hi", "agents": [{"name": "a", "source": None}]}}),
        (AdmitPrompt, {"sessionID": "ses_1", "prompt": {"text": "hi"}, "id": None}),
    ],
)
def test_a_null_in_an_input_is_refused_at_any_depth(
    kind: type[BaseModel], body: dict[str, object]
) -> None:
    with pytest.raises(ValidationError, match="null is not a value for"):
        kind.model_validate(body)


def test_the_refusal_names_every_null_key() -> None:
    with pytest.raises(ValidationError, match="agent, model: leave the key out"):
        CreateSession.model_validate({"model": None, "agent": None})


def test_unknown_keys_are_ignored() -> None:
    body = {
        "title": "no such key",
        "location": {"directory": "/srv", "planet": "earth"},
    }

    created = CreateSession.model_validate(body)

    assert created == CreateSession(location=LocationRef(directory="/srv"))
    assert "title" not in created.wire()


def test_an_unknown_key_of_a_stored_event_does_not_stop_the_session() -> None:
    event = AttemptDispatched(
        attempt_id="att_1",
        assistant_message_id="msg_1",
        agent="build",
        model=ModelRef(id="fast", provider_id="acme"),
        step=1,
    )

    assert AttemptDispatched.model_validate({**event.wire(), "later": 1}) == event


def test_fields_are_read_under_both_names() -> None:
    by_wire = PromptInput.model_validate({"text": "hi", "files": [{"uri": "file:///a"}]})

    assert by_wire == PromptInput(text="hi", files=(FileInput(uri="file:///a"),))
    assert AdmitPrompt.model_validate({"sessionID": "ses_1", "prompt": {"text": "hi"}}) == (
        AdmitPrompt(session_id="ses_1", prompt=PromptInput(text="hi"))
    )


def test_a_process_that_serves_others_builds_every_validator_at_its_start() -> None:
    class Inner(Model):
        seq: int

    class Outer(Inner):
        inner: Inner

    before = Outer.__pydantic_complete__
    build_models(Inner)

    assert (before, Outer.__pydantic_complete__) == (False, True)
    assert Outer(seq=1, inner=Inner(seq=2)).wire() == {"seq": 1, "inner": {"seq": 2}}
