"""Events as a transfer carries them: the stored JSON of each event, with the caller of its commit."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from pydantic_core import from_json

from fairlead_schema.attachments.reference import attachment_id
from fairlead_schema.events import (
    InputEdited,
    PermissionAsked,
    PromptAdmitted,
    PromptPromoted,
    QuestionAsked,
    SessionEvent,
    SessionStored,
    ToolProgressed,
    ToolSucceeded,
)
from fairlead_schema.ids import AttachmentId, OutputId, SessionId
from fairlead_schema.record import (
    LEVEL_NEWEST,
    ImportMark,
    MalformedCommit,
    NewerCommit,
    Recorded,
    RecordError,
    decode_event,
)
from fairlead_schema.tools.content import FileContent, managed_id

StoredEvent: TypeAlias = dict[str, Any]
"""`{id, seq, type, version, time, data}`, and `by` if somebody caused it."""

_MARKER: Final = f'"{SessionStored.type}"'.encode()
_FIELDS: Final = frozenset({"id", "seq", "type", "version", "time", "data", "by"})


def stored_events(payload: bytes) -> list[StoredEvent]:
    """The events of a commit, each with its caller. Raises MalformedCommit."""
    try:
        raw = from_json(payload)
    except ValueError as error:
        raise MalformedCommit(str(error)) from error
    return commit_events(raw)


def is_marker(payload: bytes) -> bool:
    """Whether a commit is the marker of a stored session, which belongs into no export."""
    if _MARKER not in payload:
        return False
    try:
        events = stored_events(payload)
    except RecordError:
        return False
    return any(event.get("type") == SessionStored.type for event in events)


def commit_events(raw: Any) -> list[StoredEvent]:  # noqa: ANN401 - any JSON
    """The events of the JSON of a commit, each with its caller. Raises RecordError."""
    try:
        if (level := raw.get("level", LEVEL_NEWEST)) > LEVEL_NEWEST:
            raise NewerCommit(f"commit of level {level}")
        by, events = raw.get("by"), raw["events"]
        if by is None:
            return list(events)
        return [{**event, "by": event.get("by", by)} for event in events]
    except (KeyError, TypeError, AttributeError) as error:
        raise MalformedCommit(str(error)) from error


def decode_stored(
    events: Sequence[StoredEvent], mark: ImportMark | None = None
) -> tuple[Recorded, ...]:
    """Decode events as the log does, perhaps with the mark of an import. Raises RecordError."""
    try:
        for event in events:
            if not event.keys() <= _FIELDS:
                raise MalformedCommit(f"unknown keys {sorted(event.keys() - _FIELDS)[:3]}")
            if not isinstance(event.get("by"), str | None):
                raise MalformedCommit(f"by is {event['by']!r} and must be the name of a principal")
        return tuple([decode_event(event, event.get("by"), mark) for event in events])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedCommit(str(error)) from error


NAMES_SESSION: Final = frozenset({PermissionAsked, QuestionAsked})
"""The events that say which session they belong to."""
NAMES_OUTPUT: Final = frozenset(
    {PromptAdmitted, PromptPromoted, InputEdited, ToolSucceeded, ToolProgressed}
)
"""The events that may name outputs and attachments."""


def named_session(event: SessionEvent) -> SessionId | None:
    """The session that an event says it belongs to; None if it names none."""
    if isinstance(event, PermissionAsked | QuestionAsked):
        return event.request.session_id
    return None


def named_outputs(event: SessionEvent) -> Iterable[OutputId | AttachmentId]:
    """The managed outputs and the stored attachments that an event names."""
    if isinstance(event, PromptAdmitted | PromptPromoted | InputEdited):
        for file in event.prompt.files or ():
            contents = (file.uri, None if file.content is None else file.content.uri)
            yield from (id_ for uri in contents if uri and (id_ := attachment_id(uri)))
    if not isinstance(event, ToolSucceeded | ToolProgressed):
        return
    uris = (item.uri for item in event.content if isinstance(item, FileContent))
    paths = event.output_paths if isinstance(event, ToolSucceeded) else None
    for path in (*(paths or ()), *uris):
        output_id = managed_id(path)
        if output_id is not None:
            yield output_id
