"""A session as readers see it: from its folded state, or from a stored description."""

from fairlead_schema.session_info import ChildrenUsage, SessionInfo, SessionTime
from fairlead_session.state.file_changes import change_summary
from fairlead_session.state.session import Session
from fairlead_session.state.usage import ChildUsage


def info(session: Session) -> SessionInfo:
    """The public description of a session."""
    profile = session.profile
    assert profile is not None, "only a created session has a description"
    described = SessionInfo(
        id=session.id,
        parent_id=profile.parent_id,
        project_id=profile.project_id,
        agent=profile.agent,
        model=profile.model,
        cost=session.usage.cost,
        tokens=session.usage.tokens,
        time=SessionTime(
            created=profile.created, updated=profile.updated, archived=profile.archived
        ),
        title=profile.title,
        location=profile.location,
        subpath=profile.subpath,
        pool=profile.pool,
        revert=profile.revert,
        metadata=dict(profile.metadata) or None,
        models=session.usage.models or None,
        children=children_usage(session.usage.children),
        summary=change_summary(session.file_changes),
    )
    return client_session(described)


def children_usage(children: ChildUsage) -> ChildrenUsage | None:
    """What the sub-agents have used, as readers see it; None if there is nothing to tell."""
    if not children.cost and not children.tokens:
        return None
    return ChildrenUsage(cost=children.cost, tokens=children.tokens)


def client_session(stored: SessionInfo) -> SessionInfo:
    """A session as clients expect it: its model has a variant, and an empty subpath is absent."""
    model = stored.model
    if model is not None and model.variant is None:
        model = model.model_copy(update={"variant": "default"})
    return stored.model_copy(update={"model": model, "subpath": stored.subpath or None})
