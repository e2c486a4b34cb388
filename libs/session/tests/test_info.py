"""The public face of a session."""

import pytest
from libs.session.tests.conftest import CREATED, MODEL, given, ms

from fairlead_schema.events import ModelSwitched, SessionArchived, SessionMoved
from fairlead_schema.location import LocationRef
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
