"""The events of a fork: those of a session up to a message, under the ids of the new session."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fairlead_schema.events import InputCancelled, SessionEvent
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import MessageId, SessionId
from fairlead_session.execution.commands import interrupt
from fairlead_session.state.session import Session
from fairlead_session.transfer.copy_ids import CopiedIds
from fairlead_session.transfer.events import StoredEvent

# These name a message before it is part of the conversation.
_BEFORE_ITS_MESSAGE: Final = frozenset(
    {
        "prompt.admitted",
        "input.edited",
        "input.cancelled",
        "attempt.dispatched",
        "shell.requested",
    }
)


def fork_events(
    events: Sequence[StoredEvent],
    source: SessionId,
    fork: SessionId,
    *,
    message_id: MessageId | None = None,
    by: PrincipalName | None = None,
) -> list[StoredEvent]:
    """The copied events before a message, or all of them; none if no event brings the message.

    The fork belongs to the principal that asks for it. Outputs and sub-agents stay those of the source.
    """
    end = len(events) if message_id is None else _first_of(events, message_id)
    ids = CopiedIds(source, fork, within_tenant=True)
    copied = [ids.event(source, event) for event in events[:end]]
    if copied and by is not None:
        copied[0] = {**copied[0], "by": by}
    return copied


def _first_of(events: Sequence[StoredEvent], message_id: MessageId) -> int:
    """Where the first event of a message stands; 0 if there is none."""
    for place, event in enumerate(events):
        named = {event["data"].get("messageID"), event["data"].get("assistantMessageID")}
        if message_id in named and event["type"] not in _BEFORE_ITS_MESSAGE:
            return place
    return 0


def leave_to_original(session: Session) -> tuple[SessionEvent, ...]:
    """Withdraw the input that waits in a fresh copy, and stop what is open: both belong to the original.

    All of it is one commit. A copy that has an event of its own has it behind itself.
    """
    if session.execution.imported_through != session.seq:
        return ()
    inbox = session.inbox
    prompts = [item.message_id for item in inbox.pending]
    # The commands of a prompt leave with it.
    commands = [shell.message_id for shell in inbox.shells if shell.prompt_id not in prompts]
    without_input = replace(session, inbox=replace(inbox, pending=(), shells=()))
    withdrawn = (InputCancelled(message_id=id_) for id_ in (*prompts, *commands))
    return (*withdrawn, *interrupt(without_input))
