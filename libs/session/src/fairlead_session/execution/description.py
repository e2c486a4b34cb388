"""The description that people give a session: its title, and metadata for their own programs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from fairlead_schema.events import SessionDescribed, SessionEvent
from fairlead_schema.session_values.metadata import METADATA_KEYS_MAX, MetadataValue
from fairlead_session.execution.commands import SessionIsArchived, is_archived
from fairlead_session.state.session import Profile, Session

MetadataChanges: TypeAlias = Mapping[str, MetadataValue | None]
"""New values by key. None removes a key."""


@dataclass(frozen=True, slots=True)
class TooMuchMetadata:
    """The session would have more keys than a session may have."""

    keys: int


def describe(
    session: Session, title: str | None, changes: MetadataChanges | None
) -> tuple[SessionEvent, ...] | SessionIsArchived | TooMuchMetadata:
    """Name the session and merge metadata. What is so already writes nothing."""
    if is_archived(session):
        return SessionIsArchived(session.id)
    profile = session.profile
    if profile is None:
        return ()
    merged = {**profile.metadata, **(changes or {})}
    metadata = {key: value for key, value in merged.items() if value is not None}
    if len(metadata) > METADATA_KEYS_MAX:
        return TooMuchMetadata(len(metadata))
    described = SessionDescribed(
        title=None if title is None or _is_named(profile, title) else title,
        metadata=None if _is_same(metadata, profile.metadata) else metadata,
    )
    return () if described == SessionDescribed() else (described,)


def _is_named(profile: Profile, title: str) -> bool:
    """Whether somebody chose this title. The first words of a prompt are no choice."""
    return profile.title == title and profile.titling.words is None


def _is_same(one: Mapping[str, MetadataValue], other: Mapping[str, MetadataValue]) -> bool:
    """Whether both have the same values of the same kinds: 1 is not 1.0 for who reads them."""
    kinds = ({key: type(value) for key, value in data.items()} for data in (one, other))
    return one == other and next(kinds) == next(kinds)
