"""A session as readers see it, from its folded state."""

from fairlead_schema.catalog import ModelRef
from fairlead_schema.session_info import SessionInfo, SessionTime
from fairlead_session.state.session import Session


def info(session: Session) -> SessionInfo:
    """The public description of a session. A model always shows its variant."""
    profile = session.profile
    assert profile is not None, "only a created session has a description"
    return SessionInfo(
        id=session.id,
        parent_id=profile.parent_id,
        project_id=profile.project_id,
        agent=profile.agent,
        model=with_variant(profile.model),
        cost=session.usage.cost,
        tokens=session.usage.tokens,
        time=SessionTime(
            created=profile.created, updated=profile.updated, archived=profile.archived
        ),
        title=profile.title,
        location=profile.location,
        subpath=profile.subpath or None,
        revert=profile.revert,
    )


def with_variant(model: ModelRef | None) -> ModelRef | None:
    """The model with its variant spelled out."""
    if model is None or model.variant is not None:
        return model
    return model.model_copy(update={"variant": "default"})
