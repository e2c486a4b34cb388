"""Which session answers which call: its id follows from the call, for ever the same."""

from hashlib import sha256
from typing import Final

from fairlead_schema.ids import CallId, MessageId, SessionId

TASK: Final = "task"


def child_of(parent: SessionId, assistant_message_id: MessageId, call_id: CallId) -> SessionId:
    """The session that answers a call."""
    key = f"{parent}\n{assistant_message_id}\n{call_id}"
    return f"ses_{sha256(key.encode()).hexdigest()[:32]}"


def first_prompt(child: SessionId) -> MessageId:
    """The prompt that a call puts to its session."""
    return f"msg_{sha256(child.encode()).hexdigest()[:32]}"
