"""A new value or a changed copy equals what the constructor makes, only sooner."""

import dataclasses

import pytest
from libs.session.tests.conftest import MODEL
from pydantic import ValidationError

from fairlead_schema.message import AssistantMessage, Span
from fairlead_session.frozen import build_model, replace, replace_fields
from fairlead_session.state.execution import Execution, Owner
from fairlead_session.state.session import Session


def test_a_copy_equals_the_standard_one_and_leaves_the_value_alone() -> None:
    session = Session(id="ses_1", seq=4, calls=())
    execution = Execution(owner=Owner("rnr_1", 2))

    changed = replace(session, seq=5, execution=execution)

    assert changed == dataclasses.replace(session, seq=5, execution=execution)
    assert session == Session(id="ses_1", seq=4, calls=())
    assert replace(changed) == changed


def test_a_copy_is_as_frozen_as_the_value() -> None:
    changed = replace(Session(id="ses_1"), seq=1)

    with pytest.raises(dataclasses.FrozenInstanceError):
        changed.seq = 2  # type: ignore[misc]


def test_values_with_slots_are_replaced_too() -> None:
    owner = replace(Owner("rnr_1", 1), generation=2)

    assert owner == Owner("rnr_1", 2)
    assert not hasattr(owner, "__dict__")


def test_a_built_model_equals_the_one_that_the_constructor_makes() -> None:
    time = build_model(Span, created=1)

    built = build_model(AssistantMessage, time=time, model=MODEL, agent="build", id="msg_a")

    made = AssistantMessage(id="msg_a", agent="build", model=MODEL, time=Span(created=1))
    assert built == made
    assert built.model_dump_json() == made.model_dump_json()
    assert built.model_fields_set == set(AssistantMessage.model_fields)
    with pytest.raises(ValidationError):
        built.agent = "plan"  # type: ignore[misc]


def test_a_changed_model_equals_the_copy_that_pydantic_makes() -> None:
    message = AssistantMessage(
        id="msg_a", agent="build", model=MODEL, time=Span(created=1), finish="stop"
    )

    changed = replace_fields(message, finish="error", time=Span(created=1, completed=2))

    copied = message.model_copy(update={"finish": "error", "time": Span(created=1, completed=2)})
    assert changed == copied
    assert changed.model_dump_json() == copied.model_dump_json()
    assert changed.model_fields_set == copied.model_fields_set
    assert message.finish == "stop"
