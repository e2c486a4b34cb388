"""Ids of child sessions. The id of a child follows from its call and never changes."""

from hashlib import sha256
from typing import Final

from fairlead_schema.ids import CallId, MessageId, SessionId

TASK: Final = "task"


def child_of(parent: SessionId, assistant_message_id: MessageId, call_id: CallId) -> SessionId:
    """The id of the session that answers a call."""
    key = f"{parent}\n{assistant_message_id}\n{call_id}"
    return f"ses_{sha256(key.encode()).hexdigest()[:32]}"


def first_prompt(child: SessionId) -> MessageId:
    """The id of the prompt that a call sends to its child session."""
    return f"msg_{sha256(child.encode()).hexdigest()[:32]}"
