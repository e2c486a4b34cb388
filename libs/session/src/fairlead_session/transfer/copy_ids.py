"""New ids for a copy of exported sessions: every id is replaced, everywhere, and always by the same one.

The new ids follow from the old ones and from the id of the copy. So an import that died is repeated
with the same ids, and finds what it wrote.
"""

from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from typing import Any, Final, TypeAlias, get_args

from pydantic import BaseModel, StringConstraints

from fairlead_schema.attachments.reference import is_attachment
from fairlead_schema.events import BY_TYPE, SessionCreated, ToolCalled
from fairlead_schema.ids import (
    AttachmentId,
    AttemptId,
    CallId,
    EventId,
    MessageId,
    OutputId,
    PermissionId,
    QuestionId,
    SessionId,
    is_minted,
    seal,
)
from fairlead_schema.model import wire_name
from fairlead_schema.tools.content import MANAGED_PATH, managed_path
from fairlead_session.calls.child_ids import child_of, first_prompt
from fairlead_session.transfer.events import StoredEvent

_KEPT: Final = 16
"""The beginning of an id says its kind and its time: clients sort by it."""
_NOISE: Final = 10

_Path: TypeAlias = tuple[str, ...]
_COPIED: Final = frozenset(
    get_args(kind)[1].pattern
    for kind in (AttemptId, EventId, MessageId, PermissionId, QuestionId, SessionId)
)
_SESSION: Final = get_args(SessionId)[1].pattern


class CopiedIds:
    """The ids of one copy. Parents come before their children."""

    def __init__(self, root: SessionId, copy: SessionId, *, within_tenant: bool = False) -> None:
        """A copy within its tenant can read the outputs of the original, and names its sub-agents."""
        self._root = root
        self._within_tenant = within_tenant
        self._copy = copy
        self._sessions: dict[SessionId, SessionId] = {root: copy}
        self._prompts: dict[MessageId, MessageId] = {}

    def session(self, old: SessionId) -> SessionId:
        """The id of the copy of a session. A session that is not in the export keeps its own."""
        return self._sessions.get(old, old)

    def output(self, old: OutputId | AttachmentId) -> OutputId | AttachmentId:
        """The id of the copy of a managed output. An attachment has the id of its content."""
        return old if is_attachment(old) else self._derive(old)

    def message(self, old: MessageId) -> MessageId:
        """The id of the copy of a message."""
        return self._prompts.get(old) or self._derive(old)

    def event(self, session_id: SessionId, event: StoredEvent) -> StoredEvent:
        """An event of a session, with the ids of the copy. Its parent is not copied above the root."""
        kind, data = BY_TYPE.get((event["type"], event["version"])), event["data"]
        if kind is ToolCalled and not self._within_tenant:
            self._note_child(session_id, data["assistantMessageID"], data["callID"])
        if kind is not None:
            data = _replace(data, _id_places(kind), self._replace_id)
        if kind is SessionCreated and session_id == self._root:
            data = {key: value for key, value in data.items() if key != "parentID"}
        return {**event, "id": self._derive(event["id"]), "data": self._rename(data)}

    def _note_child(self, parent: SessionId, message_id: MessageId, call_id: CallId) -> None:
        """The child of a call has the id that follows from its call, in the copy too."""
        old = child_of(parent, message_id, call_id)
        new = child_of(self.session(parent), self.message(message_id), call_id)
        self._sessions[old] = new
        self._prompts[first_prompt(old)] = first_prompt(new)

    def _replace_id(self, old: str, pattern: str) -> str:
        return self.session(old) if pattern == _SESSION else self.message(old)

    def _derive(self, old: str) -> str:
        kept = old[:_KEPT]
        unsealed = kept + sha256(f"{self._copy}\n{old}".encode()).hexdigest()[:_NOISE]
        # A seal says that Fairlead minted the id. No seal ends in an underscore.
        return unsealed + (seal(unsealed) if is_minted(old) else "_")

    def _rename(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Results name child sessions, and texts name the paths of outputs: the model reads them there."""
        match value:
            case str():
                if value in self._sessions:
                    return self._sessions[value]
                if self._within_tenant:
                    return value
                return MANAGED_PATH.sub(lambda path: managed_path(self._derive(path[1])), value)
            case list():
                return [self._rename(item) for item in value]
            case dict():
                return {key: self._rename(item) for key, item in value.items()}
            case _:
                return value


def _replace(
    value: Any,  # noqa: ANN401 - any JSON
    places: Mapping[_Path, str],
    new_id: Callable[[str, str], str],
    path: _Path = (),
) -> Any:  # noqa: ANN401 - any JSON
    """A value with new ids at some places."""
    match value:
        case str():
            pattern = places.get(path)
            return value if pattern is None else new_id(value, pattern)
        case list():
            return [_replace(item, places, new_id, path) for item in value]
        case dict():
            return {
                key: _replace(item, places, new_id, (*path, key)) for key, item in value.items()
            }
        case _:
            return value


@cache
def _id_places(kind: type[BaseModel]) -> Mapping[_Path, str]:
    """Where the data of an event holds ids that a copy replaces, from the types of its fields."""
    places: dict[_Path, str] = {}
    for name, field in kind.model_fields.items():
        patterns = [getattr(item, "pattern", None) for item in field.metadata]
        _note_places(field.annotation, (wire_name(name),), places, patterns)
    return places


def _note_places(
    annotation: Any,  # noqa: ANN401 - any type
    path: _Path,
    places: dict[_Path, str],
    patterns: list[Any],
) -> None:
    constraints = [item for item in get_args(annotation) if isinstance(item, StringConstraints)]
    for pattern in (*patterns, *(item.pattern for item in constraints)):
        if pattern in _COPIED:
            places[path] = str(pattern)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for inner, pattern in _id_places(annotation).items():
            places[(*path, *inner)] = pattern
        return
    for inner_type in get_args(annotation):
        _note_places(inner_type, path, places, [])
