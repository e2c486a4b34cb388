"""What else belongs to the export of a session: outputs, attachments and sub-agents that a commit names."""

from typing import Final, NamedTuple

from fairlead_schema.attachments.reference import ATTACHMENT_PREFIX
from fairlead_schema.events import ToolCalled
from fairlead_schema.ids import AttachmentId, OutputId, SessionId
from fairlead_schema.record import RecordError, decode
from fairlead_schema.tools.content import MANAGED_PREFIX
from fairlead_session.calls.child_ids import TASK, child_of
from fairlead_session.transfer.events import named_outputs

_SIGNS: Final = (MANAGED_PREFIX.encode(), ATTACHMENT_PREFIX.encode(), f'"{TASK}"'.encode())


class CommitNames(NamedTuple):
    """The ids in one commit, in order."""

    outputs: tuple[OutputId | AttachmentId, ...] = ()
    children: tuple[SessionId, ...] = ()


def named_by_commit(session_id: SessionId, payload: bytes) -> CommitNames:
    """What a commit names. Most commits name nothing, and one that cannot be read names nothing either."""
    if not any(sign in payload for sign in _SIGNS):
        return CommitNames()
    try:
        events = [recorded.event for recorded in decode(payload).events]
    except RecordError:
        return CommitNames()  # The export keeps the bytes. Who verifies it names the place.
    outputs = [output_id for event in events for output_id in named_outputs(event)]
    children = [
        child_of(session_id, event.assistant_message_id, event.call_id)
        for event in events
        if isinstance(event, ToolCalled) and event.tool == TASK
    ]
    return CommitNames(tuple(outputs), tuple(children))
