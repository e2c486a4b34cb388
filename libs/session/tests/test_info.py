"""The public face of a session."""

import pytest
from libs.session.tests.conftest import CREATED, MODEL, claimed, dispatched, given, ms, step_started

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    ChildFinished,
    CompactionUsed,
    ModelSwitched,
    SessionArchived,
    SessionMoved,
    StepEnded,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.session_info import ChildrenUsage, ModelUsage
from fairlead_session.info import info


def test_a_session_shows_what_it_was_created_with() -> None:
    """A-09: title, project, place, agent, model and parent, exactly as given."""
    model = MODEL.model_copy(update={"variant": "high"})
    place = LocationRef(directory="/work", workspace_id="wrk_1")
    created = CREATED.model_copy(
        update={"agent": "plan", "model": model, "parent_id": "ses_0", "location": place}
    )

    session_info = info(given(created))

    assert (session_info.id, session_info.agent, session_info.model) == ("ses_1", "plan", model)
    assert (session_info.parent_id, session_info.location) == ("ses_0", place)
    assert (session_info.time.created, session_info.time.updated, session_info.time.archived) == (
        ms(1),
        ms(1),
        None,
    )
    assert (session_info.cost, session_info.tokens.input) == (0, 0)


def test_a_model_without_variant_shows_the_default_one() -> None:
    """I-40: readers always see a variant, and never an empty subpath."""
    moved = SessionMoved(location=LocationRef(directory="/else"), subdirectory="")

    session_info = info(given(CREATED, ModelSwitched(message_id="msg_1", model=MODEL), moved))

    assert session_info.model is not None
    assert session_info.model.variant == "default"
    assert session_info.subpath is None
    assert session_info.location.directory == "/else"


def test_an_archived_session_says_when() -> None:
    """I-19: archiving is a change of its own."""
    session_info = info(given(CREATED, SessionArchived()))

    assert (session_info.time.archived, session_info.time.updated) == (ms(2), ms(2))


def test_a_session_that_was_never_created_has_no_face() -> None:
    """A-10: there is nothing to show."""
    with pytest.raises(AssertionError, match="created"):
        info(given())


def test_what_a_session_used_is_told_by_model_and_for_its_sub_agents() -> None:
    """P-28, D17: compactions count, a variant is no other model, and children stand apart."""
    slow = ModelRef(provider_id="acme", id="slow")
    used = CompactionUsed(message_id="msg_c", model=slow, cost=0.5, tokens=Tokens(input=7))
    ended = StepEnded(
        assistant_message_id="msg_a", finish="stop", cost=0.25, tokens=Tokens(output=3)
    )
    child = ChildFinished(session_id="ses_child", cost=2.0, tokens=90)
    session = given(CREATED, claimed(), dispatched(), step_started(), ended, used, used, child)

    told = info(session)

    assert told.models == (
        ModelUsage(model=MODEL, requests=1, cost=0.25, tokens=Tokens(output=3)),
        ModelUsage(model=slow, requests=2, cost=1.0, tokens=Tokens(input=14)),
    )
    assert (told.cost, told.tokens) == (1.25, Tokens(input=14, output=3))
    assert told.children == ChildrenUsage(cost=2.0, tokens=90)


def test_a_session_without_use_tells_none() -> None:
    told = info(given(CREATED))

    assert (told.models, told.children, told.summary) == (None, None, None)
